"""When a call of an agent acts: equal calls once, those of a repeatable tool each time, and each of them once across crashes.

Idempotency keys say it: what calls have one, and what calls have two.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from baton import Context, Key, StepFailure, tool
from baton.core.log.events import StepSucceeded
from baton.core.log.questions import Answer
from baton.errors import InvalidInput
from tests.kit.corpus import start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, Crash, Plan
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

ONE = """
name: w
nodes:
  find: {agent: {model: m, prompt: Go., tools: [ring]}}
output: ${ctx.find.output}
"""
TWO = """
name: w
nodes:
  find: {agent: {model: m, prompt: Go., tools: [ring]}}
  also: {agent: {model: m, prompt: Go., tools: [ring]}, after: find}
output: ${ctx.also.output}
"""
RING = ("ring", {"whom": "Ann"})


class Bell:
    """A tool that notes the key of each call of it. `fates`: what its next calls come to."""

    def __init__(self, world: World, *fates: Any, **says: Any) -> None:
        self.keys: list[str] = []
        self.acted: list[str] = []
        left = list(fates)

        @tool("bell.find", effect="pure", registry=world.registry)
        async def find(context: Context) -> dict[str, Any]:
            happened = context.idempotency_key in self.acted
            return {"happened": True, "result": 0} if happened else {"happened": False}

        @tool("ring", registry=world.registry, **says)
        async def ring(whom: str, context: Context) -> int:
            self.keys.append(context.idempotency_key)
            fate = left.pop(0) if left else None
            if isinstance(fate, Exception):
                raise fate
            self.acted.append(context.idempotency_key)
            if fate == "dies":
                world.running[context.saga, context.node].is_dead = True
                raise Crash
            return len(self.acted)

        world.tools = world.registry.specs()


def told(model: Scripted) -> list[Any]:
    """The results that the last request has, in their order."""
    return [json.loads(one["content"]) for one in model.requests[-1].messages if one["role"] == "tool"]


async def rung(world: World, model: Scripted, document: str = ONE) -> dict[str, Any]:
    world.models = model
    saga = await start(world, document, {}, "w")
    await world.settle()
    return await world.queries().show(saga)


@pytest.mark.parametrize("effect", ["pure", "idempotent", "once"])
async def test_each_call_of_a_repeatable_tool_acts_and_has_a_key_of_its_own(effect: str) -> None:
    world = World.start()
    bell = Bell(world, effect=effect, repeatable=True)
    model = Scripted(by_turn(asks_for(RING, RING), asks_for(RING), says("done")))
    assert (await rung(world, model))["result"] == "done"
    assert len(set(bell.keys)) == len(bell.keys) == 3
    assert sorted(told(model)) == [1, 2, 3]


async def test_a_retry_of_a_repeatable_call_keeps_its_key() -> None:
    world = World.start()
    busy = StepFailure("service_unavailable", "not now", happened=False)
    bell = Bell(world, busy, effect="once", repeatable=True)
    model = Scripted(by_turn(asks_for(RING), asks_for(RING), says("done")))
    assert (await rung(world, model))["result"] == "done"
    first, again, other = bell.keys
    assert first == again != other


@pytest.mark.parametrize("repeatable", [True, False])
async def test_a_call_whose_worker_dies_after_it_has_acted_is_looked_for_and_not_made_again(
    repeatable: bool,
) -> None:
    world = World.start()
    bell = Bell(world, "dies", effect="once", verify="bell.find", repeatable=repeatable)
    model = Scripted(by_turn(asks_for(RING), asks_for(RING), says("done")))
    assert (await rung(world, model))["result"] == "done"
    assert len(bell.keys) == len(set(bell.acted)) == (2 if repeatable else 1)


async def test_what_a_person_gives_in_place_of_a_call_is_such_as_its_tool_gives_whatever_the_agent_has_to_give() -> (
    None
):
    world = World.start()
    Bell(world, "dies", effect="once")
    world.models = model = Scripted(by_turn(asks_for(RING), says('{"sum": 7}')))
    document = ONE.replace("[ring]}}", "[ring]}, output_schema: {type: object, required: [sum]}}")
    saga = await start(world, document, {}, "w")
    await asyncio.sleep(200)
    (question,) = (await world.queries().show(saga))["questions"]
    assert "unknown_outcome" in question["message"]
    for wrong in ({"sum": 7}, "seven"):
        with pytest.raises(InvalidInput, match=r"at /output: .*integer"):
            await world.service().answer(saga, Answer(ask=question["id"], action="use", output=wrong), "k1")
    await world.service().answer(saga, Answer(ask=question["id"], action="use", output=7), "k2")
    await world.settle()
    assert (await world.queries().show(saga))["result"] == {"sum": 7}
    assert told(model) == [7]


@pytest.mark.parametrize("fate", [CRASH_BEFORE, CRASH_AFTER])
@pytest.mark.parametrize("repeatable", [True, False])
def test_wherever_the_worker_crashes_every_call_acts_once(fate: str, repeatable: bool) -> None:
    writes = 1
    while True:
        plan = Plan(at={writes: fate})

        async def crashes(plan: Plan) -> None:
            world = World.start(plan=plan)
            bell = Bell(world, effect="once", verify="bell.find", repeatable=repeatable)
            model = Scripted(by_turn(asks_for(RING, RING), asks_for(RING), says("done")))
            assert (await rung(world, model))["result"] == "done", world.plan.writes
            assert len(bell.acted) == len(set(bell.acted)) == (3 if repeatable else 1), world.plan.writes

        run_virtual(crashes(plan))
        if len(plan.writes) < writes:
            return
        writes += 1


async def test_equal_calls_that_fail_in_one_turn_and_succeed_in_the_next_have_one_key() -> None:
    world = World.start()
    refused = StepFailure("business_rule", "closed", happened=False)
    bell = Bell(world, refused, effect="once")
    model = Scripted(by_turn(asks_for(RING), asks_for(RING), asks_for(RING), says("done")))
    assert (await rung(world, model))["result"] == "done"
    first, second = bell.keys
    assert first == second
    failed, rung_once, again = told(model)
    assert (failed["error"]["code"], rung_once, again["repeated"]) == ("business_rule", 1, True)


async def test_what_was_claimed_in_one_turn_is_the_recorded_result_of_an_equal_call_in_another() -> None:
    """A call that has acted and said it failed: its claim knows better than what the model was told."""
    world = World.start()
    lost = StepFailure("service_unavailable", "gone", kind="permanent", happened=True)

    @tool("bell.look", effect="pure", registry=world.registry)
    async def look() -> dict[str, Any]:
        return {"happened": True, "result": 7}

    bell = Bell(world, lost, effect="once", verify="bell.look")
    model = Scripted(by_turn(asks_for(RING), asks_for(RING), says("done")))
    shown = await rung(world, model)
    assert shown["result"] == "done"
    assert len(bell.keys) == 1
    recorded = [
        event.recorded
        for event in world.events(shown["id"])
        if isinstance(event, StepSucceeded) and event.tool == "ring"
    ]
    assert recorded == [True]


@pytest.mark.parametrize("effect", ["idempotent", "once"])
async def test_equal_calls_of_two_agents_act_twice(effect: str) -> None:
    world = World.start()
    bell = Bell(world, effect=effect)
    model = Scripted(by_turn(asks_for(RING), says("done")))
    assert (await rung(world, model, TWO))["result"] == "done"
    assert len(set(bell.keys)) == len(bell.keys) == 2


async def test_equal_calls_of_two_agents_act_once_where_the_tool_says_once_a_saga() -> None:
    world = World.start()
    bell = Bell(world, effect="once", key=Key.saga())
    model = Scripted(by_turn(asks_for(RING), says("done")))
    assert (await rung(world, model, TWO))["result"] == "done"
    assert len(bell.keys) == 1
    assert told(model) == [1]
