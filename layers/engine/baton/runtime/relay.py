"""The relay: every item that came down the stream with a wake becomes a message, or a report to a parent.

Order per saga is the stream's. What cannot be handled is reported by its position, so that the stream
delivers from there again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from baton.core.limits import Limits
from baton.errors import EngineFault
from baton.ports import Clock, Entropy, Inbox, Message, Offload, Queue, Report, SagaRef, Wake
from baton.runtime.invocation.context import StoreRetrier, by_turns

logger = logging.getLogger("baton.relay")


@dataclass(frozen=True, slots=True)
class StreamItem:
    """An item of the stream: its sequence number, its saga and its wake."""

    id: str
    ref: SagaRef
    wake: Wake


class Relay:
    """The relay function's job. It reads no saga."""

    def __init__(
        self, inbox: Inbox, queue: Queue, clock: Clock, entropy: Entropy, offload: Offload, limits: Limits
    ) -> None:
        self._inbox = inbox
        self._queue = queue
        self.clock = clock
        self._entropy = entropy
        self._offload = offload
        self.limits = limits

    async def handle(self, items: Sequence[StreamItem], deadline: int) -> list[str]:
        """Pass all of it on. Return the ids of items that must come again."""
        give_up = deadline - self.limits.answer_ms
        call = StoreRetrier(self._offload, self.clock, self._entropy, self.limits, give_up)
        ended = [item for item in items if item.wake.parent]
        # Side by side: a queue that refuses must not keep a parent from hearing of its children.
        unsent, untold = await asyncio.gather(
            self._send([item for item in items if not item.wake.parent], call),
            self._tell_parents(ended, call),
        )
        return [*unsent, *untold]

    async def _send(self, items: Sequence[StreamItem], call: StoreRetrier) -> list[str]:
        """Send one message per saga and moment: the newest version covers the older ones."""
        newest: dict[tuple[SagaRef, int], StreamItem] = {}
        for item in items:
            delay = delay_of(item.wake, self.clock.now(), self.limits)
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

    async def _tell_parents(self, items: Sequence[StreamItem], call: StoreRetrier) -> list[str]:
        """Leave the ends of children in the inboxes of their parents; only then
        count them there, and wake those that are free.
        """
        told: dict[SagaRef, list[StreamItem]] = {}
        for item in items:
            try:
                told.setdefault(SagaRef.parse(item.wake.parent), []).append(item)
            except ValueError:
                # It will not be readable another time either.
                logger.exception("a parent could not be told", extra={"parent": item.wake.parent})
        if not told:
            return []
        reports = [
            Report(parent, item.wake.window, item.wake.slot, item.ref.id)
            for parent, ended in told.items()
            for item in ended
        ]
        try:
            await call(self._inbox.leave, reports, self.clock.now() + self.limits.report_kept_ms)
        except EngineFault as error:
            logger.warning(
                "parents will be told later", extra={"reports": len(reports), "fault": repr(error)}
            )
            return [item.id for ended in told.values() for item in ended]
        are_free = await asyncio.gather(*(self._announce(parent, call) for parent in told))
        failed: list[str] = []
        wakes: list[StreamItem] = []
        for (parent, ended), is_free in zip(told.items(), are_free, strict=True):
            if is_free is None:
                failed += [item.id for item in ended]
            elif is_free:
                wakes += [StreamItem(item.id, parent, Wake(v=0)) for item in ended]
        return [*failed, *await self._send(wakes, call)]

    async def _announce(self, parent: SagaRef, call: StoreRetrier) -> bool | None:
        """Return true if the parent must be woken; None when it could not be reached."""
        try:
            return await call(self._inbox.announce, parent)
        except EngineFault as error:
            logger.warning("a parent will be told later", extra={"parent": str(parent), "fault": repr(error)})
            return None


def delay_of(wake: Wake, now: int, limits: Limits) -> int | None:
    """Return the whole seconds until `wake.at`, rounded up;
    None when it is further away than a message can wait.
    """
    if wake.at <= now:
        return 0
    if wake.at - now > limits.timer_by_message_ms:
        return None
    return -((now - wake.at) // 1_000)
