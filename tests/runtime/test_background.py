"""Requests that a provider works on while no worker runs: handed over, looked at, paid for, and given up."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from msgspec import structs

from baton import StepFailure
from baton.core.log.events import AgentClosed, AttemptFailed, CallbackOpened, StepSucceeded
from baton.ports import Account, Sums
from baton.ports.models import ModelAnswer, ModelFailure, ModelRequest
from tests.core.build import replay
from tests.kit.corpus import start
from tests.kit.scripted import Scripted, asks_for, by_turn, in_turn, says
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import TENANT, USER, World
from tests.runtime.test_agents import Desk, of_kind, ran

ASK = """
name: w
nodes: {ask: {model: {name: m, prompt: hi, max_output: 100, background: true}%s}}
output: ${ctx.ask.output}
"""


def sums(world: World) -> Sums:
    return world.budgets.read(Account(TENANT, USER, VirtualClock().now() // 86_400_000))


async def test_no_worker_runs_while_a_model_thinks_and_a_look_brings_the_answer() -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(says("hello")), thinks_s=100)
    shown = await ran(world, ASK % "", {})
    assert (shown["status"], shown["result"]) == ("completed", "hello")
    (opened,) = of_kind(world, shown["id"], CallbackOpened)
    assert opened.response is not None
    assert (opened.response.id, opened.response.model) == ("resp_0", "m")
    assert opened.cost == opened.assumed == opened.response.held > 1_000
    (done,) = of_kind(world, shown["id"], StepSucceeded)
    assert done.cost == 200 - opened.response.held
    assert shown["spent_usd"] == 0.0002
    assert sums(world) == Sums(200, 200, 0)
    assert len(model.looks) == 3, "after 15, 45 and 105 seconds, a little later each"
    assert len(world.entries(shown["id"])) == 3, "a look that finds it at work writes nothing"


async def test_a_request_that_has_failed_is_made_again() -> None:
    world = World.start()
    world.models = Scripted(in_turn(ModelFailure("server_error", "broken", None), says("hello")))
    shown = await ran(world, ASK % "", {})
    assert shown["result"] == "hello"
    (failed,) = of_kind(world, shown["id"], AttemptFailed)
    first, second = of_kind(world, shown["id"], CallbackOpened)
    assert (failed.callback, failed.cost, failed.assumed) == (first.callback, 0, 0)
    assert first.callback != second.callback
    assert sums(world).spent == first.response.held + 200, "what the provider does not say is assumed"


async def test_a_request_whose_time_is_over_is_cancelled_and_stays_paid() -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(says("hello")), thinks_s=10_000)
    shown = await ran(world, ASK % ", timeout: 2m, on_failure: fail, retry: {max_attempts: 1}", {})
    assert (shown["status"], shown["error"]["code"]) == ("failed", "timeout")
    assert model.cancelled == ["resp_0"]
    (opened,) = of_kind(world, shown["id"], CallbackOpened)
    assert sums(world) == Sums(opened.cost, opened.cost, 0)
    assert model.looks[-1][0] - model.looks[0][0] == pytest.approx(105, abs=5)


AGENT = """
name: w
nodes:
  find: {agent: {model: m, prompt: "Add 1 and 2.", tools: [sum.*], background: true%s}}
output: ${ctx.find.output}
"""


async def test_each_turn_of_an_agent_is_handed_over_and_says_what_it_would_have_said() -> None:
    world = World.start()
    desk = Desk(world)
    world.models = model = Scripted(
        by_turn(asks_for(("sum_add", {"a": 1, "b": 2}), ("sum_add", {"a": 3, "b": 4})), says("3 and 7"))
    )
    shown = await ran(world, AGENT % "", {})
    assert (shown["status"], shown["result"]) == ("completed", "3 and 7")
    assert sorted(desk.calls) == [("add", (1, 2)), ("add", (3, 4))]
    first, second = model.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert first.token != second.token
    assert all(one.token for one in model.requests)
    assert [one.item for one in of_kind(world, shown["id"], CallbackOpened)] == ["t1", "t2"]
    (closed,) = of_kind(world, shown["id"], AgentClosed)
    assert (closed.turns, closed.used.tokens, closed.used.calls) == (2, 220, 2)
    assert sums(world) == Sums(400, 400, 0)


async def test_an_answer_that_is_not_as_the_schema_has_it_is_corrected_by_another_handover() -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(says("no json"), says('{"n": 1}')))
    more = ", output_schema: {type: object, required: [n]}"
    shown = await ran(world, ASK % more, {})
    assert shown["result"] == {"n": 1}
    assert "was refused" in model.requests[1].messages[-1]["content"]
    assert len(of_kind(world, shown["id"], CallbackOpened)) == 2
    assert sums(world) == Sums(400, 400, 0), "what was of no use is paid as well"


@pytest.mark.parametrize("failure", [StepFailure("server_error", "later"), StepFailure("unauthorized", "no")])
async def test_a_look_that_finds_nothing_out_is_repeated(failure: StepFailure) -> None:
    world = World.start()

    class Away(Scripted):
        async def collect(self, model: str, response: str) -> ModelAnswer | None:
            if len(self.looks) < 3:
                self.looks.append((0, response))
                raise failure
            return await super().collect(model, response)

    world.models = model = Away(in_turn(says("hello")))
    shown = await ran(world, ASK % "", {})
    assert shown["result"] == "hello"
    assert (len(model.requests), len(model.looks)) == (1, 4)
    assert not of_kind(world, shown["id"], AttemptFailed)


async def test_a_saga_that_is_cancelled_has_its_request_cancelled_and_paid() -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(says("hello")), thinks_s=3_000)
    saga = await start(world, ASK % "", {}, "w")
    await world.settle(60)
    await world.service().cancel(saga, "enough", 0)
    await world.settle()
    shown = await world.queries().show(saga)
    (opened,) = of_kind(world, saga, CallbackOpened)
    assert (shown["status"], model.cancelled) == ("cancelled", ["resp_0"])
    assert shown["spent_usd"] * 1_000_000 == pytest.approx(opened.cost)
    assert sums(world) == Sums(opened.cost, opened.cost, 0)


RACE = """
name: w
nodes:
  ask: {model: {name: m, prompt: hi, max_output: 100, background: true}}
  nap: {wait: {for: 5s}}
  both: {value: done, after: [ask, nap], join: {wait_for: any, rest: cancel}}
output: ${ctx.both.output}
"""


async def test_a_join_that_needs_it_no_more_has_it_cancelled() -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(says("hello")), thinks_s=3_000)
    shown = await ran(world, RACE, {})
    assert (shown["result"], model.cancelled) == ("done", ["resp_0"])


async def test_a_cancel_that_the_provider_refuses_is_tried_three_times() -> None:
    world = World.start()

    class Deaf(Scripted):
        async def cancel(self, model: str, response: str) -> None:
            await super().cancel(model, response)
            raise StepFailure("server_error", "no")

    world.models = model = Deaf(in_turn(says("hello")), thinks_s=3_000)
    shown = await ran(world, RACE, {})
    assert (shown["result"], model.cancelled) == ("done", ["resp_0"] * 3)


async def test_what_was_held_before_midnight_is_given_back_to_the_day_before() -> None:
    world = World.start()
    until_midnight = 86_400 - VirtualClock().now() // 1_000 % 86_400
    await asyncio.sleep(until_midnight - 10)
    today = VirtualClock().now() // 86_400_000
    world.models = Scripted(in_turn(says("hello")), thinks_s=60)
    shown = await ran(world, ASK % "", {})
    assert shown["result"] == "hello"
    for day, spent in ((today, 200), (today + 1, 0)):
        assert world.budgets.read(Account(TENANT, USER, day)) == Sums(spent, spent, 0)


async def test_tokens_that_were_held_for_it_are_given_back_once_its_use_is_known() -> None:
    world = World.start()
    world.models = Scripted(in_turn(says("hello")), thinks_s=60)
    shown = await ran(world, f"limits: {{tokens: 1000}}{ASK % ''}", {})
    (opened,) = of_kind(world, shown["id"], CallbackOpened)
    assert opened.response is not None
    assert sum(opened.response.tokens) > 110
    assert replay(world.entries(shown["id"])).used[""].tokens == 110, "what it has used, and no more"


async def test_a_fork_to_where_it_was_open_gives_nothing_back_twice() -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(says("hello")))
    shown = await ran(world, ASK % "", {})
    saga = shown["id"]
    (cut,) = (
        entry.version
        for entry in world.entries(saga)
        if any(isinstance(event, CallbackOpened) for event in entry.events)
    )
    await world.service().fork(saga, cut, "again", "k")
    await world.settle()
    again = await world.queries().show(saga)
    assert (again["status"], len(model.requests)) == ("completed", 2)
    assert again["spent_usd"] == 0.0004
    assert sums(world) == Sums(400, 400, 0)


async def announced(world: World, response: str) -> bool:
    return await world.service().announced("openai", {}, response.encode())


async def test_what_the_provider_announces_wakes_the_saga_once() -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(says("hello")), thinks_s=65)
    saga = await start(world, ASK % "", {}, "w")
    await world.settle(20)
    assert not await announced(world, "resp_0"), "it is not over"
    assert not await announced(world, "resp_9"), "it is none of ours"
    await world.settle(60)
    assert [await announced(world, "resp_0") for _ in range(3)] == [True, False, False]
    await world.settle(5)
    shown = await world.queries().show(saga)
    assert (shown["status"], shown["result"]) == ("completed", "hello")
    assert not await announced(world, "resp_0"), "its saga has ended"
    assert sums(world) == Sums(200, 200, 0)
    assert len(model.looks) == 3, "two that were due, and the one that was announced"


async def test_what_is_announced_before_the_log_knows_of_it_is_looked_at_as_soon_as_it_does() -> None:
    world = World.start()

    class Quick(Scripted):
        async def submit(self, request: ModelRequest) -> str:
            response = await super().submit(request)
            await announced(world, response)
            return response

    world.models = model = Quick(in_turn(says("hello")), thinks_s=0)
    saga = await start(world, ASK % "", {}, "w")
    await world.settle(5)
    shown = await world.queries().show(saga)
    assert (shown["status"], len(model.looks)) == ("completed", 1)


async def test_what_is_announced_for_a_request_that_was_cancelled_changes_nothing() -> None:
    world = World.start()
    world.models = Scripted(in_turn(says("hello")), thinks_s=10)
    saga = await start(world, ASK % "", {}, "w")
    await world.settle(3)
    await world.service().cancel(saga, "enough", 0)
    await world.settle(60)
    before = len(world.entries(saga))
    assert not await announced(world, "resp_0")
    assert len(world.entries(saga)) == before


async def test_a_token_of_another_deployment_and_one_of_another_saga_wake_nothing() -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(says("hello")), thinks_s=10)
    saga = await start(world, ASK % "", {}, "w")
    await world.settle(3)
    first = model.given["resp_0"]
    model.given["resp_7"] = replace(first, at=0, request=structs.replace(first.request, token="x.y"))
    model.given["resp_8"] = replace(first, at=0)
    assert not await announced(world, "resp_7")
    assert not await announced(world, "resp_8"), "the saga waits for another response"
    assert len(world.entries(saga)) == 2
