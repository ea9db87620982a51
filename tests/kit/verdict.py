"""Runs a scenario under a plan of faults and says what came of it, and which promises it broke."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from baton.errors import NotAllowedNow
from tests.kit.corpus import Scenario
from tests.kit.faults import Plan
from tests.kit.oracles import of_saga, of_world, settled
from tests.kit.toolbox import Books, make_registry
from tests.kit.virtual import run_virtual
from tests.kit.world import World

MOST_RESUMES = 20


@dataclass(frozen=True)
class Verdict:
    """The end of a scenario: what it came to, and every broken promise in a sentence."""

    status: str
    output: Any
    done: tuple[str, ...]
    writes: tuple[str, ...]
    broken: tuple[str, ...]
    faults: tuple[str, ...]
    kinds: frozenset[str]

    @property
    def result(self) -> tuple[str, Any, tuple[str, ...]]:
        """What must be the same whatever went wrong on the way."""
        return self.status, self.output, self.done


def run(scenario: Scenario, plan: Plan, setup: Callable[[World], None] | None = None) -> Verdict:
    """Run it in a new world."""

    async def main() -> Verdict:
        books = Books()
        world = World(make_registry(books), plan, scenario.limits)
        world.books = books
        if setup is not None:
            setup(world)
        world.switch_on()
        saga = await scenario.drive(world)
        await world.settle()
        for _ in range(0 if scenario.expected == "parked" else MOST_RESUMES):
            if not (parked := [head for head in world.log.heads() if head.status == "parked"]):
                break
            for head in parked:  # three deaths in a row: that is what a person is for
                with suppress(NotAllowedNow):
                    await world.service_without_faults().resume(head.ref.id)
            await asyncio.sleep(400)  # longer than the sweep
            await world.settle()
        if world.faults:  # until whatever stood still or was on its way has come
            await asyncio.sleep(2 * max(world.stall_s, world.late_s))
            await world.settle()
        view = await world.queries_without_faults().show(saga)
        return Verdict(
            status=view["status"],
            output=view["result"],
            done=_done(world, saga) if scenario.same_steps else (),
            writes=tuple(plan.writes),
            broken=(*of_saga(world, saga), *of_world(world)),
            faults=tuple(world.faults),
            kinds=frozenset(_kinds(world)),
        )

    return run_virtual(main())


def _done(world: World, saga: str) -> tuple[str, ...]:
    """The steps of the current history, by name; how often is checked elsewhere."""
    return tuple(sorted({slot for slot, _ in settled(world.entries(saga))}))


def _kinds(world: World) -> set[str]:
    """The kinds of event in all logs."""
    return {
        str(event.__struct_config__.tag) for head in world.log.heads() for event in world.events(head.ref.id)
    }
