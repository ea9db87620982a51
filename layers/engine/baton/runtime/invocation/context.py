"""One invocation: its wakes, its time, and its calls to stores."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import inf
from typing import Any, ParamSpec, TypeVar

import msgspec
from msgspec import Struct, field

from baton.core.limits import Limits
from baton.core.log.events import CallbackOpened, Entry, StepInterrupted, StepSucceeded
from baton.errors import PoisonMessage, StoreUnavailable, Throttled
from baton.ports import (
    Blobs,
    Clock,
    Entropy,
    Log,
    Message,
    Offload,
    SagaRef,
    StepContext,
    Store,
    ThreadStore,
    Watchdog,
)

T = TypeVar("T")


class Overdue(TimeoutError):
    """Error for a call whose time is over. No other `TimeoutError` is one, such as a socket's."""


class _Call(Struct, eq=False):
    """A call that is under way in a task. `cancels`: how often that task had been cancelled before."""

    task: asyncio.Task[Any]
    cancels: int
    at: float
    is_over: bool = False


class Alarm:
    """Alarm of one event loop. Times are the loop's own."""

    def __init__(self) -> None:
        # In the order in which they began: calls that are over at the same moment end in it.
        self._calls: dict[_Call, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = inf

    async def within(self, seconds: float, what: Awaitable[T]) -> T:
        """Await the result of the call. When its time is over it is cancelled, and `Overdue` is raised."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None
        at = loop.time() + seconds
        call = _Call(task, task.cancelling(), at)
        self._calls[call] = None
        if at < self._rings_at:
            self._set(loop, at)
        try:
            return await what
        except asyncio.CancelledError as error:
            if call.is_over and task.cancelling() <= call.cancels + 1:  # no other caller has cancelled it
                raise Overdue from error
            raise
        finally:
            self._calls.pop(call, None)
            if call.is_over:
                task.uncancel()

    def _set(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._rings_at = loop.call_at(at, self._ring, loop, at), at

    def _ring(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        self._timer, self._rings_at = None, inf
        now = max(loop.time(), at)  # a loop may ring a little early
        for call in self._calls:
            if call.at <= now and not call.is_over:
                call.is_over = True
                call.task.cancel()
        if later := [call.at for call in self._calls if not call.is_over]:
            self._set(loop, min(later))


P = ParamSpec("P")


class StoreRetrier:
    """Awaitable port calls for one invocation that must end by `deadline`. None is repeated after its tenure.

    `cut_off`: when what is running in this invocation is interrupted. Without one there is nothing to be done
    after a call that fails.
    """

    def __init__(
        self,
        offload: Offload,
        clock: Clock,
        entropy: Entropy,
        limits: Limits,
        deadline: int,
        cut_off: int | None = None,
        tenure: Tenure | None = None,
    ) -> None:
        self._tenure = tenure
        self._offload = offload
        self._clock = clock
        self._entropy = entropy
        self._limits = limits
        self.deadline = deadline
        self._cut_off = deadline if cut_off is None else min(cut_off, deadline)
        self._least = (deadline - self._cut_off) // 2
        self._alarm = Alarm()

    async def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the call's result.
        A repeated call may have happened before: callers recognise their own writes.

        Raises `StoreUnavailable` when there is no answer in time. Then the call may still happen.
        """
        return (await self.tried(function, *args, **kwargs))[0]

    async def tried(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> tuple[T, int]:
        """Call the function.
        Return its result and the number of calls: those before the last may still take effect, too.
        """
        now, tries = self._clock.now(), 0
        end = self._end(now)
        ceiling = self._limits.store_pause_first_ms
        while True:
            try:
                left, tries = max(end - now, 0) / 1_000, tries + 1
                try:
                    return await self._alarm.within(left, self._offload(function, *args, **kwargs)), tries
                except Overdue as error:
                    raise _no_answer(function) from error
            except (Throttled, StoreUnavailable):
                pause = ceiling * (0.5 + self._entropy.uniform() / 2)
                if self._clock.now() + pause >= end:
                    raise
                await asyncio.sleep(pause / 1_000)
                ceiling = min(ceiling * 2, self._limits.store_pause_longest_ms)
                now = self._clock.now()
                if self._tenure is not None and now >= self._tenure.until:
                    raise

    def _end(self, began: int) -> int:
        """Return the time at which a call that begins now gives up.

        A call that begins before the cut-off ends at it, so that time is left to record that. An ordinary
        call that is under way just then is not one that hangs: it gets at least half of the time after the
        cut-off.
        """
        return max(self._cut_off, began + self._least) if began < self._cut_off else self.deadline

    def within(self, ms: int) -> StoreRetrier:
        """Return the same port calls with a shorter limit, for an answer that is not worth more time."""
        end = min(self.deadline, self._clock.now() + ms)
        ports = self._offload, self._clock, self._entropy, self._limits
        return StoreRetrier(*ports, end, self._cut_off, self._tenure)

    def until(self, deadline: int) -> StoreRetrier:
        """Return the same port calls with another deadline."""
        ports = self._offload, self._clock, self._entropy, self._limits
        return StoreRetrier(*ports, deadline, tenure=self._tenure)


def _no_answer(function: Callable[..., Any]) -> StoreUnavailable:
    return StoreUnavailable(f"`{getattr(function, '__name__', 'a call')}` gave no answer in time")


class Threads:
    """`Offload` for adapters that wait on a network. It has its own threads, so that no tool starves it."""

    def __init__(self, size: int = 32) -> None:
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="baton-io")

    async def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, partial(function, *args, **kwargs)
        )


async def inline(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call at once: the `Offload` for adapters that never wait, such as those in memory."""
    return function(*args, **kwargs)


class Invocation(Struct, frozen=True):
    """One run of the worker function. `deadline` is hard: at it, Lambda kills the process."""

    id: str
    started: int
    deadline: int
    cold: bool = False


class Tenure(Struct):
    """Time for which an invocation may act for its sagas: `until` the first of their leases ends.

    With a watchdog, leases that the invocation may outlast are renewed, and the process ends `lease_grace_ms`
    before one ends that was neither renewed nor given back. So an expired lease is a dead process. Without a
    watchdog, leases last as long as the invocation can: until `last`. `ends` are those of each saga's lease.
    """

    clock: Clock
    limits: Limits
    last: int
    until: int
    watchdog: Watchdog | None = None
    ends: dict[SagaRef, int] = field(default_factory=dict)

    @classmethod
    def of(cls, invocation: Invocation, clock: Clock, limits: Limits) -> Tenure:
        """Return that of an invocation without a watchdog."""
        last = invocation.deadline + limits.lease_grace_ms
        return cls(clock, limits, last, last)

    @property
    def dies_at(self) -> int:
        """Time at which the process ends if the first of its leases is not renewed; 0: it does not."""
        is_short = self.watchdog is not None and self.until < self.last
        return self.until - self.limits.lease_grace_ms if is_short else 0

    def end_of_new(self) -> int:
        """Return the end of a lease that is taken or renewed now."""
        return min(self.last, self.clock.now() + self.limits.lease_ms)

    def hold(self, ref: SagaRef, until: int) -> None:
        """Count a lease that the invocation has, or may have, until then."""
        self.ends[ref] = until
        self._set()

    def drop(self, ref: SagaRef) -> None:
        """Count a lease no more: it is known to be given back, or not to have been taken."""
        self.ends.pop(ref, None)
        self._set()

    def end(self) -> None:
        """End the tenure with its invocation, which acts no more."""
        watchdog, self.watchdog = self.watchdog, None  # what is late sets it no more
        if watchdog is not None:
            watchdog.set(None)

    def _set(self) -> None:
        first = min(self.ends.values(), default=self.last)
        if first == self.until:
            return
        self.until = first
        if self.watchdog is not None:
            self.watchdog.set(max(self.dies_at - self.clock.now(), 1) if self.dies_at else None)


OwnPatch = Callable[[Mapping[str, Any], StepContext], Awaitable[dict[str, Any]]]
"""Function that patches the saga of a step by the arguments of an agent's call. Raises `StepFailure`."""


class InvocationContext(Struct, frozen=True):
    """Context of one invocation: of the worker, the API or the relay.
    Every call to a store or a bucket goes through `call`.
    """

    invocation: Invocation
    store: Store
    blobs: Blobs
    clock: Clock
    entropy: Entropy
    limits: Limits
    call: StoreRetrier
    tenure: Tenure
    patch: OwnPatch | None = None

    @property
    def log(self) -> Log:
        """The log of its store."""
        return self.store.log

    def threads(self, tenant: str) -> ThreadStore:
        """Return a tenant's threads of graphs."""
        return ThreadStore(tenant, self.store.checkpoints, self.blobs, self.clock, self.call)


def answer(failed: Sequence[str]) -> Mapping[str, object]:
    """Return the partial batch response of Lambda for SQS and streams."""
    return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in failed]}


class YieldRequest(Struct):
    """Flag that the sagas of an invocation must yield, because others wait for a worker
    (runtime/invocation/context.py).
    """

    is_over: bool = False


class Deadline(Struct, frozen=True):
    """The time of one invocation, as seen by one saga. All values are epoch ms or ms."""

    started: int
    end: int
    reserve: int
    turn: YieldRequest = field(default_factory=YieldRequest)

    @classmethod
    def of(cls, invocation: Invocation, limits: Limits) -> Deadline:
        """Make a deadline.
        The reserve is at most a third of the whole, so that short invocations still do something.
        """
        whole = invocation.deadline - invocation.started
        return cls(invocation.started, invocation.deadline, min(limits.yield_reserve_ms, whole // 3))

    @classmethod
    def without_reserve(cls, invocation: Invocation) -> Deadline:
        """Return the deadline of an invocation that runs no steps, and so has no work to hand over."""
        return cls(invocation.started, invocation.deadline, 0)

    @property
    def cut_off(self) -> int:
        """Time at which running steps are interrupted; the rest is for the append and the hand-over."""
        return self.end - self.reserve * 2 // 3

    def fits(self, now: int, expected: float) -> bool:
        """Return true if a step of `expected` ms would end before the reserve, and the turn is not over."""
        return not self.turn.is_over and now + expected <= self.end - self.reserve

    def is_spent(self, now: int) -> bool:
        """Return true if work without a step must continue in another invocation."""
        return self.turn.is_over or now >= self.cut_off


WEIGHT = 0.3
MARGIN = 1.5
NODES_KEPT = 20_000


class DurationEstimator:
    """Smoothed durations, shared by all sagas of a process: of each node of a graph, and of each tool.

    A node that was never seen is expected to take as long as its tool does elsewhere.
    """

    def __init__(self, estimate: int) -> None:
        self._estimate = estimate
        self._nodes: dict[tuple[str, str], float] = {}
        self._tools: dict[str, float] = {}

    def observe(self, graph: str, node: str, tool: str, duration: float) -> None:
        """Record that a run of this node took `duration` ms."""
        if len(self._nodes) > NODES_KEPT:
            self._nodes.clear()  # a guess is all that is lost
        before = self._nodes.get((graph, node), duration)
        self._nodes[graph, node] = before + WEIGHT * (duration - before)
        before = self._tools.get(tool, duration)
        self._tools[tool] = before + WEIGHT * (duration - before)

    def learn(self, graph: str, entries: Iterable[Entry]) -> None:
        """Take in a log's steps."""
        for entry in entries:
            for event in entry.events:
                if isinstance(event, CallbackOpened) or (
                    isinstance(event, StepSucceeded) and not event.callback
                ):
                    self.observe(graph, event.node, event.tool, event.ended_at - event.started_at)
                elif isinstance(event, StepInterrupted) and not event.why:
                    self.cut_off(graph, event.node, event.ended_at - event.started_at)

    def cut_off(self, graph: str, node: str, after: float) -> None:
        """Record that a run of this node was interrupted after `after` ms:
        it needs at least twice that time.
        """
        self._nodes[graph, node] = max(self._nodes.get((graph, node), 0), 2 * after)

    def expected(self, graph: str, node: str, tool: str, timeout: int) -> float:
        """Return the milliseconds that the next run should be given, never more than its timeout."""
        seen = self._nodes.get((graph, node), self._tools.get(tool))
        return min(self._estimate if seen is None else MARGIN * seen, timeout)


def by_turns(items: Iterable[T], tenant: Callable[[T], str]) -> list[T]:
    """Return one item of each tenant, then the next of each; a tenant's own keep their order."""
    rounds: Counter[str] = Counter()
    numbered = []
    for item in items:
        whose = tenant(item)
        numbered.append((rounds[whose], item))
        rounds[whose] += 1
    return [item for _, item in sorted(numbered, key=lambda pair: pair[0])]


def read_message(body: str) -> Message:
    """Decode a message. Raises `PoisonMessage` for one that no delivery will make readable."""
    try:
        message = msgspec.json.decode(body, type=Message)
        SagaRef.parse(message.saga)
    except (msgspec.DecodeError, ValueError) as error:
        raise PoisonMessage(f"not a wake: {error}") from error
    if message.v < 0:
        raise PoisonMessage(f"not a wake: version {message.v}")
    return message
