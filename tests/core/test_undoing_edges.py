"""Undoing: what is rare, or comes from an older log."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.decide.context import NOTHING
from baton.core.decide.decision import DecisionBuilder
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.failures.policy import ANY, FAIL, PolicyChange, RetryChange
from baton.core.graph.graph import Undo
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.folding.undo_folds import undone
from baton.core.log.slots import Slot
from baton.core.log.state import UNKNOWN_OUTCOME
from baton.core.log.undos import NotUndone, Undoing, UndoStep
from baton.core.nodes.base import Activation, UnfitError
from baton.core.nodes.registry import KINDS
from tests.core.asked import steps_of
from tests.core.build import Saga, done, failed, program, ready, task, tool_spec
from tests.core.nodes.thinking import answered, call
from tests.core.test_undoing import two, undoable
from tests.core.undo_asking import CANCEL_WITH_UNDO, asked, incidents
from tests.kit.sentences import Says

CUT_OFF: dict[str, Any] = {"started_at": 1, "ended_at": 2, "budget_ms": 1}


def test_an_inverse_that_is_cut_off_again_and_again_is_given_up() -> None:
    saga = two()
    saga.go(failed("d"))
    cut = ev.StepInterrupted(node="c", item="undo", **CUT_OFF)
    saga.put(cut, cut, cut)
    saga.go()
    assert [one.code for one in saga.state.undo.failed] == ["over_budget"]
    assert ready(saga.decision) == ["a#undo"]
    assert incidents(saga) == [UNKNOWN_OUTCOME], "it may have been undone"


def test_no_attempt_is_made_for_which_there_is_no_time_left() -> None:
    rule = {ANY: PolicyChange(last=FAIL, retry=RetryChange(max_attempts=5, budget_ms=60_000))}
    node = undoable("a")
    step = replace(node.undo["t"].step, failures=rule)
    saga = Saga(program(replace(node, undo={"t": Undo(step=step)}), task("b", "a")))
    saga.go(done("a"))
    saga.go(failed("b"))
    saga.go(failed("a#undo", "timeout"))
    assert saga.state.failing["a#undo"].began > 0
    saga.now += 120_000
    saga.go()
    assert incidents(saga) == [UNKNOWN_OUTCOME]
    assert saga.state.ended is not None
    assert [one.code for one in saga.state.undo.failed] == ["timeout"]


def test_an_inverse_that_waits_for_a_breaker_asks_again_when_its_time_has_come() -> None:
    saga = two()
    saga.go(failed("d"))
    until = saga.now + 60_000
    saga.put(ev.StepHeld(node="c", item="undo", breaker="x", at=saga.now, until=until))
    saga.go()
    assert (ready(saga.decision), saga.decision.due) == ([], until)
    saga.now = until
    saga.go()
    assert ready(saga.decision) == ["c#undo"]


def test_people_on_call_are_told_of_an_effect_in_doubt_that_nothing_undoes() -> None:
    saga = Saga(program(undoable("a"), task("b", effect="once")))
    saga.go(done("a"), running=["b"])
    saga.die()
    saga.put(CANCEL_WITH_UNDO)
    saga.go()
    assert [one.to for one in saga.state.outbox.due] == ["on_call"]
    assert saga.state.undo.doubtful == ("b",)
    failed_too = [e for one in saga.entries for e in one.events if isinstance(e, ev.StepFailed)]
    assert failed_too == [], "the begin of the undoing names it"


def test_the_arguments_of_a_step_that_was_cut_off_are_fetched_before_it_is_told() -> None:
    node = replace(undoable("b", "x", keeps=("v",)), arguments={"v": "${ctx.x.output.y}"})
    saga = Saga(program(task("x"), undoable("a"), node))
    saga.go(done("a"))
    saga.go(replace(done("x"), output=ev.Value(ref="cas://sha256/00", size=9)))
    cut = ev.StepInterrupted(node="b", **CUT_OFF)
    saga.put(cut, cut, cut, CANCEL_WITH_UNDO)
    saga.go()
    assert [type(one).__name__ for one in saga.decision.commands] == ["FetchValues"]


def test_what_a_failed_attempt_has_kept_is_kept() -> None:
    rules = {ANY: PolicyChange(ladder=("retry", "rollback"))}
    saga = Saga(program(undoable("a"), undoable("b", keeps=("v",)), failures=rules))
    saga.go(done("a"))
    saga.go(replace(failed("b", "timeout"), kept=ev.Value(v={"v": 7})))
    saga.put(CANCEL_WITH_UNDO)
    saga.go()
    assert asked(saga) == ["b#undo"]
    [event] = [e for one in saga.entries for e in one.events if isinstance(e, ev.StepFailed)]
    assert (event.kept, event.prior) == (ev.Value(v={"v": 7}), 2)
    assert (event.failure.code, event.failure.doubt) == ("timeout", True)


def test_an_attempt_that_was_cut_off_after_a_refusal_is_in_doubt_and_not_refused() -> None:
    rules = {ANY: PolicyChange(ladder=("retry", "rollback"))}
    saga = Saga(program(undoable("a"), undoable("b"), failures=rules))
    saga.go(done("a"))
    saga.go(failed("b", "rate_limited"))
    cut = ev.StepInterrupted(node="b", **CUT_OFF)
    saga.put(cut, cut, cut, CANCEL_WITH_UNDO)
    saga.go()
    [event] = [e for one in saga.entries for e in one.events if isinstance(e, ev.StepFailed)]
    assert (event.failure.code, event.prior) == (UNKNOWN_OUTCOME, 2)


def test_events_that_come_twice_change_nothing() -> None:
    state = two().state
    one = NotUndone(slot="x", version=2)
    assert apply(state, ev.UndoSetAside(steps=(one,))) is state
    assert apply(state, ev.UndoTakenUp(version=3, steps=(one,))) is state


def test_items_that_are_undone_alone_are_known_by_their_slots() -> None:
    state = two().state
    work = Undoing(reason="", back_to=1, steps={"p#undo-t1-0": UndoStep(version=3)})
    state = replace(state, undo=replace(state.undo, work=work))
    after = undone(state, "p#undo-t1-0").undo
    assert (after.incarnation, after.generation("p#t2-0")) == ({"p#t1-0": 1}, 0)
    left = undone(state, "p#undo-t1-0", ev.Failure("gone", "")).undo
    assert left.incarnation == {}


def test_a_round_in_doubt_of_an_older_log_keeps_its_key() -> None:
    saga = two()
    saga.put(
        ev.StepFailed(
            node="d",
            attempt=1,
            tool="t",
            tool_version="",
            schema_hash="",
            failure=ev.Failure(UNKNOWN_OUTCOME, "no answer"),
            started_at=1,
            ended_at=2,
        )
    )
    state = replace(saga.state, undo=replace(saga.state.undo, doubtful=("c",)))
    saga.state = state
    saga.go()
    saga.go(done("c#undo"))
    saga.go(done("a#undo"))
    assert saga.state.undo.generation("c") == 0


def with_a_call() -> Saga:
    """An agent's call of `book` is at work, and another step has failed."""
    book = replace(tool_spec("book", n={"type": "integer"}), effect="idempotent", undo="unbook")
    unbook = replace(tool_spec("unbook", n={"type": "integer"}), effect="idempotent")
    tools = {one.name: one for one in (tool_spec(), book, unbook)}
    text = """
name: w
on_failure: [rollback]
nodes:
  a: {agent: {model: m, prompt: Go., tools: [book]}}
  b: {tool: t}
"""
    saga = Saga(Program(compile_document(text, tools), KINDS))
    saga.go()
    saga.go(running=["a#t1", "b"])
    saga.go(answered("a#t1", call("book", n=7)), running=["b"])
    return saga


def test_a_call_of_an_agent_that_was_cut_off_is_made_again_with_its_own_arguments() -> None:
    saga = with_a_call()
    [slot] = [step.slot for step in steps_of(saga.decision)]
    saga.go(running=[slot, "b"])
    saga.die()
    saga.go(failed("b"))
    assert [(step.slot, step.arguments) for step in steps_of(saga.decision)] == [(slot, {"n": 7})]


def test_what_cannot_be_called_any_more_has_no_arguments(says: Says) -> None:
    saga = with_a_call()
    at = Activation("a#t1-0", saga.program.nodes["a"], Slot.parse("a#t1-0"))
    builder = DecisionBuilder(saga.program, saga.state, saga.now, (), NOTHING)
    with says.raised(UnfitError):
        builder.arguments(at)


def test_arguments_that_cannot_be_made_once_more_are_not_kept() -> None:
    node = replace(undoable("b", "x", keeps=("v",)), arguments={"v": "${ctx.x.output.y}"})
    saga = Saga(program(task("x"), undoable("a"), node))
    saga.go(done("a"))
    saga.go(done("x", {}), running=["b"])
    cut = ev.StepInterrupted(node="b", **CUT_OFF)
    saga.put(cut, cut, cut, CANCEL_WITH_UNDO)
    saga.go()
    assert asked(saga) == ["b#undo"]
