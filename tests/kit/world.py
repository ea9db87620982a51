"""A whole deployment in memory and virtual time: workers that die, a stream, a queue and a reconciler.

It runs the engine's own code for every role. What it simulates is only what AWS does: processes that are
killed at their deadline or by a fault, records and messages that are lost, repeated or late.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, ParamSpec, TypeVar

import msgspec

from baton.adapters.memory import MemoryBlobs, MemoryDeadLetters, MemoryDefinitions, MemoryLog
from baton.adapters.memory_budgets import MemoryBudgets
from baton.adapters.memory_effects import MemoryEffects
from baton.adapters.memory_notices import MemoryNotices
from baton.adapters.monty_sandbox import MontySandbox
from baton.core.events import Entry, Event, SagaEnded, StepSucceeded, decode_entry
from baton.core.limits import Limits
from baton.core.purse import Terms
from baton.core.toolspec import ToolSpec
from baton.errors import EngineFault, StoreUnavailable, Throttled
from baton.ports import Head, Message, SagaRef, StepContext, Wake
from baton.runtime.catalog import Catalog
from baton.runtime.funds import Funds
from baton.runtime.lease import Invocation
from baton.runtime.metrics import Metrics
from baton.runtime.pace import Pace
from baton.runtime.parts import Engine
from baton.runtime.patience import inline
from baton.runtime.queries import Queries
from baton.runtime.reconcile import Reconciler
from baton.runtime.relay import Relay, StreamItem
from baton.runtime.request import Caller
from baton.runtime.service import Service
from baton.runtime.worker import Delivery, Worker
from baton.tools.define import Registry
from baton.tools.perform import ToolPerformer
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, FINE, FREEZE, NO_ANSWER, STALL, THROTTLE, Crash, Plan
from tests.kit.virtual import SeededEntropy, VirtualClock, stand_still
from tests.kit.wakes import WakeQueue

P = ParamSpec("P")
T = TypeVar("T")

SHARDS = 2
RUNAWAY = 3_000  # writes; a hundred times what any scenario needs
LATENCY_S = 0.002
TENANT, USER = "acme", "ann"


class Process:
    """One process of one function. When it dies, no call of its gets through any more."""

    def __init__(self, world: World, role: str, id: str) -> None:
        self.world, self.role, self.id = world, role, id
        self.clock = VirtualClock()
        self.is_dead = False
        self.is_frozen = False

    def check(self) -> None:
        if self.is_dead:
            raise Crash

    async def offload(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Every port call of the engine comes through here."""
        self.check()
        await asyncio.sleep(self.world.slow.get(function.__name__, LATENCY_S))
        self.check()
        fate = self.world.plan.next(function.__name__, self.role == "worker")
        if fate != FINE:
            self.world.faults.append(f"{self.id}: {fate} at {function.__name__}")
        if fate == CRASH_BEFORE:
            self.die()
        if fate == THROTTLE:
            raise Throttled("slow down")
        if fate in (STALL, FREEZE):
            self.is_frozen = True
            await stand_still(self.world.stall_s)
            self.clock.skew -= round(self.world.stall_s * 1_000) * (fate == FREEZE)
            self.check()
        result = function(*args, **kwargs)
        if function.__name__ == "take" and isinstance(result, Head):
            self.world.epochs[self.id, str(result.ref)] = result.epoch + 1
        if fate == CRASH_AFTER:
            self.die()
        if fate == NO_ANSWER:
            raise StoreUnavailable("no answer")
        return result

    def die(self) -> None:
        self.is_dead = True
        raise Crash


class _Performer:
    """The real performer; what a dead process still computes never reaches the outside."""

    def __init__(self, process: Process, registry: Registry) -> None:
        self._process, self._inner = process, ToolPerformer(registry)

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        self._process.check()
        world = self._process.world
        world.running[context.saga, context.node] = self._process
        world.starts.append((VirtualClock().now(), self._process.id, context.saga))
        if world.troubles is None:
            result = await self._inner.perform(tool, arguments, context)
        else:
            call = (tool, arguments, context)
            result = await world.troubles.perform(world, self._process, self._inner.perform, call)
        self._process.check()
        return result


class _Worker(Worker):
    """The real worker; while its process is frozen, its own timers stand still too."""

    process: Process

    async def _until_the_end(self, tasks: list[asyncio.Task[Any]], invocation: Invocation) -> None:
        left = invocation.deadline - self.process.clock.now()
        await asyncio.wait(tasks, timeout=left / 1_000 - 0.1)
        if self.process.is_frozen:
            await asyncio.wait(tasks)
        else:
            await super()._until_the_end(tasks, invocation)


class _Invoker:
    def __init__(self, world: World) -> None:
        self._world = world

    def invoke(self, messages: Sequence[Message]) -> None:
        self._world.spawn(self._world.work(list(messages)))


@dataclass
class World:
    """The deployment. `timeout_s` is the worker's; `plan` says what fails."""

    registry: Registry
    plan: Plan = field(default_factory=Plan)
    limits: Limits = field(default_factory=Limits)
    timeout_s: float = 6
    stream_on: bool = True
    queue_on: bool = True
    reconciler_on: bool = True
    seed: int = 0
    stall_s: float = 16  # thaws while its heir is at work
    batch: int = 3
    start_late_s: float = 0  # from receiving a batch to the start of its handler
    reconciler_first_s: float = 60
    reconciler_gap_s: float = 60  # what it believes is always a minute
    books: Any = None  # of the outside services, for who looks into them
    troubles: Any = None  # what calls of tools meet (troubles.py)
    metrics: Metrics = field(default_factory=Metrics)

    def __post_init__(self) -> None:
        self.log = MemoryLog(SHARDS, lag=True, on_wake=self._on_wake)
        self.blobs, self.definitions = MemoryBlobs(), MemoryDefinitions()
        self.dead_letters, self.notices = MemoryDeadLetters(), MemoryNotices()
        self.budgets = MemoryBudgets()
        self.effects = MemoryEffects()
        self.queue = WakeQueue(self)
        self.tools: Mapping[str, ToolSpec] = self.registry.specs()
        self.slow: dict[str, float] = {}
        self.faults: list[str] = []
        self.invocations: list[str] = []
        self.epochs: dict[tuple[str, str], int] = {}
        self.starts: list[tuple[int, str, str]] = []
        self.running: dict[tuple[str, str], Process] = {}
        self.endings: list[BaseException] = []
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._pump: asyncio.Task[None] | None = None

    # -- roles

    def engine(self, process: Process) -> Engine:
        return Engine(
            log=self.log,
            blobs=self.blobs,
            clock=process.clock,
            entropy=SeededEntropy(self.seed + next(self._numbers)),
            offload=process.offload,
            performer=_Performer(process, self.registry),
            sandbox=MontySandbox(inline),
            tools=self.tools,
            catalog=Catalog(self.definitions, self.blobs, process.clock),
            pace=Pace(self.limits.step_estimate_ms),
            limits=self.limits,
            notices=self.notices,
            incidents=self.notices,
            effects=self.effects,
            funds=Funds(self.budgets, Terms.of(self.limits)),
            metrics=self.metrics,
        )

    def process(self, role: str) -> Process:
        return Process(self, role, f"{role}-{next(self._numbers)}")

    def service(self, process: Process | None = None, user: str = USER, tenant: str = TENANT) -> Service:
        """What one request may do, by default in a process of its own."""
        return Service(*self._request(process or self.process("api"), user, tenant))

    def queries(self, tenant: str = TENANT) -> Queries:
        """What one request may look at, in a process of its own."""
        return Queries(*self._request(self.process("api"), USER, tenant))

    def _request(self, process: Process, user: str, tenant: str) -> tuple[Engine, Caller, int]:
        trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
        caller = Caller(tenant=tenant, user=user, request=process.id, traceparent=trace)
        return self.engine(process), caller, process.clock.now() + 28_000

    def service_without_faults(self) -> Service:
        """For a person's help once everything is over."""
        self.plan = Plan()
        return self.service()

    def queries_without_faults(self) -> Queries:
        """For looking on once everything is over."""
        self.plan = Plan()
        return self.queries()

    async def work(self, messages: Sequence[Message], receives: Sequence[int] = ()) -> list[Message]:
        """One invocation of the worker. Returns the messages to deliver again: all of them if it died.

        `receives` says for each message which delivery of it this is.
        """
        process = self.process("worker")
        self.invocations.append(process.id)
        worker = _Worker(self.engine(process), self.dead_letters, _Invoker(self))
        worker.process = process
        now = process.clock.now()
        invocation = Invocation(process.id, now, now + round(self.timeout_s * 1_000), cold=True)
        deliveries = [
            Delivery(str(i), msgspec.json.encode(message).decode(), count)
            for i, (message, count) in enumerate(zip_longest(messages, receives, fillvalue=1))
        ]
        task = asyncio.create_task(worker.handle(deliveries, invocation))
        done, _ = await asyncio.wait({task}, timeout=self.timeout_s)
        if not done and process.is_frozen:
            self.spawn(self._zombie(task))  # Lambda froze it instead of killing it; it will thaw
            return list(messages)
        if not done:
            process.is_dead = True
            task.cancel()
            await asyncio.wait({task})
            return list(messages)
        try:
            return [messages[int(identifier)] for identifier in task.result()]
        except Crash:
            return list(messages)

    async def _zombie(self, task: asyncio.Task[list[str]]) -> None:
        with suppress(Crash):
            await task

    def _on_wake(self, ref: SagaRef, wake: Wake) -> None:
        if self.stream_on:
            self.spawn(self._relay(ref, wake))

    async def _relay(self, ref: SagaRef, wake: Wake) -> None:
        """One stream record; the stream repeats a batch whose invocation failed."""
        for _ in range(10):
            process = self.process("relay")
            relay = Relay(self.engine(process), self.queue)
            deadline = process.clock.now() + 10_000
            with suppress(Crash, EngineFault):
                if not await relay.handle([StreamItem("1", ref, wake)], process.id, deadline):
                    return
            await asyncio.sleep(0.2)

    async def _reconcile(self) -> None:
        await asyncio.sleep(self.reconciler_first_s)
        while True:
            self.log.settle_index()
            reconciler = Reconciler(
                self.log, self.queue, _Invoker(self), self.dead_letters, VirtualClock(), 60_000
            )
            for shard in range(SHARDS):
                reconciler.sweep(shard)
            await asyncio.sleep(self.reconciler_gap_s)

    # -- looking on

    def spawn(self, work: Awaitable[Any]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.endings.append(task.exception() or Crash())

    def switch_on(self) -> None:
        """Let the reconciler's schedule run, once there is an event loop."""
        if self.reconciler_on and self._pump is None:
            self._pump = asyncio.create_task(self._reconcile())

    async def settle(self, limit_s: float = 7_200) -> None:
        """Let the deployment run until every saga is finished or parked, or the time is over."""
        loop = asyncio.get_running_loop()
        end = loop.time() + limit_s
        while loop.time() < end:
            await asyncio.sleep(1)
            heads = self.log.heads()
            if len(self.plan.writes) > RUNAWAY:
                raise AssertionError(f"{RUNAWAY} writes and no end in sight")
            if heads and all(
                not head.owner and (head.due_at is None or head.status == "parked") for head in heads
            ):
                break
        if self.endings:
            raise AssertionError(f"a role ended with {self.endings[0]!r}; faults: {self.faults}")

    def entries(self, saga: str, tenant: str = TENANT) -> list[Entry]:
        """The log of a saga, all branches, in order of versions."""
        ref = SagaRef(tenant, saga)
        records = [record for branch in range(20) for record in self.log.read_tail(ref, branch, 0)]
        return sorted((decode_entry(record.data) for record in records), key=lambda entry: entry.version)

    def tool_of(self, saga: str, node: str) -> str:
        """The tool that the log names for a node; empty when it did not succeed."""
        tools = {event.node: event.tool for event in self.events(saga) if isinstance(event, StepSucceeded)}
        return tools.get(node, "")

    def epoch_of(self, process: str, saga: str, tenant: str = TENANT) -> int:
        """The newest lease that this process took on this saga."""
        return self.epochs[process, str(SagaRef(tenant, saga))]

    def events(self, saga: str) -> list[Event]:
        return [event for entry in self.entries(saga) for event in entry.events]

    def end(self, saga: str) -> SagaEnded | None:
        ends = [event for event in self.events(saga) if isinstance(event, SagaEnded)]
        return ends[-1] if ends else None
