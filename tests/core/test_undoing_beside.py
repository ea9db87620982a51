"""Undoing and what is beside it: steps that others have done, children that run, doubts, and answers of people."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.decide.decision import CancelChildren, StopSteps
from baton.core.failures.policy import ANY, PolicyChange
from baton.core.log import events as ev
from baton.core.log.folding.workflow_limits import OUT_OF_TIME
from baton.core.log.state import ANSWER, FORK_KEY, UNKNOWN_OUTCOME, State
from baton.core.log.undos import Undoable
from tests.core.build import Saga, child, done, failed, program, ready, task
from tests.core.test_undoing import kinds, undoable
from tests.core.undo_asking import expire


def test_what_another_step_or_another_saga_has_done_is_not_undone_here() -> None:
    for by, cannot in (("step", 0), ("saga", 1)):
        saga = Saga(program(undoable("a"), undoable("b", "a"), task("d", "b")))
        saga.go(done("a"))
        saga.go(replace(done("b"), done_by=by))
        assert (saga.state.undo.can, saga.state.undo.cannot) == (1, cannot)


def test_children_that_run_undo_what_they_have_done_where_their_parent_would() -> None:
    cancel = ev.CancelRequested(reason="", by="", at=1, grace_ms=0)
    state = State()
    assert state.will_revert
    assert not replace(state, undo=Undoable(stays=True)).will_revert
    assert not replace(state, result=ev.Value()).will_revert
    assert not replace(state, cancel=cancel).will_revert
    assert replace(state, cancel=replace(cancel, undo=True)).will_revert


def test_a_failure_that_a_person_has_given_up_is_undone() -> None:
    saga = Saga(
        program(undoable("a"), undoable("b", "a", failures={ANY: PolicyChange(last="ask_user")}), failures={})
    )
    saga.go(done("a"))
    saga.go(failed("b", "gone", "user_resolvable"))
    (ask,) = [one.ask for one in saga.state.failing.values()]
    assert ask is not None
    saga.signal(ANSWER, {"ask": ask.id, "action": "fail"})
    saga.go()
    assert ready(saga.decision) == ["a#undo"]


def test_a_step_that_may_have_happened_is_named_and_the_rest_is_undone() -> None:
    saga = Saga(program(undoable("a"), undoable("b", "a", effect="once")))
    saga.go(done("a"))
    saga.put(ev.CancelRequested(reason="", by="ada", at=saga.now, grace_ms=0, undo=True))
    lost = ev.Failure(UNKNOWN_OUTCOME, "no answer", "b", doubt=True)
    saga.go(replace(failed("b"), failure=lost))
    saga.go(replace(failed("b"), failure=lost, attempt=2))
    assert saga.state.undo.work is not None
    expire(saga)
    assert saga.state.undo.in_doubt == ("b",)
    saga.go(done("a#undo"))
    saga.note_told()
    saga.go()
    end = saga.state.ended
    assert end is not None
    assert end.undone == ev.Undone(done=1, doubtful=("b",), doubts=1)
    assert end.status == "rollback_failed"


def test_children_that_run_are_stopped_before_it_begins_and_undo_what_they_have_done() -> None:
    saga = Saga(program(undoable("a"), child("c", "a"), task("d", "a")))
    saga.go(done("a"))
    decision = saga.go(failed("d"))
    assert [
        (one.revert, len(one.children)) for one in decision.commands if isinstance(one, CancelChildren)
    ] == [(True, 1)]


def test_a_child_that_has_done_something_is_undone_in_its_turn() -> None:
    saga = Saga(program(undoable("a"), child("c", "a"), task("d", "c")))
    saga.go(done("a"))
    opened = saga.state.children["c"]
    saga.put(ev.ChildReported(slot="c", child=opened.saga, status="completed", undoable=True))
    saga.go()
    assert saga.state.undo.can == 2
    saga.go(failed("d"))
    assert "undo_step_began" in kinds(saga)
    assert [type(command).__name__ for command in saga.decision.commands] == ["TendChildren"]
    saga.put(ev.ChildUndone(node="c", item="undo", child=opened.saga, cost=5))
    saga.put(ev.ChildUndone(node="c", item="undo", child=opened.saga, cost=5))
    assert saga.state.money.spent == 5
    saga.go()
    assert ready(saga.decision) == ["a#undo"]


def test_a_child_that_was_open_comes_first_and_again_where_it_could_not_undo_all() -> None:
    saga = Saga(program(undoable("a"), child("c", "a"), replace(child("s", "a"), stays=True), task("d", "a")))
    saga.go(done("a"))
    opened, stays = saga.state.children["c"].saga, saga.state.children["s"].saga
    saga.put(ev.ChildReported(slot="c", child=opened, status="completed", undoable=True))
    saga.go(failed("d"))
    saga.go()
    saga.go()
    abandoned = [
        one for entry in saga.entries for one in entry.events if isinstance(one, ev.ChildrenAbandoned)
    ]
    assert abandoned == [ev.ChildrenAbandoned(children=(opened,), undo=True)]
    ends = [one.child for entry in saga.entries for one in entry.events if isinstance(one, ev.ChildReported)]
    assert ends == [opened, stays], "its rollback is disabled: it is stopped and waited for"
    work = saga.state.undo.work
    assert work is not None
    assert (work.steps["c#undo"].child, work.steps["c#undo"].index) == (opened, -1)
    failure = ev.Failure("child_failed", "not all")
    saga.put(ev.ChildUndone(node="c", item="undo", child=opened, failure=failure))
    saga.go()
    saga.go(done("a#undo"))
    (left,) = saga.state.undo.failed
    assert saga.state.ended is not None
    assert (saga.state.ended.status, left.child, left.code) == ("rollback_failed", opened, "child_failed")
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ann", at=9, undo=True))
    saga.go()
    work = saga.state.undo.work
    assert work is not None
    assert work.steps["c#undo"].again
    saga.put(ev.ChildUndone(node="c", item="undo", child=opened, failure=failure))
    assert [one.child for one in saga.state.undo.failed] == [opened]


def test_a_rollback_of_a_running_saga_keeps_its_key() -> None:
    saga = Saga(program(undoable("a"), task("d", "a")))
    saga.put(ev.CancelRequested(reason="", by="ann", at=1, grace_ms=0, undo=True, key="one"))
    assert saga.state.keys == {FORK_KEY + "one": str(-saga.state.version)}


def test_of_the_steps_that_run_when_the_time_is_over_those_that_are_undone_end_by_themselves() -> None:
    saga = Saga(program(undoable("a"), undoable("b", "a"), task("c", "a")))
    saga.go(done("a"))
    saga.put(ev.LimitReached(failure=ev.Failure(OUT_OF_TIME, "it is over")))
    stop = saga.go(running=["b", "c"]).of(StopSteps)
    assert stop is not None
    assert stop.slots == ("c",)
