"""Runs a scenario while its steps fail at random, and says which promises were broken.

There is no one right end: steps may fail, and people decide. So it is asked of every saga, however it ended, whether its
log can be believed, whether a person was told, and whether what happened outside is what the log says.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from baton.errors import UserError
from tests.kit.audit import Audit
from tests.kit.callback_oracles import after_the_end
from tests.kit.corpus import CORPUS, Scenario, start
from tests.kit.faults import FREEZE, STALL, Chaos, Plan
from tests.kit.mishaps import DOUBTS
from tests.kit.model_scenarios import MODELLED
from tests.kit.people import Person
from tests.kit.troubles import Script, Troubles
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

LONGEST_S = 20 * 86_400
OPTIONAL = frozenset(
    {"routes", "mishaps", "approved", "changes", *MODELLED} - {"handed"}
)  # what they give depends on what failed, by design; one of changed code is parked, unless it ends before


async def _doubts(world: World) -> str:
    return await start(world, DOUBTS, {}, "doubts")


# A person who is asked about the call of another saga knows nothing of it, and an audit knows no limit of retries.
LEFT_OUT = frozenset({"freed", "retried"})
SCENARIOS = (*(one for one in CORPUS if one.name not in LEFT_OUT), Scenario("doubts", _doubts))


@dataclass(frozen=True)
class Ordeal:
    """What came of a scenario whose steps failed at random. `met`: classes, strategies, answers, alternatives and ends."""

    broken: tuple[str, ...]
    met: frozenset[str]
    failures: int
    faults: tuple[str, ...]
    output: Any
    is_comparable: bool
    """Whether its output is what it would be without any failure."""


@dataclass
class Stalls(Chaos):
    """Whose clocks are right after a thaw: one that is not cannot know that its lease is over (test_crash_points.py)."""

    def next(self, call: str, worker: bool) -> str:
        fate = super().next(call, worker)
        return STALL if fate == FREEZE else fate


def some_faults(seed: int) -> Plan:
    """A few of what else can go wrong."""
    return Stalls(seed=seed, rate=0.04, budget=6)


def endure(scenario: Scenario, seed: int, plan: Plan, script: Script | None = None) -> Ordeal:
    """Run it in a new world, in which all that is drawn is drawn from the seed; `plan` is what fails besides.

    `script`: what calls meet, in place of what would be drawn.
    """
    return run_virtual(_endure(scenario, seed, plan, script))


async def _endure(scenario: Scenario, seed: int, plan: Plan, script: Script | None) -> Ordeal:
    drawn = random.Random(f"ordeal {seed}")
    is_away = seed % 16 == 9
    has_faults = type(plan) is not Plan or bool(plan.at)
    world = World.start(
        plan=plan, limits=scenario.limits, timeout_s=6 if has_faults else drawn.choice([6, 45])
    )
    world.troubles = troubles = Troubles(seed, drawn.choice([0.15, 0.3, 0.5]), script=script)
    world.reconciler_gap_s = 900 if is_away else 60
    person = Person(
        world, troubles, is_away=is_away, cancels_at=drawn.choice([20, 60, 200]) if seed % 8 == 5 else 0
    )
    world.stall_s = drawn.choice([8, 12, 16, 20])  # the longest thaws when its heir has long been at work
    driven = asyncio.create_task(_drive(scenario, world))
    attending = asyncio.create_task(person.attend())
    is_over = await _settled(world, person, driven)
    if attending.done():
        attending.result()
    attending.cancel()
    await asyncio.sleep(2 * world.stall_s)  # until frozen processes have thawed
    found = Audit(world)
    broken = [*troubles.broken, *found.complaints()]
    if not is_over:
        broken.append(
            f"not over after {LONGEST_S} s: {[(str(head.ref), head.status) for head in world.log.heads()]}"
        )
    view = await world.queries_without_faults().show(found.first)
    broken += [text async for text in after_the_end(world)]
    return Ordeal(
        broken=tuple(dict.fromkeys(broken)),
        met=frozenset(found.met),
        failures=troubles.failed,
        faults=tuple(world.faults),
        output=view["result"],
        is_comparable=view["status"] == "completed"
        and not person.has_changed_something
        and scenario.name not in OPTIONAL
        and not scenario.has_open_end,
    )


async def _drive(scenario: Scenario, world: World) -> None:
    with suppress(UserError):  # it has ended before the scenario could signal, fork or cancel
        await scenario.drive(world)


async def _settled(world: World, person: Person, driven: asyncio.Task[None]) -> bool:
    """Whether everything comes to an end. The driver of a saga that the person has left parked may wait for ever."""
    loop, idle = asyncio.get_running_loop(), 0
    while loop.time() < LONGEST_S:
        await asyncio.sleep(20)
        heads = world.log.heads()
        is_idle = bool(heads) and all(
            not head.owner
            and (head.due_at is None or head.status == "parked")
            and (head.group == "done" or (head.status == "parked" and head.ref.id in person.left))
            for head in heads
        )
        idle = idle + 1 if is_idle else 0
        if idle >= (3 if driven.done() else 60):
            break
    else:
        return False
    if driven.done():
        driven.result()
    driven.cancel()
    return True
