"""Steps that are stopped while they act, and the saga goes on without them: people are told, and a rollback asks."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.context import NOTHING, EvaluationContext
from baton.core.decide.program import Program
from baton.core.decide.unknown_outcomes import stopped_notices as told_of
from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import ToolSpec
from baton.core.graph.graph import Join
from baton.core.log import events as ev
from baton.core.log.state import UNKNOWN_OUTCOME, status_of
from baton.core.nodes.registry import KINDS
from baton.core.read.views import entry_view
from baton.words.event_words import of as words_of
from tests.core.asked import steps_of
from tests.core.build import Saga, done, failed, program, ready, replay, task
from tests.core.compiling import TOOLS
from tests.core.test_undoing import undoable
from tests.core.told import story
from tests.core.undo_asking import asked, say

GIVEN = {"who": {"type": "string"}}


def spec(name: str, effect: str = "once", undo: str = "") -> ToolSpec:
    """A tool whose parameter is optional."""
    known = {"type": "object", "properties": GIVEN, "additionalProperties": False}
    return replace(TOOLS["t"], name=name, effect=effect, undo=undo, parameters=known)


OWN = {
    **TOOLS,
    "pay": spec("pay", undo="refund"),
    "hold": spec("hold", "idempotent", undo="refund"),
    "send": spec("send"),
    "refund": spec("refund"),
}
LOOP = """
name: w
on_failure: [rollback]
nodes:
  a: {value: {name: ann}}
  b: {tool: %s, with: {who: "${ctx.a.output.name}"}, after: a}
  c: {tool: hold, after: a}
  d: {value: 1, after: [b, c], join: {wait_for: any, rest: %s}}
  e: {value: 1, after: d, loop: {while: "loop.iteration < 1", back_to: a}}
  f: {tool: t, after: e}
"""
MAP = """
name: w
on_failure: [rollback]
nodes:
  m: {map: {over: "${input.l}", wait_for: 1, rest: cancel}, tool: %s, with: {who: "${item}"}}
  f: {tool: t, after: m}
"""


def begun(text: str, given: Any = None) -> Saga:
    saga = Saga(Program(compile_document(text, OWN), KINDS), given)
    saga.go()
    return saga


def events(saga: Saga, kind: type) -> list[Any]:
    return [event for entry in saga.entries for event in entry.events if isinstance(event, kind)]


def told(saga: Saga) -> list[str]:
    return [one.notice.key for one in events(saga, ev.NoticeDue) if one.notice.incident]


@pytest.mark.parametrize("rest", ["run", "cancel"])
def test_a_step_that_the_end_of_its_round_or_a_join_stops_while_it_acts_is_told_and_asked_about(
    rest: str,
) -> None:
    saga = begun(LOOP % ("pay", rest))
    saga.go(done("c@0"), running=["b@0"])
    assert ("b@0" in saga.state.tokens, told(saga)) == (False, ["s1/0.b@0.stopped"])
    (stopped,) = events(saga, ev.StepStopped)
    assert (stopped.tool, stopped.kept) == ("pay", ev.Value(v={"who": "ann"}))
    assert saga.state.undo.in_doubt == ("b@0",)
    saga.go(done("c@1"))
    saga.go(failed("f"))
    saga.go(done("c@1#undo"))
    assert (asked(saga), status_of(saga.state)) == (["b@0#undo"], "suspended")
    say(saga, "b@0#undo", "use", output=None)
    (step,) = steps_of(saga.decision)
    assert (step.slot, step.arguments) == ("b@0#undo", {"who": "ann"})
    saga.go(done("b@0#undo"))
    saga.go(done("c@0#undo"))
    saga.note_told()
    saga.go()
    assert status_of(saga.state) == "rolled_back"
    assert replay(saga.entries) == saga.state


def test_what_something_undoes_is_asked_about_though_it_may_be_called_again_and_no_person_on_call_is_told() -> (
    None
):
    saga = begun(LOOP % ("hold", "run"))
    saga.go(done("c@0"), running=["b@0"])
    assert ([one.tool for one in events(saga, ev.StepStopped)], told(saga)) == (["hold"], [])
    saga.go(done("c@1"))
    saga.go(failed("f"))
    saga.go(done("c@1#undo"))
    say(saga, "b@0#undo", "retry")
    assert ready(saga.decision) == ["c@0#undo"], "it has not happened: there is nothing to undo"


def test_what_nothing_undoes_is_told_and_named_when_the_rest_is_undone() -> None:
    saga = begun(LOOP % ("send", "run"))
    saga.go(done("c@0"), running=["b@0"])
    (stopped,) = events(saga, ev.StepStopped)
    assert (stopped.tool, stopped.prior, stopped.kept, told(saga)) == (
        "send",
        None,
        None,
        ["s1/0.b@0.stopped"],
    )
    saga.go(done("c@1"))
    saga.go(failed("f"))
    for slot in ("c@1#undo", "c@0#undo"):
        saga.go(done(slot))
    saga.note_told()
    saga.go()
    assert saga.state.ended is not None
    assert (status_of(saga.state), saga.state.ended.undone) == (
        "rollback_failed", ev.Undone(done=2, doubtful=("b@0",), doubts=1)
    )  # fmt: skip


def test_what_has_not_begun_or_is_pure_is_neither_told_nor_asked_about() -> None:
    for tool, running in (("pay", []), ("hold", []), ("t", ["b@0"])):
        saga = begun(LOOP.replace('with: {who: "${ctx.a.output.name}"}, ', "") % (tool, "run"))
        saga.go(done("c@0"), running=running)
        assert ({*saga.state.tokens}, told(saga), events(saga, ev.StepStopped)) == (
            {"b@1", "c@1"},
            [],
            [],
        )


def test_a_step_that_failed_without_an_answer_and_waits_for_its_next_attempt_may_have_happened() -> None:
    saga = begun(LOOP.replace("on_failure: [rollback]", "retry: standard") % ("hold", "run"))
    saga.go(failed("b@0", "timeout", "transient"))
    assert saga.state.failing["b@0"].attempts == 1
    saga.go(done("c@0"))
    assert [one.kept for one in events(saga, ev.StepStopped)] == [ev.Value(v={"who": "ann"})]


def test_items_that_are_stopped_with_their_map_are_told_and_asked_about() -> None:
    saga = begun(MAP % "pay", {"l": ["ann", "bob"]})
    saga.go(done("m#0"), running=["m#1"])
    (stopped,) = events(saga, ev.StepStopped)
    assert (stopped.item, stopped.kept, told(saga)) == ("1", ev.Value(v={"who": "bob"}), ["s1/0.m#1.stopped"])
    saga.go(failed("f"))
    assert asked(saga) == ["m#undo-1"]


def test_it_is_said_and_explained() -> None:
    saga = begun(LOOP % ("pay", "run"))
    saga.go(done("c@0"), running=["b@0"])
    (event,) = [
        one for entry in saga.entries for one in entry_view(entry)["events"] if one["kind"] == "step_stopped"
    ]
    assert words_of(event) is not None
    assert words_of({**event, "item": "1"}) is not None
    saga.go(done("c@1"))
    saga.go(failed("f"))
    saga.go(done("c@1#undo"))
    places = story(saga).places
    assert places["b@0"].fate == "is being undone"
    assert [one.failure.code for one in places["b@0#undo"].attempts] == [UNKNOWN_OUTCOME]


def test_items_of_a_map_that_a_join_stops_are_told_of() -> None:
    text = """
name: w
on_failure: [rollback]
nodes:
  m: {map: "${input.l}", tool: pay, with: {who: "${item}"}}
  c: {tool: hold}
  d: {value: 1, after: [m, c], join: any}
"""
    saga = begun(text, {"l": ["ann", "bob"]})
    saga.go(done("m#0"), running=["m#1"])
    saga.go(done("c"), running=["m#1"])
    assert ([one.item for one in events(saga, ev.StepStopped)], told(saga)) == (["1"], ["s1/0.m#1.stopped"])


def test_what_stops_a_step_is_in_the_same_entry_however_little_room_there_is() -> None:
    for rest in ("run", "cancel"):
        saga = begun(LOOP % ("pay", rest))
        saga.go(done("c@0"), running=["b@0"], room=1)
        for entry in saga.entries:
            kinds = [type(event) for event in entry.events]
            if ev.StepStopped in kinds:
                assert kinds[kinds.index(ev.StepStopped) - 1] is ev.NoticeDue
                assert issubclass(kinds[kinds.index(ev.StepStopped) + 1], ev.Settles)


def test_what_was_kept_of_its_last_attempt_is_kept_and_what_cannot_be_made_again_is_not() -> None:
    saga = begun(LOOP.replace("on_failure: [rollback]", "retry: standard") % ("hold", "run"))
    kept = ev.Value(v={"who": "eve"})
    saga.go(replace(failed("b@0", "timeout", "transient"), kept=kept))
    at = EvaluationContext(saga.program, saga.state, NOTHING, "b@0")
    (event,) = told_of(at, saga.now, ())
    assert isinstance(event, ev.StepStopped)
    assert event.kept == kept
    (event,) = told_of(replace(at, state=replace(saga.state, failing={}, outputs={})), saga.now, ["b@0"])
    assert isinstance(event, ev.StepStopped)
    assert (event.prior, event.kept) == (0, None)


def test_an_inverse_that_needs_nothing_of_the_arguments_keeps_nothing() -> None:
    saga = Saga(program(undoable("b", keeps=()), task("c"), task("d", "b", "c", join=Join(need=1))))
    saga.go(done("c"), running=["b"])
    assert [one.kept for one in events(saga, ev.StepStopped)] == [None]
