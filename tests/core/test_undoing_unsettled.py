"""Steps of which it is not known what they have done, when a saga is undone."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.decision import StopSteps
from baton.core.log import events as ev
from baton.core.log.state import status_of
from tests.core.asked import steps_of
from tests.core.build import Saga, done, failed, interrupted, program, ready, task
from tests.core.test_undoing import undoable
from tests.core.undo_asking import asked, expire, say


def after_a_death(**more: Any) -> Saga:
    """`a` and `b` ran when the invocation died, and `b` has failed for good in the next one."""
    saga = Saga(program(undoable("a", **more), task("b")))
    saga.go(running=["a", "b"])
    saga.die()
    saga.go(failed("b"))
    return saga


def test_a_step_that_may_have_acted_in_a_dead_invocation_is_called_again_and_then_undone() -> None:
    saga = after_a_death()
    (step,) = steps_of(saga.decision)
    assert (step.slot, step.attempt, step.look) == ("a", 1, False)
    saga.go(done("a"))
    assert ready(saga.decision) == ["a#undo"]
    saga.go(done("a#undo"))
    end = saga.state.ended
    assert end is not None
    assert end.undone is not None
    assert (end.status, end.undone.done) == ("rolled_back", 1)


def test_such_a_step_whose_second_call_is_refused_is_in_doubt() -> None:
    saga = after_a_death()
    saga.go(failed("a", kind="permanent"))
    assert asked(saga) == ["a#undo"]


def test_such_a_step_of_which_its_tool_says_that_it_has_not_happened_has_nothing_to_undo() -> None:
    saga = after_a_death()
    last = failed("a", kind="permanent")
    assert last.failure is not None
    saga.go(replace(last, failure=replace(last.failure, refused=True)))
    assert saga.state.ended is not None
    assert (saga.state.ended.status, saga.state.undo.can) == ("failed", 0)


@pytest.mark.parametrize("more", [{}, {"effect": "once"}, {"effect": "idempotent", "verified": True}])
def test_such_a_step_that_is_cut_off_again_and_again_does_not_hold_the_end_up(more: dict[str, Any]) -> None:
    saga = after_a_death(**more)
    for _ in range(3):
        assert [(step.slot, step.look) for step in steps_of(saga.decision)] == [("a", bool(more))]
        saga.go(interrupted("a"))
    assert asked(saga) == ["a#undo"]
    expire(saga)
    assert status_of(saga.state) == "compensating", "the people on call are told before the end"
    saga.note_told()
    saga.go()
    assert saga.state.ended is not None


def test_such_a_step_that_kills_the_worker_that_calls_it_again_is_named_and_not_called_any_more() -> None:
    saga = after_a_death()
    saga.die()
    assert ready(saga.go()) == ["a"]
    saga.die()
    saga.go()
    say(saga, "a#undo", "fail")
    assert saga.state.ended is not None
    assert (saga.state.ended.status, saga.state.undo.in_doubt) == ("rollback_failed", ("a",))


def test_after_a_crash_steps_are_called_again_one_at_a_time() -> None:
    saga = Saga(program(undoable("a"), undoable("c"), task("b")))
    saga.go(running=["a", "b", "c"])
    saga.die()
    saga.go(failed("b"))
    (first,) = ready(saga.decision)
    saga.go(done(first))
    (second,) = ready(saga.decision)
    assert {first, second} == {"a", "c"}


def test_a_step_that_can_be_undone_is_not_stopped_by_a_cancel_with_undo() -> None:
    saga = Saga(program(undoable("a"), task("b")))
    saga.put(ev.CancelRequested(reason="", by="ada", at=saga.now, grace_ms=0, undo=True))
    decision = saga.go(running=["a", "b"])
    assert [command.slots for command in decision.commands if isinstance(command, StopSteps)] == [("b",)]
    saga.go(done("a"))
    assert ready(saga.decision) == ["a#undo"]


@pytest.mark.parametrize(
    ("code", "kind", "status"),
    [
        ("timeout", "permanent", "rollback_failed"),
        ("key_error", "unknown", "rollback_failed"),
        ("sold_out", "permanent", "rolled_back"),
    ],
)
def test_an_idempotent_step_whose_last_call_says_nothing_is_named(code: str, kind: str, status: str) -> None:
    saga = Saga(program(undoable("a"), undoable("b", "a")))
    saga.go(done("a"))
    saga.go(failed("b", code, kind))
    if status == "rollback_failed":
        say(saga, "b#undo", "fail")
    saga.go(done("a#undo"))
    end = saga.state.ended
    assert end is not None
    assert end.undone is not None
    assert (end.status, end.undone.doubtful) == (status, () if status == "rolled_back" else ("b",))


def test_one_that_only_reads_or_that_nothing_undoes_is_not() -> None:
    for node in (replace(undoable("b", "a"), effect="pure"), task("b", "a")):
        saga = Saga(program(undoable("a"), node))
        saga.go(done("a"))
        saga.go(failed("b", "timeout", "permanent"))
        saga.go(done("a#undo"))
        assert saga.state.ended is not None
        assert saga.state.ended.status == "rolled_back"
