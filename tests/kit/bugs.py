"""Planted engine bugs: each is one plausible mistake in the protocol or the fold, made by replacing one function.

The simulation must turn red under every one of them, by the word of the oracle that watches the promise; a bug that it does
not see is a hole in the tests. Where each is searched for is in planted.py.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from baton.adapters.memory.log import MemoryLog
from baton.core.decide import decide as deciding
from baton.core.decide.parking import parking as parked_and_told
from baton.core.log.events import Entry, NoticeDue, Parked, Revived
from baton.core.log.folding import fold as folding
from baton.core.log.folding.workflow_limits import RETRIED
from baton.core.log.slots import slot_of
from baton.core.log.state import State
from baton.errors import NotFound, StoreUnavailable, Throttled
from baton.ports import Appended, Head, Record, Release, SagaRef, Wake
from baton.runtime.engine.parts import Engine, InvocationScope
from baton.runtime.engine.request import Request
from baton.runtime.engine.run import InFlight, LogWriter
from baton.runtime.invocation.context import StoreRetrier
from baton.runtime.log import history
from baton.runtime.log import lease as lease_module
from baton.runtime.log.history import History
from baton.runtime.log.lease import Lease, Leases
from baton.runtime.requests import claims
from baton.runtime.starting.children import Children
from baton.runtime.worker.runner import Faults, Loader, Runner


@contextmanager
def replaced(owner: Any, name: str, new: Any) -> Iterator[None]:
    """For as long as it lasts, another attribute."""
    old = getattr(owner, name)
    setattr(owner, name, new)
    try:
        yield
    finally:
        setattr(owner, name, old)


@contextmanager
def release_ignores_the_nudge() -> Iterator[None]:
    """Release row: what arrived between the last read and the release is eaten."""

    def let_go(self: MemoryLog, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        head = self.read_head(ref)
        if head is not None and head.pending_wake:
            release = msgspec.structs.replace(release, folded=max(release.folded, head.pending_wake))
        return real_release(self, ref, owner, epoch, release)

    real_release = MemoryLog.release
    with replaced(MemoryLog, "release", let_go):
        yield


@contextmanager
def a_hand_over_forgets_the_retries() -> Iterator[None]:
    """Limits row: the count of retries is the invocation's own, and begins anew in the next one."""
    real = history.History.load

    async def load(self: History, head: Head) -> Any:
        found = await real(self, head)
        kept = {scope: used for scope, used in self.state.used.items() if scope != RETRIED}
        self.state = msgspec.structs.replace(self.state, used=kept)
        return found

    with replaced(History, "load", load):
        yield


@contextmanager
def any_claim_is_freed_without_force() -> Iterator[None]:
    """Claim row: an operator frees what may be happening, and does not know it."""
    with replaced(claims, "_WARNINGS", {}):
        yield


@contextmanager
def an_expired_lease_is_never_taken() -> Iterator[None]:
    """Take row: a dead invocation keeps its saga for ever."""
    real = MemoryLog.take

    def take(self: MemoryLog, ref: SagaRef, owner: str, *lease: Any) -> Head | None:
        head = self.read_head(ref)
        return None if head is None or head.owner not in ("", owner) else real(self, ref, owner, *lease)

    async def acquire(self: Leases, ref: SagaRef, message: Any, **how: Any) -> Any:
        head = await self._call(self._log.read_head, ref)
        if head is not None and head.owner not in ("", self._invocation.id):
            return "held"
        return await real_acquire(self, ref, message, **how)

    real_acquire = Leases.acquire
    with replaced(MemoryLog, "take", take), replaced(Leases, "acquire", acquire):
        yield


@contextmanager
def a_yield_leaves_the_due_index() -> Iterator[None]:
    """Release row: without `due_at` only the wake can set the saga going again, and wakes get lost."""
    real = Leases._due_next

    def next_due(
        self: Leases, state: State, now: int, again: bool, *more: Any
    ) -> tuple[int | None, str, Wake | None]:
        at, lane, wake = real(self, state, now, again, *more)
        return None if again else at, lane, wake

    with replaced(Leases, "_due_next", next_due):
        yield


@contextmanager
def a_stale_invocation_appends() -> Iterator[None]:
    """Step row: no look at the own lease, and an entry of a higher epoch stops no worker."""

    async def news(self: LogWriter, lease: Lease, history: History) -> bool:
        branch = history.state.lineage.branch
        await history.catch_up()
        return history.state.lineage.branch != branch

    def check(self: LogWriter, lease: Lease) -> None:
        return None

    with replaced(LogWriter, "news", news), replaced(LogWriter, "check_lease", check):
        yield


@contextmanager
def an_orphan_head_is_not_rolled_forward() -> Iterator[None]:
    """Start row: a starter that died between head and entry 1 leaves a saga that no worker begins."""

    async def load(self: Loader, lease: Lease, history: History) -> Any:
        await history.load(lease.before)
        if history.state.version == 0:
            raise RuntimeError("no log")
        return await real(self, lease, history)

    real = Loader.load
    with replaced(Loader, "load", load):
        yield


@contextmanager
def a_fork_does_not_arm() -> Iterator[None]:
    """Fork row: a finished saga is in no index, so a fork whose wake is lost is never run."""

    async def arm(self: Request, head: Head) -> int:
        return self.engine.clock.now() + 60_000

    with replaced(Request, "arm", arm):
        yield


@contextmanager
def an_append_overwrites() -> Iterator[None]:
    """Step row: a put without its condition."""

    def append(self: MemoryLog, ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        with self._lock:
            self._entries.setdefault((ref, record.branch), {}).pop(record.version, None)
            versions = self._versions.get((ref, record.branch), [])
            if record.version in versions:
                versions.remove(record.version)
        return real(self, ref, record, wake)

    real = MemoryLog.append
    with replaced(MemoryLog, "append", append):
        yield


@contextmanager
def consumed_tokens_stay() -> Iterator[None]:
    """Fold: a settled step does not consume its tokens, so the counter never comes to zero."""
    real = vars(folding)["consume"]

    def consume(state: State, event: Any, output: Any, **more: Any) -> State:
        after: State = real(state, event, output, **more)
        slot = slot_of(event.node, event.iteration)
        return msgspec.structs.replace(
            after, tokens={**after.tokens, slot: state.tokens.get(slot, {"": True})}
        )

    with replaced(folding, "consume", consume):
        yield


@contextmanager
def any_entry_of_the_same_lease_is_its_own() -> Iterator[None]:
    """Signal row: two callers that lose and win a put at one version are both told that theirs is there."""

    def is_own(there: Entry, mine: Entry) -> bool:
        return (there.version, there.epoch) == (mine.version, mine.epoch)

    with replaced(history, "is_own", is_own):
        yield


@contextmanager
def a_lease_has_no_grace() -> Iterator[None]:
    """Take row: a lease that ends with its invocation's deadline, though Lambda kills a little later."""

    def begin(self: InvocationScope, engine: Engine, *invocation: Any, **more: Any) -> None:
        limits = dataclasses.replace(engine.limits, lease_grace_ms=0)
        real(self, dataclasses.replace(engine, limits=limits), *invocation, **more)

    real = InvocationScope.__init__
    with replaced(InvocationScope, "__init__", begin):
        yield


@contextmanager
def release_ignores_the_arming() -> Iterator[None]:
    """Release row: a fork that has armed a head is forgotten by a holder that did not know of it."""
    real = MemoryLog.release

    def let_go(self: MemoryLog, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        head = self.read_head(ref)
        armed = release.armed if head is None else head.armed
        return real(self, ref, owner, epoch, msgspec.structs.replace(release, armed=armed))

    with replaced(MemoryLog, "release", let_go):
        yield


@contextmanager
def the_arming_is_not_read_again() -> Iterator[None]:
    """Release row: a release that was refused for an arming is refused for it for ever."""

    async def refused(self: Runner, run: Any) -> None:
        lease = run.lease
        await real(self, run)
        run.lease = lease

    real = Runner._refused
    with replaced(Runner, "_refused", refused):
        yield


@contextmanager
def a_load_does_not_look_at_the_epoch() -> Iterator[None]:
    """Take row: a holder that stood still between its take and its load goes on behind its heir's entries."""
    real = History.load

    async def load(self: History, head: Head) -> Any:
        entries = await real(self, head)
        self.state = msgspec.structs.replace(self.state, epoch=min(self.state.epoch, head.epoch))
        return entries

    with replaced(History, "load", load):
        yield


@contextmanager
def a_missing_child_is_not_started_before_it_is_cancelled() -> Iterator[None]:
    """Cancel row: a child that is not stored yet is started afterwards by an invocation that was frozen."""
    real = Children.start

    async def start(
        self: Children, parent: SagaRef, ref: SagaRef, state: State, slot: str, child: Any, **how: Any
    ) -> bool:
        if state.cancel is not None:
            raise NotFound("it is taken for one that can never start")
        return await real(self, parent, ref, state, slot, child, **how)

    with replaced(Children, "start", start):
        yield


@contextmanager
def the_fence_of_a_revival_is_tried_once() -> Iterator[None]:
    """Revive row: where a signal comes in between, no entry says that the saga was taken over."""

    async def record(self: Loader, lease: Lease, history: History, assumed: Any) -> None:
        dead = lease.dead
        assert dead is not None
        now = self._p.clock.now()
        death = Revived(dead=dead.owner, dead_epoch=dead.epoch, dead_until=dead.until, at=now)
        if not await self._log.append(lease, history, (death,)):
            await self._log.news(lease, history)

    with replaced(Loader, "_record_death", record):
        yield


@contextmanager
def the_lease_is_not_checked_right_before_an_append() -> Iterator[None]:
    """Step row: what comes before an append takes longer than the lease."""
    real_append, real_check = LogWriter.append, LogWriter.check_lease
    appending: set[int] = set()

    def check(self: LogWriter, lease: Lease) -> None:
        if id(asyncio.current_task()) not in appending:
            real_check(self, lease)

    async def append(self: LogWriter, *arguments: Any) -> bool:
        task = id(asyncio.current_task())
        appending.add(task)
        try:
            return await real_append(self, *arguments)
        finally:
            appending.discard(task)

    with replaced(LogWriter, "append", append), replaced(LogWriter, "check_lease", check):
        yield


@contextmanager
def a_cut_off_throws_away_what_has_just_finished() -> Iterator[None]:
    """Yield row: a step that is done when its invocation ends is said to be interrupted."""
    real = InFlight._interrupt

    async def interrupt(self: InFlight, *others: Any) -> Any:
        running = list(self._running.values())
        await real(self, *others)
        self._cancel(list(self._running))
        return running

    with replaced(InFlight, "_interrupt", interrupt):
        yield


@contextmanager
def clocks_are_believed() -> Iterator[None]:
    """Take row: a lease is over for everybody when it is over by one clock."""

    def is_over(head: Head, now: int, limits: Any) -> bool:
        return head.until <= now

    with replaced(lease_module, "is_over", is_over):
        yield


@contextmanager
def a_take_names_no_epoch() -> Iterator[None]:
    """Take row: one that lands after its client gave up seizes a saga that has been given back since."""
    real = MemoryLog.take

    def take(self: MemoryLog, ref: SagaRef, owner: str, until: int, epoch: int, *due: Any) -> Head | None:
        head = self.read_head(ref)
        known = epoch if head is None or head.owner not in ("", owner) else head.epoch
        return real(self, ref, owner, until, known, *due)

    with replaced(MemoryLog, "take", take):
        yield


@contextmanager
def a_call_ends_with_its_invocation_and_no_sooner() -> Iterator[None]:
    """Fault row: a store that hangs looks like a step that has killed its worker."""

    async def call(self: StoreRetrier, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        while True:
            try:
                return await self._offload(function, *args, **kwargs)
            except (Throttled, StoreUnavailable):
                await asyncio.sleep(0.05)
                if self._clock.now() >= self.deadline:
                    raise

    with replaced(StoreRetrier, "__call__", call):
        yield


@contextmanager
def a_refused_release_is_a_death() -> Iterator[None]:
    """Fault row: a worker that cannot give its lease back says nothing of it."""

    async def give_up(self: Faults, ref: SagaRef, pause: int, run: Any = None) -> None:
        await self._p.leases.give_up(ref, pause, self._p.invocation.deadline)

    with replaced(Faults, "give_up", give_up):
        yield


@contextmanager
def a_saga_is_parked_and_on_call_is_not_told() -> Iterator[None]:
    """Park row: an entry with `parked` and no notice."""

    def parking(state: State, parked: Parked, now: int) -> tuple[Parked]:
        return (parked,)

    with replaced(deciding, "parking", parking):
        yield


@contextmanager
def on_call_is_told_of_the_first_parking_only() -> Iterator[None]:
    """Park row: all parkings of a saga have one key, so that a second one is taken for the first."""

    def parking(state: State, parked: Parked, now: int) -> tuple[NoticeDue, Parked]:
        due, same = parked_and_told(state, parked, now)
        notice = msgspec.structs.replace(due.notice, key=f"{state.origin.saga}/parked")
        return NoticeDue(notice=notice), same

    with replaced(deciding, "parking", parking):
        yield
