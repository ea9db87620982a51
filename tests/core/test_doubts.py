"""Steps that may act only once and may have acted: what ends them, and who is told where no `verify` will look."""

from __future__ import annotations

import pytest
from msgspec import structs
from msgspec.structs import replace

from baton.core.effects.toolspec import ONCE
from baton.core.failures.failover import Action, Policy
from baton.core.failures.policy import PolicyChange
from baton.core.graph.graph import Cap, Catch, Join
from baton.core.log import events as ev
from baton.core.log.state import UNKNOWN_OUTCOME
from tests.core.build import Saga, done, interrupted, program, ready, task
from tests.core.failing import attempts, broken
from tests.core.strategies import RETRY

SECOND = {"wall_time": Cap(most=1_000)}
CAUGHT = (Catch(then=("b",)),)


def told(saga: Saga) -> list[tuple[str, str, bool]]:
    return [(notice.code, notice.node, notice.incident) for notice in saga.state.outbox.due]


def test_a_person_is_told_of_what_a_cancel_leaves_in_doubt() -> None:
    saga = Saga(program(task("a", effect=ONCE), task("b")))
    saga.go(interrupted("a"), running=["b"])
    saga.cancel()
    saga.go()
    assert told(saga) == [(UNKNOWN_OUTCOME, "a", True)]
    assert saga.state.ended is None
    saga.tell()
    assert saga.state.ended is not None


def test_what_has_not_begun_or_does_not_matter_sends_no_notice() -> None:
    saga = Saga(
        program(task("a", effect=ONCE), task("b", effect="keyed"), task("c", effect=ONCE), failures={})
    )
    saga.go(broken("c", "rate_limited"), interrupted("b"))
    saga.cancel()
    saga.go()
    assert (told(saga), saga.kinds) == ([], ["saga_ended"])


def test_a_person_is_told_where_a_join_goes_on_without_a_running_effect() -> None:
    nodes = task("a", effect=ONCE), task("b"), task("j", "a", "b", join=Join(need=1))
    saga = Saga(program(*nodes))
    decision = saga.go(done("b"), running=["a"])
    assert (ready(decision), told(saga)) == (["j"], [(UNKNOWN_OUTCOME, "a", True)])


def test_what_is_called_in_the_tools_place_is_not_stopped_in_the_middle_either() -> None:
    policy = Policy(name="p", then=Action(tool="pay.card"))
    node = task("a", failover=(policy,), limits=SECOND, timed=True, catch=CAUGHT)
    saga = Saga(program(node, task("b", "a"), failures={}))
    saga.go()
    assert attempts(saga.go(broken("a", "timeout"))) == [("a", 2)]
    saga.go(after_ms=2_000, running=["a"])
    assert "a" in saga.state.tokens


def test_what_was_refused_is_in_no_doubt_and_its_limit_ends_it() -> None:
    node = task("a", effect=ONCE, limits=SECOND, timed=True, catch=CAUGHT)
    saga = Saga(program(node, task("b", "a"), failures={"any": PolicyChange(ladder=(RETRY,))}))
    saga.go()
    saga.go(broken("a", "rate_limited", retry_after_ms=60_000))
    assert ready(saga.go(after_ms=2_000)) == ["b"]


def test_a_limit_that_ends_a_step_is_told_with_the_attempts_that_it_has_had() -> None:
    node = task("a", limits=SECOND, timed=True)
    saga = Saga(program(node, failures={"any": PolicyChange(ladder=(RETRY,))}))
    saga.go()
    for attempt in (1, 2):
        saga.go(broken("a", "rate_limited", attempt=attempt))
    saga.go(after_ms=2_000)
    assert [e.attempt for entry in saga.entries for e in entry.events if isinstance(e, ev.StepFailed)] == [2]


def test_what_has_not_run_yet_is_ended_by_its_limit() -> None:
    node = task("a", effect=ONCE, limits=SECOND, timed=True, catch=CAUGHT)
    saga = Saga(program(node, task("b", "a")))
    saga.put(ev.NodeBegan(node="a", at=saga.now))
    assert ready(saga.go(after_ms=2_000)) == ["b"]


def test_what_was_cut_off_and_then_refused_for_good_sends_no_notice() -> None:
    saga = Saga(program(task("a", effect=ONCE)))
    saga.go(interrupted("a"))
    saga.go(broken("a", "bad_request"))
    assert (told(saga), saga.kinds) == ([], ["step_failed", "saga_ended"])


def test_a_person_is_told_of_a_doubt_that_comes_while_the_saga_ends_anyway() -> None:
    saga = Saga(program(task("a", effect=ONCE)))
    saga.cancel(grace_ms=1_000)
    outcome = broken("a", "timeout")
    assert outcome.failure is not None
    saga.go(replace(outcome, failure=structs.replace(outcome.failure, doubt=True)))
    assert told(saga) == [(UNKNOWN_OUTCOME, "a", True)]
    saga.tell()
    assert saga.state.ended is not None


def test_a_person_is_told_of_what_could_not_be_found_out_while_the_saga_ends_anyway() -> None:
    saga = Saga(program(task("a", effect=ONCE)))
    saga.cancel(grace_ms=1_000)
    saga.go(broken("a", UNKNOWN_OUTCOME))
    assert told(saga) == [(UNKNOWN_OUTCOME, "a", True)]


@pytest.mark.parametrize("code", ["bad_request", "limit_wall_time"])
def test_what_has_failed_does_not_act_when_its_invocation_dies_later(code: str) -> None:
    saga = Saga(program(task("a", effect=ONCE), task("b")))
    saga.go(running=["a", "b"])
    if code == "bad_request":
        saga.go(broken("a", code), running=["b"])
    else:
        saga.put(ev.LimitReached(failure=ev.Failure(code, "too long", "a")))
    saga.die()
    saga.go(done("b"))
    assert told(saga) == ([] if code == "bad_request" else [(UNKNOWN_OUTCOME, "a", True)])
