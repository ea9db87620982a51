"""What is around the items of a map: undoing, parents of children, questions, and what a map is to folds."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core.decide.handler import takes_failure
from baton.core.failures.policy import ANY, PolicyChange
from baton.core.graph.graph import Graph, Node, Undo
from baton.core.log import events as ev
from baton.core.log.scopes import ERRORS_KEPT, Map, is_index
from baton.core.log.state import State, status_of
from tests.core.asked import steps_of
from tests.core.build import done, failed, ready
from tests.core.nodes.maps import DO, map_of
from tests.core.nodes.test_map import begun, outcome, settled
from tests.core.strategies import ASK_USER
from tests.core.undo_asking import asked

UNDOES = replace(
    DO,
    effect="idempotent",
    undo={"t": Undo(step=Node(name="m", kind="task", tool="back", arguments={"n": "${step.output}"}))},
)
CHILD = Node(name="m", kind="workflow", workflow="w", arguments={})


def test_what_items_have_done_is_undone_one_by_one_the_last_first() -> None:
    saga = begun(map_of(UNDOES, at_once=3), [1, 2, 3])
    settled(saga, done("m#1", 20))
    settled(saga, done("m#0", 10))
    settled(saga, failed("m#2", "business_rule"))
    assert [(step.slot, step.arguments) for step in steps_of(saga.decision)] == [("m#undo-0", {"n": 10})]
    (step,) = steps_of(saga.go(done("m#undo-0")))
    assert (step.slot, step.node.tool) == ("m#undo-1", "back")
    saga.go(done("m#undo-1"))
    assert status_of(saga.state) == "rolled_back"


@pytest.mark.parametrize("is_old", [False, True])
def test_an_item_in_doubt_makes_no_doubt_of_its_map(is_old: bool) -> None:
    """Logs of before say of the map what they say of the item."""
    saga = begun(map_of(UNDOES, at_once=2), [1, 2])
    if is_old:
        doubt = ev.Failure("timeout", "no answer", "m", doubt=True)
        place = {
            "node": "m",
            "attempt": 1,
            "failure": doubt,
            "tool": "t",
            "tool_version": "",
            "schema_hash": "",
        }
        saga.put(ev.StepFailed(started_at=1, ended_at=2, **place))  # type: ignore[arg-type]
    else:
        settled(saga, done("m#0", 10))
        settled(saga, failed("m#1", "timeout", "permanent"))
        assert asked(saga) == ["m#undo-1"]
    assert saga.state.undo.doubtful == ()


def test_where_the_rules_have_no_rollback_nothing_is_undone() -> None:
    plain = map_of(UNDOES, at_once=2)
    rules = {ANY: PolicyChange(ladder=())}
    graph = type(plain)(Graph(name="w", nodes=plain.graph.nodes, failures=rules), plain.kinds)
    saga = begun(graph, [1, 2])
    settled(saga, done("m#0", 10))
    settled(saga, failed("m#1", "business_rule"))
    assert status_of(saga.state) == "failed"


def test_a_child_whose_map_goes_on_without_it_does_not_ask_first() -> None:
    assert takes_failure(map_of(CHILD, tolerated=1), State(), "m#3")
    assert not takes_failure(map_of(CHILD), State(), "m#3")


def test_a_person_is_asked_about_an_item_only_where_its_failure_is_that_of_the_saga() -> None:
    rules = {ANY: PolicyChange(ladder=(ASK_USER,))}

    def asks(**each: object) -> int:
        plain = map_of(**each)  # type: ignore[arg-type]
        graph = type(plain)(Graph(name="w", nodes=plain.graph.nodes), plain.kinds)
        saga = begun(graph, [1, 2])
        settled(saga, failed("m#0", "invalid_input"))
        return sum(failing.ask is not None for failing in saga.state.failing.values())

    assert rules
    assert (asks(), asks(tolerated=1), asks(need=1)) == (1, 0, 0)


def test_its_failure_keeps_the_first_errors() -> None:
    count = ERRORS_KEPT + 5
    saga = begun(map_of(tolerated=count, rest="run", at_once=count), list(range(count)))
    settled(saga, *[failed(f"m#{n}") for n in range(count)])
    assert outcome(saga)["failed"] == count
    saga = begun(map_of(tolerated=1, rest="run", at_once=count), list(range(count)))
    settled(saga, *[failed(f"m#{n}") for n in range(count)])
    assert saga.state.failure is not None
    assert len(saga.state.failure.errors) == ERRORS_KEPT


def test_a_map_waits_for_nothing_by_itself() -> None:
    work = Map(over=ev.Value(v=[1]), size=1)
    assert (work.signal, work.due, work.orphan, work.ask, work.hears("c")) == ("", None, None, None, False)
    assert work.after_fork(None, is_ending=False) is work
    assert work.arguments == {}


def test_what_is_an_index() -> None:
    assert [is_index(item) for item in ("0", "37", "t1", "t1-0", "plan", "undo-3", "")] == [
        True,
        True,
        *[False] * 5,
    ]


def test_items_that_wait_for_their_time_are_not_asked_before() -> None:
    saga = begun(map_of(Node(name="m", kind="wait", wait_ms=5_000), at_once=2), [1, 2, 3])
    assert saga.decision.due is not None
    assert ready(saga.go(after_ms=4_000)) == []
    saga.go(after_ms=1_000)
    assert list(saga.state.items) == ["m#0", "m#1", "m#2"]
    saga.go(after_ms=5_000)
    assert outcome(saga) == [None, None, None]
