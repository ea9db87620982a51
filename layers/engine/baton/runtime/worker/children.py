"""Performers of commands about child sagas."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec.structs import replace

from baton.core.decide.context import Standing
from baton.core.decide.decision import CancelChildren, LookAtStanding, StartHandler, TendChildren
from baton.core.limits import Limits
from baton.core.log.events import CancelRequested, ChildOverdue, ChildReported, Failure
from baton.core.log.folding.received import cancelling_signal
from baton.core.log.records import About, Child, Value
from baton.core.log.slots import Slot
from baton.core.log.state import Signal, State
from baton.core.on_demand import OnDemand
from baton.errors import UserError
from baton.ports import Head, SagaRef, Wake
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.engine.run import LogWriter, Run
from baton.runtime.log.history import History

if TYPE_CHECKING:
    from baton.runtime.starting import children as starting
    from baton.runtime.worker import undo_children
else:
    starting = OnDemand("baton.runtime.starting.children")
    undo_children = OnDemand("baton.runtime.worker.undo_children")

OVERDUE = "its time is over"


class Asked(NamedTuple):
    """Result of the cancellation of a child.

    `now`: it was asked only now. `until`: the new end of the time of an overdue child, whose time has stood
    still: it is not asked.
    """

    now: bool = False
    until: int = 0


class ChildCanceller:
    """Performer that cancels children concurrently, as many as time allows."""

    def __init__(self, scope: InvocationScope, writer: LogWriter) -> None:
        self._p = scope
        self._writer = writer

    async def perform(self, run: Run, command: CancelChildren) -> bool:
        """Return true when children were asked, and false if time suffices for none.

        A child of the saga that can never start is reported as failed: nothing of it is undone.
        """
        parent, state, run.wants_more = run.lease.ref, run.history.state, True
        for group in self._p.children.groups(command.children, run.end):
            asked = await asyncio.gather(
                *(
                    self.cancel(
                        parent,
                        state,
                        slot,
                        child,
                        undo=command.revert and (bool(slot) or child.listed),
                    )
                    for slot, child in group
                )
            )
            reports = {
                child.saga: _never_started(slot, child, one)
                for (slot, child), one in zip(group, asked, strict=True)
                if slot and isinstance(one, Failure)
            }
            run.cancelled.update(
                (child.saga, command.revert) for _, child in group if child.saga not in reports
            )
            await _report(self._p, self._writer, run, list(reports.values()))
            run.wants_more = False
        return not run.wants_more

    async def cancel(
        self,
        parent: SagaRef,
        state: State,
        slot: str,
        child: Child,
        off: Signal | None = None,
        *,
        undo: bool = False,
        why: str = "its parent stopped it",
    ) -> Asked | Failure:
        """Cancel one child.
        Return the reason why it can never start, if it does not exist.

        A child that does not exist yet is made cancelled, and runs nothing: a frozen invocation may still be
        about to start it, and then finds it. A child cancelled by the signal `off` has time for its running
        steps, and reports what was done. One that has ended is left as it is: its parent has it in its list.
        """
        ref = SagaRef(parent.tenant, child.saga)
        request = CancelRequested(reason=why, by=str(parent), at=0, grace_ms=0, undo=undo)
        if off is not None:
            said, grace_ms = f"the signal `{off.name}` called it off", self._p.limits.called_off_grace_ms
            request = replace(request, reason=said, grace_ms=grace_ms, result=True)
        head = await self._p.call(self._p.log.read_head, ref)
        is_made = head is None
        if head is None:
            try:
                now = replace(request, at=self._p.clock.now())
                await self._p.children.start(parent, ref, state, slot, child, cancel=now)
            except UserError as error:
                return Failure(error.code, error.detail)
            head = await self._p.call(self._p.log.read_head, ref)
        assert head is not None, "it has been started"
        late = child if why == OVERDUE else None
        asked = await self._ask(ref, head, request, late)
        return asked._replace(now=is_made or asked.now)

    async def _ask(self, ref: SagaRef, head: Head, request: CancelRequested, late: Child | None) -> Asked:
        history = History(self._p.log, self._p.blobs, self._p.call, ref)
        await history.load(head)
        if history.state.version == 0:
            await self._p.starter.put_entry_one(head)
            await history.catch_up()
        while history.state.ended is None and not _is_asked(history.state, undo=request.undo):
            now = self._p.clock.now()
            if late is not None and (
                until := _end_of(late, *await stood(self._p, ref, now), now, self._p.limits)
            ):
                return Asked(until=until)
            entry = history.next_entry(
                (replace(request, at=now),),
                at=now,
                invocation=self._p.invocation.id,
                trace=history.state.origin.traceparent,
            )
            if await history.append(entry, wake=Wake(v=entry.version)):
                return Asked(now=True)
            await history.catch_up()
        return Asked()


class HandlerStarter:
    """Performer that starts the failure handler of a saga."""

    def __init__(self, scope: InvocationScope) -> None:
        self._p = scope

    async def perform(self, run: Run, command: StartHandler) -> bool:
        """Return true: the saga can end now."""
        parent, child = run.lease.ref, command.child
        ref, failure = SagaRef(parent.tenant, child.saga), None
        try:
            await self._p.children.start_detached(parent, ref, run.history.state, child)
        except UserError as error:
            failure = Failure(error.code, f"the failure handler cannot be started: {error.detail}")
        run.handlers[child.saga] = failure
        return True


def _end_of(late: Child, stood: int, lasts: int, now: int, limits: Limits) -> int:
    """Return the new end of the time of a child that was parked for a defect meanwhile, or waits for one that
    was.

    0: its time is over.
    """
    more = stood - late.stood
    if more <= 0:
        return 0
    # The longer it stands still, the more seldom it is looked at.
    pace = max(limits.sweep_shortest_ms, min(lasts, limits.parked_look_ms)) if lasts else 0
    return max(late.until + more, now + pace)


def _is_asked(child: State, *, undo: bool) -> bool:
    """Return true if the child is cancelled, and undoes its steps if that is wanted."""
    return child.cancel is not None and (child.cancel.undo or not undo)


def _stays(run: Run, slot: str) -> bool:
    """Return true if the document disables rollback for this child."""
    return run.program.nodes[Slot.parse(slot).node].stays


GOLDEN_RATIO = (
    0.618034  # of beginnings that are so far apart each next one is in the widest gap between the others
)

_NO_ROOM = "no room"
_WAITS = "waits"
Answer: TypeAlias = ChildReported | ChildOverdue | bool | str | None


class ChildTender:
    """Performer that starts children, asks each open one once, and asks again those with a report in the
    inbox.
    """

    def __init__(self, scope: InvocationScope, writer: LogWriter) -> None:
        self._p = scope
        self._writer = writer
        self._canceller = ChildCanceller(scope, writer)

    async def perform(self, run: Run, command: TendChildren) -> bool:
        """Return true when one of them has ended, or has rolled back for a saga that rolls back."""
        if Slot.parse(command.children[0][0]).scope:
            return await undo_children.ChildUndoer(self._p, self._writer).perform(run, command)
        await self._look(run)
        if run.heard != run.lease.inbox and await self._take_in(run, command.children):
            return True
        to_ask = [(slot, child) for slot, child in command.children if run.mark(child) not in run.asked]
        if to_ask and await self._tend(run, to_ask):
            return True
        if run.heard != run.lease.inbox or any(run.mark(child) not in run.asked for _, child in to_ask):
            run.wants_more = True
        return False

    async def _look(self, run: Run) -> None:
        """Read announcements from the head at intervals, because no append meets them."""
        now, every = self._p.clock.now(), self._p.limits.news_every_ms
        if now >= run.looked_at + every:
            head = await self._p.call(self._p.log.read_head, run.lease.ref)
            run.looked_at = now
            if head is not None and head.epoch == run.lease.epoch:
                run.lease = replace(run.lease, inbox=head.inbox)
        run.looks_at = run.looked_at + every

    async def _take_in(self, run: Run, children: Sequence[tuple[str, Child]]) -> bool:
        """Ask the children with a report in the inbox. Return true when one of them has ended."""
        seen, there = run.lease.inbox, set[tuple[str, str]]()
        windows = sorted({child.window for _, child in children})
        read = 0
        for group in self._p.children.groups(windows, run.end):
            pages = (self._p.call(self._p.inbox.read, run.lease.ref, window) for window in group)
            there.update((one.slot, one.child) for page in await asyncio.gather(*pages) for one in page)
            read += len(group)
        ended = [(slot, child) for slot, child in children if (slot, child.saga) in there]
        found = await self._ask(run, ended)
        if read == len(windows) and (len(found) == len(ended) or _NO_ROOM in found):
            run.heard = seen  # those that stand there and are gone are started another time
        return await self._report(run, found)

    async def _tend(self, run: Run, children: Sequence[tuple[str, Child]]) -> bool:
        """Start or ask the children.
        Return true when one of them has ended.

        The order begins at another child in each lease, so that among thousands each gets its turn. If time
        suffices for some only, and those are all running, the others count as asked: they follow at the next
        wake or sweep. The same holds if the tenant has no room for a child, and if the child before a fork
        has not ended.
        """
        if len(children) > self._p.limits.children_at_once:
            first = int(run.lease.epoch * GOLDEN_RATIO % 1 * len(children))
            children = [*children[first:], *children[:first]]
        found = await self._ask(run, children)
        has_room = _NO_ROOM not in found
        if not has_room or _WAITS in found:
            run.put_off = self._p.clock.now() + self._p.limits.child_pause_ms
        is_quiet = bool(found) and not any(found)
        tended = children[: len(found)] if has_room and not is_quiet else children
        run.asked.update(run.mark(child) for _, child in tended)
        return await self._report(run, found)

    async def _ask(self, run: Run, children: Sequence[tuple[str, Child]]) -> list[Answer]:
        """Return the answer of each child, as far as time allows; `_NO_ROOM` ends the list."""
        state, found = run.history.state, list[Answer]()
        for group in self._p.children.groups(children, run.end):
            asked = (self._tend_one(run, state, slot, child) for slot, child in group)
            found += await asyncio.gather(*asked)
            if _NO_ROOM in found:
                break
        return found

    async def _report(self, run: Run, found: Sequence[Answer]) -> bool:
        """Append the ends of children. Return true if any has ended."""
        reports = [one for one in found if isinstance(one, ChildReported)]
        told = bool(reports)
        if later := [one for one in found if isinstance(one, About)]:
            while not await self._writer.append(run.lease, run.history, later):
                if await self._writer.catch_up(run):
                    break
            told = True
        await _report(self._p, self._writer, run, reports)
        return told

    async def _tend_one(self, run: Run, state: State, slot: str, child: Child) -> Answer:
        """Return the report of a child that has ended; true if it was started, or asked to stop, only now;
        `_NO_ROOM` if it could not be started, `_WAITS` if it must start later.
        """
        parent, off = run.lease.ref, cancelling_signal(state, child)
        asked: Asked | Failure = Asked()
        if child.detached:
            return await self._start_detached(run, state, slot, child)
        if state.is_stopping:
            undo = state.will_revert and not _stays(run, slot)
            asked = await self._canceller.cancel(parent, state, slot, child, undo=undo)
        elif off is not None:
            asked = await self._canceller.cancel(parent, state, slot, child, off)
        elif child.overdue:
            undo = not _stays(run, slot)
            asked = await self._canceller.cancel(parent, state, slot, child, undo=undo, why=OVERDUE)
        if isinstance(asked, Failure):
            return _never_started(slot, child, asked)
        if asked.until:
            return ChildOverdue(**Slot.parse(slot).fields, at=self._p.clock.now(), until=asked.until)
        if asked.now:
            return True  # it reports its end
        ref = SagaRef(parent.tenant, child.saga)
        head = await self._p.call(self._p.log.read_head, ref)
        if head is None:
            if not await self._p.quota.has_room(parent.tenant):
                return _NO_ROOM
            try:
                has_begun = await self._p.children.start(parent, ref, state, slot, child, waits=True)
            except UserError as error:
                return _never_started(slot, child, Failure(error.code, error.detail))
            return has_begun or _WAITS
        history = History(self._p.log, self._p.blobs, self._p.call, ref)
        await history.load(head)
        return starting.report_of(history.state, slot)

    async def _start_detached(self, run: Run, state: State, slot: str, child: Child) -> Answer:
        """Start a saga without a parent, and report that it exists."""
        parent, ref = run.lease.ref, SagaRef(run.lease.ref.tenant, child.saga)
        if await self._p.call(self._p.log.read_head, ref) is None and not await self._p.quota.has_room(
            ref.tenant
        ):
            return _NO_ROOM
        try:
            await self._p.children.start_detached(parent, ref, state, child, slot)
        except UserError as error:
            return _never_started(slot, child, Failure(error.code, error.detail))
        return ChildReported(slot=slot, child=child.saga, status="completed", output=Value(v=child.saga))


def _never_started(slot: str, child: Child, failure: Failure) -> ChildReported:
    return ChildReported(slot=slot, child=child.saga, status="failed", failure=failure)


async def _report(
    scope: InvocationScope, writer: LogWriter, run: Run, reports: Sequence[ChildReported]
) -> None:
    """Append those of the ends of children that the saga still waits for."""
    while reports := [report for report in reports if starting.is_news(run.history.state, report)]:
        part = starting.fitting_reports(reports, scope.limits.entry_bytes)
        appended = await writer.append(run.lease, run.history, part)
        if not appended and await writer.catch_up(run):
            break


AT_ONCE = 16


class StandingLooker:
    """Performer that measures the standstill of children, and keeps the result in the run."""

    def __init__(self, scope: InvocationScope) -> None:
        self._p = scope

    async def perform(self, run: Run, command: LookAtStanding) -> bool:
        now = self._p.clock.now()
        longest = Standing(now)
        for start in range(0, len(command.children), AT_ONCE):
            part = command.children[start : start + AT_ONCE]
            looks = (stood(self._p, SagaRef(run.lease.ref.tenant, child), now) for child in part)
            found = await asyncio.gather(*looks)
            for child, (ms, lasts) in zip(part, found, strict=True):
                if ms > longest.ms:
                    longest = Standing(now, ms, child, lasts)
        run.found = replace(run.found, standing=longest)
        return True


async def stood(scope: InvocationScope, ref: SagaRef, now: int) -> tuple[int, int]:
    """Return how long the time of a saga, or of one that it waits for, has stood still, and the part of it
    without a break until now (ms).
    """
    head = await scope.call(scope.log.read_head, ref)
    if head is None:
        return 0, 0
    history = History(scope.log, scope.blobs, scope.call, ref)
    await history.load(head)
    state: State = history.state
    if state.ended is not None:
        return 0, 0
    standing = now - state.parked.at if state.parked is not None and state.stands_still else 0
    longest = (state.stood + standing, standing)
    for work in state.open.values():
        if work.orphan is not None:
            longest = max(longest, await stood(scope, SagaRef(ref.tenant, work.orphan.saga), now))
    return longest
