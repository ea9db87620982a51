"""A tool that pays, and questions about its calls, for the tests of approvals. No assertions about behaviour."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from baton import Context, Risk, StepFailure, tool
from baton.core.log.questions import Answer
from tests.kit.faults import Crash
from tests.kit.world import World

PAY = Risk(action="payment", amount="amount", currency_is="USD")


@dataclass
class Bank:
    """What was done, and what the next calls come to."""

    paid: list[tuple[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    fate: list[Any] = field(default_factory=list)
    helped: int = 0

    def open(self, world: World, **more: Any) -> None:
        more = {"risk": PAY, "effect": "once", "verify": "bank.find", **more}

        @tool("bank.find", effect="pure", registry=world.registry)
        async def find(amount: int) -> dict[str, Any]:
            return {"happened": ("pay", amount) in self.paid, "result": amount}

        @tool("bank.pay", registry=world.registry, **more)
        async def transfer(amount: int, context: Context, note: str = "") -> int:
            self.keys.append(context.idempotency_key)
            fate = self.fate.pop(0) if self.fate else None
            if isinstance(fate, Exception):
                raise fate
            self.paid.append(("pay", amount))
            if fate == "dies":
                world.running[context.saga, context.node].is_dead = True
                raise Crash
            return amount

        self.refresh(world)

    def refresh(self, world: World) -> None:
        world.tools = world.registry.specs()


async def asked(world: World, saga: str) -> dict[str, Any]:
    await asyncio.sleep(5)
    (question,) = (await world.queries().show(saga))["questions"]
    return dict(question)


async def say(world: World, saga: str, action: str, **more: Any) -> dict[str, Any]:
    question = await asked(world, saga)
    await world.service().answer(saga, Answer(ask=question["id"], action=action, **more), "")
    return question


async def ended(world: World, saga: str) -> dict[str, Any]:
    await world.settle()
    return await world.queries().show(saga)


def of(node: str, more: str = "") -> str:
    return f"name: w\nnodes:\n  pay: {{{node}}}{more}\noutput: ${{ctx.pay.output?}}"


AMOUNT = "tool: bank.pay, with: {amount: 600}"
FAILED = StepFailure("declined", "no", kind="recoverable", happened=False)
