"""What acts only once and the end of the lease under which it was begun: who is told what, and who stops whom."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

from baton import Context, tool
from baton.core.limits import Limits
from baton.ports import Effect
from tests.kit.corpus import start
from tests.kit.faults import Crash
from tests.kit.virtual_time import EPOCH, SimulationLoop
from tests.kit.world import TENANT, World

PAY = "name: w\nnodes: {pay: {tool: bank.pay}}\noutput: ${ctx.pay.output}"
LIMITS = Limits()


@dataclass
class Bank:
    """Pays. `seconds`: from the call to the deed; `dies`: the first call takes its process with it."""

    seconds: float = 0.1
    dies: bool = False
    told: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    paid_at: list[int] = field(default_factory=list)
    looked_at: list[int] = field(default_factory=list)

    def open(self, world: World) -> None:
        @tool("bank.pay", effect="once", verify="bank.find", timeout="10m", registry=world.registry)
        async def pay(context: Context) -> int:
            self.told.append(context.deadline_ms)
            self.keys.append(context.idempotency_key)
            await asyncio.sleep(self.seconds)
            if self.dies and len(self.told) == 1:
                world.running[context.saga, context.node].is_dead = True
                raise Crash
            self.paid_at.append(now())
            return len(self.paid_at)

        @tool("bank.find", effect="pure", registry=world.registry)
        async def find() -> dict[str, Any]:
            self.looked_at.append(now())
            return {"happened": bool(self.paid_at), "result": len(self.paid_at) or None}

        world.tools = world.registry.specs()

    def claim(self, world: World) -> Effect:
        found = world.effects.read(TENANT, self.keys[0])
        assert found is not None
        return found


def now() -> int:
    return EPOCH + round(asyncio.get_running_loop().time() * 1_000)


async def leased_until(world: World, saga: str) -> int:
    """Starts nothing: the end of the lease that is held on the saga, once a tool of it runs."""
    await asyncio.sleep(0.3)
    (head,) = world.log.heads()
    assert head.owner, saga
    return head.until


async def test_a_tool_is_told_no_later_deadline_than_the_end_of_its_lease() -> None:
    world = World.start()
    bank = Bank(seconds=1)
    bank.open(world)
    until = await leased_until(world, await start(world, PAY, {}, "w"))
    assert bank.told == [until], "the next worker may look before ten minutes are over"
    assert bank.claim(world).until == until + LIMITS.effect_grace_ms
    await world.settle()


async def test_verify_is_not_called_before_the_deadline_of_a_dead_call_is_over_by_every_clock() -> None:
    world = World.start()
    bank = Bank(dies=True)
    bank.open(world)
    saga = await start(world, PAY, {}, "w")
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"
    assert bank.looked_at[0] >= bank.told[0] + LIMITS.clock_skew_ms


async def test_what_stood_still_past_its_lease_is_stopped_before_it_goes_on() -> None:
    world = World.start()
    bank = Bank(seconds=1)
    bank.open(world)
    saga = await start(world, PAY, {}, "w")
    await leased_until(world, saga)
    world.running[saga, "pay"].is_frozen = True  # Lambda does not kill what stands still
    cast("SimulationLoop", asyncio.get_running_loop()).pass_time(30)  # all its timers are due at once
    thawed = now()
    await world.settle()
    assert len(bank.told) == 2
    (paid_at,) = bank.paid_at
    assert paid_at >= thawed + 1_000, "the call that stood still has not acted"
