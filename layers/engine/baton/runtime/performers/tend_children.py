"""Make sure that each child of a saga exists, call off those that a signal is for, and hear from those that have ended.

What the relay leaves in the inbox, of the children that have ended, is runtime/relay.py's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from baton.core.decide.commands import TendChildren
from baton.core.log.events import ChildOverdue, ChildReported, Failure
from baton.core.log.folding.signal_folds import call_off
from baton.core.log.opened import Child
from baton.core.log.records import About
from baton.core.log.state import State, item_of, node_of
from baton.errors import UserError
from baton.ports import SagaRef
from baton.runtime.engine.log_writer import LogWriter
from baton.runtime.engine.parts import Parts
from baton.runtime.engine.run import Run
from baton.runtime.log.history import History
from baton.runtime.performers.cancel_children import OVERDUE, ChildCanceller

GOLDEN_RATIO = (
    0.618034  # of beginnings that are so far apart each next one is in the widest gap between the others
)

_NO_ROOM = "no room"
_WAITS = "waits"
Answer: TypeAlias = ChildReported | ChildOverdue | bool | str | None


class ChildTender:
    """Starts children that are to be started, asks open ones once, and those again whose end stands in the inbox."""

    def __init__(self, parts: Parts, writer: LogWriter, canceller: ChildCanceller) -> None:
        self._p = parts
        self._writer = writer
        self._canceller = canceller

    def begin(self, run: Run) -> None:
        """A saga that only its inbox has set going has started its children, and asks no others but those that stand there."""
        run.looked_at = self._p.clock.now()
        if run.lease.rested_until is not None:
            run.asked.update(child.saga for child in run.history.state.children.values())

    async def perform(self, run: Run, command: TendChildren) -> bool:
        """True when one of them has ended."""
        await self._look(run)
        if run.heard != run.lease.inbox and await self._take_in(run, command.children):
            return True
        state = run.history.state
        to_ask = [pair for pair in command.children if _mark(state, *pair) not in run.asked]
        if to_ask and await self._tend(run, to_ask):
            return True
        if run.heard != run.lease.inbox or any(_mark(state, *pair) not in run.asked for pair in to_ask):
            run.wants_more = True
        return False

    async def _look(self, run: Run) -> None:
        """Read now and then what is announced on the head, because no append meets it."""
        now, every = self._p.clock.now(), self._p.limits.news_every_ms
        if now >= run.looked_at + every:
            head = await self._p.call(self._p.log.read_head, run.lease.ref)
            run.looked_at = now
            if head is not None and head.epoch == run.lease.epoch:
                run.lease = replace(run.lease, inbox=head.inbox)
        run.looks_at = run.looked_at + every

    async def _take_in(self, run: Run, children: Sequence[tuple[str, Child]]) -> bool:
        """Ask the children whose ends stand in the inbox. True when one of them has ended."""
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
        """Start or ask them. True when one of them has ended.

        It begins elsewhere in each lease, so that thousands of them have theirs. Where there is time for some only, and
        those are all running, the others count as looked at: they follow at the next wake or sweep. So they do where the
        tenant has no room for one, and where the child before a fork is still to end.
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
        run.asked.update(_mark(run.history.state, *pair) for pair in tended)
        return await self._report(run, found)

    async def _ask(self, run: Run, children: Sequence[tuple[str, Child]]) -> list[Answer]:
        """What each of them says, as far as there is time; `_NO_ROOM` is the end of it."""
        state, found = run.history.state, list[Answer]()
        for group in self._p.children.groups(children, run.end):
            asked = (self._tend_one(run, state, slot, child) for slot, child in group)
            found += await asyncio.gather(*asked)
            if _NO_ROOM in found:
                break
        return found

    async def _report(self, run: Run, found: Sequence[Answer]) -> bool:
        """Append the ends. True when there are any."""
        from baton.runtime.starting.children import cut, is_news  # not every saga has children

        reports = [one for one in found if isinstance(one, ChildReported)]
        told = bool(reports)
        if later := [one for one in found if isinstance(one, About)]:
            while not await self._writer.append(run.lease, run.history, later):
                if await self._writer.catch_up(run):
                    break
            told = True
        while reports := [report for report in reports if is_news(run.history.state, report)]:
            part = cut(reports, self._p.limits.entry_bytes)
            appended = await self._writer.append(run.lease, run.history, part)
            if not appended and await self._writer.catch_up(run):
                break
        return told

    async def _tend_one(self, run: Run, state: State, slot: str, child: Child) -> Answer:
        """Its end, if it has ended; True when it was started only now; `_NO_ROOM` when it could not be, `_WAITS` when it is to be later."""
        parent = run.lease.ref
        if (off := call_off(state, child)) is not None:
            await self._canceller.cancel(parent, state, slot, child, off)
        elif child.overdue:
            undo = not run.program.nodes[node_of(slot)[0]].stays
            until = await self._canceller.cancel(
                parent, state, slot, child, undo=undo, heard=True, why=OVERDUE
            )
            if until:
                name, iteration = node_of(slot)
                place: dict[str, Any] = {"node": name, "iteration": iteration, "item": item_of(slot)}
                return ChildOverdue(at=self._p.clock.now(), until=until, **place)
        ref = SagaRef(parent.tenant, child.saga)
        head = await self._p.call(self._p.log.read_head, ref)
        if head is None:
            if not await self._p.quota.has_room(parent.tenant):
                return _NO_ROOM
            try:
                has_begun = await self._p.children.start(parent, ref, state, slot, child, waits=True)
            except UserError as error:
                failure = Failure(error.code, error.detail)
                return ChildReported(slot=slot, child=child.saga, status="failed", failure=failure)
            return has_begun or _WAITS
        history = History(self._p.log, self._p.blobs, self._p.call, ref)
        await history.load(head)
        from baton.runtime.starting.children import report_of

        return report_of(history.state, slot)


def _mark(state: State, slot: str, child: Child) -> str:
    """What stands for a child that was asked: another try is asked too, and one that is to stop once more."""
    return child.saga if call_off(state, child) is None and not child.overdue else f"{child.saga} off"
