"""Scenarios with maps: what acts for each item, what fails, results that are put together, and children that are stopped or undone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.kit.world import World

MAPPED = """
name: mapped
input: {type: object}
nodes:
  many: {map: {over: "${input.l}", concurrency: 100}, value: "${item}"}
  acts: {map: {over: [6, 7, 8, 9], concurrency: 3}, tool: work, after: many, with: {n: "${item}"}}
  rents: {map: [corner, square], tool: rent, after: acts, with: {stall: "${item}"}}
  lost:
    map: {over: [1, 2, 3], concurrency: 2, tolerated_failures: 1}
    tool: refuse
    after: rents
    on_failure: fail
    catch: {code: map_failed, then: last}
  last: {tool: work, with: {n: "${last_error.batch.succeeded}"}}
output: {acts: "${ctx.acts.output}", rents: "${ctx.rents.output}", many: "${ctx.many.output[100]}", last: "${ctx.last.output?.n}"}
"""
ITEMS = """
name: items
nodes:
  asks: {map: {over: [1, 2, 3], concurrency: 2, wait_for: 2}, human: {title: "Pay ${item}?"}}
  rests: {map: [1, 2], wait: {for: "${item}s"}}
  last: {tool: work, after: [asks, rests], with: {n: "${ctx.asks.output.failed}"}}
output: "${ctx.last.output.n}"
"""
SHORT = "name: short\nnodes: {a: {tool: work, with: {n: '${input.n}', seconds: 0.2}}}\noutput: '${ctx.a.output.n}'"
KIDS = """
name: kids
nodes:
  all: {map: {over: [1, 2, 3, 4, 5], concurrency: 3}, workflow: short, with: {n: "${item}"}}
output: "${ctx.all.output}"
"""
RACED = """
name: raced
nodes:
  first:
    map: {over: [{n: 0, seconds: 0.2}, {n: 1, seconds: 3}, {n: 2, seconds: 3}, {n: 3, seconds: 3}], concurrency: 3, wait_for: any}
    tool: work
    with: {n: "${item.n}", seconds: "${item.seconds}"}
  then: {tool: work, after: first, with: {n: "${ctx.first.output.not_begun}", seconds: 4}}
  some:
    map: {over: [1, 2, 3], tolerated_failures: "67%"}
    tool: refuse
    on_failure: fail
    catch: {code: map_failed, then: told}
  told: {tool: work, with: {n: "${last_error.batch.failed}"}}
output: ["${ctx.then.output.n}", "${ctx.told.output?.n}"]
"""
LATER = """
name: loans-that-come-late
input: {type: object}
on_failure: [rollback]
nodes:
  all:
    map: {over: "${input.l}", concurrency: 8, wait_for: 3, rest: run}
    workflow: one-loan
    with: {what: "chair ${item}", rest: 3s}
  first: {tool: lend, after: all, with: {what: hall}}
  f: {%s, after: first}
"""
LENDS = "name: one-loan\nnodes:\n  x: {tool: lend, with: {what: '${input.what}'}}\n  w: {wait: {for: '${input.rest}'}, after: x}"
LENT = """
name: many-loans
input: {type: object}
on_failure: [rollback]
nodes:
  first: {tool: lend, with: {what: hall}}
  all: {map: {over: "${input.l}", concurrency: 64}, workflow: one-loan, after: first, with: {what: "chair ${item}", rest: "${input.rest}"}}
  f: {tool: refuses, after: all}
"""


async def mapped(world: World, *, start: Any, patiently: Any) -> str:
    """Everything about items of one saga."""
    return str(await start(world, MAPPED, {"l": [*range(101)]}, "mapped"))


async def kids(world: World, *, start: Any, patiently: Any) -> str:
    """A child for each item, three at a time."""
    await patiently(world, lambda service: service.register(SHORT, json_only=False))
    return str(await start(world, KIDS, {}, "kids"))


async def raced(world: World, *, start: Any, patiently: Any) -> str:
    """The first of the items that succeeds stops the others; of other items a share may fail, and more do."""
    return str(await start(world, RACED, {}, "raced"))


async def loans(world: World, *, start: Any, patiently: Any, count: int = 50, rest: str = "0.1s") -> str:
    """Children that have all done something, which is undone because what follows fails."""
    await patiently(world, lambda service: service.register(LENDS, json_only=False))
    return str(await start(world, LENT, {"l": [*range(count)], "rest": rest}, "many-loans"))


async def later(world: World, *, start: Any, patiently: Any, last: str, count: int = 50) -> str:
    """Children that run on, or begin, when the saga has gone on; or what follows fails meanwhile."""
    await patiently(world, lambda service: service.register(LENDS, json_only=False))
    return str(await start(world, LATER % last, {"l": [*range(count)]}, "loans-that-come-late"))


async def loans_called_off(world: World, *, start: Any, patiently: Any, undo: bool, count: int = 50) -> str:
    """A parent that is cancelled, or undone, while its children run."""
    saga = await loans(world, start=start, patiently=patiently, count=count, rest="1h")
    await asyncio.sleep(40)
    await patiently(world, lambda service: service.cancel(saga, "enough", 0, undo=undo))
    return saga


OF_MAPS: Mapping[str, Any] = {"mapped": mapped, "kids": kids, "raced": raced}
HASTY = frozenset({"mapped", "raced"})
"""Of a map that stops the rest of its items, which of them have ended by then depends on time."""
