"""The lease on a saga's head: the wake, take, held and release rows of the protocol table.

The runner does the work under the lease.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from baton.core.limits import Limits
from baton.core.log.folding.received import pending_notices
from baton.core.log.folding.whole_folds import SweepSchedule, may_sweep_without_lease
from baton.core.log.state import Readiness, State, group_of, status_of
from baton.errors import CorruptLog, EngineFault
from baton.ports import (
    PARKED,
    SWEEP,
    TIMER,
    WORK,
    Clock,
    Head,
    Log,
    Message,
    NoRoom,
    Performer,
    Release,
    SagaRef,
    StepContext,
    Wake,
)
from baton.runtime.invocation.context import InvocationContext, StoreRetrier, Tenure
from baton.runtime.log.history import History

NEWS, NOTHING = "news", "nothing"


def suffices(head: Head, now: int, limits: Limits) -> bool:
    """Return true if reading the log is enough.
    A timer due within a message's delay needs a worker, to send that message.
    """
    if head.lane != SWEEP or head.owner or head.due_at is None or head.due_at > now:
        return False
    if head.pending_wake or head.inbox:
        return False
    return head.armed <= now and (not head.timer or head.timer - now > limits.timer_by_message_ms)


async def sweep_log(call: StoreRetrier, log: Log, head: Head, now: int, limits: Limits) -> str:
    """Return `NEWS` if an entry exists that the last holder had not folded; empty when the head has changed
    since.

    A fork is the last entry of the branch that it ends, so that it is in the branch that the head names.
    Without news, the time of the next sweep is recorded.
    """
    if await call(log.read_tail, head.ref, head.branch, head.folded, 1):
        return NEWS
    schedule = SweepSchedule.of(limits, is_quiet=True)
    due_at, lane = schedule.next(head.quiet_since, now), SWEEP
    if head.timer and schedule.comes_before(head.timer, due_at):
        due_at, lane = head.timer, TIMER
    return NOTHING if await call(log.defer, head, due_at, lane) else ""


class Lease(Struct, frozen=True):
    """A lease that was taken. The tenure of the invocation says when it ends.
    `before` is the head as it was until then; `armed` and `inbox` as they were read last.

    `dead` is the head with the lease of an invocation that ended without giving it back, if there was one.
    `rested_until`: when the saga would have been looked at, had its inbox not set it going before; None where
    anything else did.
    """

    ref: SagaRef
    owner: str
    epoch: int
    before: Head
    armed: int
    inbox: int
    dead: Head | None
    rested_until: int | None


class WithinLease:
    """A performer that begins nothing once a lease of its invocation is over, and raises `NoRoom` then.

    Between the look at a lease and a call lie writes (a claim, money), and
    any of them may take longer than the lease.
    """

    def __init__(self, performer: Performer, clock: Clock, tenure: Tenure) -> None:
        self._performer = performer
        self._clock = clock
        self._tenure = tenure

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        if self._clock.now() >= self._tenure.until:
            raise NoRoom("the lease is over")
        return await self._performer.perform(tool, arguments, context)


def is_over(head: Head, now: int, limits: Limits) -> bool:
    """Return true if the lease of another process has ended by that process's clock too, within the allowed
    skew.
    """
    return now >= head.until + limits.clock_skew_ms


def _has_yielded(head: Head) -> bool:
    return head.wake is not None and not head.wake.at


def _rested_until(head: Head, version: int, now: int) -> int | None:
    """Return the due time of a saga that has no news but in its inbox; None if it may have others."""
    if head.owner or version > head.folded or _has_yielded(head) or head.lane == PARKED:
        return None
    return head.due_at if head.due_at is not None and head.due_at > now else None


NO_SAGA, NOTHING_NEW, WAKE_LEFT, HELD, EXPIRED = "no-saga", "nothing-new", "wake-left", "held", "expired"
HELD_UNTIL = "held until "
"""Beginning of the word about a lease of a holder that seems to live: the end of it follows, in epoch ms."""
PINNED = "stays with build "
"""Beginning of the word about a saga of a workflow function that other code runs."""


def _has_ended_anew(before: Head, state: State, status: str) -> bool:
    """Return true if a saga that was over has gone on, and is over again: in one invocation, so that its
    group was never another.
    """
    is_another = status != before.status or state.lineage.branch != before.branch
    return state.ended is not None and is_another


RENEWED_AT_ONCE = 8
LEAST_PAUSE_MS = 500  # between two rounds of renewals
logger = logging.getLogger("baton.worker")


class Leases:
    """Leases of one invocation: taking, renewing and giving back.

    `_held`: epochs of those that it is known to have, by saga. All are renewed when half of the time is over
    that is left to the first, so an invocation that has given them back by then renews none.
    """

    def __init__(self, context: InvocationContext) -> None:
        self._log, self._clock, self._limits = context.log, context.clock, context.limits
        self._call, self._invocation, self._tenure = context.call, context.invocation, context.tenure
        self._held: dict[SagaRef, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._owed: dict[SagaRef, Head] = {}
        """Heads by saga that a dead worker held, until it is known if this worker has taken the saga."""

    async def acquire(self, ref: SagaRef, message: Message, *, alone: bool, gone: str = "") -> Lease | str:
        """Take the lease, or return in one word why this wake has nothing to do.

        An expired lease is only taken by an invocation that works for this saga alone: whatever killed
        its last invocation must not take others along. `gone`: a build that does not exist.
        """
        owner = self._invocation.id
        while True:
            try:
                head = await self._call(self._log.read_head, ref)
            except CorruptLog:
                # Of a timer that was sent twice, one makes a dead letter; a wake that knows a version always does.
                if await self._postponed(ref) or message.v:
                    raise
                return NOTHING_NEW
            now = self._clock.now()
            if head is None:
                return NO_SAGA
            is_anothers = head.owner not in ("", owner)
            if is_anothers and not is_over(head, now, self._limits):
                if message.v <= head.pending_wake:
                    # The holder knows of this already, or the wake knows no version: it asks if the holder lives.
                    return HELD if message.v or message.due else f"{HELD_UNTIL}{head.until}"
                if await self._call(self._log.leave_wake, ref, head.owner, head.epoch, message.v):
                    return WAKE_LEFT
                continue
            news = await self._news(head, message, now)
            if news == NOTHING:
                return NOTHING_NEW
            if not news:
                continue
            is_expired = is_anothers and not alone
            if (is_expired or head.build) and (
                elsewhere := self._elsewhere(head, gone, is_expired=is_expired)
            ):
                return elsewhere
            before, last = await self._take(head)
            if before is not None:
                dead = last if last.owner not in ("", owner) else None
                return Lease(
                    ref=ref,
                    owner=owner,
                    epoch=head.epoch + 1,
                    before=before,
                    armed=before.armed,
                    inbox=before.inbox,
                    dead=dead,
                    rested_until=_rested_until(last, message.v, now),
                )

    def _elsewhere(self, head: Head, gone: str, *, is_expired: bool) -> str:
        """Return in one word why another invocation has to take the lease; empty: this one may."""
        if head.build not in ("", self._limits.build, gone):
            return PINNED + head.build
        return EXPIRED if is_expired else ""

    async def _take(self, head: Head) -> tuple[Head | None, Head]:
        """Return the head that was taken, None where it has changed,
        and the one that tells who held it last.
        """
        owner, ref, until, call = self._invocation.id, head.ref, self._tenure.last, self._call
        if self._tenure.watchdog is not None:
            until = self._tenure.end_of_new()
            self._tenure.hold(ref, until)  # also where no answer comes, for it may be taken then
            call = call.within(self._limits.lease_ms // 3)
        due_at = until + self._limits.clock_skew_ms  # when others may take it
        # What is due before that brings another worker even so, which then finds the lease held, or over.
        stays = head.due_at is not None and head.due_at <= due_at
        if head.owner not in ("", owner):
            self._owed[ref] = head
        before = await call(self._log.take, ref, owner, until, head.epoch, due_at, stays)
        if before is None:
            self.forget(ref)
        elif self._tenure.watchdog is not None:
            self._held[ref] = head.epoch + 1
            self._renew_later()
        owed = self._owed.pop(ref, head)
        # A take that is repeated because its answer was lost finds itself; the head before it tells then.
        return before, owed if before is None or before.owner == owner else before

    def forget(self, ref: SagaRef) -> None:
        """Count a lease no more: it was given back or given up, or is known to be another's by its head."""
        self._held.pop(ref, None)
        self._tenure.drop(ref)

    def lose(self, ref: SagaRef) -> None:
        """Renew a lease no more. It counts until its end, at which this process has to be dead."""
        self._held.pop(ref, None)

    def end(self) -> None:
        """Renew nothing more: the invocation is over."""
        if self._tenure.watchdog is None:
            return
        for work in (self._timer, self._renewing):
            if work is not None:
                work.cancel()
        self._tenure.end()

    def _renew_later(self) -> None:
        dies_at = self._tenure.dies_at
        if self._timer is not None or not dies_at:
            return
        pause = max((dies_at - self._clock.now()) // 2, LEAST_PAUSE_MS)
        self._timer = asyncio.get_running_loop().call_later(pause / 1_000, self._renew_now)

    def _renew_now(self) -> None:
        self._renewing = asyncio.create_task(self._renew_all())

    async def _renew_all(self) -> None:
        slots, call = asyncio.Semaphore(RENEWED_AT_ONCE), self._call.until(self._tenure.dies_at)
        await asyncio.gather(*(self._renew(ref, call, slots) for ref in [*self._held]))
        self._timer = None
        self._renew_later()

    async def _renew(self, ref: SagaRef, call: StoreRetrier, slots: asyncio.Semaphore) -> None:
        """Renew one lease, unless it is over: others may have it then, and its run has stopped."""
        async with slots:
            tenure, epoch = self._tenure, self._held.get(ref)
            end, until = tenure.until, tenure.end_of_new()
            if epoch is None or tenure.ends[ref] == tenure.last or self._clock.now() >= end:
                return
            try:
                is_renewed = await call(self._log.renew, ref, self._invocation.id, epoch, until)
            except EngineFault as fault:
                logger.warning("a lease is not renewed", extra={"saga": ref.id, "fault": repr(fault)})
                return
            if self._held.get(ref) != epoch:
                return  # given back, or taken anew, meanwhile
            if is_renewed and self._clock.now() < end:
                tenure.hold(ref, until)
            else:
                self.lose(ref)

    async def _news(self, head: Head, message: Message, now: int) -> str:
        """Return `NEWS` for a worker that takes the lease, or `NOTHING`; empty when the head must be read
        again.
        """
        if message.build:
            # For a worker of that code alone, and once: the saga is somewhere else in the index when it was tried.
            is_for_this = message.build == self._limits.build and head.due_at == message.due
            return NEWS if is_for_this and head.lane == PARKED else NOTHING
        early = self._early_by(head, message, now)
        if early is None:
            return NOTHING
        if early:
            await asyncio.sleep(early / 1_000)
            return ""
        if message.v > head.folded or not suffices(head, now, self._limits):
            return NEWS
        return await sweep_log(self._call, self._log, head, now, self._limits)

    def _early_by(self, head: Head, message: Message, now: int) -> int | None:
        """Return the milliseconds until work is due; None if nothing is worth waiting for.

        A timer and a yield are due by the clock of their writer, which may be ahead. A yield is taken all the
        same. To take a timer would only set it again, as often as it comes early; so its worker waits.
        """
        if head.owner or message.v > head.folded or head.inbox:
            return 0
        last = min(now + self._limits.clock_skew_ms, self._call.deadline)
        if head.due_at is None or head.due_at > last:
            return None
        return 0 if _has_yielded(head) else max(head.due_at - now, 0)

    async def _postponed(self, ref: SagaRef) -> bool:
        """Make a head that cannot be read due again after a pause. False: an earlier wake has done so.

        Otherwise it would stay overdue, and every run of the reconciler would
        make one more dead letter of it.
        """
        now = self._clock.now()
        try:
            return await self._call(self._log.postpone, ref, now, now + self._limits.unreadable_pause_ms)
        except EngineFault:
            return True  # the next run sees to it

    async def release(
        self,
        lease: Lease,
        history: History,
        readiness: Readiness,
        *,
        again: bool,
        due: int | None = None,
        is_heard: bool = True,
    ) -> bool:
        """Give it back. False if refused.

        `again`: the saga has more to do at once, so a wake goes with it. `is_heard`: what stands in its inbox
        was taken in.
        """
        await history.save_snapshot(self._limits, self._clock.now())
        now, state = self._clock.now(), history.state
        status = status_of(state, readiness)
        group, before = group_of(status), lease.before
        is_calm = may_sweep_without_lease(state, status)
        if now < state.origin.ends_by:
            due = min(due or state.origin.ends_by, state.origin.ends_by)
        due_at, lane, wake = self._due_next(state, now, again, due, is_calm)
        # Others may have set a time at which the saga is to be looked at. The earliest counts.
        if lease.rested_until is not None and (due_at is not None and lease.rested_until < due_at):
            due_at, lane = lease.rested_until, WORK  # children that were not asked have to wait for that
        if lease.armed > now and (due_at is None or lease.armed < due_at):
            due_at, lane = lease.armed, WORK  # by another writer, whose wake may be lost
        plan = Release(
            folded=state.version,
            status=status,
            group=group,
            group_at=now if group != before.group or _has_ended_anew(before, state, status) else None,
            branch=state.lineage.branch,
            snapshot=history.snapshot,
            due_at=due_at,
            lane=lane,
            quiet_since=state.last_at if lane == SWEEP else 0,
            timer=due or 0 if lane == SWEEP else 0,  # what a look at a quiet saga sets again
            armed=lease.armed,
            inbox=lease.inbox if is_heard else None,
            wake=wake,
            clear_start=state.version > 0,
            build=state.pinned if state.pinned != before.build else None,
            models=state.money.models if state.money.models != before.models else None,
            labels=state.origin.labels,
        )
        is_released = await self._call(self._log.release, lease.ref, lease.owner, lease.epoch, plan)
        if is_released and self._tenure.watchdog is not None:
            self.forget(lease.ref)
        return is_released

    def _due_next(
        self, state: State, now: int, again: bool, due: int | None, is_calm: bool
    ) -> tuple[int | None, str, Wake | None]:
        """Return the next due time of the saga, its lane, and the wake that goes with its release.

        A saga that has not ended is always in the index: a wake may be lost, and then a periodic check (a
        sweep) finds the missed news. A timer replaces that sweep if it comes before it.
        """
        if again:
            return now, WORK, Wake(v=state.version)
        if state.ended is not None:
            return None, WORK, None
        # For a child that stands still, or for the person who has paused it.
        waits = state.parked is not None and (bool(state.parked.until) or state.parked.is_pause)
        if state.stands_still and not waits and self._limits.build and not pending_notices(state):
            # Nothing but other code or a person changes anything. How far away it is tells when it was last tried, also where
            # the end of its days comes before that.
            return now + self._limits.parked_look_ms, PARKED, None
        schedule = SweepSchedule.of(self._limits, is_quiet=is_calm)
        sweep, wake = schedule.next(state.last_at, now), None
        if due is not None:
            if (
                due - now <= self._limits.timer_by_message_ms
            ):  # near enough for a message that is delivered late
                wake = Wake(v=state.version, at=max(due, now + 1))
            if schedule.comes_before(due, sweep):
                return due, TIMER, wake
        return sweep, SWEEP if is_calm else WORK, wake

    async def give_up(self, ref: SagaRef, pause: int, until: int) -> bool:
        """Free what this invocation holds of a saga and leave all else as it was, to be tried again in
        `pause` ms.

        False where that could not be done by `until`: the lease runs out by itself.

        A death would be counted against the saga's steps, and what failed here was the engine. The head says
        what is held: a take whose answer was lost may have happened. For this there is time when there is
        none for anything else. Where such a take was of a dead worker's lease, that death would go with the
        lease: it runs out, and the next worker tells of this one's death in its place.
        """
        if ref in self._owed:
            return False
        try:
            return await self._give_up(self._call.until(until), ref, pause)
        except EngineFault:
            return False

    async def _give_up(self, call: StoreRetrier, ref: SagaRef, pause: int) -> bool:
        for _ in range(3):
            head = await call(self._log.read_head, ref)
            if head is None or head.owner != self._invocation.id:
                if ref in self._held:  # else a take without an answer, which may still land
                    self.forget(ref)
                return True
            due = self._clock.now() + pause
            plan = Release(
                folded=max(head.folded, head.pending_wake),  # being due covers what the pending wake told of
                status=head.status,
                group=head.group,
                group_at=None,
                branch=head.branch,
                snapshot=head.snapshot,
                due_at=min(due, head.armed) if head.armed > self._clock.now() else due,
                armed=head.armed,
                inbox=None,
                clear_start=False,
            )
            if await call(self._log.release, ref, head.owner, head.epoch, plan):
                self.forget(ref)
                return True
        return False
