"""Conversations of agents, from the entries of a log."""

from __future__ import annotations

from typing import Any

from baton.console.conversations import CallApproval, Stored, stored_in, talks_of

TURN = {"started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:00:02Z"}


def entries(*events: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"version": number, "events": [{"node": "plan", "iteration": [], **event}]}
        for number, event in enumerate(events, 2)
    ]


BEGUN = (
    {"kind": "agent_began", "given": {"v": {"model": "m", "prompt": "p"}}},
    {"kind": "turn_began", "turn": 1},
)
ASKS = {
    "kind": "step_succeeded",
    "item": "t1",
    "output": {
        "v": {"text": "", "calls": [{"tool": "a", "arguments": {"x": 1}}, {"tool": "b", "arguments": {}}]}
    },
    "usage": [
        {"model": "m", "input": 100, "cached": 80, "output": 7},
        {"model": "m", "input": 1, "output": 1},
    ],
    "cost": 2_000_000,
    **TURN,
}


def test_a_turn_has_its_calls_with_what_came_of_them_and_what_it_cost() -> None:
    (talk,) = talks_of(
        entries(
            *BEGUN,
            ASKS,
            {"kind": "step_succeeded", "item": "t1-1", "output": {"v": [1]}, **TURN},
            {"kind": "step_failed", "item": "t1-0", "failure": {"code": "gone", "message": "no"}, **TURN},
        )
    )
    (turn,) = talk.turns.values()
    assert (turn.input, turn.cached, turn.output, turn.usd, turn.models) == (101, 80, 8, 2.0, ["m"])
    assert (turn.took, turn.version, talk.usd, talk.is_over) == (2_000, 4, 2.0, False)
    first, second = turn.calls
    assert (first.tool, first.arguments, first.result) == ("a", {"x": 1}, None)
    assert first.failure == {"code": "gone", "message": "no"}
    assert (second.tool, second.result, second.version, second.failure) == ("b", [1], 5, None)


def test_a_turn_that_has_no_answer_yet_is_one_and_an_agent_that_answered_is_over() -> None:
    (open_one,) = talks_of(entries(*BEGUN))
    assert [(one.number, one.version, one.answer) for one in open_one.turns.values()] == [(1, 0, None)]
    (closed,) = talks_of(entries(*BEGUN, ASKS, {"kind": "agent_closed", "output": {"v": "done"}}))
    assert closed.is_over


def test_a_call_that_is_refused_and_what_is_too_large_for_its_entry_are_shown_as_far_as_is_known() -> None:
    refused = {"item": "t1-0", "tool": "a", "failure": {"code": "too_many_calls", "message": "no"}}
    large = {**ASKS, "output": {"ref": "blob", "size": 9}}
    (talk,) = talks_of(
        entries(
            {**BEGUN[0], "given": {"ref": "x"}}, BEGUN[1], large, {"kind": "calls_began", "calls": [refused]}
        )
    )
    assert talk.given == Stored("x", 0)
    assert talk.turns[1].answer == Stored("blob", 9)
    assert [(one.tool, one.failure) for one in talk.turns[1].calls] == [("a", refused["failure"])]


def test_a_node_that_is_no_agent_has_no_conversation() -> None:
    assert talks_of(entries({"kind": "step_succeeded", "item": "t1", "output": {"v": 1}})) == []


def test_what_is_kept_beside_the_log_is_shown_once_it_was_read() -> None:
    large = {**ASKS, "output": {"ref": "cas://sha256/aa@7", "size": 9}}
    back = {"kind": "step_succeeded", "item": "t1-0", "output": {"ref": "cas://sha256/bb", "size": 7}, **TURN}
    heard = {"kind": "turn_began", "turn": 2, "heard": ["k1", "k2"]}
    news = {"kind": "signal_received", "key": "k1", "payload": {"v": "We are five."}}
    log = entries(*BEGUN, large, back, news, heard)
    (talk,) = talks_of(log)
    assert list(stored_in(talk)) == [Stored("aa", 9), Stored("bb", 7)]
    (talk,) = talks_of(
        log, {"aa": {"text": "so", "calls": [{"tool": "a", "arguments": {"x": 1}}]}, "bb": [2]}
    )
    (call,) = talk.turns[1].calls
    assert (talk.turns[1].answer, call.arguments, call.result) == ("so", {"x": 1}, [2])
    assert talk.turns[2].heard == ["We are five.", "k2"]
    assert list(stored_in(talk)) == []


def test_a_part_of_a_log_shows_turns_of_an_agent_that_began_before_it() -> None:
    log = entries(
        {**ASKS, "item": "t7"}, {"kind": "step_succeeded", "item": "t7-1", "output": {"v": 3}, **TURN}
    )
    assert talks_of(log) == []
    (talk,) = talks_of(log, is_part=True)
    assert [(turn.number, turn.moved, turn.calls[1].result) for turn in talk.turns.values()] == [(7, 2, 3)]
    assert talks_of(entries({**ASKS, "item": "3"}), is_part=True) == []


def test_a_call_that_repeats_another_one_names_it() -> None:
    calls = [{"item": "t2-0", "tool": "a", "repeats": "t1-0"}, {"item": "t2-1", "tool": "b"}]
    asks = {**ASKS, "item": "t2"}
    turn = {"kind": "turn_began", "turn": 2}
    (talk,) = talks_of(entries(*BEGUN, ASKS, turn, asks, {"kind": "calls_began", "calls": calls}))
    assert [one.repeats for one in talk.turns[2].calls] == ["turn 1, call 1", ""]


def test_an_image_in_a_prompt_is_shown_by_its_type_and_its_size() -> None:
    prompt = [{"text": "What is it?"}, {"image": "iVBORw0KGgoA"}]
    began = {"kind": "agent_began", "node": "a", "given": {"v": {"model": "m", "prompt": prompt}}}
    (talk,) = talks_of(entries(began))
    assert talk.given["prompt"] == [prompt[0], {"image": "[image/png, 9 bytes]"}]  # type: ignore[index]


def test_a_call_says_who_has_approved_it_and_when() -> None:
    at = "2026-01-01T00:00:05Z"
    opened = {"kind": "question_opened", "item": "t1-0", "ask": {"id": "q"}}
    answer = {"kind": "signal_received", "name": ":answer", "key": "q/ada", "by": "ada", "payload": {"v": {}}}
    closed = {"kind": "question_closed", "item": "t1-0", "action": "approve", "by": "q/ada", "at": at}
    (talk,) = talks_of(entries(*BEGUN, ASKS, opened))
    assert talk.turns[1].calls[0].approval == CallApproval()
    (talk,) = talks_of(entries(*BEGUN, ASKS, opened, answer, closed))
    assert talk.turns[1].calls[0].approval == CallApproval("approve", "ada", at)
    (talk,) = talks_of(entries(*BEGUN, ASKS, opened, {**closed, "action": "expired", "by": ""}))
    assert talk.turns[1].calls[0].approval == CallApproval("expired", "", at)


def asks(name: str, tool: str = "pydantic_ai.call", run: str = "support") -> dict[str, Any]:
    item = f"{run}-1--{name}"
    given = {"v": {"agent": run, "model": "m"}}
    one = {"item": item, "label": f"{run}[1]/{name}", "tool": tool, "given": given}
    return {"kind": "operations_began", "operations": [one]}


def done(name: str, output: Any, tool: str = "pydantic_ai.call", **said: Any) -> dict[str, Any]:
    of = {"kind": "step_succeeded", "item": f"support-1--{name}", "tool": tool}
    return {**of, "output": {"v": output}, **TURN, **said}


def response(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"done": {"parts": list(parts), "kind": "response"}}


def part_of(tool: str, **args: Any) -> dict[str, Any]:
    return {"part_kind": "tool-call", "tool_name": tool, "args": args}


REQUEST = "pydantic_ai.request"
OF_FUNCTION = (
    asks("get_tools"),
    done("get_tools", {"done": {}}),
    asks("model", REQUEST),
    done(
        "model",
        response({"part_kind": "text", "content": "I pay."}, part_of("pay", n=1), part_of("pay", n=2)),
        REQUEST,
        usage=[{"model": "m", "input": 5, "output": 2}],
    ),
    asks("pay"),
    asks("pay-2", "shop.pay"),
    done("pay", {"done": {"kind": "approval_required"}}),
    done("pay-2", "paid 2", "shop.pay"),
    asks("approve_pay", ""),
    {"kind": "question_opened", "item": "support-1--approve_pay", "ask": {"id": "q"}},
    {"kind": "question_closed", "item": "support-1--approve_pay", "action": "approve", "by": "k", "at": "x"},
    asks("pay-3"),
    done("pay-3", {"done": {"result": "paid 1", "kind": "tool_return"}}),
    asks("model-2", REQUEST),
    done("model-2", response(part_of("final_result", text="Paid.")), REQUEST),
)


def test_an_agent_of_pydantic_ai_in_a_function_has_a_conversation() -> None:
    (talk,) = talks_of(entries(*OF_FUNCTION, {"kind": "function_closed"}))
    assert (talk.node, talk.given, talk.is_over) == ("support[1]", {"model": "m"}, True)
    first, last = talk.turns.values()
    assert (first.answer, first.input, first.output, last.number) == ("I pay.", 5, 2, 2)
    calls = [(one.tool, one.arguments, one.result) for one in first.calls]
    assert calls == [("pay", {"n": 1}, "paid 1"), ("pay", {"n": 2}, "paid 2")]
    assert [one.approval for one in first.calls] == [CallApproval("approve", "", "x"), None]
    assert (last.answer, last.calls) == ({"text": "Paid."}, [])


def test_an_agent_of_the_openai_agents_sdk_in_a_function_has_a_conversation() -> None:
    request, call = "openai_agents.request", "openai_agents.call"
    said = {"type": "message", "content": [{"type": "output_text", "text": "I pay."}]}
    pays = {"type": "function_call", "name": "pay", "arguments": "{}"}
    answer = done("model", {"value": {"output": [said, pays]}}, request)
    paid = done("pay", {"value": "paid"}, call)
    (talk,) = talks_of(entries(asks("model", request), answer, asks("pay", call), paid))
    (turn,) = talk.turns.values()
    assert (turn.answer, [(one.tool, one.result) for one in turn.calls]) == ("I pay.", [("pay", "paid")])


def test_operations_of_a_function_that_are_of_no_agent_have_no_conversation() -> None:
    loose = {"kind": "operations_began", "operations": [{"item": "charge", "tool": "shop.charge"}]}
    assert talks_of(entries(loose, asks("send", "shop.send", run="notify"), done("send", 1))) == []
    large = {**done("model", None, REQUEST), "output": {"ref": "cas://sha256/aa", "size": 9}}
    (talk,) = talks_of(entries(asks("model", REQUEST), large))
    assert list(stored_in(talk)) == [Stored("aa", 9)]
