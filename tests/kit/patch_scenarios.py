"""Sagas whose graph changes on the way, and forks that change something, while workers, signals and each other race with them.

Their callers are patient: what had no answer is asked for again with the same key; what was made for another graph, anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from baton.core.graph.graph import decode_graph
from baton.core.log import events as ev
from baton.core.log.codec import SCHEME
from baton.core.log.folding.forks import fork_in
from baton.core.log.slots import Slot
from baton.core.nodes.registry import KINDS
from baton.errors import NotAllowedNow, Outdated, UserError
from baton.runtime.requests.migrating import Migration
from baton.runtime.requests.patching import Patch
from baton.runtime.requests.service import Service
from baton.runtime.requests.steering import Part, SagaFilter
from tests.kit.roles import ask_unless_done
from tests.kit.shared_budget import resume_parked
from tests.kit.virtual_time import run_virtual

if TYPE_CHECKING:
    from tests.kit.world import World

PATCHES = "patches"
TRIES = 200
PATCHED = """
name: patched
nodes:
  a: {tool: work, with: {n: 1, seconds: 1.1}}
  round: {tool: work, after: a, with: {n: '${loop.iteration}', seconds: 0.3}, loop: {while: 'loop.iteration < 2', max_iterations: 5}}
  hear: {wait: {signal: word}}
  count: {value: '${loop.iteration}', after: hear, loop: {while: 'output < 2', back_to: hear, max_iterations: 9}}
  go: {wait: {signal: go}}
  b: {tool: work, after: [round, go, count], with: {n: 0}}
  busy: {tool: work, after: go, with: {n: 70, seconds: 3}}
  end: {wait: {signal: end}}
output: '${ctx.b.output.n}'
"""
RIVALS: Mapping[str, list[dict[str, Any]]] = {
    "x": [
        {"op": "add", "path": "/nodes/x", "value": {"tool": "work", "after": ["go"], "with": {"n": 40}}},
        {"op": "add", "path": "/nodes/b/after/-", "value": "x"},
    ],
    "y": [
        {"op": "add", "path": "/nodes/y", "value": {"tool": "work", "after": ["go"], "with": {"n": 50}}},
        {"op": "add", "path": "/nodes/b/after/-", "value": "y"},
        {"op": "replace", "path": "/nodes/b/with/n", "value": 7},
    ],
}
"""Two patches of the same graph, each of which can follow the other."""
PAUSED = """
name: patched-paused
nodes:
  go: {wait: {signal: go}}
  b: {tool: work, after: go, with: {n: 0}}
output: '${ctx.b.output.n}'
"""
UNDONE = """
name: patched-undone
on_failure: [rollback]
nodes:
  a: {tool: lend, with: {what: hall}}
  b: {tool: lend, with: {what: one}, after: a}
  go: {wait: {signal: go}, after: b}
  c: {tool: refuses, after: go}
"""
LESS = [
    {"op": "remove", "path": "/nodes/a"},
    {
        "op": "replace",
        "path": "/nodes/b",
        "value": {"tool": "lend", "with": {"what": "one"}, "compensate": "none"},
    },
    {"op": "add", "path": "/nodes/d", "value": {"tool": "lend", "with": {"what": "tent"}, "after": ["go"]}},
    {"op": "replace", "path": "/nodes/c/after", "value": ["d"]},
]
"""A done step is no longer there, and another has no inverse any more: both ran when they had one."""


async def patch(world: World, saga: str, operations: Any, key: str, patiently: Any) -> None:
    """Patch the graph that the saga has, and the one that it has then."""
    for _ in range(TRIES):
        view = await patiently(world, partial(_shown, saga=saga))
        wanted = Patch(operations=operations, made_for=view["version"])
        try:
            await patiently(world, partial(Service.patch, saga=saga, wanted=wanted, key=key))
        except Outdated:
            continue
        except NotAllowedNow:  # a worker may still run, or it has ended
            if world.end(saga) is not None:
                return
            await asyncio.sleep(3)
            continue
        return
    raise AssertionError("the patch was never taken")


async def _shown(service: Service, saga: str) -> Any:
    return await service.world.queries().show(saga)  # type: ignore[attr-defined]


async def patched(world: World, *, start: Any, patiently: Any) -> str:
    """Two callers patch one graph, and one undoes what it has done, while words are heard and a loop goes round."""
    saga = str(await start(world, PATCHED, {}, "patched"))

    async def speak() -> None:
        for number in range(5):
            with suppress(NotAllowedNow):
                await patiently(world, lambda service, n=number: service.signal(saga, "word", n, f"w{n}"))
            await asyncio.sleep(0.41)

    async def change(name: str, after_s: float) -> None:
        await asyncio.sleep(after_s)
        await patch(world, saga, RIVALS[name], f"patch-{name}", patiently)

    await asyncio.gather(speak(), change("x", 0.3), change("y", 0.3))
    extra = [{"op": "add", "path": "/nodes/z", "value": {"tool": "work", "after": ["go"], "with": {"n": 60}}}]
    await patch(world, saga, extra, "patch-z", patiently)
    await patch(world, saga, None, "no-z", patiently)
    await patiently(world, lambda service: ask_unless_done(service.signal(saga, "go", None, "g")))
    await asyncio.sleep(1)
    last = [
        {"op": "add", "path": "/nodes/last", "value": {"tool": "work", "after": ["end"], "with": {"n": 90}}}
    ]
    await patch(world, saga, last, "patch-last", patiently)
    await patiently(world, lambda service: ask_unless_done(service.signal(saga, "end", None, "e")))
    return saga


async def patched_paused(world: World, *, start: Any, patiently: Any) -> str:
    """A step that may run has other arguments when its saga is held back."""
    saga = str(await start(world, PAUSED, {}, "patched-paused"))
    await patiently(world, lambda service: ask_unless_done(service.pause(saga, "a patch")))
    await patiently(world, lambda service: ask_unless_done(service.signal(saga, "go", None, "g")))
    await patch(world, saga, [{"op": "replace", "path": "/nodes/b/with/n", "value": 7}], "patch-b", patiently)
    await patiently(world, lambda service: ask_unless_done(service.resume(saga)))
    return saga


async def patched_undone(world: World, *, start: Any, patiently: Any) -> str:
    """The steps of one graph, and of the next, are undone as each graph declares it."""
    saga = str(await start(world, UNDONE, {}, "patched-undone"))
    while not any(isinstance(event, ev.WaitOpened) for event in world.events(saga)):
        await asyncio.sleep(5)
        await resume_parked(world, patiently)
    await patch(world, saga, LESS, "patch-less", patiently)
    await patiently(world, lambda service: ask_unless_done(service.signal(saga, "go", None, "g")))
    return saga


MOVED = """
name: moved
nodes:
  a: {tool: work, with: {n: 1}}
  go: {wait: {signal: go}, after: a}
  b: {tool: work, after: go, with: {n: 0}}
output: '${ctx.b.output.n}'
"""
MOVED_TO = MOVED.replace(
    "b: {tool: work, after: go, with: {n: 0}", "end: {tool: work, after: go, with: {n: '${ctx.a.output.n}'}"
)
MOVED_TO = MOVED_TO.replace("ctx.b.", "ctx.end.")


async def migrated(world: World, *, start: Any, patiently: Any) -> str:
    """Two operators migrate a saga to a version with another name for a node, which reads what the saga has dropped."""
    saga = str(await start(world, MOVED, {}, "moved"))
    await patiently(world, lambda service: service.register(MOVED_TO, json_only=False))
    wanted = SagaFilter(workflow="moved"), Migration(to="2", names={"b": "end"}), Part()

    async def move() -> None:
        while not any(isinstance(event, ev.GraphChanged) for event in world.events(saga)):
            await patiently(world, lambda service: service.many.migrate(*wanted))
            await asyncio.sleep(1)

    await asyncio.gather(move(), move())
    await patiently(world, lambda service: ask_unless_done(service.signal(saga, "go", None, "g")))
    return saga


ACTED = (3, 2)
"""Two steps, of which one acts with other arguments as well; and one that acts once more."""
CHANGED = """
name: forked-changed
nodes:
  a: {tool: work, with: {n: '${input.n}'}}
  b: {tool: work, after: a, with: {n: '${ctx.a.output.n}'}}
  c: {tool: lend, after: b, with: {what: hall}}
output: '${ctx.b.output.n}'
"""


async def forked_changed(world: World, *, start: Any, patiently: Any) -> str:
    """Two clients ask for one fork with another output, and then for one in which a step acts again."""
    saga = str(await start(world, CHANGED, {"n": 0}, "forked-changed"))
    forks: tuple[dict[str, Any], ...] = (
        {"before": "b", "outputs": {"a": {"n": 10}}, "leave": True},
        {"before": "c", "repeat": ("c",)},
    )
    for number, wanted in enumerate(({}, *forks)):
        fork = partial(Service.fork_with, saga=saga, key=f"fork-{number}", **wanted)
        if wanted:
            await asyncio.gather(patiently(world, fork), patiently(world, fork))
        while world.end(saga) is None:
            await asyncio.sleep(20)
            await resume_parked(world, patiently)
    count = len(world.books.done), len(world.books.loans.ever)
    if count != ACTED and world.troubles is None:
        world.endings.append(AssertionError(f"steps have acted {count} times, and not {ACTED} times"))
    return saga


COPIED = """
name: forked-new
nodes:
  a: {tool: measure, with: {text: a, seconds: 0.7}}
  b: {tool: measure, after: a, with: {text: bb, seconds: 0.7}}
  rest: {wait: {for: 1s}, after: b}
  c: {tool: measure, after: rest, with: {text: ccc, seconds: 0.7}}
  d: {tool: measure, after: c, with: {text: dddd, seconds: 0.7}}
output: ['${ctx.a.output.n}', '${ctx.b.output.n}', '${ctx.c.output.n}', '${ctx.d.output.n}']
"""


async def forked_new(world: World, *, start: Any, patiently: Any) -> str:
    """Two clients ask for one new saga while the saga goes on; that goes on from its last stable version."""
    saga = str(await start(world, COPIED, {}, "forked-new"))
    found: list[str] = []

    async def fork(after_s: float) -> None:
        await asyncio.sleep(after_s)
        wanted: dict[str, Any] = {"new": True, "stable": True}
        while True:
            try:
                view = await patiently(world, lambda service: service.fork_with(saga, "fork-1", **wanted))
            except UserError:  # no step has ended yet, or none ever will
                if world.end(saga) is not None:
                    return
                await asyncio.sleep(1)
                continue
            found.append(view["id"])
            return

    await asyncio.gather(fork(1.45), fork(1.46))
    if len({*found}) > 1:
        world.endings.append(AssertionError(f"one key has made {found}"))
    return found[0] if found else saga


def new_saga_race(at_s: float, gap_s: float) -> str:
    """What is wrong when two clients ask for one new saga at these moments; empty: nothing."""
    from tests.kit.corpus import patiently, start
    from tests.kit.world import World

    async def main() -> str:
        world = World.start()
        saga = await start(world, COPIED, {}, "forked-new")

        async def fork(after_s: float) -> str:
            await asyncio.sleep(after_s)
            wanted: dict[str, Any] = {"new": True, "stable": True}
            view = await patiently(world, lambda service: service.fork_with(saga, "fork-1", **wanted))
            return str(view["id"])

        try:
            first, second = await asyncio.gather(fork(at_s), fork(at_s + gap_s))
        except UserError as error:
            return str(error)
        await world.settle()
        end = world.end(first)
        return "" if first == second and end and end.output.v == [1, 2, 3, 4] else f"{first}, {second}: {end}"

    return run_virtual(main())


OF_PATCHES: Mapping[str, tuple[Any, str]] = {
    "patched": (patched, "completed"),
    "patched-paused": (patched_paused, "completed"),
    "patched-undone": (patched_undone, "rolled_back"),
    "migrated": (migrated, "completed"),
    "forked-changed": (forked_changed, "completed"),
    "forked-new": (forked_new, "completed"),
}


# ---- what must hold ------------------------------------------------------------------------------------------------


def of_patches(world: World, logs: Mapping[str, list[ev.Entry]]) -> Iterator[str]:
    """A saga runs the newest graph of its history, and a change of it is there once."""
    for saga, entries in logs.items():
        if any(isinstance(event, ev.GraphChanged) for entry in entries for event in entry.events):
            yield from (f"{saga}: {text}" for text in _of_graphs(world, entries))


def _of_graphs(world: World, entries: list[ev.Entry]) -> Iterator[str]:
    at: dict[int, tuple[str, tuple[str, ...]]] = {0: ("", ())}
    for entry in entries:
        fork = fork_in(entry)
        graph, known = at[fork.cut if fork else entry.version - 1]
        for event in entry.events:
            if isinstance(event, ev.SagaStarted | ev.GraphChanged):
                graph = event.graph
            if isinstance(event, ev.GraphChanged) and event.key:
                if event.key in known:
                    yield f"its graph was changed twice with the key {event.key}"
                known = (*known, event.key)
            if not isinstance(event, ev.Settles) or Slot.parse(event.slot).scope:
                continue
            if event.node not in _nodes(world, graph):
                yield f"{event.node} has ended at version {entry.version}, and its graph has no such node"
        at[entry.version] = (graph, known)


def _nodes(world: World, graph: str) -> set[str]:
    return {node.name for node in decode_graph(world.blobs.get("acme", SCHEME + graph), KINDS).nodes}
