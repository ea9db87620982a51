"""Answers, people and policies that an agent must outlast, and what it may cost."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from baton import StepFailure, tool
from baton.core.limits import Limits
from baton.core.log.events import AgentClosed, AttemptFailed, CallsBegan, Parked, StepFailed, StepSucceeded
from baton.core.log.questions import Answer
from baton.core.models.usage import Usage
from baton.ports.models import ModelFailure
from tests.kit import scripted
from tests.kit.corpus import start
from tests.kit.scripted import Scripted, asks_for, by_turn, in_turn, says
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.test_agents import Desk, document, of_kind, ran


@pytest.mark.parametrize("deep", ["[" * 5_000 + "]" * 5_000])
async def test_an_answer_that_is_nested_too_deep_is_refused_once(deep: str) -> None:
    """What cannot be decoded must not kill the attempt: the worker would ask, and pay, again and again."""
    world = World.start()
    Desk(world)
    world.models = model = Scripted(
        in_turn(asks_for(("sum_add", f'{{"a": {deep}}}')), says(deep), says("[3]"))
    )
    shown = await ran(world, document(node=", output_schema: {type: array}"), {"a": 1})
    assert (shown["status"], shown["result"]) == ("completed", [3])
    assert len(model.requests) == 3
    (began,) = of_kind(world, shown["id"], CallsBegan)
    assert began.calls[0].failure is not None
    assert began.calls[0].failure.code == "input_invalid"


@pytest.mark.parametrize("output", [{"sum": 3}, {"sum": 4, "calls": ["t1"]}])
async def test_what_a_person_gives_in_place_of_a_turn_is_the_agents_answer(output: dict[str, Any]) -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(says("three")))
    schema = ", output_schema: {type: object, required: [sum]}"
    saga = await start(world, document(", corrections: 0", schema), {"a": 1}, "w")
    await asyncio.sleep(60)
    (question,) = (await world.queries().show(saga))["questions"]
    await world.service().answer(saga, Answer(ask=question["id"], action="use", output=output), "k")
    await world.settle()
    shown = await world.queries().show(saga)
    assert (shown["status"], shown["result"]) == ("completed", output)
    assert len(model.requests) == 1


async def test_a_models_own_price_is_not_that_of_a_model_which_a_policy_asks_in_its_place() -> None:
    world = World.start()
    Desk(world)
    refused = StepFailure("bad_request", "no")
    world.models = model = Scripted(in_turn(refused, says("Three.")), known=("big",))
    policy = "{name: p, when: {code: bad_request}, then: {strategy: replan, with: {model: big}}}"
    shown = await ran(world, document(", price: {input: 0, output: 0}", f", failover: [{policy}]"), {"a": 1})
    assert [request.model for request in model.requests] == ["m", "big"]
    assert (shown["result"], shown["spent_usd"]) == ("Three.", 0.0002)


async def test_a_tool_that_stands_in_for_the_model_gives_the_answer() -> None:
    world = World.start()
    Desk(world)
    world.models = Scripted(in_turn(StepFailure("bad_request", "no")))
    policy = (
        "{name: p, when: {code: bad_request}, then: {strategy: replan, tool: sum.add, with: {a: 1, b: 2}}}"
    )
    shown = await ran(world, document(node=f", failover: [{policy}]"), {"a": 1})
    assert (shown["status"], shown["result"]) == ("completed", 3)


@pytest.mark.parametrize("name", ["a tool!", "", "ä" * 80])
async def test_a_name_that_no_tool_has_goes_back_to_the_model_as_providers_take_it(name: str) -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(by_turn(asks_for((name, {})), says("I could not.")))
    shown = await ran(world, document(), {"a": 1})
    assert shown["result"] == "I could not."
    (call,) = model.requests[1].messages[2]["tool_calls"]
    assert re.fullmatch("[A-Za-z0-9_-]{1,64}", call["function"]["name"])


@pytest.mark.parametrize("kind", ["agent", "model"])
async def test_no_request_is_made_that_may_cost_more_than_the_nodes_limit(kind: str) -> None:
    world = World.start()
    Desk(world)
    numbers = iter(range(1_000))
    world.models = model = Scripted(lambda *_: asks_for(("sum_add", {"a": next(numbers), "b": 0})))
    # A request costs 200 micro-dollars, and could cost some 2,000.
    text = document(", max_output: 100", ", limits: {cost_usd: 0.003}")
    if kind == "model":
        text = "name: w\nnodes: {find: {model: {name: m, prompt: x}, limits: {cost_usd: 0.003}}}"
    shown = await ran(world, text, {"a": 1})
    assert (shown["status"], shown["error"]["code"]) == ("failed", "limit_cost")
    assert shown["spent_usd"] <= 0.003
    assert (0 < len(model.requests) < 10) if kind == "agent" else not model.requests


async def test_a_message_for_which_there_is_no_turn_left_does_not_lose_the_answer() -> None:
    world = World.start()
    Desk(world)
    world.models = Scripted(in_turn(says("Three.")), takes_s=5)
    saga = await start(world, document(", turns: 1, signal: follow_up"), {"a": 1}, "w")
    await asyncio.sleep(2)
    await world.service().signal(saga, "follow_up", "No, for four.", "k1")
    await world.settle()
    shown = await world.queries().show(saga)
    assert (shown["status"], shown["result"]) == ("completed", "Three.")


async def test_the_tokens_of_answers_that_are_refused_count() -> None:
    world = World.start()
    Desk(world)
    wrong = says("three")
    world.models = Scripted(in_turn(wrong, wrong, asks_for(("sum_add", {"a": 1, "b": 2})), wrong, says("{}")))
    shown = await ran(world, document(node=", output_schema: {type: object}"), {"a": 1})
    (closed,) = of_kind(world, shown["id"], AgentClosed)
    assert closed.used.tokens == 5 * 110


async def test_an_answer_that_a_provider_has_filtered_is_paid_for() -> None:
    world = World.start()
    Desk(world)
    refusal = ModelFailure("content_policy", "filtered", Usage(input=1_000, output=5))
    world.models = Scripted(in_turn(refusal))
    shown = await ran(world, document(node=", on_failure: fail"), {"a": 1})
    assert (shown["error"]["code"], shown["spent_usd"]) == ("content_policy", 0.00105)


async def test_a_turn_that_fails_for_good_fails_the_node() -> None:
    world = World.start()
    Desk(world)
    world.models = Scripted(in_turn(StepFailure("bad_request", "no")))
    shown = await ran(world, document(node=", on_failure: fail"), {"a": 1})
    assert (shown["status"], shown["error"]["code"]) == ("failed", "bad_request")
    (failed,) = of_kind(world, shown["id"], StepFailed)
    assert failed.item == "t1"


async def test_after_so_many_corrections_a_person_is_asked_and_no_request_is_made() -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(says("three")))
    schema = ", output_schema: {type: object}"
    saga = await start(world, document(", corrections: 1", schema), {"a": 1}, "w")
    await world.settle()
    shown = await world.queries().show(saga)
    assert len(model.requests) == 2, shown


@pytest.mark.parametrize("what", ["max_output: many", "max_output: [1]", "price: {input: 1}"])
async def test_what_a_policy_puts_in_place_of_an_argument_may_be_of_no_use(what: str) -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(StepFailure("bad_request", "no")))
    policy = f"{{name: p, when: {{code: bad_request}}, then: {{strategy: replan, with: {{{what}}}}}}}"
    saga = await start(
        world,
        document(node=f", failover: [{policy}], catch: {{code: input_invalid, then: b}}")
        .replace("\noutput:", "\n  b: {value: caught}\noutput:")
        .replace("find.output}", "find.output?}"),
        {"a": 1},
        "w",
    )
    await world.settle()
    shown = await world.queries().show(saga)
    assert (shown["status"], len(model.requests)) == ("completed", 1)


async def test_a_result_that_looks_like_a_failure_is_a_result() -> None:
    world = World.start()
    Desk(world)
    made = []

    @tool("sum.odd", registry=world.registry)
    async def odd() -> dict[str, Any]:
        made.append(1)
        return {"error": {"code": "business_rule", "message": "no sums today"}}

    world.tools = world.registry.specs()
    world.models = model = Scripted(
        in_turn(asks_for(("sum_odd", {})), asks_for(("sum_odd", {})), says("It is odd."))
    )
    shown = await ran(world, document(), {"a": 1})
    assert shown["status"] == "completed"
    assert made == [1], "it has succeeded, so an equal call repeats it"
    told = [json.loads(one["content"]) for one in model.requests[-1].messages if one["role"] == "tool"]
    result = {"error": {"code": "business_rule", "message": "no sums today"}}
    assert told[0] == result
    assert told[1]["repeated"] is True
    ends = of_kind(world, shown["id"], StepSucceeded)
    assert [end.output.v for end in ends if end.item == "t1-0"] == [result]
    assert of_kind(world, shown["id"], AttemptFailed) == []


async def test_an_answer_that_is_refused_is_not_corrected_once_the_tokens_are_used() -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(*(says("three", read=300, written=100) for _ in range(9))))
    text = document(", tokens: 1300, max_output: 100", node=", output_schema: {type: object}")
    shown = await ran(world, text, {"a": 1})
    assert (shown["status"], shown["error"]["code"]) == ("failed", "agent_exhausted")
    assert len(model.requests) == 2, "400 tokens each"


async def test_the_limit_of_the_whole_document_is_looked_at_before_a_request() -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(says("done")))
    text = document(", max_output: 1000") + "limits: {cost_usd: 0.000001}\n"
    shown = await ran(world, text, {"a": 1})
    assert (shown["status"], shown["error"]["code"]) == ("failed", "limit_cost")
    assert "of the saga" in shown["error"]["message"]
    assert model.requests == []


async def test_who_is_asked_about_a_large_prompt_is_told_how_its_cost_was_reckoned(says: Says) -> None:
    world = World.start(limits=Limits(saga_budget_usd="1"))
    Desk(world)
    world.models = model = Scripted(in_turn(scripted.says("done")))
    saga = await start(world, document(), {"a": "x" * 3_000_000}, "w")
    await asyncio.sleep(30)
    shown = await world.queries().show(saga)
    assert shown["status"] == "parked"
    assert model.requests == []
    (parked,) = of_kind(world, saga, Parked)
    says.within(parked.message, 3)
