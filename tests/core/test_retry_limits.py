"""Limits of retries: of a saga, of a node, and of a deployment; what counts, and what a step fails with."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from baton.core.decide.program import Program
from baton.core.failures.policy import PolicyChange
from baton.core.graph.graph import Cap, Catch, Node
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.snapshots import decode_state, encode_state
from baton.core.nodes.registry import KINDS
from baton.core.read.views import saga_view
from tests.core.build import Saga, done, failed, program, task
from tests.core.failing import attempts, broken, schedule
from tests.core.graphs_of import limited
from tests.core.strategies import RETRY, ROLLBACK
from tests.core.test_again import reported
from tests.core.test_undoing import undoable
from tests.kit.sentences import Says
from tests.kit.views import as_json

TWICE = {"any": schedule(1_000, 1_000, 1_000)}
MANY = Cap(most=100)


def of(*nodes: Node, failures: dict[str, PolicyChange] | None = None, **limits: Cap) -> Program:
    return limited(program(*nodes, failures=TWICE if failures is None else failures), **limits)


def deployed(of: Program, **limits: Any) -> Program:
    return Program(of.graph, KINDS, limits=Limits(**limits))


def fail(saga: Saga, slot: str, attempt: int, takes: int = 0, code: str = "service_unavailable") -> None:
    """One more attempt fails, when its pause is over."""
    saga.now += 1_000
    saga.go()
    begins = saga.now
    saga.now += takes
    outcome = broken(slot, code, attempt=attempt, at=saga.now)
    saga.go(msgspec.structs.replace(outcome, started_at=begins))


def end_of(saga: Saga) -> ev.Failure:
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    return saga.state.ended.failure


def test_the_retries_of_all_steps_of_a_saga_count_together(says: Says) -> None:
    saga = Saga(of(task("a"), task("b"), retries=Cap(most=3)))
    saga.go()
    fail(saga, "a", 1)
    fail(saga, "b", 1)
    fail(saga, "a", 2)
    assert saga.state.used["#retries"].retries == 3
    saga.go(done("b", attempt=2))
    assert saga.state.ended is None
    fail(saga, "a", 3)
    failure = end_of(saga)
    assert (failure.code, failure.kind, failure.node, failure.attempt) == (
        "limit_retries",
        "permanent",
        "a",
        3,
    )
    says(failure.message)


def test_the_first_failure_of_a_step_beyond_the_limit_is_its_last() -> None:
    saga = Saga(of(task("a"), task("b", "a"), retries=Cap(most=1)))
    saga.go()
    fail(saga, "a", 1)
    saga.go(done("a", attempt=2))
    fail(saga, "b", 1)
    assert (end_of(saga).code, end_of(saga).attempt) == ("limit_retries", 1)


def test_a_limit_of_a_node_counts_its_own_retries(says: Says) -> None:
    saga = Saga(of(task("a", limits={"retries": Cap(most=1)}), task("b"), retries=MANY))
    saga.go()
    for attempt in (1, 2):
        fail(saga, "b", attempt)
    fail(saga, "a", 1)
    fail(saga, "a", 2)
    assert end_of(saga).code == "limit_retries"
    says(end_of(saga).message)


def test_the_time_of_retries_is_that_of_their_pauses_and_of_the_repeated_attempts(says: Says) -> None:
    saga = Saga(of(task("a"), task("b"), retry_time=Cap(most=8_000)))
    saga.go()
    fail(saga, "a", 1, takes=60_000)  # the first attempt is none
    assert saga.state.used["#retries"].retry_time == 1_000
    fail(saga, "a", 2, takes=2_000)
    assert saga.state.used["#retries"].retry_time == 4_000
    saga.now += 1_000
    saga.go()
    outcome = done("a", attempt=3)
    saga.go(msgspec.structs.replace(outcome, started_at=saga.now - 4_000, ended_at=saga.now))
    assert saga.state.used["#retries"].retry_time == 8_000
    fail(saga, "b", 1)
    assert end_of(saga).code == "limit_retry_time"
    says(end_of(saga).message)


def test_a_deployment_limits_sagas_whose_document_says_nothing(says: Says) -> None:
    for limits, code in (
        ({"saga_retries": 1}, "limit_retries"),
        ({"saga_retry_ms": 1_500}, "limit_retry_time"),
    ):
        saga = Saga(deployed(of(task("a")), **limits))
        saga.go()
        fail(saga, "a", 1)
        fail(saga, "a", 2)
        assert end_of(saga).code == code
        says(end_of(saga).message)
    said = Saga(deployed(of(task("a"), retries=MANY), saga_retries=1))
    said.go()
    for attempt in (1, 2, 3):
        fail(said, "a", attempt)
    assert said.state.ended is None


def test_the_failure_is_handled_as_any_other() -> None:
    caught = Catch(codes=("limit_retries",), then=("b",))
    saga = Saga(of(task("a", catch=(caught,)), task("b"), retries=Cap(most=1)))
    graph = saga.program.graph
    a, b = graph.nodes
    linked = msgspec.structs.replace(
        graph, nodes=(msgspec.structs.replace(a, after=("b",)), msgspec.structs.replace(b, before=("a",)))
    )
    saga = Saga(Program(linked, KINDS))
    saga.go()
    fail(saga, "a", 1)
    saga.now += 1_000
    saga.go()
    decision = saga.go(broken("a", attempt=2, at=saga.now))
    assert attempts(decision) == [("b", 1)]


def test_no_rule_tries_it_again() -> None:
    rules = {"any": schedule(1_000, 1_000), "limit_retries": schedule(1_000, 1_000)}
    saga = Saga(of(task("a"), failures=rules, retries=Cap(most=1)))
    saga.go()
    fail(saga, "a", 1)
    fail(saga, "a", 2)
    assert end_of(saga).code == "limit_retries"


def test_what_may_have_acted_is_undone_all_the_same() -> None:
    """The limit is no evidence that the last call has done nothing."""
    rule = PolicyChange(retry=schedule(1_000, 1_000).retry, ladder=(RETRY, ROLLBACK))
    saga = Saga(of(undoable("a"), failures={"any": rule}, retries=Cap(most=1)))
    saga.go()
    fail(saga, "a", 1, code="timeout")
    fail(saga, "a", 2, code="timeout")
    assert saga.state.failure is not None
    assert saga.state.failure.code == "limit_retries"
    assert saga.state.undo.work is not None or saga.state.undo.unknown


def test_an_effect_in_doubt_is_looked_at_first() -> None:
    saga = Saga(of(task("a", effect="once"), retries=Cap(most=1)))
    saga.go()
    fail(saga, "a", 1)
    saga.now += 1_000
    saga.go()
    outcome = broken("a", attempt=2, at=saga.now)
    doubtful = msgspec.structs.replace(outcome.failure, doubt=True)  # type: ignore[type-var]
    saga.go(msgspec.structs.replace(outcome, failure=doubtful))
    failing = saga.state.failing["a"]
    assert (failing.strategy, failing.look, failing.failure.code) == (RETRY, True, "limit_retries")
    assert saga.state.used["#retries"].retries == 1


def test_a_child_that_has_failed_is_not_followed_by_another() -> None:
    saga = reported("c: {workflow: v, retry: {max_attempts: 5, base: 1s}, limits: {retries: 1}}")
    saga.go(after_ms=60_000)
    second = saga.state.children["c"].saga
    saga.put(
        ev.ChildReported(
            slot="c", child=second, status="failed", failure=ev.Failure("service_unavailable", "no")
        )
    )
    saga.go()
    assert saga.state.failure is not None
    assert "`limits.retries` of node `c` is 1" in saga.state.failure.message, saga.state.failure


def test_inverses_are_in_no_limit() -> None:
    node = undoable("a", failures=TWICE)
    saga = Saga(of(node, task("b", "a"), retries=Cap(most=1)))
    saga.go()
    fail(saga, "a", 1)
    saga.go(done("a", attempt=2))
    saga.go(failed("b", kind="permanent"))
    fail(saga, "a#undo", 1)
    fail(saga, "a#undo", 2)
    assert saga.state.ended is None
    assert saga.state.used["#retries"].retries == 1


def test_a_hand_over_and_a_snapshot_keep_the_count() -> None:
    saga = Saga(of(task("a"), retries=Cap(most=2)))
    saga.go()
    fail(saga, "a", 1)
    fail(saga, "a", 2)
    saga.die()
    saga.state = decode_state(encode_state(saga.state))
    fail(saga, "a", 3)
    assert end_of(saga).code == "limit_retries"


def test_a_saga_without_retries_counts_nothing() -> None:
    saga = Saga(of(task("a"), retries=Cap(most=2), retry_time=Cap(most=1_000)))
    saga.go()
    saga.go(done("a"))
    assert saga.state.used == {}


def test_what_is_used_is_shown() -> None:
    saga = Saga(of(task("a", limits={"retry_time": Cap(most=9_000)}), retries=Cap(most=2)))
    saga.go()
    shown = as_json(saga_view(saga.state, saga.program))["limits"]
    assert [(row["node"], row["limit"], row["used"]) for row in shown] == [
        (None, "retries", 0),
        ("a", "retry_time_ms", 0),
    ]
    fail(saga, "a", 1)
    shown = as_json(saga_view(saga.state, saga.program))["limits"]
    assert [row["used"] for row in shown] == [1, 1_000]


@pytest.mark.parametrize("attempt", [1, 2])
def test_an_event_that_comes_twice_counts_once(attempt: int) -> None:
    saga = Saga(of(task("a"), retries=MANY))
    saga.go()
    for number in range(1, attempt + 1):
        fail(saga, "a", number)
    before = saga.state.used
    last = [
        event for event in saga.entries[-1].events if isinstance(event, ev.AttemptFailed | ev.StrategyChosen)
    ]
    saga.put(*last)
    assert saga.state.used == before
