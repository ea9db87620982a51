"""A target that is down for a while, and tools that call it, with a circuit breaker and without."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from baton import Context, StepFailure, tool
from baton.tools.define import Registry
from tests.kit.process import pause

PAYMENTS = """
name: payments
nodes:
  pay: {tool: charge, with: {n: 1}, retry: {max_attempts: 3, base: 1s, backoff: fixed}}
output: '${ctx.pay.output}'
"""

PATIENT = """
name: patient
nodes:
  pay: {tool: charge, with: {n: 1}, retry: {max_attempts: 50, base: 1s, backoff: fixed}}
"""


@dataclass
class Target:
    """When it is down, in seconds of virtual time; and when it was called, with what it answered."""

    down: tuple[tuple[float, float], ...] = ()
    code: str = "service_unavailable"
    lasts_s: float = 0.1
    calls: list[tuple[float, str]] = field(default_factory=list)
    running: int = 0
    most: int = 0
    """How many calls were under way at once while it was down."""

    def is_down(self, at: float) -> bool:
        return any(begin <= at < end for begin, end in self.down)

    @property
    def while_down(self) -> list[float]:
        return [at for at, code in self.calls if code]

    async def call(self, n: int) -> int:
        at = asyncio.get_running_loop().time()
        is_down = self.is_down(at)
        self.calls.append((at, self.code if is_down else ""))
        self.running += 1
        self.most = max(self.most, self.running if is_down else 0)
        try:
            await pause(self.lasts_s)
        finally:
            self.running -= 1
        if is_down:
            raise StepFailure(self.code, "the target is down")
        return n + 1


def add_down(registry: Registry, target: Target) -> None:
    """`charge` has the breaker `payments`, `bare` has none; both call the target."""

    @tool("charge", registry=registry, timeout="5s", breaker="payments")
    async def charge(n: int, context: Context) -> dict[str, int]:
        return {"n": await target.call(n)}

    @tool("bare", registry=registry, timeout="5s")
    async def bare(n: int, context: Context) -> dict[str, int]:
        return {"n": await target.call(n)}

    @tool("cash", registry=registry, timeout="5s", instead_of="charge", hints="alternative_provider")
    async def cash(n: int) -> dict[str, int]:
        await pause(0.1)
        return {"n": -n}
