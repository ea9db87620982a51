"""A step goes on with another tool although the one before may have acted: people are told, and a rollback asks about that, too."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.context import NOTHING, EvaluationContext
from baton.core.decide.failure_handling import notices_of_left_call as left_for
from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import ToolSpec
from baton.core.log import events as ev
from baton.core.log.folding.undo_folds import step_stopped
from baton.core.log.slots import subject_item
from baton.core.log.state import UNKNOWN_OUTCOME
from baton.core.log.undos import NAMED_IN_STATE, undo_item, undoes_left_call
from baton.core.nodes.registry import KINDS
from baton.core.read.views import entry_view
from baton.words.event_words import of as words_of
from tests.core.asked import steps_of
from tests.core.build import Saga, done, failed, ready, tool_spec
from tests.core.nodes import replans
from tests.core.told import story
from tests.core.undo_asking import CANCEL_WITH_UNDO, asked, say
from tests.kit.sentences import Says

ID = {"type": "object", "properties": {"id": {}}, "required": ["id"]}


def spec(name: str, effect: str = "idempotent", undo: str = "back") -> ToolSpec:
    return replace(tool_spec(name, ID), effect=effect, undo=undo)


TOOLS = {
    "t": tool_spec("t"),
    "back": tool_spec("back", id={}),
    "first": spec("first"),
    "second": spec("second"),
    "third": spec("third"),
    "pay": spec("pay", "once"),
    "wire": spec("wire", "once", ""),
}
DOCUMENT = """
name: w
on_failure: [rollback]
nodes:
  a:
    tool: TOOL
    failover:
      - {name: p, when: {code: [unavailable, unknown_outcome]}, then: {tool: second}}
      - {name: q, when: {code: odd}, then: {tool: third}}
  b: {tool: t, after: a}
"""
DOUBT = "unavailable"


def no_answer(tool: str, code: str = DOUBT, attempt: int = 1, **more: Any) -> Outcome:
    told = failed("a", code, "transient")
    assert told.failure is not None
    return replace(told, tool=tool, attempt=attempt, failure=replace(told.failure, status=503, **more))


def gave(tool: str, number: str, attempt: int = 2) -> Outcome:
    return replace(done("a", {"id": number}), tool=tool, attempt=attempt)


def begun(tool: str = "first", document: str = DOCUMENT) -> Saga:
    saga = Saga(Program(compile_document(document.replace("TOOL", tool), TOOLS), KINDS))
    saga.go()
    return saga


def left(tool: str = "first", code: str = DOUBT, **more: Any) -> Saga:
    """The step has left its tool for another."""
    saga = begun(tool)
    saga.go(no_answer(tool, code, **more))
    return saga


def stops(saga: Saga) -> list[ev.StepStopped]:
    return [event for entry in saga.entries for event in entry.events if isinstance(event, ev.StepStopped)]


def tools(saga: Saga) -> list[tuple[str, str]]:
    """What is called now, and with which argument."""
    return [(step.slot, str(step.arguments.get("id", ""))) for step in steps_of(saga.decision)]


def ended(saga: Saga) -> ev.SagaEnded:
    for _ in range(3):
        if saga.state.ended is None:
            saga.note_told()
            saga.go()
    assert saga.state.ended is not None
    return saga.state.ended


def test_items_at_which_what_a_step_has_left_is_undone() -> None:
    for item in ("", "t1-0"):
        assert subject_item(undo_item(item, 7)) == item
    assert (undo_item("t1-0", 7), undoes_left_call("undo_7-t1-0")) == ("undo_7-t1-0", True)
    assert [undoes_left_call("undo"), subject_item("t1-0")] == [False, "t1-0"]


def test_people_are_told_at_once_what_may_have_happened_and_by_what_the_step_is_done_now(says: Says) -> None:
    saga = left()
    [stop] = stops(saga)
    assert (stop.tool, stop.instead, stop.prior) == ("first", "second", 0)
    [notice] = [one for one in saga.state.outbox.due if one.to == "on_call"]
    says(notice.message)
    assert "done by `second` now" in notice.message
    assert ready(saga.decision) == ["a"]


@pytest.mark.parametrize("answer", ["use", "retry", "fail"])
def test_a_rollback_undoes_what_the_second_has_done_and_asks_about_the_first(answer: str) -> None:
    saga = left()
    saga.go(gave("second", "2"))
    saga.go(failed("b"))
    assert tools(saga) == [("a#undo", "2")]
    saga.go(done("a#undo"))
    assert asked(saga) == ["a#undo_2"]
    say(saga, "a#undo_2", answer, **({"output": {"id": "1"}} if answer == "use" else {}))
    if answer == "use":
        saga.go()
        assert tools(saga) == [("a#undo_2", "1")]
        saga.go(done("a#undo_2"))
    end = ended(saga)
    assert end.undone is not None
    assert end.status == ("rollback_failed" if answer == "fail" else "rolled_back")
    assert (end.undone.doubtful, saga.state.undo.ways) == (("a",) if answer == "fail" else (), ())
    if answer != "fail":
        return
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True))
    saga.go()
    assert asked(saga) == ["a#undo_2"], "a later rollback asks again"
    say(saga, "a#undo_2", "use", output={"id": "1"})
    saga.go()
    saga.go(done("a#undo_2"))
    assert (ended(saga).status, saga.state.undo.unknown) == ("rolled_back", 0)


def test_where_its_inverse_fails_the_step_keeps_no_key_by_that_and_it_is_tried_again() -> None:
    saga = left()
    saga.go(gave("second", "2"))
    saga.go(failed("b"))
    saga.go(done("a#undo"))
    say(saga, "a#undo_2", "use", output={"id": "1"})
    saga.go()
    saga.go(failed("a#undo_2", "closed", "permanent"))
    assert (ended(saga).status, saga.state.undo.incarnation) == ("rollback_failed", {"a/": 1})
    assert saga.state.undo.generation("a") == 1
    [one] = saga.state.undo.failed
    assert (one.left, one.tool) == (True, "back")
    saga.note_told()
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True))
    saga.go()
    say(saga, "a#undo_2", "use", output={"id": "1"})
    saga.go()
    saga.go(done("a#undo_2"))
    assert (ended(saga).status, saga.state.undo.incarnation) == ("rolled_back", {"a/": 1})


def test_what_certainly_did_not_happen_is_not_asked_about() -> None:
    for saga in (left(refused=True), left("pay")):
        assert stops(saga) == []
        assert saga.state.outbox.due == ()


def test_what_may_happen_only_once_is_asked_about_too() -> None:
    saga = left("pay", UNKNOWN_OUTCOME)
    assert [(one.tool, one.instead, one.prior) for one in stops(saga)] == [("pay", "second", 0)]


def test_what_nothing_undoes_is_named() -> None:
    saga = left("wire", UNKNOWN_OUTCOME)
    assert [one.prior for one in stops(saga)] == [None]
    saga.go(gave("second", "2"))
    saga.go(failed("b"))
    saga.go(done("a#undo"))
    end = ended(saga)
    assert end.undone is not None
    assert (end.status, end.undone.doubtful) == ("rollback_failed", ("a",))


def test_where_nothing_undoes_anything_people_are_told_all_the_same() -> None:
    bare = {name: replace(one, undo="") for name, one in TOOLS.items()}
    saga = Saga(Program(compile_document(DOCUMENT.replace("TOOL", "wire"), bare), KINDS))
    saga.go()
    saga.go(no_answer("wire", UNKNOWN_OUTCOME))
    assert stops(saga) == []
    assert [one.code for one in saga.state.outbox.due] == [UNKNOWN_OUTCOME]


def test_of_a_third_tool_the_second_is_in_doubt_too_and_each_is_asked_about_by_itself() -> None:
    saga = left()
    saga.go(no_answer("second", "odd", 2))
    assert [(one.tool, one.instead) for one in stops(saga)] == [("first", "second"), ("second", "third")]
    saga.go(gave("third", "3", 3))
    saga.go(failed("b"))
    saga.go(done("a#undo"))
    assert asked(saga) == ["a#undo_3"]
    say(saga, "a#undo_3", "retry")
    assert asked(saga) == ["a#undo_2"]
    say(saga, "a#undo_2", "retry")
    assert ended(saga).status == "rolled_back"


def test_where_the_second_fails_for_good_and_is_in_doubt_both_are_asked_about() -> None:
    saga = left()
    saga.go(no_answer("second", "unheard_of", 2))
    assert asked(saga) == ["a#undo"]
    say(saga, "a#undo", "retry")
    assert asked(saga) == ["a#undo_2"]


def test_a_tool_to_which_the_step_goes_back_is_another_call_of_it() -> None:
    back = DOCUMENT.replace("then: {tool: third}", "then: {tool: first}")
    saga = begun(document=back)
    saga.go(no_answer("first"))
    saga.go(no_answer("second", "odd", 2))
    saga.go(no_answer("first", "unheard_of", 3))
    assert [one.tool for one in stops(saga)] == ["first", "second"]
    for slot in ("a#undo", "a#undo_3", "a#undo_2"):
        assert asked(saga) == [slot]
        say(saga, slot, "retry")
    assert ended(saga).status == "rolled_back"


@pytest.mark.parametrize("tool", ["first", "pay"])
def test_a_saga_that_stops_before_the_second_is_called_calls_nothing_and_asks_about_the_first(
    tool: str,
) -> None:
    saga = left(tool, DOUBT if tool == "first" else UNKNOWN_OUTCOME)
    saga.put(CANCEL_WITH_UNDO)
    saga.go()
    assert (tools(saga), asked(saga)) == ([], ["a#undo_2"])
    say(saga, "a#undo_2", "retry")
    assert ended(saga).status == "rolled_back"


def test_a_saga_that_stops_while_the_second_acts_asks_about_both() -> None:
    saga = left()
    cut = ev.StepInterrupted(node="a", started_at=1, ended_at=2, budget_ms=1)
    saga.put(cut, CANCEL_WITH_UNDO)
    [step] = steps_of(saga.go())
    assert step.look
    saga.go(no_answer("second", UNKNOWN_OUTCOME, 2))
    assert asked(saga) == ["a#undo"]
    say(saga, "a#undo", "retry")
    assert asked(saga) == ["a#undo_2"]


def test_what_a_model_has_put_in_its_place_leaves_the_step_in_doubt_too() -> None:
    known = {
        **replans.TOOLS,
        "book": replace(replans.TOOLS["book"], effect="idempotent", undo="back"),
        "back": tool_spec("back"),
    }
    known.pop("stand_in")
    text = f"name: w\nnodes:\n  a: {{tool: book, with: {{n: 1}}, replan: {replans.REPLAN % ''}}}"
    saga = Saga(Program(compile_document(text, known), KINDS))
    saga.go()
    told = failed("a", "not_found")
    assert told.failure is not None
    saga.go(replace(told, failure=replace(told.failure, status=503)))
    saga.go(replans.plan(replans.way(replans.step("other", n=1))))
    assert stops(saga) == []
    saga.go(replace(done("a#a1-1", "x"), tool="other"))
    assert [(one.tool, one.instead, one.prior is None) for one in stops(saga)] == [("book", "other", False)]


def test_what_is_in_the_list_is_not_told_again_nor_what_undoes_a_step() -> None:
    saga = left()
    context = EvaluationContext(saga.program, saga.state, NOTHING, "a")
    assert list(left_for(context, saga.state.failing["a"], "third", saga.now)) == []


@pytest.mark.parametrize(("code", "kind", "told"), [("timeout", "", 1), ("closed", "permanent", 0)])
def test_people_are_told_of_an_inverse_that_has_failed_and_whether_it_had_an_answer(
    code: str, kind: str, told: int, says: Says
) -> None:
    saga = begun()
    saga.go(gave("first", "1", 1))
    saga.go(failed("b"))
    for attempt in range(1, 6):
        if "a#undo" in saga.state.tokens:
            saga.go(replace(failed("a#undo", code, kind), attempt=attempt), after_ms=60_000)
            saga.go(after_ms=60_000)
    says([one.message for one in saga.state.outbox.due])
    assert [one.unsure for one in saga.state.undo.failed] == [bool(told)]


@pytest.mark.parametrize(
    ("failure", "silent"),
    [
        (ev.Failure("timeout", ""), True),
        (ev.Failure("timeout", "", refused=True), False),
        (ev.Failure("declined", "", kind="permanent"), False),
        (ev.Failure("declined", "", kind="permanent", status=503), True),
        (ev.Failure("declined", "", kind="permanent", doubt=True), True),
    ],
)
def test_which_failures_say_nothing(failure: ev.Failure, silent: bool) -> None:
    assert failure.says_nothing == silent


def test_of_more_than_are_named_the_rest_is_counted() -> None:
    saga = left()
    full = replace(
        saga.state,
        undo=replace(saga.state.undo, ways=tuple((f"n{i}", "t", 1) for i in range(NAMED_IN_STATE))),
    )
    after = step_stopped(full, replace(stops(saga)[0], tool="x"))
    assert (len(after.undo.ways), after.undo.doubts) == (NAMED_IN_STATE, 2)


def test_a_call_that_was_left_counts_where_its_step_has_no_failure_any_more() -> None:
    saga = left()
    after = step_stopped(replace(saga.state, failing={}), replace(stops(saga)[0], tool="x"))
    assert (after.failing, after.undo.doubts) == ({}, 2)


def test_what_is_shown_of_it_names_both_tools(says: Says) -> None:
    saga = left()
    [entry] = [one for one in saga.entries if any(isinstance(event, ev.StepStopped) for event in one.events)]
    [shown] = [one for one in entry_view(entry)["events"] if one["kind"] == "step_stopped"]
    said = words_of(shown)
    assert said is not None
    says(said[0])
    saga.go(gave("second", "2"))
    says(story(saga).places["a"].fate)
