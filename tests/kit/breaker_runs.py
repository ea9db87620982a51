"""Many sagas that call one target with a circuit breaker, while it is down and after; and what must hold of that."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from baton.core.failures.breakers import CLOSED, Breaker
from baton.core.limits import Limits
from baton.core.log.events import AttemptFailed, StepHeld
from tests.kit.corpus import patiently
from tests.kit.faults import FINE, Plan
from tests.kit.unavailable_target import Target, add_down
from tests.kit.virtual_time import EPOCH, run_virtual
from tests.kit.world import TENANT, World

BREAKERS = ("read_breaker", "write_breaker")
CALLS, ENDS, ATTEMPTS, PROBES, STATE = "calls", "ends", "attempts", "probes", "state"
"""The oracles: calls that reach a target that is down; every saga completes soon after; a wait is no attempt; one probe at a time."""
SOON_S = 900
"""After the target is up: the longest pause, its jitter, the spread of those that wait, and a dead invocation."""

PATIENT = """
name: payments
nodes:
  pay: {tool: charge, with: {n: 1}, retry: {max_attempts: 4, base: 1s, backoff: fixed, budget: 30s}}
output: '${ctx.pay.output}'
"""


@dataclass
class OfBreakers(Plan):
    """Every call of the breakers' store meets this."""

    fate: str = FINE

    def draw(self, call: str, worker: bool) -> str:
        return self.fate if call in BREAKERS else FINE

    def spares(self, count: int) -> bool:
        return True


@dataclass
class Ordeal:
    """One run: what was broken, and what it came to."""

    broken: list[str] = field(default_factory=list)
    plan: Plan = field(default_factory=Plan)
    target: Target = field(default_factory=Target)
    breaker: Breaker | None = None
    held: list[tuple[float, float]] = field(default_factory=list)
    """(when, until), in seconds."""

    @property
    def oracles(self) -> set[str]:
        return {one.split(":")[0] for one in self.broken}

    def opened_at(self) -> float:
        """When a step was first held back."""
        return min((at for at, _ in self.held), default=1e9)


def endure(
    sagas: int = 12,
    down_s: float = 300,
    plan: Plan | None = None,
    excused: Collection[str] = (),
    limits: Limits | None = None,
    **world: Any,
) -> Ordeal:
    """Let so many sagas begin while the target is down, in a world of few warm workers. `excused`: oracles that are not asked."""
    ordeal = Ordeal(plan=plan or Plan(), target=Target(down=((0, down_s),)))
    options: dict[str, Any] = {"is_warm": True, "slots": 2, "timeout_s": 20, "runaway": 100_000, **world}

    async def main() -> None:
        here = World.start(plan=ordeal.plan, limits=limits or Limits(), **options)
        add_down(here.registry, ordeal.target)
        here.tools = here.registry.specs()
        await patiently(here, lambda service: service.register(PATIENT, json_only=False))
        ids = [await _begin(here, number) for number in range(sagas)]
        await here.settle(down_s + SOON_S + 60)  # a saga that has not ended by then is late already
        ordeal.breaker = here.store.breakers.read_breaker(TENANT, "payments")
        for saga in ids:
            _look(here, ordeal, saga, down_s)

    run_virtual(main())
    _count(ordeal, sagas, down_s, options)
    ordeal.broken = [one for one in ordeal.broken if one.split(":")[0] not in excused]
    return ordeal


async def _begin(world: World, number: int) -> str:
    view, _ = await patiently(world, lambda service: service.start("payments", {}, f"key-{number}"))
    return str(view["id"])


def _look(world: World, ordeal: Ordeal, saga: str, down_s: float) -> None:
    end, events = world.end(saga), world.events(saga)
    if end is None or end.status != "completed":
        ordeal.broken.append(f"{ENDS}: {saga} is {'open' if end is None else end.status}")
    elif (at := (world.entries(saga)[-1].at - EPOCH) / 1_000) > down_s + SOON_S:
        ordeal.broken.append(
            f"{ENDS}: {saga} has come to its end {at - down_s:.0f} s after the target was up"
        )
    failed = [event for event in events if isinstance(event, AttemptFailed)]
    if any(event.failure.code == "breaker_open" for event in failed):
        ordeal.broken.append(f"{ATTEMPTS}: {saga} has failed with a wait")
    for event in events:
        if isinstance(event, StepHeld):
            ordeal.held.append(((event.at - EPOCH) / 1_000, (event.until - EPOCH) / 1_000))


def _count(ordeal: Ordeal, sagas: int, down_s: float, options: dict[str, Any]) -> None:
    """What the target was called; nothing here is asked of the breaker's own record."""
    target, breaker = ordeal.target, ordeal.breaker
    workers, batch = options["slots"] or sagas, options.get("batch", 3)
    # Those under way when it opens, with one more of each within the second between two reports; then one of each new process.
    first = Limits().breaker_failures + 2 * workers * batch
    # The pause doubles. Some probes have died with their processes.
    probes = 2 * (1 + round(math.log2(max(down_s * 1_000 / Limits().breaker_pause_ms, 1)))) + 4
    if len(target.while_down) > first + probes:
        ordeal.broken.append(f"{CALLS}: {len(target.while_down)} calls reached it, not {first} and {probes}")
    opened = ordeal.opened_at()
    late = [at for at in target.while_down if at > opened + 6]
    if any(after - before < 10 for before, after in pairwise(late)):
        ordeal.broken.append(f"{PROBES}: {late} are too close to one another")
    if breaker is not None and breaker.state != CLOSED and all(not code for _, code in target.calls[-3:]):
        ordeal.broken.append(f"{STATE}: it is {breaker.state}, and the target answers")
