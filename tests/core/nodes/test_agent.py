"""An agent in the core: turns, calls, what is told to the model, and what is kept of it all."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.outcomes import APPROVAL, Outcome
from baton.core.decide.spending import SpendingLimits
from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import request_for
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.scopes import Agent
from baton.core.log.state import ANSWER, status_of
from baton.core.models.usage import Usage
from baton.core.nodes.agent import EXHAUSTED, NOT_ALLOWED, TOO_MANY
from baton.errors import InvalidDefinition
from tests.core.asked import needs_of, steps_of
from tests.core.build import T0, Saga, done, failed, ready, replay
from tests.core.nodes.thinking import TOOLS, answered, at_work, call, outcome, refused, thinking
from tests.kit.sentences import Says


def test_it_begins_with_its_prompt_and_its_first_turn_in_one_entry() -> None:
    saga = thinking()
    assert saga.kinds == ["agent_began", "turn_began", "node_began"]
    assert ready(saga.decision) == ["a#t1"]
    assert at_work(saga).given.v == {"model": "m", "prompt": "find a table"}
    assert status_of(saga.state) == "running"


def test_the_entry_of_an_answer_begins_its_calls_and_that_of_the_last_result_the_next_turn() -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1), call("look", n=2)))
    assert saga.kinds == ["step_succeeded", "calls_began", "node_began", "node_began"]
    assert ready(saga.decision) == ["a#t1-0", "a#t1-1"]
    assert [step.arguments for step in steps_of(saga.decision)] == [{"n": 1}, {"n": 2}]
    assert [step.node.tool for step in steps_of(saga.decision)] == ["look", "look"]
    saga.go(outcome("a#t1-1", "two"), running=["a#t1-0"])
    assert saga.kinds == ["step_succeeded"]
    saga.go(outcome("a#t1-0", "one"))
    assert saga.kinds == ["step_succeeded", "turn_began", "node_began"]
    work = at_work(saga)
    assert [result.v for result in work.tail[0].results] == ["one", "two"]
    assert saga.state.items == {"a#t2": None}, "what is over has left the state"
    saga.go(answered("a#t2", data="done"))
    assert saga.kinds == ["step_succeeded", "agent_closed", "saga_ended"]
    closed = saga.entries[-1].events[1]
    assert isinstance(closed, ev.AgentClosed)
    assert (closed.output.v, closed.turns, closed.used.tokens, closed.used.calls) == ("done", 2, 220, 2)
    assert replay(saga.entries) == saga.state


@pytest.mark.parametrize(
    ("asked", "code"),
    [(refused("look"), "input_invalid"), (call("t"), NOT_ALLOWED), (refused("x", NOT_ALLOWED), NOT_ALLOWED)],
)
def test_a_call_that_cannot_be_made_has_its_result_at_once(asked: dict[str, Any], code: str) -> None:
    saga = thinking()
    saga.go(answered("a#t1", asked))
    assert saga.kinds == ["step_succeeded", "calls_began", "turn_began", "node_began"]
    (result,) = at_work(saga).tail[0].results
    assert result.v["error"]["code"] == code


def test_a_call_that_has_failed_for_good_is_told_and_no_person_is_asked() -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1)))
    saga.go(failed("a#t1-0", "business_rule"))
    assert saga.kinds == ["step_failed", "turn_began", "node_began"]
    (told,) = [event for event in saga.entries[-1].events if isinstance(event, ev.StepFailed)]
    assert told.is_result
    assert at_work(saga).tail[0].results[0].v["error"]["code"] == "business_rule"
    assert saga.state.failure is None


def test_a_call_is_tried_again_before_it_is_told() -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1)))
    saga.go(failed("a#t1-0", "timeout"))
    assert saga.kinds[0] == "attempt_failed"
    assert "a#t1-0" in saga.state.failing


def test_a_turn_that_fails_for_good_fails_the_agent() -> None:
    saga = thinking(node=", on_failure: fail")
    saga.go(failed("a#t1", "bad_request"))
    assert saga.state.ended is not None
    assert saga.state.ended.status == "failed"


def test_a_turn_that_fails_goes_on_where_the_document_says() -> None:
    saga = thinking(node=", on_failure: fail, catch: b", rest="\n  b: {value: '${last_error.code}'}")
    saga.go(failed("a#t1", "bad_request"))
    assert saga.kinds == ["step_failed", "node_passed", "saga_ended"]
    (passed,) = [event for event in saga.entries[-1].events if isinstance(event, ev.NodePassed)]
    assert passed.output.v == "bad_request"


@pytest.mark.parametrize(("answer", "result"), [("approve", None), ("reject", "rejected")])
def test_a_call_that_a_person_has_to_approve_holds_only_itself(
    answer: str, result: str | None, says: Says
) -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("pay", n=900), call("look", n=1)))
    pay, _ = steps_of(saga.decision)
    assert pay.node.approval is not None
    request = request_for("pay", {"n": 900}, TOOLS["pay"])
    assert request is not None
    saga.go(
        Outcome(slot="a#t1-0", attempt=1, started_at=T0, ended_at=T0, why=APPROVAL, request=request),
        running=["a#t1-1"],
    )
    work = saga.state.open["a#t1-0"]
    assert (work.word, "ask" in work.view(None)) == ("asking", True)
    opened = next(event for event in saga.entries[-1].events if isinstance(event, ev.QuestionOpened))
    says(opened.words)
    saga.go(outcome("a#t1-1", 1))
    assert status_of(saga.state, saga.program) == "suspended"
    assert work.ask is not None
    said = {"ask": work.ask.id, "action": answer}
    saga.signal(ANSWER, said, key=f"{work.ask.id}/1")
    saga.go()
    if result is None:
        assert ready(saga.decision) == ["a#t1-0"]
        assert steps_of(saga.decision)[0].approved == (request.digest,)
    else:
        assert at_work(saga).tail[0].results[0].v["error"]["code"] == result


def test_an_equal_call_repeats_the_result_unless_its_tool_says_otherwise() -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1), call("look", n=1), call("roll"), call("roll")))
    assert ready(saga.decision) == ["a#t1-0", "a#t1-2", "a#t1-3"]
    saga.go(outcome("a#t1-0", "one"), outcome("a#t1-2", 4), outcome("a#t1-3", 6))
    assert [result.v for result in at_work(saga).tail[0].results] == ["one", {"repeated": "t1-0"}, 4, 6]
    saga.go(answered("a#t2", call("look", n=1)))
    assert at_work(saga).tail[1].results[0].v == {"repeated": "t1-0"}


def test_an_equal_call_that_has_failed_is_made_again() -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1)))
    saga.go(failed("a#t1-0", "business_rule"))
    saga.go(answered("a#t2", call("look", n=1)))
    assert ready(saga.decision) == ["a#t2-0"]


def test_calls_end_at_the_limits_of_a_turn_and_of_the_agent() -> None:
    saga = thinking(more=", calls: 3, calls_in_a_turn: 2")
    saga.go(answered("a#t1", *(call("look", n=n) for n in range(3))))
    saga.go(done("a#t1-0"), done("a#t1-1"))
    assert at_work(saga).tail[0].results[2].v["error"]["code"] == TOO_MANY
    saga.go(answered("a#t2", call("look", n=7), call("look", n=8)))
    assert ready(saga.decision) == ["a#t2-0"]
    assert at_work(saga).used.calls == 3


@pytest.mark.parametrize("more", [", turns: 1", ", tokens: 100"])
def test_it_fails_where_it_has_used_up_what_it_may(more: str) -> None:
    saga = thinking(more=more)
    saga.go(answered("a#t1", call("look", n=1)))
    saga.go(done("a#t1-0"))
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == EXHAUSTED


def test_a_large_answer_is_fetched_before_its_calls_begin() -> None:
    saga = thinking()
    saga.go(done("a#t1", ref="cas://sha256/1"))
    assert needs_of(saga.decision) == {"cas://sha256/1"}
    blob = {"text": "", "calls": [call("look", n=1)], "data": None, "tokens": [1, 1]}
    saga.go(blobs={"cas://sha256/1": blob})
    assert ready(saga.decision) == ["a#t1-0"] or needs_of(saga.decision)
    saga.go(blobs={"cas://sha256/1": blob})
    assert ready(saga.decision) == ["a#t1-0"]


def test_segments_take_old_turns_out_of_the_state() -> None:
    saga = thinking()
    for turn in range(1, 4):
        saga.go(answered(f"a#t{turn}", call("look", n=turn)))
        saga.go(outcome(f"a#t{turn}-0", turn))
    assert len(at_work(saga).tail) == 3
    saga.go(answered("a#t4", call("look", n=4), segments=[["cas://sha256/9", 3]]))
    saga.go(outcome("a#t4-0", 4))
    work = at_work(saga)
    assert [(one.ref, one.turns) for one in work.segments] == [("cas://sha256/9", 3)]
    assert [turn.results[0].v for turn in work.tail] == [4]
    assert list(work.made.values()) == ["t4-0"], "what was called in older turns stands in their segment"


def test_a_call_that_repeats_one_of_a_segment_is_not_made_again() -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1)))
    saga.go(outcome("a#t1-0", 1))
    saga.go(answered("a#t2", call("look", n=2), segments=[["cas://sha256/9", 1]]))
    saga.go(outcome("a#t2-0", 2))
    saga.go(answered("a#t3", {**call("look", n=1), "repeats": "t1-0"}, {**call("roll"), "repeats": "t1-1"}))
    assert ready(saga.decision) == ["a#t3-1"], "a repeatable tool is called all the same"
    (began,) = [event for event in saga.entries[-1].events if isinstance(event, ev.CallsBegan)]
    assert [one.repeats for one in began.calls] == ["t1-0", ""]


def test_an_entry_without_room_for_all_calls_is_followed_by_another() -> None:
    saga = thinking(more=", calls_in_a_turn: 20")
    calls = [call("look", n=n) for n in range(20)]
    saga.go(answered("a#t1", *calls), room=1_500)
    assert len(ready(saga.decision)) == 20
    assert len([entry for entry in saga.entries if entry.epoch]) > 2


def test_events_of_no_agent_and_those_that_come_twice_change_nothing() -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1)))
    before = saga.state
    for event in (
        ev.TurnBegan(node="a", turn=1),
        ev.TurnBegan(node="b", turn=2),
        ev.CallsBegan(node="a", calls=()),
        ev.CallsBegan(node="b", calls=()),
    ):
        assert apply(before, event).open == before.open


def test_a_fork_in_the_middle_of_a_turn_keeps_what_was_said_and_done() -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1), call("look", n=2)))
    saga.go(outcome("a#t1-0", "one"), running=["a#t1-1"])
    cut = saga.state.version
    saga.cancel()
    saga.go()
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0)
    saga.go()
    assert ready(saga.decision) == ["a#t1-1"]
    saga.go(outcome("a#t1-1", "two"))
    assert [result.v for result in at_work(saga).tail[0].results] == ["one", "two"]


def test_a_signal_is_a_message_for_the_next_turn_and_one_with_the_answer_has_another_turn() -> None:
    saga = thinking(more=", signal: more")
    saga.signal("other", "no", "k0")
    saga.signal("more", "for four", "k1")
    saga.go(answered("a#t1", call("look", n=1)), running=[])
    saga.go(outcome("a#t1-0", 1))
    work = at_work(saga)
    assert [value.v for value in work.heard] == ["for four"]
    assert [signal.key for signal in saga.state.signals] == ["k0"], "what another waits for stays"
    saga.signal("more", "and outside", "k2")
    saga.go(answered("a#t2", data="done"))
    assert ready(saga.decision) == ["a#t3"]
    assert [[value.v for value in turn.heard] for turn in at_work(saga).tail] == [[], ["for four"]]
    saga.go(answered("a#t3", data="done, outside"))
    assert saga.state.ended is not None
    assert replay(saga.entries) == saga.state


def test_without_money_it_asks_nothing() -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1)), running=[])
    saga.terms = SpendingLimits(saga=20)
    saga.go(outcome("a#t1-0", 1))
    assert saga.state.parked is not None
    assert saga.state.parked.code == "budget_saga"
    assert not steps_of(saga.decision)


def test_its_open_work_ends_by_nothing_outside() -> None:
    work = at_work(thinking())
    assert (work.signal, work.due, work.orphan, work.hears("x"), work.ask) == ("", None, None, False, None)
    assert work.after_fork(None, is_ending=True) is work


def test_what_is_shown_of_it(says: Says) -> None:
    saga = thinking()
    node, kind = saga.program.nodes["a"], saga.program.kinds["agent"]
    assert kind.node_view(node) == {"model": "m", "tools": ["look", "pay", "roll"], "turns": 20}
    work = at_work(saga)
    assert work.view(None) == {"turn": 1, "calls": 0, "tokens": 0}
    assert work.word == "running"
    began = next(event for event in saga.entries[-1].events if isinstance(event, ev.AgentBegan))
    says(began.words)


def model_saga() -> Saga:
    from baton.core.decide.program import Program
    from baton.core.documents.compile import compile_document
    from baton.core.nodes.registry import KINDS

    text = "name: w\nnodes: {a: {model: {name: m, prompt: p, fallbacks: [n]}}}\noutput: '${ctx.a.output}'"
    saga = Saga(Program(compile_document(text, {}), KINDS))
    saga.go()
    return saga


@pytest.mark.parametrize(
    ("more", "first"),
    [
        ("", ("newer half of the transcript", {"share": 2})),
        (
            ", summarise: {model: n}",
            (
                "summary and newer half of the transcript",
                {"share": 2, "summarise": {"model": "n", "max_output": 1_024}},
            ),
        ),
        (
            ", summarise: {max_output: 9}",
            ("summary and newer half of the transcript", {"share": 2, "summarise": {"max_output": 9}}),
        ),
    ],
)
def test_a_transcript_that_does_not_fit_is_summarised_where_it_is_asked_for_and_then_cut(
    more: str, first: tuple[str, dict[str, Any]]
) -> None:
    text = f"name: w\nnodes: {{a: {{agent: {{model: m, prompt: p{more}}}}}}}\noutput: '${{ctx.a.output}}'"
    agent = compile_document(text, {}).nodes[0].agent
    assert agent is not None
    ways = agent.turn.ways
    assert (ways[0].name, ways[0].arguments) == first
    assert [way.arguments["share"] for way in ways] == [2, 4, 8]
    assert ("summarise_context" in ways[0].hints) == bool(more)


def test_a_model_is_one_step_and_has_fallbacks() -> None:
    saga = model_saga()
    (step,) = steps_of(saga.decision)
    assert (step.node.tool, step.arguments) == ("std.model", {"model": "m", "prompt": "p"})
    assert [(way.arguments, way.shorten) for way in step.node.ways] == [({"model": "n"}, ""), ({}, "prompt")]
    assert saga.program.kinds["model"].node_view(step.node) == {"model": "m"}
    saga.go(failed("a", "model_unavailable"))
    (step,) = steps_of(saga.decision)
    assert step.way is not None
    saga.go(outcome("a", "hello"))


def test_what_a_person_gives_in_place_of_a_turn_is_its_answer() -> None:
    saga = thinking()
    kind = saga.program.kinds["agent"]
    assert kind.instead("t1", {"n": 3}) == {
        "text": '{"n":3}',
        "calls": [],
        "data": {"n": 3},
        "tokens": [0, 0],
    }
    assert kind.instead("t1", "three")["text"] == "three"
    assert kind.instead("t1-0", 3) == kind.instead("", 3) == 3


def test_tokens_of_a_refused_answer_count() -> None:
    saga = thinking()
    before = saga.state
    wrong = ev.AttemptFailed(
        node="a",
        item="t1",
        attempt=1,
        failure=ev.Failure("answer_invalid", "no"),
        started_at=1,
        ended_at=2,
        tool="std.model",
        tool_version="1",
        schema_hash="",
        usage=(Usage(model="m", input=100, output=10),),
    )
    work = apply(before, wrong).open["a"]
    assert isinstance(work, Agent)
    assert work.used.tokens == 110
    gone = replace(before, open={})
    assert apply(gone, wrong).open == {}


def test_a_message_for_which_no_turn_is_left_leaves_the_answer() -> None:
    saga = thinking(more=", turns: 1, signal: more")
    saga.signal("more", "and for four", "k")
    saga.go(answered("a#t1", data="done"))
    assert saga.kinds == ["step_succeeded", "agent_closed", "saga_ended"]


def test_the_limit_of_its_cost_goes_with_its_turns() -> None:
    saga = thinking(node=", limits: {cost_usd: 1, wall_time: 1h}, output_schema: {type: string}")
    (turn,) = steps_of(saga.decision)
    assert list(turn.node.limits) == ["cost"]
    assert turn.node.output_schema == {"type": "string"}


def test_a_pattern_that_names_no_tool_is_a_problem(says: Says) -> None:
    with says.raised(InvalidDefinition):
        compile_document("name: w\nnodes: {a: {agent: {model: m, prompt: x, tools: ['pays.*']}}}", TOOLS)


def test_no_correction_is_asked_for_once_the_tokens_are_used() -> None:
    saga = thinking(more=", tokens: 100")
    usage = (Usage(model="m", input=100, output=10),)
    saga.go(replace(failed("a#t1", "answer_invalid"), usage=usage))
    saga.go(after_ms=3_600_000)
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == EXHAUSTED
