"""Summaries: their shape, their size, when an output gets one, and that equal values have equal ones."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from baton.core.graph.graph import Branch, Cap, Node, Rule, hash_of
from baton.core.log import events as ev
from baton.core.summary import MARK, summary_of
from tests.core.asked import needs_of, steps_of
from tests.core.build import FEW, JSON, Saga, child, done, program, ready, task, wait
from tests.core.graphs_of import again, limited
from tests.kit.sentences import Says

REF = "cas://sha256/" + "0" * 64
SHORTEST = 200


def size(value: Any) -> int:
    return len(msgspec.json.encode(value))


def summarise(most: int) -> Cap:
    return Cap(most=most, then="summarise")


# ---- the shape -------------------------------------------------------------------------------------------------


def test_an_object_keeps_its_keys_and_says_of_what_it_is_the_summary() -> None:
    value = {"id": 7, "rows": [{"x": number} for number in range(1_000)], "text": "y" * 5_000, "ok": True}
    short = summary_of(value, 1_000, size(value), REF)
    assert short[MARK] == {"bytes": size(value), "ref": REF}
    assert (short["id"], short["ok"]) == (7, True)
    assert short["rows"] == [
        {"x": 0},
        {"x": 1},
        {"x": 2},
        {"x": 3},
        *short["rows"][4:-1],
        {MARK: {"items": 1_000}},
    ]
    assert short["text"].endswith("… (5000 characters)")
    assert size(short) <= 1_000


def test_a_list_keeps_its_head_and_ends_with_the_mark() -> None:
    value = [{"n": number, "text": "z" * 200} for number in range(300)]
    short = summary_of(value, 600, size(value), REF)
    assert [item["n"] for item in short[:-1]] == list(range(len(short) - 1))
    assert short[-1] == {MARK: {"bytes": size(value), "ref": REF, "items": 300}}


def test_a_text_keeps_its_head_and_names_the_whole_at_its_end(says: Says) -> None:
    short = summary_of("ä" * 9_000, 600, 18_002, REF)
    assert short.startswith("ä" * 100)
    says(short)


def test_what_is_too_deep_or_too_much_says_how_much_it_was() -> None:
    deep: Any = {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": 1}}}}}}}, "l": [[[[[[[1]]]]]]], "e": {}}
    short = summary_of(deep, 10_000, 1, REF)
    assert short["a"]["b"]["c"]["d"]["e"]["f"] == {MARK: {"keys": 1}}
    assert short["l"] == [[[[[[{MARK: {"items": 1}}]]]]]]
    many = {f"k{number:03}": number for number in range(200)} | {"z": {f"k{n}": n for n in range(200)}}
    short = summary_of({"in": many, **many}, 3_000, 1, REF)
    assert short[MARK] == {"bytes": 1, "ref": REF, "keys": 202}
    assert short["in"][MARK] == {"keys": 201}


def test_the_shortest_summary_is_given_where_none_fits() -> None:
    value = {"k" * 300: [1], "b": {"deep": {}}}
    assert summary_of(value, 0, 9, REF) == {MARK: {"bytes": 9, "ref": REF, "keys": 2}}
    assert summary_of([1, 2], 0, 9, REF) == [{MARK: {"bytes": 9, "ref": REF, "items": 2}}]
    assert summary_of("text", 0, 9, REF) == f"… (4 characters, {REF})"
    assert summary_of(12, 0, 9, REF) == 12


def test_a_key_that_looks_like_the_mark_gives_way_to_it() -> None:
    assert summary_of({MARK: "mine", "a": 1}, 999, 9, REF) == {MARK: {"bytes": 9, "ref": REF}, "a": 1}


@given(JSON)
@FEW
def test_a_summary_fits_is_json_and_always_the_same(value: Any) -> None:
    for room in (0, 150, 1_000):
        short = summary_of(value, room, 1, REF)
        assert size(short) <= max(room, SHORTEST) or not isinstance(value, str | list | dict)
        assert msgspec.json.encode(summary_of(value, room, 1, REF)) == msgspec.json.encode(short)


# ---- in a saga -------------------------------------------------------------------------------------------------

LARGE = {"id": 1, "text": "x" * 3_000}


@pytest.mark.parametrize("scope", ["saga", "node"])
def test_later_steps_see_the_summary_and_the_log_names_the_whole(scope: str) -> None:
    limits = {"bytes": summarise(1_400)}
    reads = task("b", "a", arguments={"given": "${ctx.a.output}", "id": "${ctx.a.output.id}"})
    of = program(task("a", limits=limits if scope == "node" else {}), reads)
    saga = Saga(limited(of, **limits) if scope == "saga" else of)
    (step,) = steps_of(saga.go(done("a", LARGE)))
    assert step.arguments["id"] == 1
    mark = step.arguments["given"][MARK]
    assert mark == {"bytes": size(LARGE), "ref": "cas://sha256/" + hash_of(msgspec.json.encode(LARGE))}
    (event,) = saga.entries[-1].events
    assert isinstance(event, ev.StepSucceeded)
    assert event.full == ev.Value(v=LARGE)
    assert 400 < size(event.output.v) <= 700, "half of what is left"
    assert saga.state.used[saga.program.graph.nodes[0].name if scope == "node" else ""].bytes == size(
        event.output.v
    )


def test_what_fits_is_left_alone() -> None:
    saga = Saga(limited(program(task("a"), task("b", "a")), bytes=summarise(size(LARGE))))
    saga.go(done("a", LARGE))
    (event,) = saga.entries[-1].events
    assert isinstance(event, ev.StepSucceeded)
    assert (event.output.v, event.full) == (LARGE, None)


def test_what_is_no_longer_than_its_summary_is_left_alone_even_when_nothing_is_left() -> None:
    saga = Saga(limited(program(task("a"), task("b", "a")), bytes=summarise(1)))
    assert ready(saga.go(done("a", {"ok": True}))) == ["b"]
    (event,) = saga.entries[-1].events
    assert isinstance(event, ev.StepSucceeded)
    assert event.full is None


def test_the_blob_of_a_large_output_is_read_and_named_again() -> None:
    saga = Saga(limited(program(task("a"), task("b", "a")), bytes=summarise(8)))
    told = ev.Value(ref=REF, size=size(LARGE))
    outcome = replace(done("a"), output=told)
    assert needs_of(saga.go(outcome)) == {REF}
    saga.go(outcome, blobs={REF: LARGE})
    (event,) = saga.entries[-1].events
    assert isinstance(event, ev.StepSucceeded)
    assert event.full == told
    assert event.output.v[MARK] == {"bytes": size(LARGE), "ref": REF, "keys": 2}


def test_the_node_itself_decides_by_the_whole() -> None:
    whole = Branch(rules=(Rule(condition=again(), then=("b",)),), choose="", default=())
    chosen = Branch(choose="output.next", among=("b", "c"))
    for branch in (whole, chosen):
        saga = Saga(
            program(task("a", branch=branch, limits={"bytes": summarise(1)}), task("b", "a"), task("c", "a"))
        )
        given = {"next": "b", "text": "x" * 9_000}
        assert ready(saga.go(done("a", given)))[0] == "b"


def test_values_payloads_and_results_of_children_are_summarised_too() -> None:
    nodes = (
        Node(name="p", kind="pass", value=LARGE),
        wait("w", signal="s"),
        child("k"),
        task("z", "p", "w", "k"),
    )
    saga = Saga(limited(program(*nodes), bytes=summarise(2_000)))
    saga.go()
    saga.signal("s", LARGE)
    told = ev.Value(v=LARGE)
    saga.put(ev.ChildReported(slot="k", child=saga.state.children["k"].saga, status="completed", output=told))
    saga.go()
    shown = [event for entry in saga.entries for event in entry.events if isinstance(event, ev.Gives)]
    assert [str(event.__struct_config__.tag) for event in shown] == [
        "node_passed",
        "wait_closed",
        "child_closed",
    ]
    assert all(event.full == told for event in shown)
    assert saga.state.used[""].bytes < 2_000


def test_a_limit_that_terminates_counts_the_summary() -> None:
    limits = {"bytes": Cap(most=600)}
    of = program(task("a", limits=limits), task("b", "a"))
    saga = Saga(limited(of, bytes=summarise(1_000)))
    assert ready(saga.go(done("a", LARGE))) == ["b"]
