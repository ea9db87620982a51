"""Undoing a step some of whose attempts may have acted: each of them counts, not the last one alone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core.failures.policy import ANY, PolicyChange, RetryChange
from baton.core.log import events as ev
from tests.core.build import Saga, done, failed, program
from tests.core.test_undoing import undoable
from tests.core.undo_asking import asked, say

ENDS = {ANY: PolicyChange(ladder=("retry", "rollback"), retry=RetryChange(max_attempts=2, base_ms=0))}


def tried() -> Saga:
    """`a` is done; the answer of the first attempt of `b` was lost."""
    b = replace(undoable("b", "a", keeps=("n",)), failures=ENDS, effect="idempotent", arguments={"n": 3})
    saga = Saga(program(undoable("a"), b))
    saga.go(done("a"))
    saga.go(replace(failed("b", "service_unavailable", "transient"), kept=ev.Value(v={"n": 3})))
    return saga


@pytest.mark.parametrize(("code", "kind"), [("rate_limited", "transient"), ("refused", "permanent")])
def test_a_refusal_of_the_last_attempt_says_nothing_of_the_one_before(code: str, kind: str) -> None:
    saga = tried()
    saga.go(replace(failed("b", code, kind), attempt=2), after_ms=60_000)
    assert asked(saga) == ["b#undo"]
    event = next(one for entry in saga.entries for one in entry.events if isinstance(one, ev.StepFailed))
    assert (event.failure.doubt, event.kept) == (True, ev.Value(v={"n": 3}))
    say(saga, "b#undo", "retry")
    assert saga.decision.commands


def test_a_tool_that_says_that_it_has_not_happened_means_all_its_calls() -> None:
    saga = tried()
    last = replace(failed("b", "refused", "permanent"), attempt=2)
    assert last.failure is not None
    saga.go(replace(last, failure=replace(last.failure, refused=True)), after_ms=60_000)
    assert (asked(saga), saga.state.undo.doubts) == ([], 0)


def test_a_refusal_after_a_death_says_nothing_of_the_attempt_that_died() -> None:
    saga = Saga(program(undoable("a"), replace(undoable("b", "a"), effect="idempotent")))
    saga.go(done("a"), running=["b"])
    saga.die()
    saga.go(failed("b", "refused", "permanent"))
    assert asked(saga) == ["b#undo"]


def test_a_step_that_goes_on_with_another_tool_takes_its_doubt_into_the_list() -> None:
    saga = tried()
    before = saga.state.failing["b"]
    saga.state = replace(saga.state, failing={"b": replace(before, acted=True)})
    saga.put(ev.StepStopped(node="b", tool="t", prior=saga.state.undo.head, instead="u"))
    assert (saga.state.failing["b"].acted, saga.state.undo.doubts) == (False, 1)
