"""A node is done for each item of a list: when items begin, when the map is done or has failed, and what it says of each item."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.scopes import Map
from baton.core.log.slots import slot_of
from baton.core.log.state import status_of
from baton.core.nodes.map import TOGETHER
from tests.core.asked import steps_of
from tests.core.build import Saga, done, failed, ready, replay
from tests.core.nodes.maps import map_of
from tests.kit.sentences import Says

LETTERS = ["a", "b", "c", "d", "e"]
VALUE = Node(name="m", kind="pass", value={"is": "${item}", "at": "${index}"})


def begun(graph: Any, items: Any = LETTERS) -> Saga:
    saga = Saga(graph, {"l": items})
    saga.go()
    return saga


def outcome(saga: Saga) -> Any:
    assert saga.state.ended is not None
    assert replay(saga.entries) == saga.state
    return saga.state.ended.output.v


def failure(saga: Saga) -> ev.Failure:
    assert replay(saga.entries) == saga.state
    assert saga.state.failure is not None
    return saga.state.failure


def fates(batch: Any) -> list[str]:
    return [one["status"] for one in batch["results"]]


def settled(saga: Saga, *outcomes: Any) -> list[str]:
    """Those that end, while the others that run go on."""
    over = {one.slot for one in outcomes}
    running = [slot for slot, value in saga.state.items.items() if value is None and slot not in over]
    return ready(saga.go(*outcomes, running=running))


# ---- it runs


def test_items_get_their_values_and_results_come_in_the_order_of_the_list() -> None:
    saga = begun(map_of())
    steps = steps_of(saga.decision)
    assert [(step.slot, step.arguments) for step in steps] == [
        (f"m#{index}", {"x": letter, "at": index}) for index, letter in enumerate(LETTERS)
    ]
    for index in (3, 0, 4, 2):
        assert settled(saga, done(f"m#{index}", index * 10)) == []
    settled(saga, done("m#1", 10))
    assert outcome(saga) == [0, 10, 20, 30, 40]
    assert (saga.state.items, saga.state.open) == ({}, {})


def test_no_more_are_at_work_than_may_be_and_the_next_begins_in_the_entry_of_one_that_ends() -> None:
    saga = begun(map_of(at_once=2))
    assert ready(saga.decision) == ["m#0", "m#1"]
    entries = len(saga.entries)
    assert settled(saga, done("m#1")) == ["m#2"]
    assert settled(saga, done("m#0"), done("m#2")) == ["m#3", "m#4"]
    assert len(saga.entries) == entries + 2
    settled(saga, done("m#3"), done("m#4"))
    assert status_of(saga.state) == "completed"


@pytest.mark.parametrize(("more", "output"), [({}, []), ({"tolerated": 1}, 0)])
def test_an_empty_list_is_done_at_once(more: dict[str, Any], output: Any) -> None:
    given = outcome(begun(map_of(**more), []))
    assert (given if output == [] else given["succeeded"], len(given) > 0) == (output, output == 0)


def test_one_item_is_a_list_of_one() -> None:
    saga = begun(map_of(), ["x"])
    settled(saga, done("m#0", 1))
    assert outcome(saga) == [1]


@pytest.mark.no_cover
def test_values_of_a_whole_list_are_made_in_one_entry() -> None:
    saga = begun(map_of(VALUE), list(range(1_000)))
    assert outcome(saga) == [{"is": n, "at": n} for n in range(1_000)]
    assert len(saga.entries) == 2


@pytest.mark.no_cover
def test_a_state_holds_what_is_at_work_and_little_more() -> None:
    saga = begun(map_of(at_once=50), list(range(1_000)))
    most = 0
    for first in range(0, 1_000, 50):
        settled(saga, *[done(f"m#{n}", n) for n in range(first, first + 50)])
        most = max(most, len(saga.state.items))
    assert outcome(saga) == list(range(1_000))
    assert most <= TOGETHER + 50


@pytest.mark.parametrize(
    "items",
    [
        "abc",
        {"a": 1},
        7,
        [0] * 1_001,
    ],
)  # fmt: skip
def test_what_it_cannot_begin_with(items: Any, says: Says) -> None:
    found = failure(begun(map_of(), items))
    assert found.code == "map_invalid"
    says(found.message)


def test_a_list_of_children_has_another_bound(says: Says) -> None:
    do = Node(name="m", kind="workflow", workflow="w", arguments={"x": "${item}"})
    says(failure(begun(map_of(do, most=3))).message)


# ---- it fails


def test_the_first_item_that_fails_fails_the_node_with_its_own_failure() -> None:
    saga = begun(map_of(at_once=2))
    settled(saga, failed("m#1", "business_rule"))
    found = failure(saga)
    assert (found.code, found.message, found.node) == ("business_rule", "item 1: it broke", "m")
    assert [one.node for one in found.errors] == ["m#1"]


def test_what_catches_it_reads_what_became_of_each_item() -> None:
    saga = begun(map_of(at_once=2, caught=True))
    settled(saga, done("m#0", 1))
    settled(saga, failed("m#1", "business_rule"))
    said = outcome(saga)["h"]
    assert said["code"] == "business_rule"
    assert {key: value for key, value in said["batch"].items() if key != "results"} == {
        "succeeded": 1, "failed": 1, "stopped": 1, "not_begun": 2,
    }  # fmt: skip
    assert said["batch"]["results"][:4] == [
        {"index": 0, "status": "succeeded", "output": 1},
        {"index": 1, "status": "failed", "error": {"code": "business_rule", "message": "it broke"}},
        {"index": 2, "status": "stopped"},
        {"index": 3, "status": "not_begun"},
    ]


def test_with_a_tolerance_it_is_done_and_says_of_each_item_what_became_of_it() -> None:
    saga = begun(map_of(tolerated=1))
    settled(saga, failed("m#2"), *[done(f"m#{n}", n) for n in (0, 1, 3, 4)])
    batch = outcome(saga)
    assert fates(batch) == ["succeeded", "succeeded", "failed", "succeeded", "succeeded"]
    assert (batch["succeeded"], batch["failed"]) == (4, 1)


def test_one_failure_too_many_fails_it_at_once_and_stops_the_rest() -> None:
    saga = begun(map_of(tolerated=1, at_once=3, caught=True))
    settled(saga, failed("m#0"))
    settled(saga, failed("m#2"))
    said = outcome(saga)["h"]
    assert (said["code"], len(said["errors"])) == ("map_failed", 2)
    assert fates(said["batch"]) == ["failed", "stopped", "failed", "stopped", "not_begun"]


def test_the_message_says_how_many_failed_and_the_first_of_them(says: Says) -> None:
    saga = begun(map_of(tolerated=1))
    settled(saga, failed("m#0"), failed("m#2"))
    says(failure(saga).message)
    saga = begun(map_of(tolerated=0))
    settled(saga, failed("m#0"))
    says(failure(saga).message)


def test_a_share_is_rounded_down() -> None:
    saga = begun(map_of(share=39))  # of five, one
    settled(saga, failed("m#0"), *[done(f"m#{n}") for n in range(1, 5)])
    assert status_of(saga.state) == "completed"
    saga = begun(map_of(share=39))
    settled(saga, failed("m#0"), failed("m#1"))
    assert failure(saga).code == "map_failed"


def test_all_items_are_done_first_where_the_rest_runs() -> None:
    saga = begun(map_of(tolerated=0, rest="run", at_once=1, caught=True))
    for index in range(5):
        settled(saga, failed("m#0") if not index else done(f"m#{index}"))
    assert fates(outcome(saga)["h"]["batch"]) == ["failed", *["succeeded"] * 4]


def test_it_is_done_as_soon_as_enough_have_succeeded() -> None:
    saga = begun(map_of(need=2, at_once=3))
    settled(saga, failed("m#0"), done("m#1"))
    settled(saga, done("m#3"))
    batch = outcome(saga)
    assert fates(batch) == ["failed", "succeeded", "stopped", "succeeded", "stopped"]
    assert [
        event.stopped for one in saga.entries for event in one.events if isinstance(event, ev.MapClosed)
    ] == [2]


def test_it_fails_as_soon_as_too_few_are_left(says: Says) -> None:
    saga = begun(map_of(need=4))
    settled(saga, failed("m#0"))
    assert status_of(saga.state) == "running"
    settled(saga, failed("m#1"))
    says(failure(saga).message)


@pytest.mark.parametrize(
    ("need", "given", "message"),
    [
        (1, [], "the list has 0 items, and 1 has to succeed"),
        (2, ["a"], "the list has 1 item, and 2 have to succeed"),
        (5, ["a", "b", "c"], "the list has 3 items, and 5 have to succeed"),
    ],
)
@pytest.mark.parametrize("rest", ["cancel", "run"])
def test_of_a_list_that_is_too_short_no_item_begins(
    need: int, given: list[str], message: str, rest: str
) -> None:
    saga = begun(map_of(need=need, rest=rest), given)
    found = failure(saga)
    assert (found.code, found.message) == ("map_failed", message)
    assert not any(isinstance(event, ev.MapBegan) for entry in saga.entries for event in entry.events)


def test_enough_may_succeed_and_too_many_fail_all_the_same(says: Says) -> None:
    saga = begun(map_of(need=3, tolerated=1))
    settled(saga, failed("m#0"), failed("m#1"))
    says(failure(saga).message)


def test_failures_of_items_that_left_the_state_count() -> None:
    count = TOGETHER + 10
    saga = begun(map_of(tolerated=2, at_once=TOGETHER), list(range(count)))
    settled(saga, failed("m#5"), *[done(f"m#{n}") for n in range(TOGETHER) if n != 5])
    work = saga.state.open["m"]
    assert isinstance(work, Map)
    assert (work.gathered, work.lost, work.failures) == (TOGETHER, 1, {})
    settled(saga, *[done(f"m#{n}") for n in range(TOGETHER, count)])
    assert (outcome(saga)["failed"], outcome(saga)["succeeded"]) == (1, count - 1)


def test_what_it_gives_may_be_too_large() -> None:
    twice = Node(name="m", kind="pass", value=["${item}", "${item}"])
    assert failure(begun(map_of(twice), ["x" * 600_000] * 5)).code == "value_too_large"


def test_of_outputs_that_are_too_large_the_batch_result_has_the_fates_alone() -> None:
    size = {"x": "x" * 1_400_000}
    saga = begun(map_of(tolerated=0, rest="run", caught=True))
    settled(saga, failed("m#0"), *[done(f"m#{n}", size) for n in range(1, 5)])
    settled(saga, done("m#4", size))
    assert fates(outcome(saga)["h"]["batch"]) == ["failed", *["succeeded"] * 4]
    assert outcome(saga)["h"]["batch"]["results"][1] == {"index": 1, "status": "succeeded", "output": None}


def test_a_person_is_told_of_an_item_that_is_stopped_while_it_acts() -> None:
    once = Node(name="m", kind="task", tool="t", arguments={}, effect="once")
    saga = begun(map_of(once, need=1, at_once=2))
    settled(saga, done("m#1"))
    told = [event.notice for one in saga.entries for event in one.events if isinstance(event, ev.NoticeDue)]
    assert [(one.code, one.key.rpartition("/")[2]) for one in told] == [("unknown_outcome", "0.m#0.stopped")]


# ---- an item is a step of its own


def test_an_item_has_attempts_of_its_own() -> None:
    graph = map_of()
    patient = type(graph)(
        type(graph.graph)(name="w", nodes=graph.graph.nodes, output="${ctx.m.output}"), graph.kinds
    )
    saga = begun(patient, ["a", "b"])
    settled(saga, failed("m#0", "timeout", "transient"))
    assert list(saga.state.failing) == ["m#0"]
    settled(saga, done("m#1", 2))
    (step,) = steps_of(saga.go(after_ms=60_000))
    assert (step.slot, step.attempt, step.arguments) == ("m#0", 2, {"x": "a", "at": 0})
    saga.go(done("m#0", 1, attempt=2))
    assert outcome(saga) == [1, 2]


def test_an_output_is_held_against_the_schema_of_what_each_gives(says: Says) -> None:
    do = Node(name="m", kind="task", tool="t", arguments={}, output_schema={"type": "integer"})
    saga = begun(map_of(do, tolerated=1), [1, 2])
    settled(saga, done("m#0", "x"), done("m#1", 5))
    assert outcome(saga)["results"][0]["error"]["code"] == "output_invalid"
    value = Node(name="m", kind="pass", value="${item}", output_schema={"type": "integer"})
    says(failure(begun(map_of(value), [1, "x"])).message)


def test_items_may_wait_and_end_in_any_order() -> None:
    saga = begun(map_of(Node(name="m", kind="wait", signal="go"), at_once=2), ["a", "b"])
    assert sorted(saga.state.open) == ["m", "m#0", "m#1"]
    saga.signal("go", 1, key="k1")
    saga.signal("go", 2, key="k2")
    saga.go()
    assert outcome(saga) == [1, 2]


def test_a_child_is_opened_for_each_item_and_its_end_is_that_of_the_item() -> None:
    saga = begun(map_of(Node(name="m", kind="workflow", workflow="w", arguments={"x": "${item}"}), at_once=2))
    assert [child.saga for child in saga.state.children.values()] == ["s1.0.m-0", "s1.0.m-1"]
    assert [child.input.v for child in saga.state.children.values()] == [{"x": "a"}, {"x": "b"}]
    for index in range(5):
        slot = f"m#{index}"
        child = saga.state.children[slot].saga
        saga.put(ev.ChildReported(slot=slot, child=child, status="completed", output=ev.Value(v=index)))
        saga.go()
    assert outcome(saga) == [0, 1, 2, 3, 4]


def test_children_that_are_not_needed_any_more_are_stopped() -> None:
    saga = begun(map_of(Node(name="m", kind="workflow", workflow="w", arguments={}), need=1, at_once=3))
    slot, child = "m#1", saga.state.children["m#1"].saga
    saga.put(ev.ChildReported(slot=slot, child=child, status="completed", output=ev.Value(v=1)))
    saga.go()
    saga.go()
    gone = [
        event.children
        for one in saga.entries
        for event in one.events
        if isinstance(event, ev.ChildrenAbandoned)
    ]
    assert gone == [("s1.0.m-0", "s1.0.m-2")]
    assert fates(outcome(saga)) == ["stopped", "succeeded", "stopped", "not_begun", "not_begun"]


def test_each_round_of_a_loop_has_items_of_its_own() -> None:
    assert slot_of("m", (2,), "3") == "m@2#3"


def test_a_fork_keeps_what_items_had_given_and_does_the_others_again() -> None:
    saga = begun(map_of(at_once=2))
    settled(saga, done("m#0", 1))
    cut = saga.state.version
    settled(saga, done("m#1", 2), done("m#2", 3))
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0, invocation="api")
    assert ready(saga.go()) == ["m#1", "m#2"]
    settled(saga, done("m#1", 20), done("m#2", 30))
    settled(saga, done("m#3", 40), done("m#4", 50))
    assert saga.state.ended is not None
    assert saga.state.ended.output.v == [1, 20, 30, 40, 50]


def test_events_that_come_twice_change_nothing() -> None:
    saga = begun(map_of(at_once=2))
    before = saga.state
    saga.put(
        ev.ItemsBegan(node="m", first=0, count=2, at=1),
        ev.ItemsBegan(node="x", first=0, count=2, at=1),
        ev.ItemsGathered(node="m", items=(0,), results=ev.Value(v=[])),
        ev.ItemsGathered(node="x", items=(0,), results=ev.Value(v=[])),
        ev.MapStopped(node="x", failure=ev.Failure("a", "b"), batch=ev.Value()),
    )
    assert (saga.state.items, saga.state.open, saga.state.tokens) == (
        before.items,
        before.open,
        before.tokens,
    )
