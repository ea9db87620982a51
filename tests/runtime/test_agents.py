"""Agents and models through the engine in virtual time: what is asked, done, recorded and paid for."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest

from baton import StepFailure, tool
from baton.core.log.events import AgentClosed, AttemptFailed, CallsBegan, StepSucceeded
from baton.core.log.folding.fold import fold
from baton.core.log.snapshots import encode_state
from baton.core.log.state import State
from baton.ports.models import ModelAnswer, ModelRequest
from tests.kit.corpus import start
from tests.kit.scripted import Scripted, asks_for, by_turn, in_turn, says
from tests.kit.sentences import Says
from tests.kit.world import World

AGENT = """
name: w
nodes:
  find: {{agent: {{model: m, instructions: Be brief., prompt: "Add ${{input.a}} and 2.", tools: [sum.*]{more}}}{node}}}
output: ${{ctx.find.output}}
"""


def document(more: str = "", node: str = "") -> str:
    return AGENT.format(more=more, node=node)


class Desk:
    """The tools that the agents of these tests call, and what they were called with."""

    def __init__(self, world: World) -> None:
        self.calls: list[tuple[str, Any]] = []

        @tool("sum.add", registry=world.registry)
        async def add(a: int, b: int) -> int:
            """The sum of two numbers."""
            self.calls.append(("add", (a, b)))
            return a + b

        @tool("sum.broken", registry=world.registry)
        async def broken() -> int:
            self.calls.append(("broken", ()))
            raise StepFailure("business_rule", "no sums today")

        @tool("other", registry=world.registry)
        async def other() -> int:
            raise AssertionError("no agent may call it")

        world.tools = world.registry.specs()


async def ran(world: World, text: str, given: Any) -> dict[str, Any]:
    saga = await start(world, text, given, "w")
    await world.settle()
    return await world.queries().show(saga)


def of_kind(world: World, saga: str, kind: type) -> list[Any]:
    return [event for event in world.events(saga) if isinstance(event, kind)]


async def test_a_model_without_calls_answers_and_that_is_the_output() -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(says("Three.")))
    shown = await ran(world, document(), {"a": 1})
    assert (shown["status"], shown["result"]) == ("completed", "Three.")
    (request,) = model.requests
    assert request.messages == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Add 1 and 2."},
    )
    assert [offer.name for offer in request.tools] == ["sum_add", "sum_broken"][: len(request.tools)]
    (closed,) = of_kind(world, shown["id"], AgentClosed)
    assert (closed.turns, closed.used.tokens) == (1, 110)
    (answered,) = of_kind(world, shown["id"], StepSucceeded)
    assert (answered.item, answered.usage[0].input, answered.cost) == ("t1", 100, 200)
    assert shown["spent_usd"] == 0.0002


async def test_calls_are_made_side_by_side_and_their_results_are_told() -> None:
    world = World.start()
    desk = Desk(world)
    world.models = model = Scripted(
        by_turn(asks_for(("sum_add", {"a": 1, "b": 2}), ("sum_add", {"a": 3, "b": 4})), says("3 and 7"))
    )
    shown = await ran(world, document(), {"a": 1})
    assert shown["result"] == "3 and 7"
    assert sorted(desk.calls) == [("add", (1, 2)), ("add", (3, 4))]
    first, second = model.requests
    assert second.messages[: len(first.messages)] == first.messages
    said, *results = second.messages[len(first.messages) :]
    assert [call["id"] for call in said["tool_calls"]] == ["t1-0", "t1-1"]
    assert [(one["tool_call_id"], one["content"]) for one in results] == [("t1-0", "3"), ("t1-1", "7")]
    entries = [entry for entry in world.entries(shown["id"]) if entry.epoch]
    assert len(entries) <= 4, "a turn and its calls are two entries, and a call may end before the other"


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (("sum_broken", {}), "business_rule"),
        (("sum_add", {"a": 1}), "input_invalid"),
        (("sum_add", "{not json"), "input_invalid"),
        (("sum_add", [1]), "input_invalid"),
        (("other", {}), "call_not_allowed"),
        (("nonsense", {}), "call_not_allowed"),
    ],
)
async def test_a_call_that_cannot_be_made_or_fails_is_told_to_the_model(
    call: tuple[str, Any], code: str
) -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(by_turn(asks_for(call), says("I could not.")))
    shown = await ran(world, document(), {"a": 1})
    assert (shown["status"], shown["result"]) == ("completed", "I could not.")
    told = json.loads(model.requests[1].messages[-1]["content"])
    assert told["error"]["code"] == code
    assert shown["questions"] == []


async def test_an_equal_call_is_not_made_again_and_its_result_is_marked() -> None:
    world = World.start()
    desk = Desk(world)
    add = ("sum_add", {"a": 1, "b": 2})
    world.models = model = Scripted(
        by_turn(asks_for(add, add), asks_for(("sum_add", {"b": 2, "a": 1}), add), says("3"))
    )
    shown = await ran(world, document(), {"a": 1})
    assert shown["result"] == "3"
    assert desk.calls == [("add", (1, 2))]
    results = [one["content"] for one in model.requests[2].messages if one["role"] == "tool"]
    assert results[0] == "3"
    assert [json.loads(one) for one in results[1:]] == [
        {"repeated": True, "result": 3},
        {"repeated": True, "result": "3"},
        {"repeated": True, "result": "3"},
    ]


async def test_an_answer_that_is_not_as_its_schema_has_it_is_asked_for_again() -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(says("three"), says('{"sum": "3"}'), says('{"sum": 3}')))
    schema = ", output_schema: {type: object, required: [sum], properties: {sum: {type: integer}}}"
    shown = await ran(world, document(node=schema), {"a": 1})
    assert shown["result"] == {"sum": 3}
    assert ["no JSON" in request.messages[-1]["content"] for request in model.requests] == [
        False,
        True,
        False,
    ]
    failed = of_kind(world, shown["id"], AttemptFailed)
    assert [one.failure.code for one in failed] == ["answer_invalid"] * 2
    assert shown["spent_usd"] == 0.0006, "what was refused is paid for, too"


async def test_an_agent_ends_at_its_turns() -> None:
    world = World.start()
    Desk(world)
    numbers = iter(range(1_000))

    def script(*_: Any) -> ModelAnswer:
        return asks_for(("sum_add", {"a": next(numbers), "b": 0}))

    world.models = model = Scripted(script)
    shown = await ran(world, document(", turns: 3"), {"a": 1})
    assert (shown["status"], shown["error"]["code"]) == ("failed", "agent_exhausted")
    assert len(model.requests) == 3


async def test_calls_beyond_the_limits_are_refused() -> None:
    world = World.start()
    desk = Desk(world)
    many = [("sum_add", {"a": n, "b": 0}) for n in range(5)]
    world.models = Scripted(by_turn(asks_for(*many), says("enough")))
    shown = await ran(world, document(", calls_in_a_turn: 3, calls: 2"), {"a": 1})
    assert shown["result"] == "enough"
    assert len(desk.calls) == 2
    (began,) = of_kind(world, shown["id"], CallsBegan)
    assert [one.failure is not None for one in began.calls] == [False, False, True, True, True]
    assert began.used.calls == 2


async def test_two_hundred_turns_keep_the_state_small_and_the_prefix_equal() -> None:
    world = World.start()
    Desk(world)

    def script(request: Any, number: int) -> ModelAnswer:
        spoken = sum(message["role"] == "assistant" for message in request.messages)
        return says("done") if spoken == 200 else asks_for(("sum_add", {"a": spoken, "b": 1}))

    world.models = model = Scripted(script, takes_s=0.01)
    shown = await ran(world, document(", turns: 300, calls: 300"), {"a": 1})
    assert shown["result"] == "done", shown
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        assert after.messages[: len(before.messages)] == before.messages
    assert len(model.requests) == 201


async def test_a_call_of_long_ago_is_not_made_again_and_the_state_does_not_grow() -> None:
    world = World.start()
    desk = Desk(world)
    sizes: list[int] = []

    def script(request: Any, number: int) -> ModelAnswer:
        spoken = sum(message["role"] == "assistant" for message in request.messages)
        (head,) = [head for head in world.log.heads() if head.ref.id.startswith("k")]
        state = State()
        for entry in world.entries(head.ref.id):
            state = fold(state, entry)
        sizes.append(len(encode_state(state)))
        if spoken == 120:
            return says("done")
        return asks_for(("sum_add", {"a": spoken % 100, "b": 1}))

    world.models = model = Scripted(script, takes_s=0.01)
    shown = await ran(world, document(", turns: 300, calls: 300"), {"a": 1})
    assert shown["result"] == "done", shown
    assert len(desk.calls) == 100
    results = [one["content"] for one in model.requests[-1].messages if one["role"] == "tool"]
    assert [json.loads(one) for one in results[100:]] == [
        {"repeated": True, "result": str(n + 1)} for n in range(20)
    ]
    assert max(sizes[60:]) < 1.2 * max(sizes[20:60])


async def test_a_model_node_gives_text_or_what_its_schema_says() -> None:
    text = """
name: w
nodes:
  plain: {model: {name: m, prompt: {words: ["${input.a}"]}}}
  typed: {model: {name: m, prompt: again}, output_schema: {type: object, required: [n]}, after: plain}
output: ["${ctx.plain.output}", "${ctx.typed.output.n}"]
"""
    world = World.start()
    world.models = model = Scripted(in_turn(says("hello"), says('{"n": 5}')))
    shown = await ran(world, text, {"a": 1})
    assert shown["result"] == ["hello", 5]
    assert model.requests[0].messages == ({"role": "user", "content": '{"words":[1]}'},)
    assert model.requests[1].schema == {"type": "object", "required": ["n"]}


async def test_a_message_to_an_agent_at_work_is_heard_with_its_next_turn() -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(
        by_turn(asks_for(("sum_add", {"a": 1, "b": 2})), says('"3"'), says('"Then 4."')), takes_s=5
    )
    node = ", output_schema: {type: string}"
    saga = await start(world, document(", signal: follow_up", node), {"a": 1}, "w")
    await asyncio.sleep(2)
    await world.service().signal(saga, "follow_up", "No, for four.", "k1")
    await asyncio.sleep(6)
    await world.service().signal(saga, "follow_up", {"guests": 5}, "k2")
    await world.settle()
    shown = await world.queries().show(saga)
    assert (shown["status"], shown["result"]) == ("completed", "Then 4.")
    heard = [one["content"] for one in model.requests[-1].messages if one["role"] == "user"]
    assert heard == ["Add 1 and 2.", "No, for four.", '{"guests":5}']
    for before, after in pairwise(model.requests):
        assert after.messages[: len(before.messages)] == before.messages


async def test_the_cost_of_a_saga_has_what_its_models_were_paid() -> None:
    world = World.start()
    Desk(world)
    world.models = Scripted(by_turn(asks_for(("sum_add", {"a": 1, "b": 2})), says("3")))
    shown = await ran(world, document(), {"a": 1})
    cost = await world.queries().cost(shown["id"])
    (line,) = cost["models"]
    assert (line["what"], line["node"], line["requests"], line["input"]) == ("scripted", "find", 2, 200)
    assert cost["usd"]["models"] == shown["spent_usd"] == 0.0004


async def test_an_agent_that_chooses_the_next_node_goes_only_where_it_may() -> None:
    text = """
name: w
nodes:
  plan: {agent: {model: m, prompt: "Where to?"}, branch: {choose: output.next, among: [book, wait]}}
  book: {value: booked}
  wait: {value: waiting}
output: ["${ctx.book.output?}", "${ctx.wait.output?}"]
"""
    world = World.start()
    astray = says('{"next": ["pay"], "reasoning": "why not"}')
    world.models = model = Scripted(
        in_turn(astray, says('{"next": ["book"], "reasoning": "A table is free."}'))
    )
    shown = await ran(world, text, {})
    assert shown["result"] == ["booked", None]
    assert len(model.requests) == 2, "the first answer was refused"
    (closed,) = of_kind(world, shown["id"], AgentClosed)
    assert closed.output.v["reasoning"] == "A table is free."


async def test_a_model_that_thinks_longer_than_other_tools_take_is_waited_for() -> None:
    world = World.start(timeout_s=60)
    Desk(world)
    world.models = model = Scripted(in_turn(says("Three.")), takes_s=45)
    shown = await ran(world, document(), {"a": 1})
    assert (shown["status"], shown["result"], len(model.requests)) == ("completed", "Three.", 1)


async def test_an_agent_that_asks_again_and_again_for_what_it_may_not_is_stopped(says: Says) -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(asks_for(("nonsense", {}))))
    saga = await start(world, document(", corrections: 1"), {"a": 1}, "w")
    await asyncio.sleep(60)
    shown = await world.queries().show(saga)
    assert len(model.requests) == 4, "three corrections, and no fourth"
    (question,) = shown["questions"]
    says(question["message"])


async def test_a_transcript_that_does_not_fit_is_cut_and_then_another_model_is_asked() -> None:
    numbers = iter(range(1_000))

    def script(request: ModelRequest, _: int) -> ModelAnswer:
        if len(request.messages) > 12 and request.model == "m":
            raise StepFailure("context_exceeded", "too long")
        number = next(numbers)
        return says("done") if number == 12 else asks_for(("sum_add", {"a": number, "b": 0}))

    world = World.start()
    Desk(world)
    world.models = model = Scripted(script, takes_s=0.1, known=("m", "n"))
    shown = await ran(world, document(", fallbacks: [n]"), {"a": 1})
    assert (shown["status"], shown["result"]) == ("completed", "done")
    said = [one for one in model.requests[-1].messages if "left out" in str(one["content"])]
    assert len(said) == 1
    assert {request.model for request in model.requests} == {"m"}


async def test_the_prompt_of_a_model_that_does_not_fit_is_shortened() -> None:
    def script(request: ModelRequest, _: int) -> ModelAnswer:
        if len(request.messages[0]["content"]) > 300:
            raise StepFailure("context_exceeded", "too long")
        return says(f"{len(request.messages[0]['content'])} characters")

    world = World.start()
    world.models = Scripted(script)
    text = "name: w\nnodes: {a: {model: {name: m, prompt: '${input.text}'}}}\noutput: '${ctx.a.output}'"
    shown = await ran(world, text, {"text": "word " * 200})
    assert shown["status"] == "completed", shown
    assert int(shown["result"].split()[0]) <= 300
