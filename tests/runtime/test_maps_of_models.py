"""A `model` node with `map`: each item is a request of its own, with its own attempts, corrections and money."""

from __future__ import annotations

import json

import pytest

from baton import StepFailure, tool
from baton.core.log.events import AttemptFailed, CallbackOpened, StepInterrupted, StepSucceeded
from baton.ports.models import ModelAnswer, ModelRequest
from tests.kit.corpus import start
from tests.kit.scripted import Scripted, says
from tests.kit.world import World
from tests.runtime.test_agents import of_kind, ran

TEXT = """
name: w
nodes:
  work:
    map: {over: "${input.of}"%s}
    model: {name: m, prompt: "n ${item}"%s}%s
output: "${ctx.work.output}"
"""
TYPED = "\n    output_schema: {type: object, required: [n], properties: {n: {type: integer}}}"
GIVEN = {"of": [3, 1, 2]}


def about(request: ModelRequest) -> int:
    """The item that a request is about."""
    (prompt,) = (one["content"] for one in request.messages if str(one["content"]).startswith("n "))
    return int(prompt[2:])


def echo(request: ModelRequest, _: int) -> ModelAnswer:
    return says(str(about(request)))


@pytest.mark.parametrize("of_map", ["", ", concurrency: 1", ", wait_for: all"])
@pytest.mark.parametrize("of_model", ["", ", background: true"])
async def test_each_item_is_asked_about_once_and_the_output_is_in_the_order_of_the_list(
    of_map: str, of_model: str
) -> None:
    world = World.start()
    world.models = model = Scripted(echo)
    shown = await ran(world, TEXT % (of_map, of_model, ""), GIVEN)
    assert (shown["status"], shown["result"]) == ("completed", ["3", "1", "2"])
    assert sorted(map(about, model.requests)) == [1, 2, 3]
    assert shown["spent_usd"] == 0.0006
    assert len(of_kind(world, shown["id"], CallbackOpened)) == (3 if of_model else 0)


async def test_items_that_a_map_leaves_running_are_answered_too() -> None:
    world = World.start()
    world.models = model = Scripted(echo)
    shown = await ran(world, TEXT % (", wait_for: 1, rest: run, concurrency: 1", "", ""), GIVEN)
    assert (shown["status"], shown["result"]["succeeded"], len(model.requests)) == ("completed", 1, 3)


@pytest.mark.parametrize("background", ["", ", background: true"])
async def test_an_item_whose_answer_is_refused_is_corrected_alone(background: str) -> None:
    world = World.start()

    def script(request: ModelRequest, _: int) -> ModelAnswer:
        n = about(request)
        is_corrected = any("was refused" in str(one["content"]) for one in request.messages)
        return says("one" if n == 1 and not is_corrected else json.dumps({"n": n}))

    world.models = model = Scripted(script)
    shown = await ran(world, TEXT % ("", background, TYPED), GIVEN)
    assert (shown["status"], shown["result"]) == ("completed", [{"n": 3}, {"n": 1}, {"n": 2}])
    assert sorted(map(about, model.requests)) == [1, 1, 2, 3]
    (failed,) = of_kind(world, shown["id"], AttemptFailed)
    assert (failed.item, failed.failure.code) == ("1", "answer_invalid")


async def test_corrections_count_for_each_item_apart() -> None:
    """Ten items that need one correction each are no model that is asked again and again about one thing."""
    world = World.start()

    def script(request: ModelRequest, _: int) -> ModelAnswer:
        is_corrected = any("was refused" in str(one["content"]) for one in request.messages)
        return says(json.dumps({"n": about(request)}) if is_corrected else "no")

    world.models = model = Scripted(script)
    shown = await ran(world, TEXT % ("", "", TYPED), {"of": list(range(10))})
    assert (shown["status"], len(model.requests)) == ("completed", 20), shown["questions"]


async def test_the_breaker_of_corrections_opens_for_the_item_that_is_never_right_alone() -> None:
    world = World.start()

    def script(request: ModelRequest, _: int) -> ModelAnswer:
        return says("no" if about(request) == 1 else json.dumps({"n": about(request)}))

    world.models = model = Scripted(script)
    shown = await ran(world, TEXT % ("", ", corrections: 10", TYPED), GIVEN)
    assert shown["status"] == "suspended"
    (question,) = shown["questions"]
    assert "too_many_corrections" in question["message"]
    assert "it is no JSON" in question["message"], "what was wrong last"
    assert sorted(map(about, model.requests)) == [1, 1, 1, 1, 2, 3]


async def test_an_item_whose_model_is_not_available_is_asked_of_the_next_one() -> None:
    world = World.start()

    def script(request: ModelRequest, _: int) -> ModelAnswer:
        if request.model == "m" and about(request) == 1:
            raise StepFailure("model_unavailable", "no such model")
        return says(str(about(request)))

    world.models = model = Scripted(script, known=("m", "big"))
    shown = await ran(world, TEXT % ("", ", fallbacks: [big]", ""), GIVEN)
    assert (shown["status"], shown["result"]) == ("completed", ["3", "1", "2"])
    assert [about(one) for one in model.requests if one.model == "big"] == [1]


async def test_a_tool_that_stands_in_for_the_model_gives_the_output_of_its_item() -> None:
    world = World.start()

    @tool("plain.echo", registry=world.registry)
    async def plain(n: int) -> dict[str, int]:
        return {"n": n}

    world.tools = world.registry.specs()

    def script(request: ModelRequest, _: int) -> ModelAnswer:
        raise StepFailure("bad_request", "no")

    world.models = Scripted(script)
    policy = "\n    failover: [{name: p, when: {code: bad_request}, then: {strategy: replan, tool: plain.echo, with: {n: 7}}}]"
    shown = await ran(world, TEXT % ("", "", policy), GIVEN)
    assert (shown["status"], shown["result"]) == ("completed", [{"n": 7}] * 3)


@pytest.mark.parametrize("whose", ["node", "saga"])
@pytest.mark.parametrize("limit", ["cost_usd: 0.005", "tokens: 600"])
async def test_a_limit_holds_before_each_item_is_asked_about(whose: str, limit: str) -> None:
    world = World.start()

    def greedy(request: ModelRequest, _: int) -> ModelAnswer:
        return says("x", read=50, written=request.most_output)

    world.models = model = Scripted(greedy)
    limits = f"limits: {{{limit}}}\n"
    text = TEXT % ("", ", max_output: 256", f"\n    {limits}" if whose == "node" else "")
    shown = await ran(world, f"{limits}{text}" if whose == "saga" else text, {"of": list(range(20))})
    code = f"limit_{limit.partition('_')[0].partition(':')[0]}"
    assert (shown["status"], shown["error"]["code"]) == ("failed", code)
    assert model.requests, "the first fit"
    used = sum(50 + one.most_output for one in model.requests)
    assert used <= 600 if "tokens" in limit else shown["spent_usd"] <= 0.005


async def test_a_fork_keeps_the_answers_and_asks_again_about_the_others() -> None:
    world = World.start()

    def script(request: ModelRequest, number: int) -> ModelAnswer:
        if about(request) == 2 and number < 3:
            raise StepFailure("bad_request", "no")
        return says(str(about(request)))

    world.models = model = Scripted(script)
    saga = await start(world, TEXT % (", concurrency: 1", "", "\n    on_failure: fail"), GIVEN, "w")
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "failed"
    cut = max(
        entry.version
        for entry in world.entries(saga)
        if any(isinstance(event, StepSucceeded) for event in entry.events)
    )
    await world.service().fork(saga, cut, "again")
    await world.settle()
    shown = await world.queries().show(saga)
    assert (shown["status"], shown["result"]) == ("completed", ["3", "1", "2"])
    assert list(map(about, model.requests)) == [3, 1, 2, 2]


async def test_an_item_that_its_invocation_cuts_off_is_asked_about_again_alone() -> None:
    class Slow(Scripted):
        async def answer(self, request: ModelRequest) -> ModelAnswer:
            self.takes_s = 600 if about(request) == 1 and len(self.requests) < 3 else 1
            return await super().answer(request)

    world = World.start()
    world.models = model = Slow(echo)
    shown = await ran(world, TEXT % ("", "", ""), GIVEN)
    assert (shown["status"], shown["result"]) == ("completed", ["3", "1", "2"])
    (cut_off,) = of_kind(world, shown["id"], StepInterrupted)
    assert cut_off.item == "1"
    assert sorted(map(about, model.requests)) == [1, 1, 2, 3]
