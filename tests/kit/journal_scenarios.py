"""Scenarios of tools with a journal (`context.once`), what must hold of their units."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from baton import Context, StepFailure, tool
from baton.core.log.events import Entry, Forked, UnitRecorded
from baton.core.money import MICRO
from baton.ports import SagaRef
from baton.tools.define import Registry
from tests.kit.process import RUNS_IN, pause

if TYPE_CHECKING:
    from tests.kit.process import Process
    from tests.kit.toolbox import Books
    from tests.kit.world import World

JOURNAL = "journal"
UNITS = 5
UNIT_COST = 300
"""Micro-dollars that each call of a unit's function spends."""
SHORT = """
name: journalled
nodes:
  left: {tool: packs, with: {of: left}}
  right: {tool: packs, with: {of: right}}
  last: {tool: packs, with: {of: last}, after: [left, right], join: all}
output: ['${ctx.left.output}', '${ctx.right.output}', '${ctx.last.output}']
"""


@dataclass(frozen=True)
class UnitDone:
    """A call of a unit's function, at a time of the loop. `is_late`: past its attempt's time, by its process's clock."""

    saga: str
    node: str
    name: str
    key: str
    at: float
    process: Process | None
    is_late: bool


def add_journals(registry: Registry, books: Books) -> None:
    """Declare a tool of five units. The third fails once in each process, the fifth has a large result."""

    @tool("packs", registry=registry, timeout="30s")
    async def packs(of: str, context: Context) -> list[str]:
        texts = []
        for number in range(UNITS):
            name = f"unit {number}"
            await pause(0.1)
            text = await context.once(name, pack, name, of, context)
            texts.append(f"{text[:20]} {len(text)}")
        return texts

    async def pack(name: str, of: str, context: Context) -> str:
        process = RUNS_IN.get()
        if process is not None:
            process.check()
        now, key = asyncio.get_running_loop().time(), context.key(f"packs/{name}")
        is_late = process is not None and process.clock.now() >= context.deadline_ms
        books.units.append(UnitDone(context.saga, context.node, name, key, now, process, is_late))
        await pause(0.3)
        is_first = sum((one.node, one.name) == (context.node, name) for one in books.units) == 1
        if is_first and name == "unit 2":
            raise StepFailure("service_unavailable", "the line is dead")
        context.spend(Decimal(UNIT_COST) / MICRO)
        books.act(key, [context.node, name])
        return f"{of} {name} " + ("x" * 20_000 if name == "unit 4" else "")


async def journalled(world: World, start: Callable[..., Any], patiently: Callable[..., Any]) -> str:
    """Two steps with journals at once, and one after them."""
    return str(await start(world, SHORT, {}, "journalled"))


def of_journals(world: World, logs: Mapping[str, list[Entry]]) -> Iterator[str]:
    """Yield what is wrong with the units of a world."""
    if not world.books.units:
        return
    done: dict[tuple[str, str], list[UnitDone]] = defaultdict(list)
    for one in world.books.units:
        done[one.saga, one.key].append(one)
    yield from {
        f"{one.name} of {one.node} began when its lease or its time was over"
        for one in world.books.units
        if one.is_late
    }
    if len({(one.saga, one.node, one.name) for one in world.books.units}) != len(done):
        yield "two units have one key"
    for saga, entries in logs.items():
        if any(isinstance(event, Forked) for entry in entries for event in entry.events):
            continue
        yield from _of_log(world, saga, entries, done)
    yield from _order(world, logs)


def _of_log(
    world: World, saga: str, entries: list[Entry], done: Mapping[tuple[str, str], list[UnitDone]]
) -> Iterator[str]:
    recorded: dict[str, str] = {}
    for entry in entries:
        written = _written(world, saga, entry)
        for event in entry.events:
            if not isinstance(event, UnitRecorded):
                continue
            acts = done.get((saga, event.key), [])
            if (before := recorded.get(event.key)) and not _has_landed_late(world, before, entry.invocation):
                yield f"{event.name} of {event.node} was recorded twice"
            recorded[event.key] = entry.invocation
            if event.cost != UNIT_COST:
                yield f"{event.name} of {event.node} has cost {UNIT_COST}, and {event.cost} in the log"
            if not any(act.node == event.node and act.at <= written for act in acts):
                yield f"{event.name} of {event.node} was recorded and not done"
            if any(act.at > written and _is_sure(act) for act in acts):
                yield f"{event.name} of {event.node} was done again, and its result was in the log"


def _has_landed_late(world: World, before: str, after: str) -> bool:
    """Return true if a worker had no answer about its entry: its heir may have done the unit before the entry landed."""
    process = world.processes.get(before)
    return before != after and (process is None or process.unanswered > 0)


def _order(world: World, logs: Mapping[str, list[Entry]]) -> Iterator[str]:
    """In one call of a tool, a unit begins when the one before is in the log."""
    times = {
        (saga, event.key): _written(world, saga, entry)
        for saga, entries in logs.items()
        for entry in reversed(entries)  # a fork to before it does it again
        for event in entry.events
        if isinstance(event, UnitRecorded)
    }
    last: dict[tuple[str, str, int], UnitDone] = {}
    for one in world.books.units:
        place = (one.saga, one.node, id(one.process))
        before = last.get(place)
        is_next = before is not None and before.name < one.name
        if before is not None and is_next and times.get((one.saga, before.key), math.inf) > one.at:
            yield f"{one.name} of {one.node} began before {before.name} was in the log"
        last[place] = one


def _written(world: World, saga: str, entry: Entry) -> float:
    return world.written.get((str(SagaRef("acme", saga)), entry.version), math.inf)


def _is_sure(act: UnitDone) -> bool:
    """Return true if its process could know that it was too late: one that stood still could not."""
    return act.process is None or not act.process.is_frozen
