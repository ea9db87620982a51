"""The relay: every item that came down the stream with a wake becomes a message, or word to a parent.

Order per saga is the stream's. What cannot be handled is reported by its position, so that the stream
delivers from there again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from baton.core.limits import Limits
from baton.core.log.events import ChildReported
from baton.errors import CorruptLog, EngineFault, UnknownEntry
from baton.ports import Message, Queue, SagaRef, Wake
from baton.runtime.children import cut, is_news, report_of
from baton.runtime.history import History
from baton.runtime.parts import Engine
from baton.runtime.store_retrier import StoreRetrier
from baton.runtime.turns import by_turns

logger = logging.getLogger("baton.relay")


@dataclass(frozen=True, slots=True)
class StreamItem:
    """An item of the stream: its sequence number, its saga and its wake."""

    id: str
    ref: SagaRef
    wake: Wake


class Relay:
    """The relay function's job."""

    def __init__(self, engine: Engine, queue: Queue) -> None:
        self._engine = engine
        self._queue = queue

    async def handle(self, items: Sequence[StreamItem], request: str, deadline: int) -> list[str]:
        """Pass all of it on. Returns the ids of items that must come again."""
        engine = self._engine
        give_up = deadline - engine.limits.answer_ms
        call = StoreRetrier(engine.offload, engine.clock, engine.entropy, engine.limits, give_up)
        ended = [item for item in items if item.wake.parent]
        # Side by side: a queue that refuses must not keep a parent from hearing of its children.
        unsent, untold = await asyncio.gather(
            self._send([item for item in items if not item.wake.parent], call),
            self._tell_parents(ended, request, call),
        )
        return [*unsent, *untold]

    async def _send(self, items: Sequence[StreamItem], call: StoreRetrier) -> list[str]:
        """One message per saga and moment: the newest version says all that older ones say."""
        newest: dict[tuple[SagaRef, int], StreamItem] = {}
        for item in items:
            delay = delay_of(item.wake, self._engine.clock.now(), self._engine.limits)
            if delay is not None:
                known = newest.get((item.ref, delay))
                if known is None or known.wake.v <= item.wake.v:
                    newest[item.ref, delay] = item
        keys = by_turns(newest, lambda key: key[0].tenant)
        messages = [(Message(str(ref), newest[ref, delay].wake.v), delay) for ref, delay in keys]
        if not messages:
            return []
        try:
            refused = await call(self._queue.send, messages)
        except EngineFault as error:
            logger.warning(
                "wakes will be sent later", extra={"messages": len(messages), "fault": repr(error)}
            )
            return [item.id for item in items]
        refs = {keys[position][0] for position in refused}
        return [item.id for item in items if item.ref in refs]

    async def _tell_parents(self, items: Sequence[StreamItem], request: str, call: StoreRetrier) -> list[str]:
        """Append the ends of children, all those of one parent in one entry."""
        by_parent: dict[str, list[StreamItem]] = {}
        for item in items:
            by_parent.setdefault(item.wake.parent, []).append(item)
        failed: list[str] = []
        for parent, ended in by_parent.items():
            try:
                await self._tell(SagaRef.parse(parent), ended, request, call)
            except (UnknownEntry, CorruptLog, ValueError):
                # The parent asks its children itself when it is due, so nothing is lost by going on.
                logger.exception("a parent could not be told", extra={"parent": parent})
            except EngineFault as error:
                logger.warning("a parent will be told later", extra={"parent": parent, "fault": repr(error)})
                failed += [item.id for item in ended]
        return failed

    async def _tell(
        self, parent: SagaRef, ended: Sequence[StreamItem], request: str, call: StoreRetrier
    ) -> None:
        log, clock = self._engine.log, self._engine.clock
        reports = [report for item in ended if (report := await self._report(item, call)) is not None]
        head = await call(log.read_head, parent)
        if head is None:
            return
        history = History(log, self._engine.blobs, call, parent)
        await history.load(head)
        while True:
            news = [report for report in reports if is_news(history.state, report)]
            if not news:
                return
            part = cut(news, self._engine.limits.entry_bytes)
            entry = history.next_entry(
                part, at=clock.now(), invocation=request, trace=history.state.origin.traceparent
            )
            if not await history.append(entry, wake=Wake(v=entry.version)):
                await history.catch_up()

    async def _report(self, item: StreamItem, call: StoreRetrier) -> ChildReported | None:
        head = await call(self._engine.log.read_head, item.ref)
        if head is None:
            return None
        history = History(self._engine.log, self._engine.blobs, call, item.ref)
        await history.load(head)
        return report_of(history.state, item.wake.slot)


def delay_of(wake: Wake, now: int, limits: Limits) -> int | None:
    """Whole seconds until `wake.at`, rounded up; None when it is further away than a message can wait."""
    if wake.at <= now:
        return 0
    if wake.at - now > limits.timer_by_message_ms:
        return None
    return -((now - wake.at) // 1_000)
