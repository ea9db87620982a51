"""Steps that are called again to find out what they have done, and whose call is not made: no person has approved it, or a breaker is open."""

from __future__ import annotations

import pytest

from baton.core.decide.outcomes import APPROVAL, Outcome
from baton.core.effects.toolspec import Approval, ApprovalRequest
from tests.core.asked import steps_of
from tests.core.build import Saga, failed, program, ready, task
from tests.core.test_held import held
from tests.core.test_undoing import undoable
from tests.core.undo_asking import CANCEL_WITH_UNDO, asked, say

REQUEST = ApprovalRequest(tool="t", arguments={}, digest="d" * 64, level="high", why="always")
ALWAYS = Approval(always=True)


def unapproved(saga: Saga, attempt: int = 1) -> Outcome:
    return Outcome(
        slot="a", attempt=attempt, started_at=saga.now, ended_at=saga.now, why=APPROVAL, request=REQUEST
    )


def after_a_death(approval: Approval | None = None) -> Saga:
    """`a` and `b` ran when the invocation died, and `b` has failed for good in the next one."""
    saga = Saga(program(undoable("a", approval=approval), task("b")))
    saga.go(running=["a", "b"])
    saga.die()
    saga.go(failed("b"), running=["a"])
    return saga


def test_a_call_that_no_person_has_approved_has_never_been_made() -> None:
    saga = after_a_death(ALWAYS)
    assert ready(saga.go()) == ["a"]
    saga.go(unapproved(saga))
    assert saga.state.ended is not None
    assert (saga.state.ended.status, saga.state.undo.can, saga.state.undo.unknown) == ("failed", 0, 0)


def test_it_may_have_been_made_before_the_tool_asked_for_approvals() -> None:
    saga = after_a_death()
    saga.go(unapproved(saga))
    assert asked(saga) == ["a#undo"]
    assert steps_of(saga.go()) == ()
    say(saga, "a#undo", "retry")
    assert saga.state.ended is not None
    assert saga.state.ended.status == "rolled_back"


def test_another_call_of_it_that_was_approved_may_have_been_made() -> None:
    saga = Saga(program(undoable("a", approval=ALWAYS), task("b")))
    saga.go(running=["b"])
    saga.go(unapproved(saga), running=["b"])
    say(saga, "a", "approve")
    saga.go(running=["a", "b"])
    saga.die()
    saga.go(failed("b"))
    changed = ApprovalRequest(tool="t", arguments={"n": 1}, digest="e" * 64, level="high", why="always")
    saga.go(Outcome(slot="a", attempt=1, started_at=1, ended_at=2, why=APPROVAL, request=changed))
    assert asked(saga) == ["a#undo"]


def test_a_first_call_that_meets_the_end_of_its_saga_leaves_nothing() -> None:
    saga = Saga(program(undoable("a", approval=ALWAYS)))
    saga.go()
    saga.put(CANCEL_WITH_UNDO, invocation="api")
    saga.go(unapproved(saga))
    assert saga.state.ended is not None
    assert (saga.state.ended.status, saga.kinds) == ("cancelled", ["saga_ended"])


def test_a_first_call_that_a_breaker_holds_back_leaves_nothing_either() -> None:
    saga = Saga(program(undoable("a")))
    saga.go()
    saga.put(CANCEL_WITH_UNDO, invocation="api")
    saga.go(held(saga))
    assert saga.state.ended is not None
    assert (saga.state.ended.status, saga.kinds) == ("cancelled", ["saga_ended"])


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_breaker_that_is_open_does_not_let_the_saga_go_round(is_cancelled: bool) -> None:
    saga = Saga(program(undoable("a"), task("b")))
    saga.go(running=["a", "b"])
    saga.die()
    saga.go(*[] if is_cancelled else [failed("b")], running=["a"])
    if is_cancelled:
        saga.put(CANCEL_WITH_UNDO, invocation="api")
    assert ready(saga.go()) == ["a"]
    saga.go(held(saga))
    assert asked(saga) == ["a#undo"], "there is nothing else to undo, and the look has not been made"
