"""Child sagas as seen by their parent's runner: start them, ask them, cancel them.

The fast path, where the relay tells the parent of a child's end, is relay.py's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from baton.core.decide.decide import Decision, abandoned
from baton.core.decide.handled import takes_failure
from baton.core.limits import Limits
from baton.core.log.events import CancelRequested, ChildReported, Event, Failure, Value
from baton.core.log.state import Child, State
from baton.errors import TooLarge, UserError
from baton.ports import Blobs, Clock, Head, Log, SagaRef, Wake
from baton.runtime.catalog import Catalog
from baton.runtime.history import History
from baton.runtime.quota import Quota
from baton.runtime.start import Beginning, Starter, body_hash
from baton.runtime.store_retrier import StoreRetrier

GOLDEN_RATIO = (
    0.618034  # of beginnings that are so far apart each next one is in the widest gap between the others
)

_NO_ROOM = "no room"


class Children:
    """The children of the sagas of one invocation."""

    def __init__(
        self,
        log: Log,
        blobs: Blobs,
        catalog: Catalog,
        starter: Starter,
        quota: Quota,
        call: StoreRetrier,
        clock: Clock,
        limits: Limits,
        invocation: str,
    ) -> None:
        self._log = log
        self._blobs = blobs
        self._catalog = catalog
        self._starter = starter
        self._quota = quota
        self._call = call
        self._clock = clock
        self._limits = limits
        self._invocation = invocation
        self._took = 0

    async def tend(
        self,
        parent: SagaRef,
        state: State,
        children: Sequence[tuple[str, Child]],
        end: int,
        turn: int,
    ) -> tuple[list[str], list[ChildReported], int | None]:
        """Make sure each child exists: the slots that were looked at, and the ends of those that have ended.

        And when to come back, where the tenant has no room for one: until then, all of them count as looked at.

        It begins elsewhere in each `turn`, so that thousands of them have theirs. Where there is time for some only, and
        those are all at work, the others count as looked at: they have their turn at the next wake or sweep.
        """
        tended: list[str] = []
        reports: list[ChildReported] = []
        is_quiet = True
        if len(children) > self._limits.children_at_once:
            first = int(turn * GOLDEN_RATIO % 1 * len(children))
            children = [*children[first:], *children[:first]]
        for window in self._windows(children, end):
            found = await asyncio.gather(
                *(self._tend_one(parent, state, slot, child) for slot, child in window)
            )
            tended += [slot for slot, _ in window]
            reports += [report for report in found if isinstance(report, ChildReported)]
            if _NO_ROOM in found:
                later = self._clock.now() + self._limits.child_pause_ms
                return [slot for slot, _ in children], reports, later
            is_quiet = is_quiet and not any(found)
        return [slot for slot, _ in children] if tended and is_quiet else tended, reports, None

    async def _tend_one(
        self, parent: SagaRef, state: State, slot: str, child: Child
    ) -> ChildReported | bool | str | None:
        """Its end, if it has ended; True when it was started only now; `_NO_ROOM` when it could not be."""
        ref = SagaRef(parent.tenant, child.saga)
        head = await self._call(self._log.read_head, ref)
        if head is None:
            if not await self._quota.has_room(parent.tenant):
                return _NO_ROOM
            try:
                await self._start(parent, ref, state, slot, child)
            except UserError as error:
                failure = Failure(error.code, error.detail)
                return ChildReported(slot=slot, child=child.saga, status="failed", failure=failure)
            return True
        history = History(self._log, self._blobs, self._call, ref)
        await history.load(head)
        return report_of(history.state, slot)

    async def _start(self, parent: SagaRef, ref: SagaRef, state: State, slot: str, child: Child) -> None:
        if state.depth >= self._limits.nesting_depth:
            raise TooLarge(f"sagas start sagas at most {self._limits.nesting_depth} levels deep")
        definition = await self._catalog.find(parent.tenant, child.workflow)
        given: Any = child.input.v
        if child.input.ref:
            given = msgspec.json.decode(await self._call(self._blobs.get, parent.tenant, child.input.ref))
        program = await self._catalog.program(parent.tenant, state.graph)
        await self._starter.start(
            Beginning(
                ref=ref,
                definition=definition,
                graph=await self._catalog.graph(parent.tenant, definition.graph),
                given=given,
                user=state.user,
                invocation=self._invocation,
                traceparent=state.traceparent,
                body_hash=body_hash([child.workflow, given]),
                parent=str(parent),
                slot=slot,
                depth=state.depth + 1,
                scope=f"{state.scope or state.saga}/{slot}",
                handled=takes_failure(program, state, slot),
            )
        )

    async def cancel(
        self,
        parent: SagaRef,
        state: State,
        decision: Decision,
        asked: set[str],
        end: int,
    ) -> tuple[Event, ...]:
        """Ask the decision's children to stop, several side by side, and add them to those that were `asked` before.

        What to record then: of a part of them when there was no time for the others, and nothing when there is no part.
        """
        children = [pair for pair in decision.cancel if pair[1].saga not in asked]
        for window in self._windows(children, end):
            await asyncio.gather(*(self._cancel_one(parent, state, slot, child) for slot, child in window))
            asked.update(child.saga for _, child in window)
        part = [child for _, child in decision.cancel if child.saga in asked]
        if len(part) == len(decision.cancel):
            return decision.record
        return (abandoned(part),) if part else ()

    def _windows(
        self, children: Sequence[tuple[str, Child]], end: int
    ) -> Iterator[Sequence[tuple[str, Child]]]:
        """So many side by side as may be, for as long as what the last ones took still fits before `end`."""
        width = self._limits.children_at_once
        for start in range(0, len(children), width):
            began = self._clock.now()
            if began + self._took >= end:
                return
            yield children[start : start + width]
            self._took = self._clock.now() - began

    async def _cancel_one(self, parent: SagaRef, state: State, slot: str, child: Child) -> None:
        """One that does not exist yet is started first: a frozen invocation may still be about to start it, and then
        finds it there and cancelled.
        """
        ref = SagaRef(parent.tenant, child.saga)
        head = await self._call(self._log.read_head, ref)
        if head is None:
            try:
                await self._start(parent, ref, state, slot, child)
            except UserError:
                return  # it can never start
            head = await self._call(self._log.read_head, ref)
        if head is not None:
            await self._cancel(parent, ref, head)

    async def _cancel(self, parent: SagaRef, ref: SagaRef, head: Head) -> None:
        history = History(self._log, self._blobs, self._call, ref)
        await history.load(head)
        if history.state.version == 0:
            await self._starter.put_entry_one(head)
            await history.catch_up()
        while history.state.ended is None and history.state.cancel is None:
            now = self._clock.now()
            request = CancelRequested(reason="its parent ended", by=str(parent), at=now, grace_ms=0)
            entry = history.next_entry(
                (request,), at=now, invocation=self._invocation, trace=history.state.traceparent
            )
            if not await history.append(entry, wake=Wake(v=entry.version)):
                await history.catch_up()


def is_news(parent: State, report: ChildReported) -> bool:
    """Whether the parent still waits to hear this."""
    child = parent.children.get(report.slot)
    return child is not None and child.saga == report.child and not child.status


def cut(reports: Sequence[ChildReported], room: int) -> list[ChildReported]:
    """As many reports as one entry has room for; at least one."""
    part: list[ChildReported] = []
    for report in reports:
        room -= len(msgspec.json.encode(report))
        if part and room < 0:
            break
        part.append(report)
    return part


def report_of(child: State, slot: str) -> ChildReported | None:
    """What a parent must know of a child; None while it has not ended."""
    if child.ended is None:
        return None
    output = child.ended.output if child.ended.status == "completed" else Value()
    return ChildReported(
        slot=slot,
        child=child.saga,
        status=child.ended.status,
        output=output,
        failure=child.ended.failure,
        cost=child.spent,
    )
