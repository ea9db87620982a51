"""Crowds of sagas in virtual time: very many that wait for weeks, and a backlog of an outage with timers beside it.

Index, reconciler and lease protocol are the engine's own. What its sagas would do then is not run: one whose lease is taken
has ended.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, ParamSpec, TypeVar

from baton.adapters.memory.log import MemoryLog
from baton.adapters.memory.store import MemoryBlobs, MemoryStore
from baton.core.limits import Limits
from baton.ports import LANES, SWEEP, TIMER, WORK, Head, Message, Record, Release, SagaRef, Wake
from baton.runtime.invocation.context import Invocation, InvocationContext, Tenure
from baton.runtime.log.lease import Lease, Leases
from baton.runtime.reconcile import Reconciler
from tests.kit.virtual_time import SeededEntropy, VirtualClock, run_virtual

P = ParamSpec("P")
T = TypeVar("T")
MINUTE_S, HOUR_MS, DAY_MS = 60, 3_600_000, 86_400_000
WORKER_MS = 60_000
BEGUN_WITHIN_MS = 120_000  # so that many are due in the same run
LIMITS = Limits()


class _CountingLog(MemoryLog):
    """Counts its writes by their names."""

    def __init__(self, shards: int) -> None:
        super().__init__(shards)
        self.writes: Counter[str] = Counter()

    def take(self, *lease: Any) -> Head | None:
        self.writes["take"] += 1
        return super().take(*lease)

    def defer(self, seen: Head, due_at: int, lane: str, wake: Wake | None = None) -> bool:
        self.writes["defer"] += 1
        return super().defer(seen, due_at, lane, wake)


@dataclass(frozen=True)
class _Call:
    """A `StoreRetrier` where nothing is out of order, and there is much to do."""

    deadline: int

    async def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return function(*args, **kwargs)


@dataclass
class Crowd:
    """A reconciler with workers. `lost`: that part of delayed messages; `call_s`: what a call of the reconciler takes."""

    shards: int = 4
    seed: int = 0
    lost: float = 0
    call_s: float = 0
    work_s: float = 0
    late: dict[SagaRef, int] = field(default_factory=dict)
    """By how much a saga was woken after the moment for which it was to be."""
    order: list[SagaRef] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.draw, self.clock = random.Random(self.seed), VirtualClock()
        self.store = MemoryStore(self.shards)
        self.log = self.store.log = _CountingLog(self.shards)
        self.moments: dict[SagaRef, int] = {}
        self.failed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._entropy, self._blobs, self._numbers = SeededEntropy(self.seed), MemoryBlobs(), itertools.count()
        self._reconciler = Reconciler(self.log, self, self, self.clock, self._offload, MINUTE_S * 1_000)

    def add(self, ref: SagaRef, due_at: int, lane: str, **head: Any) -> None:
        made = Head(
            ref=ref,
            workflow="w",
            graph="g",
            user="u",
            created=self.clock.now(),
            start_hash="",
            folded=2,
            due_at=due_at,
            lane=lane,
            **head,
        )
        assert self.log.create_head(made) is None

    # -- the ports of the reconciler

    async def _offload(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self.call_s:
            await asyncio.sleep(self.call_s)
        return function(*args, **kwargs)

    def invoke(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self.spawn(self._wake(message, 0))

    def send(self, messages: Sequence[tuple[Message, int]]) -> Sequence[int]:
        for message, delay in messages:
            if self.draw.random() >= self.lost:
                self.spawn(self._wake(message, delay))
        return ()

    def backlog(self) -> int:
        return 0

    def spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.failed = True

    async def _wake(self, message: Message, delay_s: int) -> None:
        if delay_s:
            await asyncio.sleep(delay_s)
        now, ref = self.clock.now(), SagaRef.parse(message.saga)
        invocation = Invocation(f"i{next(self._numbers)}", now, now + WORKER_MS)
        call: Any = _Call(now + WORKER_MS)
        context = InvocationContext(
            invocation,
            self.store,
            self._blobs,
            self.clock,
            self._entropy,
            LIMITS,
            call,
            Tenure.of(invocation, self.clock, LIMITS),
        )
        lease = await Leases(context).acquire(ref, message, alone=True)
        if not isinstance(lease, Lease):
            return
        if ref in self.moments:
            self.late[ref] = self.clock.now() - self.moments[ref]
        self.order.append(ref)
        await asyncio.sleep(self.work_s)
        end = Release(
            folded=3,
            status="completed",
            group="done",
            group_at=now,
            branch=0,
            snapshot=0,
            due_at=None,
            armed=lease.armed,
        )
        assert self.log.release(ref, lease.owner, lease.epoch, end)

    async def run(self) -> None:
        """One run of the reconciler over all shards."""
        assert not self.failed
        await asyncio.gather(*(self._reconciler.sweep(shard, 50_000) for shard in range(self.shards)))

    def next_due(self) -> int | None:
        """When the next one is due, of all."""
        firsts = [self.log.due(lane, shard, 0, 1 << 60, 1) for lane in LANES for shard in range(self.shards)]
        return min((row[0][1] for row in firsts if row), default=None)


def weeks(count: int, days: int = 30, seed: int = 0) -> Crowd:
    """So many sagas that wait, begun within minutes: a tenth for a moment, a tenth gets a signal whose wake is lost."""

    async def main() -> Crowd:
        crowd = Crowd(seed=seed)
        began = crowd.clock.now()
        end = began + days * DAY_MS
        for number in range(count):
            ref, since = SagaRef("acme", f"s{number}"), began + crowd.draw.randrange(BEGUN_WITHIN_MS)
            timer = 0
            if number % 10 == 0:
                timer = crowd.moments[ref] = since + crowd.draw.randrange(2 * HOUR_MS, (days - 1) * DAY_MS)
            crowd.add(ref, since + LIMITS.sweep_shortest_ms, SWEEP, quiet_since=since, timer=timer)
            if number % 10 == 1:
                crowd.moments[ref] = since + crowd.draw.randrange(2 * HOUR_MS, (days - 1) * DAY_MS)
                crowd.spawn(_signal(crowd, ref))
        while (due := crowd.next_due()) is not None and due < end:
            # Runs that would find nothing are left out.
            idle = (due - 2 * MINUTE_S * 1_000 - crowd.clock.now()) // (MINUTE_S * 1_000)
            await asyncio.sleep(MINUTE_S * max(idle, 1))
            await crowd.run()
        return crowd

    return run_virtual(main())


async def _signal(crowd: Crowd, ref: SagaRef) -> None:
    """An entry whose wake nothing passes on."""
    await asyncio.sleep((crowd.moments[ref] - crowd.clock.now()) / 1_000)
    crowd.log.append(ref, Record(0, 3, b"{}"))


@dataclass(frozen=True)
class Recovery:
    """How a backlog was worked off. `quiet`: the mean place of the sagas of tenants with few, as a part of all."""

    runs: int
    woken: int
    worst_timer_ms: int
    timers: int
    quiet: float


def backlog(count: int, timers: int, *, call_s: float, seed: int = 0) -> Recovery:
    """So many sagas are due at once after an outage, nine tenths of them one tenant's; timers go on, a third of them unsent."""

    async def main() -> Recovery:
        crowd = Crowd(seed=seed, lost=0.33, call_s=call_s, work_s=2)
        began = crowd.clock.now()
        for number in range(count):
            tenant = f"quiet-{number % 7}" if number % 10 == 0 else "loud"
            crowd.add(SagaRef(tenant, f"s{number}"), began - crowd.draw.randrange(HOUR_MS), WORK)
        for number in range(timers):
            ref, at = SagaRef("loud", f"t{number}"), began + crowd.draw.randrange(10_000, 5 * 60_000)
            crowd.moments[ref] = at
            crowd.add(ref, at, TIMER)
        runs = 0
        while crowd.next_due() is not None:
            began_run = crowd.clock.now()
            await crowd.run()
            runs += 1
            await asyncio.sleep(max(0, MINUTE_S - (crowd.clock.now() - began_run) / 1_000))
        behind = [ref for ref in crowd.order if ref not in crowd.moments]
        quiet = fmean(place for place, ref in enumerate(behind) if ref.tenant != "loud") / count
        return Recovery(runs, len(set(behind)), max(crowd.late.values()), len(crowd.late), quiet)

    return run_virtual(main())
