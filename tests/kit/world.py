"""A whole deployment in memory and virtual time: workers that die, a stream, a queue and a reconciler.

It runs the engine's own code for every role. What it simulates is only what AWS does: processes that are
killed at their deadline or by a fault, records and messages that are lost, repeated or late.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from itertools import zip_longest
from operator import attrgetter
from typing import Any, Self

import msgspec

import tests.kit.derived
import tests.kit.preloaded  # noqa: F401  # before anything is simulated
from baton.adapters.memory.people import MemoryNotices
from baton.adapters.memory.queues import MemoryDeadLetters
from baton.adapters.memory.store import MemoryBlobs, MemoryStore
from baton.adapters.monty_sandbox import MontySandbox
from baton.core.effects.toolspec import ToolSpec
from baton.core.limits import Limits
from baton.core.log.codec import decode_entry
from baton.core.log.events import Entry, Event, SagaEnded, StepSucceeded
from baton.errors import EngineFault
from baton.ports import LANES, Account, Head, Message, SagaRef, Wake, Watch
from baton.ports.models import Models
from baton.runtime.engine.parts import Engine
from baton.runtime.engine.request import Caller
from baton.runtime.invocation.context import Invocation, inline
from baton.runtime.invocation.watch import Metrics
from baton.runtime.mending import DeployedBuild
from baton.runtime.reconcile import PERIODS_AHEAD, Reconciler
from baton.runtime.relay import Relay
from baton.runtime.requests.queries import Queries
from baton.runtime.requests.service import Service
from baton.runtime.worker.worker import Delivery
from baton.tools.define import Registry
from baton.tools.functions import ApplicationFunctions
from tests.kit.faults import Crash, Plan
from tests.kit.notice_oracles import Told
from tests.kit.process import Environment, Outage, Process
from tests.kit.roles import (
    Acknowledged,
    Deed,
    DirectInvoker,
    FreezableWorker,
    InvokedBuilds,
    RememberingService,
    ToolsOf,
)
from tests.kit.simulated_models import Asked, ModelsOf
from tests.kit.stream import Stream
from tests.kit.toolbox import Books, make_registry
from tests.kit.views import JsonQueries
from tests.kit.virtual_time import SeededEntropy, VirtualClock, passes, until_something_happens
from tests.kit.wake_queue import WakeQueue

_version = attrgetter("version")
_decoded = lru_cache(20_000)(decode_entry)  # onlookers read the same logs again and again
SHARDS = 2
PERIOD_MS = 60_000  # what the reconciler believes
READS_OF_A_SWEEP = ["due"] * (len(LANES) + 1)  # two lanes twice, and that of defects not at all
TENANT, USER = "acme", "ann"


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
    slots: int = 0  # workers that the queue keeps busy at once; 0: any number
    is_fair: bool = True  # between tenants, where those are few
    start_late_s: float = 0  # from receiving a batch to the start of its handler
    reconciler_first_s: float = 60
    reconciler_gap_s: float = 60
    killed_late_s: float = 0  # from the deadline to the kill
    late_s: float = 9  # from sending a request that its client gives up on to its landing
    skew_ms: int = 0  # no two processes' clocks are further apart
    is_warm: bool = False  # whether processes come back, with what they have cached
    outages: tuple[Outage, ...] = ()
    versions: dict[str, Registry] = field(
        default_factory=dict
    )  # the code of each, the newest last; none: `registry`
    rolls_s: float = 0  # until then, workers of a release and of the one before take turns
    runaway: int = 2_000  # writes; several times what the longest scenario needs
    keeps_to_what_it_declares: bool = False  # no tool spends more than it says
    books: Books = field(default_factory=Books)  # of the outside services that the corpus's tools call
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)  # by user
    confirm_url: str = ""  # of the page that links in messages lead to
    shown: dict[tuple[str, str], str] = field(
        default_factory=dict
    )  # by saga and question, the seal of the link
    troubles: Any = None  # what calls of tools meet (troubles.py)
    metrics: Metrics = field(default_factory=Metrics)
    models: Models | None = None
    watch: Watch | None = None  # over the tools of all its workers

    def __post_init__(self) -> None:
        self.store = MemoryStore(SHARDS, lag=True, on_wake=self._on_wake, clock=VirtualClock())
        self.log, self.blobs = self.store.log, MemoryBlobs()
        self.dead_letters = MemoryDeadLetters(VirtualClock())
        self.notices = MemoryNotices()
        self.other_channels: tuple[MemoryNotices, ...] = ()
        self.budgets, self.effects = self.store.budgets, self.store.effects
        self.queue, self.stream = WakeQueue(self), Stream(self)
        self.tools: Mapping[str, ToolSpec] = self.registry.specs()
        self.slow: dict[str, float] = {}
        self.faults: list[str] = []
        self.invocations: list[str] = []
        self.billed_s = 0.0  # of workers that have ended
        self.processes: dict[str, Process] = {}
        self.epochs: dict[tuple[str, str], int] = {}
        self.written: dict[tuple[str, int], float] = {}
        # What accounts hold for requests of workers whose heir has looked already.
        self.held_over: dict[tuple[Account, str], int] = {}
        self.newer: set[tuple[str, int]] = set()  # entries of the newer release, while both are there
        self._old_workers = 0
        self.unexpired: set[str] = set()  # holders about which an heir had no answer
        self.given_back: set[tuple[str, int]] = set()
        self.stale: list[str] = []
        self.starts: list[tuple[float, str, str]] = []
        self.deeds: list[Deed] = []
        self.asked: list[Asked] = []
        self.spends: list[tuple[str, list[Decimal]]] = []  # by call of a tool, with its saga
        self.thinking: dict[str, Asked] = {}  # by the id that the provider gave a request in the background
        self.acknowledged: list[Acknowledged] = []
        self.told = Told()
        self.running: dict[tuple[str, str], Process] = {}
        self.endings: list[BaseException] = []
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._pump: asyncio.Task[None] | None = None
        self._idle: dict[str, list[Environment]] = {}
        self._clocks: random.Random | None = None

    @classmethod
    def start(cls, **options: Any) -> Self:
        """A new deployment that runs, with the corpus's tools. `options` are its fields."""
        books = Books()
        world = cls(make_registry(books), books=books, **options)
        world.switch_on()
        return world

    # -- roles

    def engine(self, process: Process) -> Engine:
        """What a process works with; a warm one has it already."""
        if process.home.engine is None:
            process.home.engine = self._new_engine(process)
            return process.home.engine
        return replace(
            process.home.engine,
            offload=process.offload,
            performer=ToolsOf(process, self.code_of(process)),
            models=self._models_of(process),
            builds=InvokedBuilds(process),
            watchdog=process.watchdog,
        )

    def code_of(self, process: Process) -> Registry:
        """The tools and functions that its version of the code has."""
        return self.versions.get(process.home.version, self.registry)

    def _models_of(self, process: Process) -> Models | None:
        return None if self.models is None else ModelsOf(process, self.models)

    def _new_engine(self, process: Process) -> Engine:
        registry = self.code_of(process)
        return Engine.on(
            self.store,
            self.blobs,
            process.clock,
            self._limits_of(process.home.version),
            entropy=SeededEntropy(self.seed + next(self._numbers)),
            offload=process.offload,
            performer=ToolsOf(process, registry),
            sandbox=MontySandbox(inline),
            tools=registry.specs() if self.versions else self.tools,
            notices=(self.notices, *self.other_channels),
            metrics=self.metrics,
            watch=self.watch,
            confirm_url=self.confirm_url,
            models=self._models_of(process),
            functions=ApplicationFunctions(registry),
            builds=InvokedBuilds(process),
            watchdog=process.watchdog,
        )

    def _limits_of(self, version: str) -> Limits:
        return replace(self.limits, build=version) if version else self.limits

    def process(self, role: str, version: str = "") -> Process:
        """A process for one invocation: a warm one that idles, else a new one with a clock of its own."""
        version = version or next(reversed(self.versions), "")
        idle = self._idle.get(role + version)
        if idle and asyncio.get_running_loop().time() >= self.rolls_s:
            idle[:] = [one for one in idle if not one.is_old]
        home = (
            idle.pop()
            if idle
            else Environment(self._new_clock(), is_old=self._starts_old(role), version=version)
        )
        process = Process(self, role, f"{role}-{next(self._numbers)}", home)
        self.processes[process.id] = process
        return process

    def _starts_old(self, role: str) -> bool:
        """While a release is rolled out, and perhaps back, each second new worker is of the one before."""
        if role != "worker" or asyncio.get_running_loop().time() >= self.rolls_s:
            return False
        self._old_workers += 1
        return self._old_workers % 2 == 1

    def _new_clock(self) -> VirtualClock:
        clock = VirtualClock()
        if self.skew_ms:
            draw = self._clocks = self._clocks or random.Random(f"clocks {self.seed}")
            clock.skew = draw.choice([0, self.skew_ms, draw.randint(0, self.skew_ms)])
        return clock

    def is_over(self, process: Process) -> None:
        """An invocation has ended well: its environment can be used again."""
        if self.is_warm and not (process.is_dead or process.is_frozen):
            process.home.is_cold = False
            self._idle.setdefault(process.role + process.home.version, []).append(process.home)

    def outage_of(self, service: str) -> str:
        """How a service is out of order now; empty when it is not."""
        now = asyncio.get_running_loop().time()
        found = (o.how for o in self.outages if o.service == service and o.begin_s <= now < o.end_s)
        return next(found, "")

    def service(self, process: Process | None = None, user: str = USER, tenant: str = TENANT) -> Service:
        """What one request may do, by default in a process of its own."""
        service = RememberingService(*self._request(process or self.process("api"), user, tenant))
        service.world = self
        return service

    def queries(self, tenant: str = TENANT, user: str = USER) -> JsonQueries:
        """What one request may look at, in a process of its own."""
        return JsonQueries(Queries(*self._request(self.process("api"), user, tenant)))

    def _request(self, process: Process, user: str, tenant: str) -> tuple[Engine, Caller, int]:
        trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
        roles = frozenset({"operate"}) if user == USER else frozenset[str]()
        groups = self.groups.get(user, frozenset())
        caller = Caller(
            tenant=tenant, user=user, request=process.id, traceparent=trace, roles=roles, groups=groups
        )
        return self.engine(process), caller, process.clock.now() + 28_000

    def service_without_faults(self) -> Service:
        """For a person's help once everything is over."""
        self.plan, self.outages = Plan(), ()
        return self.service()

    def queries_without_faults(self) -> JsonQueries:
        """For looking on once everything is over."""
        self.plan, self.outages = Plan(), ()
        return self.queries()

    async def work(
        self, messages: Sequence[Message], receives: Sequence[int] = (), version: str = "", until: int = 0
    ) -> list[Message]:
        """One invocation of the worker. Returns the messages to deliver again: all of them if it died.

        `receives` says for each message which delivery of it this is. `version`: of its code, by default the newest;
        `until`: when it is to end.
        """
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            return await self._work(messages, receives, version, until)
        finally:
            self.billed_s += clock() - began

    async def _work(
        self, messages: Sequence[Message], receives: Sequence[int], version: str, until: int
    ) -> list[Message]:
        process = self.process("worker", version)
        self.invocations.append(process.id)
        worker = FreezableWorker(self.engine(process), self.dead_letters, DirectInvoker(self), self.queue)
        worker.process = process
        now = process.clock.now()
        deadline = now + round(self.timeout_s * 1_000)
        deadline = min(deadline, until or deadline)
        invocation = Invocation(process.id, now, deadline, cold=process.home.is_cold)
        deliveries = [
            Delivery(str(i), msgspec.json.encode(message).decode(), count)
            for i, (message, count) in enumerate(zip_longest(messages, receives, fillvalue=1))
        ]
        task = asyncio.create_task(worker.handle(deliveries, invocation))
        timeout_s = self.timeout_s + self.killed_late_s
        await asyncio.wait({task, process.killed}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if not task.done() and process.is_frozen and not process.is_dead:
            self.spawn(self._zombie(task))  # Lambda froze it instead of killing it; it will thaw
            return list(messages)
        if not task.done():
            process.is_dead = True
            task.cancel()
            await asyncio.wait({task})
            return list(messages)
        process.is_over = True
        if process.watchdog.is_set:
            self.stale.append(f"{process.id} is over and leaves its watchdog set")
        try:
            failed = [messages[int(identifier)] for identifier in task.result()]
        except Crash:
            process.is_dead = True
            return list(messages)
        process.has_failed = bool(failed)
        process.has_overrun = process.clock.now() > invocation.deadline
        self.is_over(process)
        return failed

    def relay(self, process: Process) -> Relay:
        engine = self.engine(process)
        return Relay(
            self.store.inbox, self.queue, engine.clock, engine.entropy, engine.offload, engine.limits
        )

    async def _zombie(self, task: asyncio.Task[list[str]]) -> None:
        with suppress(Crash):
            await task

    def _on_wake(self, ref: SagaRef, wake: Wake) -> None:
        if self.stream_on:
            self.stream.put(ref, wake)

    async def _reconcile(self) -> None:
        await asyncio.sleep(self.reconciler_first_s)
        while True:
            self.log.settle_index()
            # Where clocks differ, that of its process says what is due.
            runs = [(shard, self.process("reconciler") if self.skew_ms else None) for shard in range(SHARDS)]
            if busy := [
                self._sweep(process or self.process("reconciler"), shard)
                for shard, process in runs
                if not self._passes_quietly(shard, process)
            ]:
                await asyncio.gather(*busy)
            if not passes(self.reconciler_gap_s):
                await asyncio.sleep(self.reconciler_gap_s)

    def _passes_quietly(self, shard: int, process: Process | None) -> bool:
        """Whether a sweep finds nothing and meets nothing: it reads each lane, and that is all. Most sweeps are like that."""
        clock = VirtualClock() if process is None else process.clock
        until = clock.now() + PERIODS_AHEAD * PERIOD_MS
        is_quiet = (
            not self.limits.build  # code may mend what is not due
            and not any(self.log.due(lane, shard, 0, until, 1) for lane in LANES)
            and not self.outage_of("dynamodb")
            and self.plan.spares(len(READS_OF_A_SWEEP))
        )
        if is_quiet:
            self.plan.reads += READS_OF_A_SWEEP
            if process is None:
                next(self._numbers)  # that of its process
            else:
                self.is_over(process)
        return is_quiet

    async def _sweep(self, process: Process, shard: int) -> None:
        reconciler = Reconciler(
            self.log,
            self.queue,
            DirectInvoker(self),
            process.clock,
            process.offload,
            PERIOD_MS,
            self._deployment(process),
        )
        with suppress(Crash, EngineFault):  # the next run's work
            await reconciler.sweep(shard, 50_000)
            self.is_over(process)

    def _deployment(self, process: Process) -> DeployedBuild | None:
        """What a process of the reconciler knows of the code that is deployed, which is its own."""
        build = self.limits.build
        if not build:
            return None
        return DeployedBuild(self.store.entities, process.clock, process.offload, build)

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
            await until_something_happens(1)
            heads = self.log.heads()
            if len(self.plan.writes) > self.runaway:
                self.endings.append(AssertionError(f"{self.runaway} writes and no end in sight"))
                break
            if heads and all(map(self._rests, heads)):
                break

    @staticmethod
    def _rests(head: Head) -> bool:
        """A parked saga may be due for a notice that could not be sent: a worker is about to take it then."""
        is_due = head.due_at is not None and (head.status != "parked" or head.due_at <= VirtualClock().now())
        return not head.owner and not is_due

    def entries(self, saga: str, tenant: str = TENANT) -> list[Entry]:
        """The log of a saga, all branches, in order of versions."""
        ref = SagaRef(tenant, saga)
        found: list[Entry] = []
        for branch in itertools.count():
            if (ref, branch) not in self.log._versions:
                break
            found.extend(_decoded(record.data) for record in self.log.read_tail(ref, branch, 0))
        return sorted(found, key=_version)

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
        """The end of its newest branch."""
        entries = self.entries(saga)
        last = entries[-1].events[-1] if entries else None
        return last if isinstance(last, SagaEnded) else None
