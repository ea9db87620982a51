"""The lease on a saga's head: the wake, take, held and release rows of the protocol table.

What is done while the lease is held is the runner's.
"""

from __future__ import annotations

from dataclasses import dataclass

from baton.core.state import State, group_of, status_of
from baton.ports import Clock, Head, Log, Message, Release, SagaRef, Wake
from baton.runtime.history import History
from baton.runtime.limits import Limits
from baton.runtime.patience import Patience


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease that was taken. `before` is the head as it was until then; `armed` as it was read last."""

    ref: SagaRef
    owner: str
    until: int
    before: Head
    armed: int

    @property
    def epoch(self) -> int:
        return self.before.epoch + 1

    @property
    def died(self) -> bool:
        """Whether the previous holder's invocation ended without giving the lease back."""
        return bool(self.before.owner) and self.before.owner != self.owner


@dataclass(frozen=True, slots=True)
class Invocation:
    """One run of the worker function. `deadline` is hard: at it, Lambda kills the process."""

    id: str
    started: int
    deadline: int
    cold: bool = False


NO_SAGA, NOTHING_NEW, NUDGED, HELD, EXPIRED = "no-saga", "nothing-new", "nudged", "held", "expired"


class Leases:
    """The lease protocol for one invocation."""

    def __init__(
        self, log: Log, clock: Clock, limits: Limits, call: Patience, invocation: Invocation
    ) -> None:
        self._log = log
        self._clock = clock
        self._limits = limits
        self._call = call
        self._invocation = invocation

    async def acquire(self, ref: SagaRef, message: Message, *, alone: bool) -> Lease | str:
        """The lease, or in one word why this wake has nothing to do.

        An expired lease is only taken by an invocation that works for this saga alone: whatever killed
        its last invocation must not take others along.
        """
        owner = self._invocation.id
        until = self._invocation.deadline + self._limits.lease_grace
        while True:
            head = await self._call(self._log.read_head, ref)
            now = self._clock.now()
            if head is None:
                return NO_SAGA
            if head.owner and head.owner != owner and head.until > now:
                if message.v <= head.nudge:
                    return HELD  # the holder knows of this already, or the wake knows no version
                if await self._call(self._log.nudge, ref, head.owner, head.epoch, message.v):
                    return NUDGED
                continue
            if not head.owner and message.v <= head.folded and (head.due_at is None or head.due_at > now):
                return NOTHING_NEW
            if head.owner and head.owner != owner and not alone:
                return EXPIRED
            before = await self._call(self._log.take, ref, owner, until, now)
            if before is not None:
                return Lease(ref, owner, until, before, before.armed)

    async def release(self, lease: Lease, history: History, *, again: bool, due: int | None = None) -> bool:
        """Give it back. `again`: the saga has more to do at once, so a wake goes with it. False if refused."""
        await history.save_snapshot(self._limits)
        plan = self.plan(lease, history, again=again, due=due)
        return await self._call(self._log.release, lease.ref, lease.owner, lease.epoch, plan)

    def plan(self, lease: Lease, history: History, *, again: bool, due: int | None) -> Release:
        """What the head will say once the lease is free."""
        state, now = history.state, self._clock.now()
        status = status_of(state)
        group = group_of(status)
        next_due, wake = self._next(state, now, again, due)
        armed = lease.armed
        if armed > now:
            next_due = armed if next_due is None else min(next_due, armed)
        return Release(
            folded=state.version,
            status=status,
            group=group,
            group_at=now if group != lease.before.group else None,
            branch=state.branch,
            snapshot=history.snapshot,
            due_at=next_due,
            armed=armed,
            wake=wake,
            clear_start=state.version > 0,
        )

    def untouched(self, lease: Lease) -> Release:
        """A release that leaves everything as it was before, for a log that this version cannot read."""
        head = lease.before
        return Release(
            folded=head.folded,
            status=head.status,
            group=head.group,
            group_at=None,
            branch=head.branch,
            snapshot=head.snapshot,
            due_at=self._clock.now() + self._limits.sweep_longest // 24,
            armed=lease.armed,
            clear_start=False,
        )

    def _next(self, state: State, now: int, again: bool, due: int | None) -> tuple[int | None, Wake | None]:
        if again:
            return now, Wake(v=state.version)
        if state.ended is not None:
            return None, None
        idle = now - state.last_at
        sweep = now + max(self._limits.sweep_shortest, min(idle, self._limits.sweep_longest))
        if due is None or due > sweep:
            return sweep, None
        if due - now <= self._limits.timer_by_message:
            return due, Wake(v=state.version, at=max(due, now + 1))
        return due, None
