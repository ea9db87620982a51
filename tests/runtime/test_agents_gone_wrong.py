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
from tests.kit.corpus import start
from tests.kit.scripted import Scripted, asks_for, by_turn, in_turn, says
from tests.kit.toolbox import Books
from tests.kit.world import World
from tests.runtime.conftest import Stage
from tests.runtime.test_agents import Desk, document, of_kind, ran


@pytest.mark.parametrize("deep", ["[" * 5_000 + "]" * 5_000])
def test_an_answer_that_is_nested_too_deep_is_refused_once(stage: Stage, deep: str) -> None:
    """What cannot be decoded must not kill the attempt: the worker would ask, and pay, again and again."""

    async def story(world: World, books: Books) -> None:
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

    stage(story)


@pytest.mark.parametrize("output", [{"sum": 3}, {"sum": 4, "calls": ["t1"]}])
def test_what_a_person_gives_in_place_of_a_turn_is_the_agents_answer(
    stage: Stage, output: dict[str, Any]
) -> None:
    async def story(world: World, books: Books) -> None:
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

    stage(story)


def test_a_models_own_price_is_not_that_of_a_model_which_a_policy_asks_in_its_place(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        Desk(world)
        refused = StepFailure("bad_request", "no")
        world.models = model = Scripted(in_turn(refused, says("Three.")), known=("big",))
        policy = "{name: p, when: {code: bad_request}, then: {strategy: replan, with: {model: big}}}"
        shown = await ran(
            world, document(", price: {input: 0, output: 0}", f", failover: [{policy}]"), {"a": 1}
        )
        assert [request.model for request in model.requests] == ["m", "big"]
        assert (shown["result"], shown["spent_usd"]) == ("Three.", 0.0002)

    stage(story)


def test_a_tool_that_stands_in_for_the_model_gives_the_answer(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        Desk(world)
        world.models = Scripted(in_turn(StepFailure("bad_request", "no")))
        policy = "{name: p, when: {code: bad_request}, then: {strategy: replan, tool: sum.add, with: {a: 1, b: 2}}}"
        shown = await ran(world, document(node=f", failover: [{policy}]"), {"a": 1})
        assert (shown["status"], shown["result"]) == ("completed", 3)

    stage(story)


@pytest.mark.parametrize("name", ["a tool!", "", "ä" * 80])
def test_a_name_that_no_tool_has_goes_back_to_the_model_as_providers_take_it(stage: Stage, name: str) -> None:
    async def story(world: World, books: Books) -> None:
        Desk(world)
        world.models = model = Scripted(by_turn(asks_for((name, {})), says("I could not.")))
        shown = await ran(world, document(), {"a": 1})
        assert shown["result"] == "I could not."
        (call,) = model.requests[1].messages[2]["tool_calls"]
        assert re.fullmatch("[A-Za-z0-9_-]{1,64}", call["function"]["name"])

    stage(story)


@pytest.mark.parametrize("kind", ["agent", "model"])
def test_no_request_is_made_that_may_cost_more_than_the_nodes_limit(stage: Stage, kind: str) -> None:
    async def story(world: World, books: Books) -> None:
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

    stage(story)


def test_a_message_for_which_there_is_no_turn_left_does_not_lose_the_answer(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        Desk(world)
        world.models = Scripted(in_turn(says("Three.")), takes_s=5)
        saga = await start(world, document(", turns: 1, signal: follow_up"), {"a": 1}, "w")
        await asyncio.sleep(2)
        await world.service().signal(saga, "follow_up", "No, for four.", "k1")
        await world.settle()
        shown = await world.queries().show(saga)
        assert (shown["status"], shown["result"]) == ("completed", "Three.")

    stage(story)


def test_the_tokens_of_answers_that_are_refused_count(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        Desk(world)
        wrong = says("three")
        world.models = Scripted(
            in_turn(wrong, wrong, asks_for(("sum_add", {"a": 1, "b": 2})), wrong, says("{}"))
        )
        shown = await ran(world, document(node=", output_schema: {type: object}"), {"a": 1})
        (closed,) = of_kind(world, shown["id"], AgentClosed)
        assert closed.used.tokens == 5 * 110

    stage(story)


def test_an_answer_that_a_provider_has_filtered_is_paid_for(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        Desk(world)
        refusal = ModelFailure("content_policy", "filtered", Usage(input=1_000, output=5))
        world.models = Scripted(in_turn(refusal))
        shown = await ran(world, document(node=", on_failure: fail"), {"a": 1})
        assert (shown["error"]["code"], shown["spent_usd"]) == ("content_policy", 0.00105)

    stage(story)


def test_a_turn_that_fails_for_good_fails_the_node(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        Desk(world)
        world.models = Scripted(in_turn(StepFailure("bad_request", "no")))
        shown = await ran(world, document(node=", on_failure: fail"), {"a": 1})
        assert (shown["status"], shown["error"]["code"]) == ("failed", "bad_request")
        (failed,) = of_kind(world, shown["id"], StepFailed)
        assert failed.item == "t1"

    stage(story)


def test_after_so_many_corrections_a_person_is_asked_and_no_request_is_made(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        Desk(world)
        world.models = model = Scripted(in_turn(says("three")))
        schema = ", output_schema: {type: object}"
        saga = await start(world, document(", corrections: 1", schema), {"a": 1}, "w")
        await world.settle()
        shown = await world.queries().show(saga)
        assert len(model.requests) == 2, shown

    stage(story)


@pytest.mark.parametrize("what", ["max_output: many", "max_output: [1]", "price: {input: 1}"])
def test_what_a_policy_puts_in_place_of_an_argument_may_be_of_no_use(stage: Stage, what: str) -> None:
    async def story(world: World, books: Books) -> None:
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

    stage(story)


def test_a_result_that_looks_like_a_failure_is_a_result(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
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

    stage(story)


def test_an_answer_that_is_refused_is_not_corrected_once_the_tokens_are_used(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        Desk(world)
        world.models = model = Scripted(in_turn(*(says("three", read=300, written=100) for _ in range(9))))
        text = document(", tokens: 1300, max_output: 100", node=", output_schema: {type: object}")
        shown = await ran(world, text, {"a": 1})
        assert (shown["status"], shown["error"]["code"]) == ("failed", "agent_exhausted")
        assert len(model.requests) == 2, "400 tokens each"

    stage(story)


def test_the_limit_of_the_whole_document_is_looked_at_before_a_request(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        Desk(world)
        world.models = model = Scripted(in_turn(says("done")))
        text = document(", max_output: 1000") + "limits: {cost_usd: 0.000001}\n"
        shown = await ran(world, text, {"a": 1})
        assert (shown["status"], shown["error"]["code"]) == ("failed", "limit_cost")
        assert "of the saga" in shown["error"]["message"]
        assert model.requests == []

    stage(story)


def test_who_is_asked_about_a_large_prompt_is_told_how_its_cost_was_reckoned(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        Desk(world)
        world.models = model = Scripted(in_turn(says("done")))
        saga = await start(world, document(), {"a": "x" * 3_000_000}, "w")
        await asyncio.sleep(30)
        shown = await world.queries().show(saga)
        assert shown["status"] == "parked"
        assert model.requests == []
        (parked,) = of_kind(world, saga, Parked)
        assert "the request has 3,000," in parked.message
        assert "each is taken for a token of input" in parked.message
        assert "usual text has 3 to 4 bytes a token" in parked.message

    stage(story, limits=Limits(saga_budget_usd="1"))
