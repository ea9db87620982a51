"""A limit for tokens or dollars holds before each request to a model, whatever is under way beside it and whatever has become of requests before it."""

from __future__ import annotations

from typing import Any

import pytest

from baton import StepFailure
from baton.core.log.events import AttemptFailed, StepInterrupted, StepSucceeded
from baton.core.models.usage import Usage
from baton.ports.models import ModelAnswer, ModelFailure, ModelRequest
from tests.kit.scripted import Scripted, asks_for, in_turn, says
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.test_agents import Desk, document, of_kind, ran

FEW = "{name: m, prompt: hi, max_output: 100%s}"


def greedy(request: ModelRequest, number: int) -> ModelAnswer:
    """It writes as much as it may."""
    return says("x" * 40, read=30, written=request.most_output)


def used_of(shown: dict[str, Any], node: str | None = None) -> int:
    (row,) = (row for row in shown["limits"] if row["limit"] == "tokens" and row["node"] == node)
    return int(row["used"])


async def test_an_answer_is_asked_for_that_fits_into_what_the_limit_leaves() -> None:
    world = World.start()
    world.models = model = Scripted(greedy)
    text = "name: w\nnodes: {a: {model: {name: m, prompt: hi}, limits: {tokens: 1000}}}"
    shown = await ran(world, text, {})
    assert shown["status"] == "completed"
    (request,) = model.requests
    assert 256 <= request.most_output < 1_000, "not the usual 4,096"
    assert used_of(shown, "a") == 30 + request.most_output <= 1_000


@pytest.mark.parametrize("whose", ["saga", "node `a`"])
async def test_no_request_is_made_that_cannot_fit_and_the_failure_says_both_numbers(
    whose: str, says: Says
) -> None:
    world = World.start()
    world.models = model = Scripted(greedy)
    limits = "limits: {tokens: 200}"
    text = f"name: w\n{limits}\nnodes: {{a: {{model: {{name: m, prompt: hi}}}}}}"
    if whose != "saga":
        text = f"name: w\nnodes: {{a: {{model: {{name: m, prompt: hi}}, {limits}}}}}"
    shown = await ran(world, text, {})
    assert not model.requests
    assert (shown["status"], shown["error"]["code"]) == ("failed", "limit_tokens")
    assert whose in shown["error"]["message"]
    says(shown["error"]["message"])


async def test_models_beside_each_other_do_not_pass_the_limit_of_the_saga_together() -> None:
    world = World.start()
    world.models = model = Scripted(greedy, takes_s=2)
    nodes = ", ".join(f"n{i}: {{model: {FEW % ''}}}" for i in range(12))
    shown = await ran(world, f"name: w\nlimits: {{tokens: 1000}}\nnodes: {{{nodes}}}", {})
    written = sum(30 + request.most_output for request in model.requests)
    assert used_of(shown) == written <= 1_000
    assert len(model.requests) == 7, "a request that has to wait for others is made once they are over"
    assert shown["error"]["code"] == "limit_tokens"


PRICED = "{name: m, prompt: hi, max_output: 100, price: {input: 0, output: 1000}}"
"""Whose answer costs up to 10 cents."""


@pytest.mark.parametrize("whose", ["saga", "node"])
async def test_models_beside_each_other_do_not_pass_the_dollars_of_the_saga_together(whose: str) -> None:
    world = World.start()
    world.models = model = Scripted(greedy, takes_s=2)
    limit = "limits: {cost_usd: 0.35}"
    nodes = ", ".join(f"n{i}: {{model: {PRICED}}}" for i in range(6))
    text = f"name: w\n{limit}\nnodes: {{{nodes}}}"
    if whose == "node":  # one that is in the way of none: the others are not limited
        nodes = f"a: {{model: {PRICED}, {limit}}}, {nodes}"
        text = f"name: w\nnodes: {{{nodes}}}"
    shown = await ran(world, text, {})
    if whose == "node":
        assert (shown["status"], len(model.requests)) == ("completed", 7)
        return
    assert len(model.requests) == 3, "each of them may cost 10 cents"
    assert shown["error"]["code"] == "limit_cost"
    (row,) = (row for row in shown["limits"] if row["limit"] == "cost_usd")
    assert float(row["used"]) <= 0.35


async def test_a_request_waits_for_dollars_that_others_may_leave() -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(*[says("hi", read=10, written=5)] * 12), takes_s=2)
    nodes = ", ".join(f"n{i}: {{model: {PRICED}}}" for i in range(12))
    shown = await ran(world, f"name: w\nlimits: {{cost_usd: 0.25}}\nnodes: {{{nodes}}}", {})
    assert (shown["status"], len(model.requests)) == ("completed", 12)


async def test_one_that_waits_for_others_is_made_when_they_have_used_less() -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(*[says("hi", read=10, written=5)] * 12), takes_s=2)
    nodes = ", ".join(f"n{i}: {{model: {FEW % ''}}}" for i in range(12))
    shown = await ran(world, f"name: w\nlimits: {{tokens: 500}}\nnodes: {{{nodes}}}", {})
    assert (shown["status"], len(model.requests), used_of(shown)) == ("completed", 12, 180)


async def test_an_agent_ends_before_a_turn_that_could_pass_its_tokens(says: Says) -> None:
    world = World.start()
    Desk(world)
    numbers = iter(range(1_000))
    read = iter(range(300, 100_000, 300))
    world.models = model = Scripted(
        lambda request, _: asks_for(
            ("sum_add", {"a": next(numbers), "b": 0}), read=next(read), written=request.most_output
        )
    )
    shown = await ran(world, document(", max_output: 300, tokens: 3000"), {"a": 1})
    assert (shown["status"], shown["error"]["code"]) == ("failed", "agent_exhausted")
    says(shown["error"]["message"])
    used = sum(300 * (i + 1) + request.most_output for i, request in enumerate(model.requests))
    assert len(model.requests) == 3, "what the last turn has read is known: its bytes do not count again"
    assert used <= 3_000


@pytest.mark.parametrize(
    ("timeout", "kind"), [("3s", AttemptFailed), ("10m", StepInterrupted)], ids=["given up", "cut off"]
)
async def test_a_lost_request_counts_by_the_most_that_it_can_have_used(timeout: str, kind: type) -> None:  # noqa: ASYNC109  # of a document
    world = World.start()

    class Slow(Scripted):
        async def answer(self, request: ModelRequest) -> ModelAnswer:
            self.takes_s = 1 if self.requests else 3_600
            return await super().answer(request)

    world.models = Slow(in_turn(says("hello")))
    text = f"name: w\nlimits: {{tokens: 5000}}\nnodes: {{a: {{model: {FEW % ''}, timeout: {timeout}}}}}"
    shown = await ran(world, text, {})
    assert shown["status"] == "completed"
    (cut,) = of_kind(world, shown["id"], kind)
    ((most,)) = cut.usage
    assert (most.output, most.input > 20, most.cost) == (100, True, 0)
    assert used_of(shown) == most.input + 100 + 110


@pytest.mark.parametrize(
    ("failure", "tokens"),
    [
        (StepFailure("rate_limited", "slow down"), 0),
        (ModelFailure("invalid_response", "cut off", Usage(input=7, output=3)), 10),
    ],
)
async def test_a_refusal_counts_by_what_the_provider_says(failure: StepFailure, tokens: int) -> None:
    world = World.start()
    world.models = Scripted(in_turn(failure, says("hello")))
    shown = await ran(world, f"name: w\nlimits: {{tokens: 5000}}\nnodes: {{a: {{model: {FEW % ''}}}}}", {})
    assert (shown["status"], used_of(shown)) == ("completed", tokens + 110)


async def test_lost_turns_exhaust_an_agent() -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(says("never")), takes_s=3_600)
    shown = await ran(
        world, document(", max_output: 500, tokens: 1500", ", timeout: 3s, on_failure: fail"), {"a": 1}
    )
    assert (shown["status"], shown["error"]["code"]) == ("failed", "agent_exhausted"), shown["error"]
    assert len(model.requests) == 1


async def test_a_request_in_the_background_counts_by_its_most_until_its_answer_is_there() -> None:
    world = World.start()
    world.models = Scripted(in_turn(says("hello")))
    text = f"name: w\nlimits: {{tokens: 5000}}\nnodes: {{a: {{model: {FEW % ', background: true'}}}}}"
    shown = await ran(world, text, {})
    assert (shown["status"], used_of(shown)) == ("completed", 110)


async def test_without_a_limit_nothing_is_said_of_tokens_that_were_lost() -> None:
    world = World.start()
    failure = StepFailure("rate_limited", "slow down", happened=True)
    world.models = Scripted(in_turn(failure, says("hello")))
    shown = await ran(world, f"name: w\nnodes: {{a: {{model: {FEW % ''}}}}}", {})
    (failed,) = of_kind(world, shown["id"], AttemptFailed)
    (done,) = of_kind(world, shown["id"], StepSucceeded)
    assert (failed.usage, len(done.usage)) == ((), 1)


async def test_a_limit_that_throttles_refuses_no_request() -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(*[says("hi")] * 3))
    nodes = ", ".join(f"n{i}: {{model: {FEW % ''}}}" for i in range(3))
    text = f"name: w\nlimits: {{tokens: {{max: 1, then: throttle}}}}\nnodes: {{{nodes}}}"
    shown = await ran(world, text, {})
    assert (shown["status"], len(model.requests), used_of(shown)) == ("completed", 3, 330)
