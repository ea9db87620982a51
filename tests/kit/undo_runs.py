"""The corpus with inverses: each tool that acts and names none gets one, a step of a saga fails, and all of it is undone in the end.

What must hold then: what a step has done is not in force any more, each deed was taken back by one call with one key, nothing was taken back that
never happened, and what stays is named.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace as changed

from baton import Context, StepFailure, tool
from baton.core.log.events import CancelRequested, Entry, Forked, SagaEnded, StepSucceeded
from baton.core.log.questions import TRY_AGAIN, USE, Answer
from baton.core.log.slots import Slot, slot_of, subject_item
from baton.core.log.undos import UndoPassed
from baton.errors import EngineFault, NotAllowedNow, UserError
from baton.ports import Performer, SagaRef, StepContext
from baton.tools.define import Registry, Tool
from tests.kit import world as worlds
from tests.kit.bugs import replaced
from tests.kit.corpus import Scenario
from tests.kit.faults import Crash, Plan
from tests.kit.process import FOREVER, Process, pause
from tests.kit.roles import ToolsOf
from tests.kit.toolbox import Books, make_registry
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

INVERSE = "take_back"
PATIENCE_S = 8_000
"""So long a driver may wait for something that does not come, because a step has failed."""
TRIES = 6
Place = tuple[str, str]
"""A saga, and a slot of it."""


class Lost(StepFailure):
    """A call that has acted, and whose answer is lost."""


@dataclass
class Deeds:
    """What is in force, by place; and what was wrong with a call of the inverse.

    `fails_at`: of the places in the order in which they are first called, the one whose calls fail; 0: none. `closed`: how many calls of
    the inverse fail. `gone`: keys of deeds that were taken back. `lost`: places of deeds whose answer was lost.
    """

    fails_at: int = 0
    closed: int = 0
    places: list[Place] = field(default_factory=list)
    acted: dict[Place, set[str]] = field(default_factory=dict)
    back: dict[Place, set[str]] = field(default_factory=dict)
    in_force: set[Place] = field(default_factory=set)
    outputs: dict[Place, Any] = field(default_factory=dict)
    asked: list[Place] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    lost: set[Place] = field(default_factory=set)

    def begins(self, place: Place) -> None:
        """Raises `StepFailure` where the step is to fail."""
        if place not in self.places:
            self.places.append(place)
        if self.places.index(place) + 1 == self.fails_at:
            raise StepFailure("sold_out", "there is none", kind="permanent", happened=False)

    def acts(self, place: Place, key: str, *, is_heard: bool = True) -> None:
        """A service that honours keys answers a call from its records where it has done that before, also where it was taken back since.
        `is_heard`: the worker that made the call takes in the answer, because its lease is not over.
        """
        if is_heard and key in self.gone:
            self.strange.append(f"taken for done, and was taken back: {place}")
        if key not in self.acted.setdefault(place, set()):
            self.in_force.add(place)
        self.acted[place].add(key)

    def is_done(self, place: Place) -> bool:
        """Whether it may have happened: it has, or its worker died in it."""
        is_to_fail = bool(self.fails_at) and self.places[self.fails_at - 1 : self.fails_at] == [place]
        return place in self.acted or (place in self.places and not is_to_fail)

    def take_back(self, place: Place, key: str) -> None:
        if self.closed:
            self.closed -= 1
            raise StepFailure("unavailable", "the office is closed", happened=False)
        if not self.is_done(place):
            self.strange.append(f"what never happened is undone: {place}")
        keys = self.back.setdefault(place, set())
        keys.add(key)
        if len(keys) > max(len(self.acted.get(place, ())), 1):
            self.strange.append(f"undone {len(keys)} times: {place}")
        self.gone |= self.acted.get(place, set())
        # A child that a fork leaves behind shares its keys with the one that is opened anew.
        self.in_force = {one for one in self.in_force if not self.acted[one] <= self.gone}


@lru_cache(maxsize=1)
def _inverse() -> Tool:
    registry = Registry()

    @tool(INVERSE, registry=registry)
    async def take_back(
        context: Context, output: Any = None
    ) -> None:  # what it takes back is known by its place
        await pause(0.1)

    return registry[INVERSE]


def with_inverses(books: Books) -> Registry:
    """The tools of the corpus: each that acts and has no inverse has one."""
    registry = Registry()
    for one in make_registry(books).values():
        acts = one.spec.effect != "pure" and not one.spec.undo
        registry.add(replace(one, spec=changed(one.spec, undo=INVERSE)) if acts else one)
    registry.add(_inverse())
    return registry


class _Noting:
    """Notes what each call has done. Nothing is noted that a dead process has asked for."""

    def __init__(self, inner: Performer, process: Process, deeds: Deeds, registry: Registry) -> None:
        self._inner, self._process, self._deeds, self._registry = inner, process, deeds, registry

    async def perform(self, name: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        item = subject_item(context.item) if name == INVERSE else context.item
        place = (context.saga, slot_of(context.node, context.iteration, item))
        acts = name in self._registry and self._registry[name].spec.undo == INVERSE
        if acts:
            self._deeds.begins(place)
        try:
            result = await self._inner.perform(name, arguments, context)
        except StepFailure as error:
            self._process.check()
            if isinstance(error.__cause__, Lost):
                self._deeds.acts(place, context.idempotency_key, is_heard=False)
                self._deeds.outputs[place] = None
                self._deeds.lost.add(place)
            raise
        self._process.check()
        if acts:
            self._deeds.outputs[place] = result
            self._deeds.acts(place, context.idempotency_key, is_heard=self._is_heard(context))
        elif name == INVERSE:
            self._deeds.take_back(place, context.idempotency_key)
        return result

    def _is_heard(self, context: StepContext) -> bool:
        process, saga = self._process, str(SagaRef(context.tenant, context.saga))
        is_over = process.clock.now() >= process.leases.get(saga, FOREVER)
        return not is_over and process.lost_time_at == math.inf  # a clock that stood still says nothing


@dataclass(frozen=True)
class Undone:
    """What came of it: how each saga ended, every broken promise, how many places were called, and which writes were made."""

    ends: Mapping[str, str]
    broken: tuple[str, ...]
    places: int
    writes: tuple[str, ...]
    undone: int


def run(
    scenario: Scenario,
    fails_at: int = 0,
    closed: int = 0,
    plan: Plan | None = None,
    also: Callable[[World], Iterable[str]] = lambda _: (),
) -> Undone:
    """Run it in a new world, and have everything undone that is not. `also` says what else is broken, before an operator has done anything."""
    deeds = Deeds(fails_at, closed)

    faults = Plan() if plan is None else plan

    async def main() -> Undone:
        books = Books()
        registry = with_inverses(books)
        world = World(registry, faults, scenario.limits)
        world.books = books
        world.switch_on()
        await _drive(world, scenario)
        await world.settle()
        others = tuple(also(world))
        for _ in range(TRIES):
            await world.settle()
            while [saga for saga in _sagas(world) if await _answer(world, saga, deeds)]:
                await world.settle()
            if not [saga for saga in _roots(world) if await _undo(world, saga)]:
                break
            deeds.closed = 0
        ends = {saga: end.status if (end := world.end(saga)) else "" for saga in _sagas(world)}
        broken = (*others, *_broken(world, deeds), *_stuck(world, scenario.expected))
        undone = sum(len(keys) for keys in deeds.back.values())
        return Undone(ends, broken, len(deeds.places), tuple(faults.writes), undone)

    class Watched(ToolsOf):
        def __init__(self, process: Process, registry: Registry) -> None:
            super().__init__(process, registry)
            self._inner = _Noting(self._inner, process, deeds, registry)  # type: ignore[assignment]

    with replaced(worlds, "ToolsOf", Watched):
        return run_virtual(main())


async def _drive(world: World, scenario: Scenario) -> None:
    driver = asyncio.ensure_future(scenario.drive(world))
    await asyncio.wait({driver}, timeout=PATIENCE_S)
    if not driver.done():
        driver.cancel()
    with suppress(asyncio.CancelledError, UserError, EngineFault, Crash):
        await driver  # what it asks for may be refused once a step has failed


def _sagas(world: World) -> list[str]:
    return [head.ref.id for head in world.log.heads()]


def _roots(world: World) -> list[str]:
    """Sagas without a parent: children are undone by theirs."""
    return [saga for saga in _sagas(world) if "." not in saga]


async def _answer(world: World, saga: str, deeds: Deeds) -> bool:
    """Whether the saga has asked what was done by a step that is to be undone. A person looks, and says what is so."""
    found = False
    for question in (await world.queries_without_faults().show(saga))["questions"]:
        slot = question["id"].partition(".")[2].rpartition(".")[0]
        if not Slot.parse(slot).scope:
            continue
        place = (saga, Slot.parse(slot).subject.text)
        deeds.asked.append(place)
        happened = place in deeds.in_force
        output = deeds.outputs[place] if happened else UNSET
        answer = Answer(ask=question["id"], action=USE if happened else TRY_AGAIN, output=output)
        await world.service_without_faults().answer(saga, answer, "")
        found = True
    return found


async def _undo(world: World, saga: str) -> bool:
    """Whether something is left that an operator can have undone."""
    wanted = CancelRequested(reason="all of it", by="", at=0, grace_ms=0, undo=True)
    try:
        await world.service_without_faults().rollback(saga, wanted)
    except NotAllowedNow:
        return False
    await world.settle()
    return True


# ---- what must hold ----------------------------------------------------------------------------------------------------


def _broken(world: World, deeds: Deeds) -> Iterator[str]:
    yield from deeds.strange
    for saga in _sagas(world):
        entries = world.entries(saga)
        left = {slot for of, slot in deeds.in_force if of == saga}
        ends = [event for entry in entries for event in entry.events if isinstance(event, SagaEnded)]
        report = ends[-1].undone if ends else None
        named = (
            set[str]()
            if report is None
            else {*(one.slot for one in report.failed), *report.lasting, *report.doubtful}
        )
        # The tries of a poll are one act, which its last try stands for.
        named |= {e.slot for entry in entries for e in entry.events if isinstance(e, UndoPassed) and e.polled}
        acted = _known(entries) | {slot for of, slot in deeds.lost if of == saga}
        for slot in sorted(left & acted - named):
            yield f"{saga} ended {ends[-1].status if ends else 'not'}, and still in force is {slot}"


def _known(entries: list[Entry]) -> set[str]:
    """The slots of steps that by the log have acted in this branch, and are not undone."""
    done: dict[str, int] = {}
    for entry in entries:
        for event in entry.events:
            if isinstance(event, Forked) and not event.undo:
                done = {slot: version for slot, version in done.items() if version <= event.cut}
            elif isinstance(event, StepSucceeded) and event.prior is not None and not event.lasting:
                slot = event.slot
                if not Slot.parse(slot).scope:
                    done[slot] = entry.version
    return set(done)


def _stuck(world: World, expected: str) -> Iterator[str]:
    """A step that kills its workers is called again to find out what it has done: its saga is parked for a person once more."""
    yield from (
        f"{head.ref.id} has not ended: {head.status}"
        for head in world.log.heads()
        if world.end(head.ref.id) is None and not head.status == expected == "parked"
    )
