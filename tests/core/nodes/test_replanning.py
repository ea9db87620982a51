"""A step that a model puts something else in the place of, in the core: when it is asked, and what its alternatives come to."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.documents.compile import compile_document
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.scopes import MADE_REMEMBERED, act_digest
from baton.core.log.state import ANSWER, status_of
from baton.core.models.messages import fill_references, is_reference
from tests.core.asked import steps_of
from tests.core.build import Saga, failed, ready, replay
from tests.core.nodes.replans import (
    TOOLS,
    again,
    at_work,
    broken,
    compiled,
    outcome,
    plan,
    program_of,
    step,
    way,
)
from tests.kit.sentences import Says


def test_a_model_is_asked_when_nothing_registered_is_left() -> None:
    saga = broken()
    assert saga.kinds == ["attempt_failed", "strategy_chosen", "replan_began", "node_began"]
    assert ready(saga.decision) == ["a#plan"]
    asked = steps_of(saga.decision)[0]
    assert asked.node.tool == "std.model"
    told = {name: asked.arguments[name] for name in ("tool", "arguments", "attempts", "tried", "tools")}
    assert told == {
        "tool": "book",
        "arguments": {"n": 4},
        "attempts": 1,
        "tried": [],
        "tools": ["look", "other", "roll", "third"],
    }
    assert asked.arguments["failure"] == {"code": "not_found", "class": "recoverable", "message": "it broke"}
    assert status_of(saga.state) == "running"


def test_the_alternatives_are_tried_one_after_the_other_and_the_first_that_works_is_the_output() -> None:
    saga = broken()
    saga.go(plan(way(step("other", n=1)), way(step("third", n=2)), way(step("other", n=3))))
    assert saga.kinds == ["step_succeeded", "alternative_began", "node_began"]
    (first,) = steps_of(saga.decision)
    assert (first.slot, first.node.tool, first.arguments) == ("a#a1-1", "other", {"n": 1})
    saga.go(failed("a#a1-1", "business_rule"))
    assert saga.kinds == ["step_failed", "alternative_began", "node_began"]
    assert (at_work(saga).alternative, at_work(saga).failed) == (2, None)
    saga.go(outcome("a#a2-1", "booked"))
    assert saga.kinds == ["step_succeeded", "step_succeeded", "saga_ended"]
    ended = saga.entries[-1].events[1]
    assert isinstance(ended, ev.StepSucceeded)
    assert (ended.tool, ended.attempt, ended.output.v) == ("third", 2, "booked")
    assert saga.state.ended is not None
    assert saga.state.ended.output.v == "booked"
    assert replay(saga.entries) == saga.state


def test_when_none_works_the_ladder_goes_on_to_a_person_and_the_model_is_asked_once() -> None:
    saga = broken()
    saga.go(plan(way(step("other", n=1))))
    saga.go(failed("a#a1-1", "business_rule"))
    assert saga.kinds == ["step_failed", "replan_ended", "strategy_chosen", "notice_due"]
    assert status_of(saga.state) == "suspended"
    assert (saga.state.open, saga.state.items) == ({}, {})
    ask = saga.state.failing["a"].ask
    assert ask is not None
    assert "not_found" in ask.message, "the failure of the step, not that of what stood in"
    saga.signal(ANSWER, {"ask": ask.id, "action": "retry"}, key=f"{ask.id}/1")
    saga.go()
    assert ready(saga.decision) == ["a"]
    saga.go(again(failed("a", "not_found"), 2))
    assert saga.kinds == ["attempt_failed", "strategy_chosen", "notice_due"]
    assert replay(saga.entries) == saga.state


def test_a_model_that_fails_lets_the_ladder_go_on(says: Says) -> None:
    saga = broken()
    saga.go(failed("a#plan", "bad_request"))
    assert saga.kinds == ["step_failed", "replan_ended", "strategy_chosen", "notice_due"]
    ended = saga.entries[-1].events[1]
    assert isinstance(ended, ev.ReplanEnded)
    says(ended.why)


def test_an_answer_that_is_wrong_is_asked_for_again_and_people_are_not_asked_about_it() -> None:
    saga = broken(node=", on_failure: ask")
    for attempt in (1, 2, 3, 4):
        saga.go(again(failed("a#plan", "answer_invalid"), attempt), after_ms=10)
        if attempt < 4:
            assert saga.kinds[:2] == ["attempt_failed", "strategy_chosen"]
            assert ready(saga.decision) == ["a#plan"]
    assert saga.kinds[:2] == ["step_failed", "replan_ended"]


def test_where_nothing_is_left_to_be_done_the_step_fails_with_its_own_failure() -> None:
    saga = broken(node=", on_failure: fail")
    saga.go(failed("a#plan", "bad_request"))
    assert saga.kinds == ["step_failed", "replan_ended", "step_failed", "saga_ended"]
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == "not_found"


def test_no_alternative_begins_after_the_time_for_them() -> None:
    saga = broken(more=", within: 10s")
    saga.go(plan(way(step("other", n=1)), way(step("third", n=2))))
    saga.go(failed("a#a1-1", "business_rule"), after_ms=10_010)
    ended = saga.entries[-1].events[1]
    assert isinstance(ended, ev.ReplanEnded)
    assert "time" in ended.why


def test_what_is_registered_is_tried_before_a_model_is_asked() -> None:
    text = "name: w\nnodes: {a: {tool: book, with: {n: 1}, replan: {model: m, tools: other}}}"
    saga = Saga(program_of(text))
    saga.go()
    saga.go(failed("a", "not_found"))
    (second,) = steps_of(saga.decision)
    assert second.way is not None
    assert second.way.tool == "stand_in"
    saga.go(again(failed("a", "not_found"), 2))
    assert ready(saga.decision) == ["a#plan"]
    assert steps_of(saga.decision)[0].arguments["tried"] == ["stand_in"]


def test_a_rule_that_allows_no_replan_allows_none_by_a_model() -> None:
    saga = broken(node=", on_failure: {any: {at_most: {replan: 0}}}")
    assert "replan_began" not in saga.kinds


def test_the_documents_own_word_holds_for_every_task_that_has_none() -> None:
    text = "name: w\nreplan: {model: m, tools: other}\nnodes: {a: {tool: book, with: {n: 1}}}"
    (node,) = compile_document(text, TOOLS).nodes
    assert node.replan is not None
    assert [call.tool for call in node.replan.calls] == ["other"]


def test_an_output_that_the_node_refuses_is_no_output_of_an_alternative() -> None:
    saga = broken(node=", output_schema: {type: string, minLength: 3}")
    saga.go(plan(way(step("other", n=1)), way(step("third", n=2))))
    saga.go(outcome("a#a1-1", "x"))
    assert saga.kinds == ["step_succeeded", "alternative_began", "node_began"]
    saga.go(outcome("a#a2-1", "long"))
    assert saga.state.ended is not None
    assert saga.state.ended.output.v == "long"


# ---- several calls in place of one -----------------------------------------------------------------------------


def test_several_calls_stand_in_for_one_and_take_what_those_before_them_gave() -> None:
    saga = broken(more=", steps: 2")
    first = step("look", n={"$from": 0, "at": "/n"})
    saga.go(plan(way(first, step("other", n={"$from": 1, "at": "/found/0/id"}))))
    assert steps_of(saga.decision)[0].arguments == {"n": 4}, "as the step had it"
    saga.go(outcome("a#a1-1", {"found": [{"id": 7}]}))
    assert saga.kinds == ["step_succeeded", "alternative_began", "node_began"]
    (second,) = steps_of(saga.decision)
    assert (second.slot, second.arguments) == ("a#a1-2", {"n": 7})
    saga.go(outcome("a#a1-2", "booked"))
    assert saga.state.ended is not None
    assert saga.state.ended.output.v == "booked"
    assert replay(saga.entries) == saga.state


def test_a_call_that_refers_to_what_is_not_there_fails_its_alternative() -> None:
    saga = broken(more=", steps: 2")
    lost = step("other", n={"$from": 1, "at": "/nothing"})
    saga.go(plan(way(step("look", n=1), lost), way(step("third", n=1))))
    saga.go(outcome("a#a1-1", {}))
    kinds = [event for entry in saga.entries[-2:] for event in entry.events]
    (told,) = [event for event in kinds if isinstance(event, ev.StepFailed)]
    assert (told.failure.code, told.item) == ("input_unbound", "a1-2")
    assert ready(saga.decision) == ["a#a2-1"]


@pytest.mark.parametrize(
    "steps", [(step("other", n={"$from": 1}),), (step("look", n=1), step("other", n={"$from": 2}))]
)
def test_no_call_takes_what_comes_after_it(steps: tuple[dict[str, Any], ...]) -> None:
    saga = broken(more=", steps: 2")
    saga.go(plan(way(*steps)))
    if len(steps) == 2:
        saga.go(outcome("a#a1-1", {}))
    assert "replan_ended" in saga.kinds


def test_references_are_told_from_other_values() -> None:
    assert fill_references(
        {"a": [{"$from": 0, "at": "/x~1y/1"}], "b": {"c": 1}}, lambda _: {"x/y": [1, 2]}
    ) == {
        "a": [2],
        "b": {"c": 1},
    }
    assert fill_references({"$from": 0}, lambda _: "whole") == "whole"
    for other in ({"$from": True}, {"$from": "1"}, {"$from": 1, "more": 2}, {"at": "/x"}, "${input}"):
        assert not is_reference(other)
        assert fill_references(other, lambda _: 1 / 0) == other
    with pytest.raises(ValueError, match="nothing"):
        fill_references({"$from": 0, "at": "/3"}, lambda _: [1])


# ---- what was done before ----------------------------------------------------------------------------------------


def test_a_call_that_has_succeeded_in_the_saga_is_not_madeagain() -> None:
    saga = Saga(compiled(rest="\n  b: {tool: other, with: {n: 5.0}}", node=", after: b"))
    saga.go()
    (early,) = steps_of(saga.decision)
    assert early.digest == act_digest("ada", "other", {"n": 5})
    saga.go(outcome("b", "was booked", digest=early.digest))
    saga.go(failed("a", "not_found"))
    saga.go(plan(way(step("other", n=5))))
    assert saga.kinds == ["step_succeeded", "alternative_began", "step_succeeded", "saga_ended"]
    began = saga.entries[-1].events[1]
    assert isinstance(began, ev.AlternativeBegan)
    assert began.repeats == "b"
    assert saga.state.ended is not None
    assert saga.state.ended.output.v == "was booked"
    assert replay(saga.entries) == saga.state


def test_what_a_dropped_alternative_has_done_is_not_done_again_unless_its_tool_says_so() -> None:
    saga = broken(more=", steps: 2")
    saga.go(plan(way(step("third", n=1), step("other", n=2)), way(step("third", n=1), step("roll"))))
    (first,) = steps_of(saga.decision)
    saga.go(outcome("a#a1-1", "held", digest=first.digest))
    saga.go(failed("a#a1-2", "business_rule"))
    assert saga.kinds == ["step_failed", "alternative_began", "alternative_began", "node_began"]
    assert ready(saga.decision) == ["a#a2-2"]
    assert steps_of(saga.decision)[0].digest == "", "a tool that is called again is not remembered"


def test_a_saga_without_such_steps_remembers_nothing() -> None:
    saga = Saga(program_of("name: w\nnodes: {a: {tool: other, with: {n: 1}}}"))
    saga.go()
    assert steps_of(saga.decision)[0].digest == ""


def test_only_the_newest_calls_are_remembered_and_each_once() -> None:
    saga = broken()
    state = saga.state
    for number in (*range(MADE_REMEMBERED + 1), 5):
        place: dict[str, Any] = {"attempt": 1, "started_at": 1, "ended_at": 1, "tool": "other"}
        made = ev.StepSucceeded(
            node="a",
            item="plan",
            **place,
            tool_version="",
            schema_hash="",
            output=ev.Value(v=number),
            digest=str(number),
        )
        state = apply(saga.state if number == 0 else replace(saga.state, made=state.made), made)
    assert len(state.made) == MADE_REMEMBERED
    assert [*state.made][-1] == "5"
    assert "0" not in state.made
