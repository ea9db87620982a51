"""Deploys of other code under sagas of functions that stay with the version they began with.

All versions run side by side: each worker has the code of its version, tools and functions alike.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from baton import WorkflowContext, tool, workflow
from baton.core.limits import PINNED, Limits
from baton.core.log import events as ev
from baton.errors import EngineFault
from baton.ports import CodeBuild, SagaRef
from baton.runtime.mending import SETTLED_MS, BuildKeeper
from baton.tools.define import Registry
from baton.tools.functions.define import document_of
from tests.kit.corpus import patiently
from tests.kit.faults import Crash, Plan
from tests.kit.toolbox import Books, make_registry
from tests.kit.virtual_time import run_virtual
from tests.kit.world import TENANT, World

ENDS, STAYS, CALLED, KEPT = "ends", "stays", "called", "kept"
"""The oracles: each saga completes; by the code that it began with; no step is called by other code, or twice with other
results; a version is there for as long as a saga needs it."""
BEFORE, AFTER = 4, 2
LATER_S = SETTLED_MS / 1_000 + 60


@dataclass
class Versioned(World):
    """A world with versions of the code. `calls`: by saga, which version called which tool."""

    calls: list[tuple[str, str, str]] = field(default_factory=list)
    published: dict[str, int] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)
    """Versions that were deleted although open sagas stay with them."""

    def deploy(self, version: str, operations: Sequence[str]) -> None:
        """Publish code whose function asks for other operations."""
        registry = make_registry(self.books)
        _declare(self, registry, version, operations)
        self.versions[version] = self.registry = registry
        self.tools = registry.specs()
        self.limits = replace(self.limits, build=version)
        self.published[version] = self.process("clock").clock.now()

    def listed(self) -> tuple[Sequence[CodeBuild], int]:
        newest = next(reversed(self.versions))
        builds = [CodeBuild(build=one, version=one, is_current=one == newest) for one in self.versions]
        return builds, self.published[newest]

    def delete(self, build: CodeBuild) -> None:
        version = build.build
        if self.versions.pop(version, None) is not None:
            self.missed += [version for head in self.log.heads() if self._stays(head.ref.id, version)]

    def _stays(self, saga: str, version: str) -> bool:
        events = self.events(saga)
        began = any(isinstance(one, ev.FunctionBegan) and one.build == version for one in events)
        return began and not any(isinstance(one, ev.SagaEnded | ev.Parked) for one in events)

    async def delete_drained(self) -> None:
        """Delete drained builds, as `baton versions --delete` does."""
        process = self.process("operator")
        keeper = BuildKeeper(self.log, self, process.clock, process.offload)
        with suppress(Crash, EngineFault):
            await keeper.delete_drained()


def _declare(world: Versioned, registry: Registry, version: str, operations: Sequence[str]) -> None:
    @tool("note", registry=registry)
    async def note(saga: str, name: str) -> str:
        world.calls.append((saga, name, version))
        return version

    @workflow("noted", registry=registry)
    async def noted(saga: str, wait: int, context: WorkflowContext) -> list[str]:
        """Steps and waits, under names that other versions do not have."""
        heard = [await context.step(note, saga, name, name=name) for name in operations]
        await context.sleep(wait)
        heard.append(await context.step(note, saga, "late", name=f"late_{version}"))
        heard += await asyncio.gather(*(context.step(note, saga, name) for name in operations))
        return heard


def sagas_over_a_deploy(
    deletes_at_s: Sequence[float] = (), deploys_after_s: float = 120, **faults: Any
) -> tuple[list[str], Versioned]:
    """What is broken when code is deployed under sagas, and drained versions are deleted at these times after that."""
    found: list[Versioned] = []

    async def main() -> list[str]:
        world = Versioned(make_registry(Books()), plan=Plan(**faults), is_warm=True)
        found.append(world)
        world.limits = replace(Limits(), function_code=PINNED)
        world.deploy("1", ["first", "second"])
        world.switch_on()
        began = {await _start(world, number, 240 + 600 * number): "1" for number in range(BEFORE)}
        await asyncio.sleep(deploys_after_s)
        world.deploy("2", ["other"])
        began |= {await _start(world, number, 900): "2" for number in range(BEFORE, BEFORE + AFTER)}
        deployed_at = asyncio.get_running_loop().time()
        for at in deletes_at_s:
            await asyncio.sleep(deployed_at + at - asyncio.get_running_loop().time())
            await world.delete_drained()
        await world.settle()
        return list(_broken(world, began))

    broken = run_virtual(main())
    return broken, found[0]


async def _start(world: Versioned, number: int, wait: int) -> str:
    document = json.dumps(document_of(world.registry["noted"]))
    await patiently(world, lambda service: service.register(document, json_only=False))
    given = {"saga": f"s{number}", "wait": wait}
    view, _ = await patiently(world, lambda service: service.start("noted", given, f"key-{number}"))
    saga = str(view["id"])
    while not any(isinstance(event, ev.FunctionBegan) for event in world.events(saga)):
        await asyncio.sleep(1)
    return saga


def _broken(world: Versioned, began: dict[str, str]) -> Iterator[str]:
    for number, (saga, version) in enumerate(began.items()):
        head, end = world.log.read_head(SagaRef(TENANT, saga)), world.end(saga)
        assert head is not None
        if end is None or end.status != "completed":
            parked = [event.code for event in world.events(saga) if isinstance(event, ev.Parked)]
            yield f"{ENDS}: {saga} of version {version} is {head.status}, {parked}"
            continue
        if set(end.output.v) != {version}:
            yield f"{STAYS}: {saga} began with version {version} and has {end.output.v}"
        by = {one for named, _, one in world.calls if named == f"s{number}"}
        if by != {version}:
            yield f"{CALLED}: {saga} of version {version} was called by {sorted(by)}"
    yield from (
        f"{KEPT}: version {version} was deleted, and a saga stays with it" for version in world.missed
    )
    for error in world.endings:
        yield f"{ENDS}: {error!r}"
    for _, reason in world.dead_letters.letters:
        yield f"{ENDS}: a dead letter, {reason}"
