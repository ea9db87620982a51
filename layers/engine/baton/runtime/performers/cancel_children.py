"""Ask children to stop: those that their parent waits for no longer, before the log says so, and one that a signal calls off."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from baton.core.decide.commands import CancelChildren, Decision, StartHandler
from baton.core.decide.parking import recorded
from baton.core.limits import Limits
from baton.core.log.events import CancelRequested, Event, Failure, SagaEnded
from baton.core.log.opened import Child
from baton.core.log.state import Signal, State, node_of
from baton.errors import UserError
from baton.ports import Head, SagaRef, Wake
from baton.runtime.engine.parts import Parts
from baton.runtime.engine.run import Run
from baton.runtime.log.history import History

OVERDUE = "its time is over"


class ChildCanceller:
    """Cancels several side by side, as many as there is time for."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    async def act_first(self, run: Run, decision: Decision) -> tuple[Event, ...]:
        """What may be recorded of a decision once other sagas were asked or started: see `perform`."""
        record, cancel, start = decision.record, decision.of(CancelChildren), decision.of(StartHandler)
        if cancel is not None:
            record = await self.perform(run, cancel, record)
        if start is None or record != decision.record:
            return record
        parent, child = run.lease.ref, start.child
        try:
            await self._p.children.start_handler(
                parent, SagaRef(parent.tenant, child.saga), run.history.state, child
            )
        except UserError as error:
            why = Failure(error.code, f"the failure handler cannot be started: {error.detail}")
            return tuple(
                replace(event, handler="", unhandled=why) if isinstance(event, SagaEnded) else event
                for event in record
            )
        return record

    async def perform(
        self, run: Run, command: CancelChildren, record: tuple[Event, ...]
    ) -> tuple[Event, ...]:
        """What may be recorded then, where `record` is to follow when all of them have been asked.

        Something of a part of them when there was no time for the others, and nothing when there is no part.
        """
        parent, state, asked = run.lease.ref, run.history.state, run.cancelled
        # One that was asked to stop may have to be asked to undo what it has done, too, before this is recorded.
        children = [pair for pair in command.children if (pair[1].saga, command.undo) not in asked]
        for group in self._p.children.groups(children, run.end):
            await asyncio.gather(
                *(
                    self.cancel(
                        parent,
                        state,
                        slot,
                        child,
                        undo=command.undo and (child.listed if not slot else not _stays(run, slot)),
                        heard=command.heard or child.listed,
                    )
                    for slot, child in group
                )
            )
            asked.update((child.saga, command.undo) for _, child in group)
        part = [child for _, child in command.children if (child.saga, command.undo) in asked]
        if len(part) == len(command.children):
            return record
        return recorded(part, record, heard=command.heard) if part else ()

    async def cancel(
        self,
        parent: SagaRef,
        state: State,
        slot: str,
        child: Child,
        off: Signal | None = None,
        *,
        undo: bool = False,
        heard: bool = False,
        why: str = "its parent ended",
    ) -> int:
        """One that does not exist yet is started first: a frozen invocation may still be about to start it, and then
        finds it there and cancelled. One that is called `off` by a signal has time for its running steps, and says what was done.
        One that has ended is set going to `undo` what it has done, unless that is done where it is `heard` of.

        One that is out of time, and whose time has stood still, is not asked: the end of its time, else 0.
        """
        ref = SagaRef(parent.tenant, child.saga)
        head = await self._p.call(self._p.log.read_head, ref)
        if head is None:
            try:
                await self._p.children.start(parent, ref, state, slot, child)
            except UserError:
                return 0  # it can never start
            head = await self._p.call(self._p.log.read_head, ref)
        if head is None:
            return 0
        late = child if why == OVERDUE else None
        if until := await self._ask(parent, ref, head, off, undo=undo, why=why, late=late):
            return until
        if undo and not heard:
            from baton.runtime.performers.undo_children import take_back  # few sagas undo anything

            await take_back(self._p, ref, str(parent), f"undo/{parent.id}/{state.lineage.branch}")
        return 0

    async def _ask(
        self,
        parent: SagaRef,
        ref: SagaRef,
        head: Head,
        off: Signal | None,
        *,
        undo: bool,
        why: str,
        late: Child | None,
    ) -> int:
        history = History(self._p.log, self._p.blobs, self._p.call, ref)
        await history.load(head)
        if history.state.version == 0:
            await self._p.starter.put_entry_one(head)
            await history.catch_up()
        while history.state.ended is None and not _is_asked(history.state, undo=undo):
            now = self._p.clock.now()
            if late is not None:
                from baton.runtime.performers.look_at_standing import stood  # few children are late

                if until := _end_of(late, *await stood(self._p, ref, now), now, self._p.limits):
                    return until
            request = CancelRequested(reason=why, by=str(parent), at=now, grace_ms=0, undo=undo)
            if off is not None:
                said, grace_ms = f"the signal `{off.name}` called it off", self._p.limits.called_off_grace_ms
                request = replace(request, reason=said, grace_ms=grace_ms, result=True)
            entry = history.next_entry(
                (request,), at=now, invocation=self._p.invocation.id, trace=history.state.origin.traceparent
            )
            if not await history.append(entry, wake=Wake(v=entry.version)):
                await history.catch_up()
        return 0


def _end_of(late: Child, stood: int, lasts: int, now: int, limits: Limits) -> int:
    """End of the time of a child that was parked for a defect meanwhile, or waits for one that was; 0: it is over."""
    more = stood - late.stood
    if more <= 0:
        return 0
    # The longer it stands still, the more seldom it is looked at.
    pace = max(limits.sweep_shortest_ms, min(lasts, limits.parked_look_ms)) if lasts else 0
    return max(late.until + more, now + pace)


def _is_asked(child: State, *, undo: bool) -> bool:
    """Whether it is cancelled, and undoes what it has done where that is wanted."""
    return child.cancel is not None and (child.cancel.undo or not undo)


def _stays(run: Run, slot: str) -> bool:
    """Whether the document says that nothing of this child is undone."""
    node = run.program.nodes.get(node_of(slot)[0])
    return node is not None and node.stays
