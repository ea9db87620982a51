"""A step that a model puts something else in the place of, in the core: people, risks, deaths and forks, and how it is written."""

from __future__ import annotations

import pytest

from baton.core.documents.compile import compile_document
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.scopes import label_of
from baton.core.log.state import ANSWER, UNKNOWN_OUTCOME, status_of
from baton.core.read.views import saga_view
from tests.core.asked import steps_of
from tests.core.build import failed, problems_of, ready, replay
from tests.core.nodes.replans import TOOLS, at_work, broken, plan, step, way

# ---- a person chooses --------------------------------------------------------------------------------------------
from tests.core.told import ROOM, story
from tests.kit.sentences import Says
from tests.kit.views import as_json, explain


def test_a_person_chooses_where_the_document_says_so() -> None:
    saga = broken(more=", choose: person")
    saga.go(plan(way(step("other", n=1)), way(step("look", n=1), step("third", n=2))))
    assert "question_opened" in saga.kinds
    assert status_of(saga.state, saga.program) == "suspended"
    ask = saga.state.open["a#choice"].ask
    assert ask is not None
    assert ask.actions == ("1", "2", "none")
    assert [getattr(one, "label", "") for one in ask.options[:2]] == ["other", "look, then third"]
    saga.signal(ANSWER, {"ask": ask.id, "action": "2"}, key=f"{ask.id}/1")
    saga.go()
    assert ready(saga.decision) == ["a#a2-1"]
    saga.go(failed("a#a2-1", "business_rule"))
    assert "replan_ended" in saga.kinds, "the other one was not chosen"
    assert replay(saga.entries) == saga.state


def test_a_person_may_want_none_or_not_answer() -> None:
    for answer in ("none", ""):
        saga = broken(more=", choose: person")
        saga.go(plan(way(step("other", n=1))))
        ask = saga.state.open["a#choice"].ask
        assert ask is not None
        if answer:
            saga.signal(ANSWER, {"ask": ask.id, "action": answer}, key=f"{ask.id}/1")
        saga.go(after_ms=0 if answer else 24 * 3_600_000)
        assert "replan_ended" in saga.kinds
        assert "a" in saga.state.failing


# ---- effects, risks, money -----------------------------------------------------------------------------------------


def test_nothing_else_is_done_where_an_effect_may_have_happened() -> None:
    saga = broken()
    saga.go(plan(way(step("third", n=1)), way(step("other", n=1))))
    saga.go(failed("a#a1-1", UNKNOWN_OUTCOME))
    ask = saga.state.failing["a#a1-1"].ask
    assert ask is not None
    saga.signal(ANSWER, {"ask": ask.id, "action": "fail"}, key=f"{ask.id}/1")
    saga.go()
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == UNKNOWN_OUTCOME


def test_what_stands_in_is_as_risky_as_the_step() -> None:
    text = "name: w\nnodes: {a: {tool: pay, with: {n: 900}, replan: {model: m, tools: [other, look, book]}}}"
    (node,) = compile_document(text, TOOLS).nodes
    assert node.replan is not None
    by_tool = {call.tool: call.approval for call in node.replan.calls}
    asked = by_tool["other"]
    assert asked is not None
    assert (asked.risk, asked.work_of) == (TOOLS["pay"].risk, "pay")
    assert by_tool["look"] is None, "it changes nothing outside"


def test_the_limit_of_the_node_holds_for_the_request() -> None:
    saga = broken(node=", limits: {cost_usd: 0.5}")
    (asked,) = steps_of(saga.decision)
    assert asked.node.limits["cost"].most == 500_000


# ---- what comes in between ------------------------------------------------------------------------------------------


def test_a_worker_that_dies_makes_the_request_again_and_nothing_else() -> None:
    saga = broken()
    saga.die()
    saga.go()
    assert ready(saga.decision) == ["a#plan"]
    assert saga.state.recovery.possibly_running == ("a#plan",), "the step itself is not at work"
    saga.go(plan(way(step("other", n=1))))
    saga.die()
    saga.go()
    assert ready(saga.decision) == ["a#a1-1"]


def test_a_fork_keeps_what_the_model_has_answered_and_the_time_that_was_left() -> None:
    saga = broken()
    saga.go(plan(way(step("other", n=1)), way(step("third", n=1))))
    cut, until = saga.state.version, at_work(saga).until
    saga.cancel()
    saga.go()
    saga.now += 5_000
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0)
    saga.go()
    assert ready(saga.decision) == ["a#a1-1"]
    assert at_work(saga).until == until + 5_000


def test_a_tool_that_the_graph_does_not_allow_any_more_is_not_called() -> None:
    saga = broken()
    saga.go(plan(way({"tool": "gone", "arguments": {}})))
    failures = [event for event in saga.entries[-1].events if isinstance(event, ev.StepFailed)]
    assert failures[0].failure.code == "call_not_allowed"


def test_events_of_no_replan_and_those_that_come_twice_change_nothing() -> None:
    saga = broken()
    saga.go(plan(way(step("other", n=1))))
    before = saga.state
    again = ev.AlternativeBegan(node="a", at=1, number=1, call="a1-1", tool="other")
    for event in (
        again,
        ev.AlternativeBegan(node="b", at=1, number=1, call="a1-1", tool="other"),
        ev.ReplanEnded(node="b", at=1, why=""),
        ev.ReplanBegan(node="a", until=1),
        ev.StepSucceeded(
            node="b",
            attempt=1,
            started_at=1,
            ended_at=1,
            tool="t",
            tool_version="",
            schema_hash="",
            output=ev.Value(),
            digest="x",
        ),
    ):
        assert apply(before, event) == before


def test_what_is_shown_of_it() -> None:
    saga = broken()
    kind, node = saga.program.kinds["task"], saga.program.nodes["a"]
    work = at_work(saga)
    assert work.word == "running"
    assert work.view(None)["alternative"] is None
    assert kind.node_view(node)["replan"] == {"model": "m", "tools": ["look", "other", "roll", "third"]}
    opened = next(event for event in saga.entries[-1].events if isinstance(event, ev.ReplanBegan))
    assert "a model" in opened.words
    assert (work.signal, work.due, work.orphan, work.ask, work.hears("x")) == ("", None, None, None, False)


def test_people_are_told_what_is_done_in_its_place(says: Says) -> None:
    saga = broken(more=", choose: person")
    shown = as_json(saga_view(saga.state, saga.program))["active"]
    assert [(one.get("label", ""), one["state"]) for one in shown] == [("", "running"), ("the plan", "ready")]
    saga.go(plan(way(step("look", n=1), step("other", n=1))))
    assert label_of("choice") == "the choice"
    ask = saga.state.open["a#choice"].ask
    assert ask is not None
    saga.signal(ANSWER, {"ask": ask.id, "action": "1"}, key=f"{ask.id}/1")
    saga.go()
    shown = as_json(saga_view(saga.state, saga.program))["active"]
    assert shown[0]["alternative"] == 1
    assert shown[1]["label"] == "alternative 1, call 1 (look)"
    assert "alternative 1, call 1 (look)" in as_json(explain(story(saga), "a", ROOM))["iterations"][0]["text"]
    saga.go(failed("a#a1-1", "business_rule"))
    (told,) = as_json(explain(story(saga), "a", ROOM))["iterations"]
    says(told["text"])
    says(told["attempts"][0]["text"])


# ---- documents -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "place", "message"),
    [
        ("{model: m, tools: nope}", "/nodes/a/replan/tools/0", "there is no tool `nope`"),
        ("{model: m, tools: []}", "/nodes/a/replan/tools", "none of these tools can stand in for `book`"),
        ("{model: m, tools: look}", "/nodes/a/replan/tools", "it gives `object`, and `book` gives `string`"),
        ("{model: m}", "/nodes/a/replan", "tools"),
        ("{model: m, tools: other, alternatives: 9}", "/nodes/a/replan/alternatives", "between 1 and 5"),
        ("{model: m, tools: other, choose: me}", "/nodes/a/replan/choose", "`best` or `person`"),
        ("{model: m, tools: other}, callback: 1h", "/nodes/a/replan", "hands its work over"),
    ],
)
def test_what_is_wrong_with_it_is_said_where_it_stands(said: str, place: str, message: str) -> None:
    found = problems_of(f"name: w\nnodes: {{a: {{tool: book, with: {{n: 1}}, replan: {said}}}}}", TOOLS)
    assert any(
        one.path.startswith(place) and message in f"{one.message} {one.suggestion}" for one in found
    ), found


def test_only_tasks_have_it_and_the_documents_own_tools_have_to_exist(says: Says) -> None:
    text = "name: w\nnodes: {a: {wait: {for: 1s}, replan: {model: m, tools: other}}}"
    says([one.message for one in problems_of(text, TOOLS)])
    text = "name: w\nreplan: {model: m, tools: nope}\nnodes: {a: {tool: book}}"
    assert [one.path for one in problems_of(text, TOOLS)] == ["/replan/tools/0"]
