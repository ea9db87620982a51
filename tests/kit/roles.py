"""The engine's roles as a simulated deployment runs them: its own code, with what an onlooker has to remember.

A worker whose process can stand still, an API that knows what it has acknowledged, tools whose deeds are timed, direct
invocation. Which of them runs when is in world.py.
"""

from __future__ import annotations

import asyncio
import math
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from baton.core.effects.toolspec import ONCE
from baton.core.log.folding.received import CALLBACK, CallbackReport
from baton.core.log.questions import Answer, answer_key
from baton.core.money import Assumed
from baton.errors import CodeGone, NotAllowedNow, NotFound, Throttled
from baton.ports import Message, SagaRef, StepContext
from baton.runtime.invocation.context import Invocation
from baton.runtime.requests.service import ANSWERED, Service
from baton.runtime.worker.worker import Worker
from baton.tools.define import Registry
from baton.tools.perform import ToolPerformer
from tests.kit.faults import OF_WORKERS
from tests.kit.process import FOREVER, REFUSES, RUNS_IN, Process
from tests.kit.virtual_time import VirtualClock

if TYPE_CHECKING:
    from baton.runtime.requests.patching import Patch, PatchedSaga
    from tests.kit.world import World


DEED: ContextVar[Deed | None] = ContextVar("DEED", default=None)
"""The call in which a tool runs, for what it does."""


class _Spent(list[Decimal]):
    """All that a call has spent, also when the log has it: the engine's own list has what the log has not."""

    def __init__(self, of_engine: list[Decimal]) -> None:
        super().__init__(of_engine)
        self._of_engine = of_engine

    def append(self, amount: Decimal, /) -> None:
        if not isinstance(amount, Assumed):  # what is no longer held was not spent
            super().append(amount)
        self._of_engine.append(amount)


class ToolsOf:
    """The real performer; what a dead process still computes never reaches the outside."""

    def __init__(self, process: Process, registry: Registry) -> None:
        self._process, self._inner = process, ToolPerformer(registry, watch=process.world.watch)

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        world = self._process.world
        asked_at = asyncio.get_running_loop().time()
        # When it was asked for: what freezes between the look at a lease and the call cannot know that it did.
        world.starts.append((asked_at, self._process.id, context.saga))
        await self._process.thawed()
        RUNS_IN.set(self._process)
        world.running[context.saga, context.node] = self._process
        told = _Spent(context.spent)
        context = msgspec.structs.replace(context, spent=told)
        self._process.spends.append(told)
        world.spends.append((context.saga, told))
        if world.plan.next("perform", True) in OF_WORKERS:
            world.faults.append(f"{self._process.id}: stands still inside {tool}")
            self._process.freeze()
        spec = world.tools.get(tool)
        place = (str(SagaRef(context.tenant, context.saga)), context.node)
        looked_at = self._process.called_at.get(place, asked_at)
        self._process.called_at[place] = asked_at
        now = asyncio.get_running_loop().time()
        deed = Deed(tool, context.idempotency_key, self._process, place[0], now, asked_at, looked_at)
        DEED.set(deed)
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
    """A call of a tool that may act only once, in seconds of the loop.

    `asked_at`: when the engine looked at its lease for the last time; `looked_at`: when it began to ask whether it had
    happened before. `acts` is what it did, and when.
    """

    tool: str
    key: str
    process: Process
    saga: str
    began_at: float
    asked_at: float
    looked_at: float
    ended_at: float = math.inf
    acts: list[Act] = field(default_factory=list)

    @property
    def is_over_at(self) -> float:
        """A process that is killed does nothing more."""
        died_at = self.process.ended_at
        return self.ended_at if died_at is None else min(self.ended_at, died_at)


@dataclass(frozen=True)
class Act:
    """What a service did for a call. `is_late`: the lease of the call was over, which nothing could have told it.

    Its process stood still between its last look at the lease and this, until that was over. A service that was told
    until when it may act has been told.
    """

    what: str
    at: float
    is_late: bool
    looked_at: float


def note(what: str, *, is_told_until_when: bool = False) -> None:
    """A service that honours no keys has done what the running call asks for."""
    if (deed := DEED.get()) is None:
        return
    process, now = deed.process, asyncio.get_running_loop().time()
    stood_still = any(begin <= now and end > deed.asked_at for begin, end in process.still)
    is_over = process.clock.now() >= process.leases.get(deed.saga, FOREVER)
    is_late = stood_still and is_over and not is_told_until_when
    deed.acts.append(Act(what, now, is_late, deed.looked_at))


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

    async def start(self, workflow: str, given: Any, key: str, **more: Any) -> tuple[dict[str, Any], bool]:
        view, is_new = await super().start(workflow, given, key, **more)
        self.world.acknowledged.append(Acknowledged("start", view["id"]))
        return view, is_new

    async def cancel(self, saga: str, reason: str, grace_ms: int, *, undo: bool = False) -> dict[str, Any]:
        view = await super().cancel(saga, reason, grace_ms, undo=undo)
        self.world.acknowledged.append(Acknowledged("cancel", saga))
        return view

    async def signal(self, saga: str, name: str, payload: Any, key: str, *more: Any) -> dict[str, Any]:
        view = await super().signal(saga, name, payload, key, *more)
        self.world.acknowledged.append(Acknowledged("signal", saga, name, key, payload))
        if view["outcome"] == ANSWERED:
            self.world.acknowledged.append(Acknowledged("reply", saga, name, key, view["answer"]))
        return view

    async def answer(self, saga: str, answer: Answer, key: str, check: Any = None) -> dict[str, Any]:
        view = await super().answer(saga, answer, key, check)
        said = Acknowledged("answer", saga, key=answer_key(answer.ask, key), payload=answer.payload())
        self.world.acknowledged.append(said)
        return view

    async def patch(self, saga: str, wanted: Patch, key: str = "") -> PatchedSaga:
        view = await super().patch(saga, wanted, key)
        self.world.acknowledged.append(Acknowledged("patch", saga, key=key))
        return view

    async def callback(self, token: str, said: CallbackReport) -> dict[str, Any]:
        began = VirtualClock().now()
        view = await super().callback(token, said)
        about = msgspec.json.decode(urlsafe_b64decode(token.partition(".")[0] + "=="))
        accepted = Acknowledged("callback", about["s"], CALLBACK, about["c"], said, began)
        self.world.acknowledged.append(accepted)
        return view


@dataclass(frozen=True)
class Acknowledged:
    """What a caller was told has been accepted; `at`: when the caller said so, in epoch ms."""

    what: str
    saga: str
    name: str = ""
    key: str = ""
    payload: Any = None
    at: int = 0


class DirectInvoker:
    """Lambda's asynchronous invoke."""

    def __init__(self, world: World) -> None:
        self._world = world

    def invoke(self, messages: Sequence[Message]) -> None:
        if self._world.outage_of("lambda") == REFUSES:
            raise Throttled("not now")
        self._world.spawn(self._world.work(list(messages)))


class InvokedBuilds:
    """Lambda's synchronous invoke of a version, for the process that waits."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def run(self, version: str, messages: Sequence[Message], until: int) -> Sequence[int]:
        world = self._process.world
        await self._process.thawed()
        if world.outage_of("lambda") == REFUSES:
            raise Throttled("not now")
        if version not in world.versions:
            raise CodeGone(f"build {version} is not there")
        invocation = asyncio.ensure_future(world.work(messages, version=version, until=until))
        world.spawn(invocation)
        again = await asyncio.shield(invocation)
        self._process.check()
        return [place for place, message in enumerate(messages) if message in again]


async def ask_unless_done(asked: Awaitable[Any]) -> None:
    """A repeated request whose first answer was lost is told that it cannot be done any more, or is of a question that was stopped."""
    with suppress(NotAllowedNow, NotFound):
        await asked
