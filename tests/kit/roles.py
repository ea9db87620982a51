"""The engine's roles as a simulated deployment runs them: its own code, with what an onlooker has to remember.

Belongs here: a worker whose process can stand still, an API that knows what it has acknowledged, tools whose deeds are
timed, direct invocation. Does not belong here: who runs when (world.py).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from baton.core.effects.toolspec import ONCE
from baton.core.log.answers import Answer, answer_key
from baton.errors import Throttled
from baton.ports import Message, StepContext
from baton.runtime.context import Invocation
from baton.runtime.service import Service
from baton.runtime.worker.worker import Worker
from baton.tools.define import Registry
from baton.tools.perform import ToolPerformer
from tests.kit.faults import OF_WORKERS
from tests.kit.process import REFUSES, RUNS_IN, Process

if TYPE_CHECKING:
    from tests.kit.world import World


class ToolsOf:
    """The real performer; what a dead process still computes never reaches the outside."""

    def __init__(self, process: Process, registry: Registry) -> None:
        self._process, self._inner = process, ToolPerformer(registry, watch=process.world.watch)

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        world = self._process.world
        # When it was asked for: what freezes between the look at a lease and the call cannot know that it did.
        world.starts.append((asyncio.get_running_loop().time(), self._process.id, context.saga))
        await self._process.thawed()
        RUNS_IN.set(self._process)
        world.running[context.saga, context.node] = self._process
        self._process.spends.append(context.spent)
        if world.plan.next("perform", True) in OF_WORKERS:
            world.faults.append(f"{self._process.id}: stands still inside {tool}")
            self._process.freeze()
        spec = world.tools.get(tool)
        deed = Deed(tool, context.idempotency_key, self._process, asyncio.get_running_loop().time())
        if spec is not None and spec.effect == ONCE:
            world.deeds.append(deed)
        try:
            if world.troubles is None:
                result = await self._inner.perform(tool, arguments, context)
            else:
                call = (tool, arguments, context)
                result = await world.troubles.perform(world, self._process, self._inner.perform, call)
        finally:
            deed.ended_at = asyncio.get_running_loop().time()
            self._process.check()  # it may have died in the tool, which then says nothing
        return result


@dataclass
class Deed:
    """A call of a tool that may act only once: from when to when, in seconds of the loop."""

    tool: str
    key: str
    process: Process
    began_at: float
    ended_at: float = math.inf

    @property
    def is_over_at(self) -> float:
        """A process that is killed does nothing more."""
        died_at = self.process.ended_at
        return self.ended_at if died_at is None else min(self.ended_at, died_at)


class FreezableWorker(Worker):
    """The real worker; while its process is frozen, its own timers stand still too."""

    process: Process

    async def _until_the_end(self, tasks: list[asyncio.Task[Any]], invocation: Invocation) -> None:
        left = invocation.deadline - self.process.clock.now()
        await asyncio.wait(tasks, timeout=left / 1_000 - 0.1)
        if self.process.is_frozen:
            await asyncio.wait(tasks)
        else:
            await self.process.thawed()  # a tool may keep the whole process busy
            await super()._until_the_end(tasks, invocation)


class RememberingService(Service):
    """The real service; what it has acknowledged is remembered."""

    world: World

    async def start(self, workflow: str, given: Any, key: str) -> tuple[dict[str, Any], bool]:
        view, is_new = await super().start(workflow, given, key)
        self.world.acknowledged.append(Acknowledged("start", view["id"]))
        return view, is_new

    async def cancel(self, saga: str, reason: str, grace_ms: int) -> dict[str, Any]:
        view = await super().cancel(saga, reason, grace_ms)
        self.world.acknowledged.append(Acknowledged("cancel", saga))
        return view

    async def signal(self, saga: str, name: str, payload: Any, key: str) -> dict[str, Any]:
        view = await super().signal(saga, name, payload, key)
        self.world.acknowledged.append(Acknowledged("signal", saga, name, key, payload))
        return view

    async def answer(self, saga: str, answer: Answer, key: str) -> dict[str, Any]:
        view = await super().answer(saga, answer, key)
        self.world.acknowledged.append(Acknowledged("answer", saga, key=answer_key(answer.ask, key)))
        return view


@dataclass(frozen=True)
class Acknowledged:
    """What a caller was told has been accepted."""

    what: str
    saga: str
    name: str = ""
    key: str = ""
    payload: Any = None


class DirectInvoker:
    """Lambda's asynchronous invoke."""

    def __init__(self, world: World) -> None:
        self._world = world

    def invoke(self, messages: Sequence[Message]) -> None:
        if self._world.outage_of("lambda") == REFUSES:
            raise Throttled("not now")
        self._world.spawn(self._world.work(list(messages)))
