"""`baton explain`: which way a saga went, and why a node did not run, for a person and for a program."""

from __future__ import annotations

import json
from typing import Any

from baton.cli.text.render import waits
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

AT = "2026-11-22T01:58:53.455Z"


def step(version: int, node: str, **more: Any) -> dict[str, Any]:
    base = {"node": node, "iteration": [], "became": "ran", "version": version, "at": AT, "by": [""]}
    return base | {"way": "", "to": [], "not_to": [], "text": ""} | more


def page(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    base = {"saga": "s1", "workflow": "w", "status": "running", "version": 9, "branch": 0}
    return base | {"steps": list(steps), "open": [], "end": None, "next": None} | more


def test_the_way_is_a_line_for_each_node_and_what_is_open_below(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    steps = [
        step(2, "check", text="rule 2 of its branch, `output.ok`: to `pay`, not to `refuse`"),
        step(2, "refuse", became="skipped", by=[], text="`check` went another way"),
        step(3, "pay", by=["check"], iteration=[1]),
    ]
    waiting = {"node": "ask", "iteration": [], "state": "waiting", "text": "`ask` waits for the signal `go`"}
    api.on("GET /sagas/s1/explain", (200, page(*steps, open=[waiting], end="the saga was cancelled by ada")))
    says(baton("explain", "s1").stdout.splitlines())


def test_the_event_that_has_started_a_saga_stands_above_the_way(api: FakeApi, baton: Baton) -> None:
    by = "by the event `settled` from `shop` (id `e1`)"
    pages = [(200, page(step(2, "a"), next=2, start=by)), (200, page(step(3, "b"), start=None))]
    api.on("GET /sagas/s1/explain", *pages, *pages)
    assert baton("explain", "s1").stdout.splitlines()[0] == f"start  started {by}"
    assert json.loads(baton("explain", "s1", "--json").stdout)["start"] == by


def test_all_pages_are_read_and_a_program_gets_one_document(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1/explain", (200, page(step(2, "a"), next=2)), (200, page(step(3, "b"))))
    found = json.loads(baton("explain", "s1", "--json", "--after", "1").stdout)
    assert [one["node"] for one in found["steps"]] == ["a", "b"]
    assert found["next"] is None
    assert [asked.query for asked in api.asked] == [
        {"limit": "1000", "after": "1"},
        {"limit": "1000", "after": "2"},
    ]


def test_a_limit_ends_it_and_says_how_to_go_on(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /sagas/s1/explain", (200, page(step(2, "a"), step(2, "b"), next=2)))
    result = baton("explain", "s1", "--limit", "1")
    assert len(result.stdout.splitlines()) == 2
    says(result.stderr)
    assert [asked.query["limit"] for asked in api.asked] == ["1"]


def edge(sender: str, alive: bool | None, **more: Any) -> dict[str, Any]:
    return {"from": sender, "alive": alive, "late": False, "version": 2, "at": AT, "text": ""} | more


def answer(state: str, text: str, *edges: dict[str, Any], **more: Any) -> dict[str, Any]:
    base: dict[str, Any] = {"iteration": [], "state": state, "version": 3, "at": AT, "text": text}
    rest = {"causes": [], "causes_left_out": 0, "waits_for": [], "way": "", "to": [], "not_to": []}
    return base | {"edges": list(edges)} | rest | more


NODE = {
    "saga": "s1",
    "workflow": "w",
    "status": "running",
    "version": 9,
    "branch": 0,
    "node": "j",
    "kind": "task",
}


def test_a_node_is_explained_round_by_round_with_its_edges(api: FakeApi, baton: Baton, says: Says) -> None:
    edges = [
        edge("", True),
        edge("b", False, text="`b` was skipped"),
        edge("c", None),
        edge("d", True, late=True),
    ]
    rounds = [
        answer("skipped", "`j@1` did not run", edge("a", False), iteration=[1]),
        answer("joining", "`j@2` waits", *edges, iteration=[2], version=None, at=None),
    ]
    api.on("GET /sagas/s1/explain/j", (200, NODE | {"iterations": rounds, "left_out": 1}))
    says(baton("explain", "s1", "j").stdout.splitlines())
    assert json.loads(baton("explain", "s1", "j", "--json").stdout)["left_out"] == 1


def test_what_is_for_the_way_is_not_for_a_node(baton: Baton) -> None:
    for option in ("--after", "--limit"):
        result = baton("explain", "s1", "j", option, "1")
        assert (result.exit_code, "without NODE" in result.stderr) == (2, True)


def test_a_node_that_is_not_there_is_refused(api: FakeApi, baton: Baton) -> None:
    problem = {"title": "There is no such thing", "detail": "the workflow has no node `x`. Did you mean `j`?"}
    api.on("GET /sagas/s1/explain/x", (404, problem))
    result = baton("explain", "s1", "x")
    assert (result.exit_code, "Did you mean `j`?" in result.stderr) == (3, True)


def test_each_attempt_that_failed_is_a_line_below_its_round(api: FakeApi, baton: Baton, says: Says) -> None:
    attempts = [{"text": "attempt 1 failed after 2 s: timeout: no answer; tried again at once"}]
    rounds = [answer("ran", "`j` ran", edge("a", True), attempts=attempts)]
    api.on("GET /sagas/s1/explain/j", (200, NODE | {"iterations": rounds, "left_out": 0}))
    says(baton("explain", "s1", "j").stdout.splitlines()[1:])


def test_each_unit_of_its_work_is_a_line_below_its_round(api: FakeApi, baton: Baton, says: Says) -> None:
    units = [{"text": "pay: 7"}, {"text": "ship: null"}]
    rounds = [answer("ran", "`j` ran", edge("a", True), units=units)]
    api.on("GET /sagas/s1/explain/j", (200, NODE | {"iterations": rounds, "left_out": 0}))
    says(baton("explain", "s1", "j").stdout.splitlines()[1:])


def test_a_step_under_way_says_how_many_units_of_its_work_are_recorded(says: Says) -> None:
    active = {"node": "settle", "state": "ready", "units": 3}
    says(waits({"id": "s1", "status": "running", "active": [active]}, 0)[0])


def test_a_child_of_a_step_is_named_with_the_command_that_shows_it(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    open_one = {"node": "ask", "iteration": [], "state": "child", "text": "`ask` waits", "child": "s1.b"}
    api.on("GET /sagas/s1/explain", (200, page(step(2, "desk", child="s1.a", text="desk"), open=[open_one])))
    says(baton("explain", "s1").stdout.splitlines())
    run = {"node": "desk", "iteration": [], "attempt": 0, "outcome": "open", "version": None, "at": None}
    run |= {"tool": "", "input": 1, "output": None, "large_output": None, "error": None, "child": "s1.a"}
    api.on("GET /sagas/s1/steps", (200, {"steps": [run], "next": None}))
    says(baton("steps", "s1").stdout.splitlines())
