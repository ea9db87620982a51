"""What a provider does not say of the usage, or cannot have meant, counts as the most that was held for the request."""

from __future__ import annotations

import pytest

from baton.core.log.events import AgentClosed, AttemptFailed, CallbackOpened
from baton.core.models.usage import Usage
from baton.ports.models import ModelAnswer, ModelFailure
from tests.kit.scripted import Scripted, asks_for, in_turn, says
from tests.kit.world import World
from tests.runtime.test_agents import Desk, document, of_kind, ran
from tests.runtime.test_background import ASK, sums

ONE = "name: w\nnodes: {ask: {model: {name: m, prompt: hi, max_output: 100}}}\noutput: ${ctx.ask.output}"
ODD = [
    Usage(),
    Usage(input=10**18, output=10**18),
    Usage(input=-5, output=7),
    Usage(input=1.5, output=float("nan")),  # type: ignore[arg-type]  # on purpose
]


def answer(usage: Usage, text: str = "hello") -> ModelAnswer:
    return ModelAnswer(text=text, usage=usage, model="scripted")


@pytest.mark.parametrize("usage", ODD, ids=str)
async def test_an_answer_without_a_credible_usage_counts_and_is_paid_in_full_once(usage: Usage) -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(answer(usage)))
    shown = await ran(world, ONE, {})
    assert (shown["status"], shown["result"]) == ("completed", "hello")
    (request,) = model.requests
    assert request.most_input > len('[{"role":"user","content":"hi"}]')
    assert round(shown["spent_usd"] * 1e6) == request.most_input + 10 * 100 == sums(world).spent


async def test_an_answer_whose_output_is_not_counted_is_paid_for_with_the_most_output() -> None:
    world = World.start()
    world.models = Scripted(in_turn(answer(Usage(input=40))))
    assert (await ran(world, ONE, {}))["spent_usd"] == (40 + 10 * 100) / 1e6


@pytest.mark.parametrize("usage", ODD, ids=str)
async def test_a_failed_answer_without_a_credible_usage_is_assumed(usage: Usage) -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(ModelFailure("invalid_response", "odd", usage), says("hello")))
    shown = await ran(world, ONE, {})
    assert (shown["status"], len(model.requests)) == ("completed", 2)
    (failed,) = of_kind(world, shown["id"], AttemptFailed)
    assert failed.cost == failed.assumed == model.requests[0].most_input + 10 * 100


@pytest.mark.parametrize("usage", ODD, ids=str)
async def test_an_answer_in_the_background_without_a_credible_usage_stays_paid_in_full(usage: Usage) -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(answer(usage)))
    shown = await ran(world, ASK % "", {})
    assert (shown["status"], shown["result"], len(model.requests)) == ("completed", "hello", 1)
    (opened,) = of_kind(world, shown["id"], CallbackOpened)
    assert sums(world).spent == opened.response.held == round(shown["spent_usd"] * 1e6)


@pytest.mark.parametrize("limit", ["cost_usd: 0.02", "tokens: 5000"])
async def test_an_agent_whose_provider_counts_nothing_stays_within_its_limit(limit: str) -> None:
    world = World.start()
    Desk(world)
    numbers = iter(range(1_000))

    def script(*_: object) -> ModelAnswer:
        said = asks_for(("sum_add", {"a": next(numbers), "b": 0}))
        return ModelAnswer(calls=said.calls, finish=said.finish, model="scripted")

    world.models = model = Scripted(script)
    shown = await ran(world, document(", max_output: 300, turns: 150", f", limits: {{{limit}}}"), {"a": 1})
    assert (shown["status"], shown["error"]["code"][:6]) == ("failed", "limit_")
    assert 0 < len(model.requests) < 10
    assert 0 < shown["spent_usd"] <= 0.05
    if "cost" in limit:
        assert shown["spent_usd"] <= 0.02


async def test_what_an_agents_turn_has_read_is_then_the_most_that_it_can_have() -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(answer(Usage(), "Three.")))
    shown = await ran(world, document(", max_output: 100"), {"a": 1})
    (closed,) = of_kind(world, shown["id"], AgentClosed)
    assert closed.used.tokens == model.requests[0].most_input + 100
