"""Runs a scenario under a plan of faults and says what came of it, and which promises it broke."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeGuard

from baton.core.events import Event, Forked, SagaEnded, StepFailed, StepSucceeded
from baton.core.state import slot_of
from baton.errors import NotAllowedNow
from tests.kit.corpus import Books, Scenario, make_registry
from tests.kit.faults import FREEZE, Plan
from tests.kit.virtual import run_virtual
from tests.kit.world import World


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
        while scenario.expected != "parked" and (
            parked := [head for head in world.log.heads() if head.status == "parked"]
        ):
            for head in parked:  # three deaths in a row: that is what a person is for
                with suppress(NotAllowedNow):
                    await world.service_without_faults().resume(head.ref.id)
            await asyncio.sleep(400)  # longer than the sweep
            await world.settle()
        view = await world.queries_without_faults().show(saga)
        return Verdict(
            status=view["status"],
            output=view["result"],
            done=_done(world, saga) if scenario.same_steps else (),
            writes=tuple(plan.writes),
            broken=tuple(broken_promises(world, saga, books)),
            faults=tuple(world.faults),
            kinds=frozenset(_kinds(world)),
        )

    return run_virtual(main())


def _done(world: World, saga: str) -> tuple[str, ...]:
    """The steps of the current history, by name; how often is checked elsewhere."""
    return tuple(sorted({slot for slot, _ in _settled(world, saga)}))


def _kinds(world: World) -> set[str]:
    """The kinds of event in all logs."""
    return {
        str(event.__struct_config__.tag) for head in world.log.heads() for event in world.events(head.ref.id)
    }


def _settled(world: World, saga: str) -> list[tuple[str, int]]:
    return [
        (slot_of(event.node, event.iteration), entry.branch)
        for entry in world.entries(saga)
        for event in entry.events
        if isinstance(event, StepSucceeded | StepFailed)
    ]


def broken_promises(world: World, saga: str, books: Books) -> list[str]:
    """What must hold whatever became of a saga, and does not, in sentences."""
    broken = []
    entries = world.entries(saga)
    if [entry.version for entry in entries] != list(range(1, len(entries) + 1)):
        broken.append("the versions of the log are not 1, 2, 3 ...")
    if not all(entry.traceparent for entry in entries):
        broken.append("an entry belongs to no trace")
    twice = [slot for slot, count in Counter(_settled(world, saga)).items() if count > 1]
    if twice:
        broken.append(f"settled twice in one branch: {twice}")
    ended = False
    for entry in entries:
        if ended and not isinstance(entry.events[-1], Forked):
            broken.append(f"version {entry.version} follows the end of its branch")
        ended = any(isinstance(event, SagaEnded) for event in entry.events)
    epochs = [entry.epoch for entry in entries if entry.epoch]
    if epochs != sorted(epochs):
        broken.append("an older lease appended behind a newer one")
    broken += _stale_starts(world, saga)
    seated = {slot for slot, _ in _settled(world, saga) if world.tool_of(saga, slot) == "seat"}
    written = {str(attributes["seated_by"]) for attributes in world.log.rows.values()}
    if seated != written:
        broken.append(f"rows were written by {sorted(written)}, but the log says {sorted(seated)}")
    broken += _unfinished(world)
    broken += _deeds(world, saga, books)
    settled_actions = {tuple(value) for value in map(tuple, (map(str, what) for what in books.done.values()))}
    if len(settled_actions) < len(books.done):
        broken.append("one action was carried out under two idempotency keys")
    return broken


def _deeds(world: World, saga: str, books: Books) -> list[str]:
    """What services did that honour no key, against what may have happened once, and what the log says."""
    broken = []
    for deed, count in Counter(books.happened).items():
        if count > 1:
            broken.append(f"an effect that may happen once has happened {count} times: {deed}")
    for event in world.events(saga):
        receipt = event.output.v.get("receipt") if _has_receipt(event) else None
        if receipt is not None and receipt not in books.happened:
            broken.append(f"the log says that it has happened, and it has not: {receipt}")
    return broken


def _has_receipt(event: Event) -> TypeGuard[StepSucceeded]:
    return isinstance(event, StepSucceeded) and isinstance(event.output.v, dict)


def _unfinished(world: World) -> list[str]:
    """Heads that are not as a finished or parked saga leaves them."""
    broken = []
    for head in world.log.heads():
        if head.owner:
            broken.append(f"{head.ref} is still held")
        if head.due_at is not None and head.status != "parked":
            broken.append(f"{head.ref} never came to its end: {head.status}")
        if head.start:
            broken.append(f"{head.ref} still carries its start")
    return broken


def _stale_starts(world: World, saga: str) -> list[str]:
    """Steps that an invocation started although a newer one had already written that it took over."""
    entries = world.entries(saga)
    # Who has stood still may date what it writes so much too early.
    late = {
        process: round(world.stall_s * 1_000) * count
        for process, count in Counter(
            fault.partition(":")[0] for fault in world.faults if f": {FREEZE} " in fault
        ).items()
    }
    return [
        f"{process} started a step under an old lease"
        for at, process, of in world.starts
        if of == saga
        and any(
            entry.epoch > world.epoch_of(process, saga) and entry.at + late.get(entry.invocation, 0) < at
            for entry in entries
        )
    ]
