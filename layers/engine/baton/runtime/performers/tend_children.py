"""Make sure that each child of a saga exists, and hear from those that have ended.

The fast path, where the relay tells the parent of a child's end, is relay.py's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from baton.core.decide.commands import TendChildren
from baton.core.log.events import ChildReported, Failure
from baton.core.log.state import State
from baton.core.log.work import Child
from baton.errors import UserError
from baton.ports import SagaRef
from baton.runtime.children import cut, is_news, report_of
from baton.runtime.history import History
from baton.runtime.log_writer import LogWriter
from baton.runtime.parts import Parts
from baton.runtime.run import Run

GOLDEN_RATIO = (
    0.618034  # of beginnings that are so far apart each next one is in the widest gap between the others
)

_NO_ROOM = "no room"


class ChildTender:
    """Starts children that are to be started, and asks open ones once."""

    def __init__(self, parts: Parts, writer: LogWriter) -> None:
        self._p = parts
        self._children = parts.children
        self._writer = writer

    async def perform(self, run: Run, command: TendChildren) -> bool:
        """True when one of them has ended."""
        to_ask = [pair for pair in command.children if pair[0] not in run.asked]
        if to_ask and await self._tend_and_report(run, to_ask):
            return True
        if any(slot not in run.asked for slot, _ in command.children):
            run.wants_more = True
        return False

    async def _tend_and_report(self, run: Run, children: Sequence[tuple[str, Child]]) -> bool:
        tended, reports, run.put_off = await self._tend(run, children)
        run.asked.update(tended)
        told = bool(reports)
        while reports := [report for report in reports if is_news(run.history.state, report)]:
            part = cut(reports, self._p.limits.entry_bytes)
            appended = await self._writer.append(run.lease, run.history, part)
            if not appended and await self._writer.catch_up(run):
                break
        return told

    async def _tend(
        self, run: Run, children: Sequence[tuple[str, Child]]
    ) -> tuple[list[str], list[ChildReported], int | None]:
        """The slots that were looked at, and the ends of those that have ended.

        And when to come back, where the tenant has no room for one: until then, all of them count as looked at.

        It begins elsewhere in each lease, so that thousands of them have theirs. Where there is time for some only, and
        those are all running, the others count as looked at: they follow at the next wake or sweep.
        """
        state = run.history.state
        tended: list[str] = []
        reports: list[ChildReported] = []
        is_quiet = True
        if len(children) > self._p.limits.children_at_once:
            first = int(run.lease.epoch * GOLDEN_RATIO % 1 * len(children))
            children = [*children[first:], *children[:first]]
        for window in self._children.windows(children, run.end):
            found = await asyncio.gather(
                *(self._tend_one(run.lease.ref, state, slot, child) for slot, child in window)
            )
            tended += [slot for slot, _ in window]
            reports += [report for report in found if isinstance(report, ChildReported)]
            if _NO_ROOM in found:
                later = self._p.clock.now() + self._p.limits.child_pause_ms
                return [slot for slot, _ in children], reports, later
            is_quiet = is_quiet and not any(found)
        return [slot for slot, _ in children] if tended and is_quiet else tended, reports, None

    async def _tend_one(
        self, parent: SagaRef, state: State, slot: str, child: Child
    ) -> ChildReported | bool | str | None:
        """Its end, if it has ended; True when it was started only now; `_NO_ROOM` when it could not be."""
        ref = SagaRef(parent.tenant, child.saga)
        head = await self._p.call(self._p.log.read_head, ref)
        if head is None:
            if not await self._p.quota.has_room(parent.tenant):
                return _NO_ROOM
            try:
                await self._children.start(parent, ref, state, slot, child)
            except UserError as error:
                failure = Failure(error.code, error.detail)
                return ChildReported(slot=slot, child=child.saga, status="failed", failure=failure)
            return True
        history = History(self._p.log, self._p.blobs, self._p.call, ref)
        await history.load(head)
        return report_of(history.state, slot)
