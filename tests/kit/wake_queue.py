"""The queue of wakes of a simulated deployment: delays, visibility, redelivery, and what becomes of too many of them.

Who works on a batch is the world's business, which invocation does what is the engine's.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from baton.errors import Throttled
from baton.local.queues import OF_LATE_S, fairest
from baton.ports import Message, tenant_of
from tests.kit.process import REFUSES

if TYPE_CHECKING:
    from tests.kit.world import World

MAX_RECEIVES = 5


@dataclass(eq=False)
class _Sent:
    """A message in the queue, with how often it was received."""

    message: Message
    receives: int = 0
    is_deleted: bool = False


class WakeQueue:
    """A `Queue` that hands its messages to the workers of a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._visible: list[_Sent] = []
        self._used: Counter[str] = Counter()
        self._slots = asyncio.Semaphore(world.slots) if world.slots else None

    @property
    def visibility_s(self) -> float:
        """As the template's, a little longer than a lease."""
        limits = self._world.limits
        return 1 + (limits.lease_grace_ms + limits.clock_skew_ms) / 1_000 + self._world.timeout_s

    def send(self, messages: Sequence[tuple[Message, int]]) -> Sequence[int]:
        if self._world.outage_of("sqs") == REFUSES:
            raise Throttled("not now")
        for message, delay in messages:
            fate = self._world.plan.message_fate()
            if fate == "lost":
                continue
            late = 40 if fate == "late" else 0
            self._world.spawn(self.deliver(message, delay + late))
            if fate == "twice":
                self._world.spawn(self.deliver(message, delay))
        return ()

    def backlog(self) -> int:
        return sum(not sent.is_deleted for sent in self._visible)

    async def deliver(self, message: Message, delay_s: float, receives: int = 0) -> None:
        """A message's life begins: visible after its delay. `receives`: as if it had been received so often."""
        await asyncio.sleep(delay_s)
        if self._world.queue_on:
            await self._show(_Sent(message, receives))

    async def _show(self, sent: _Sent) -> None:
        """Batched with others it is received, and visible again unless it is deleted in time."""
        self._visible.append(sent)
        await asyncio.sleep(0.003)
        if self._slots is None:
            await self._receive(sent)
            return
        async with self._slots:
            await self._receive(sent)

    async def _receive(self, sent: _Sent) -> None:
        """A worker has time: it gets a batch, unless this message is in another's already."""
        self._visible = [other for other in self._visible if not other.is_deleted]
        if sent not in self._visible:
            return
        batch = self._batch()
        self._visible = [other for other in self._visible if other not in batch]
        self._used.update(tenant_of(received.message) for received in batch)
        for received in batch:
            received.receives += 1
            self._world.spawn(self._show_again(received))
        await asyncio.sleep(self._world.start_late_s)
        receives = [received.receives for received in batch]
        failed = await self._world.work([received.message for received in batch], receives)
        for received, count in zip(batch, receives, strict=True):
            # A message that another worker has received since is not deleted.
            if received.message not in failed and received.receives == count:
                received.is_deleted = True
        tenants = [tenant_of(received.message) for received in batch]
        asyncio.get_running_loop().call_later(OF_LATE_S, self._used.subtract, tenants)

    def _batch(self) -> list[_Sent]:
        """As SQS chooses it, where workers are few."""
        if self._slots is None or not self._world.is_fair:
            return self._visible[: self._world.batch]
        tenants = [tenant_of(sent.message) for sent in self._visible]
        chosen = fairest(tenants, self._used, self._world.batch)
        return [self._visible[position] for position in chosen]

    async def _show_again(self, sent: _Sent) -> None:
        await asyncio.sleep(self.visibility_s)
        if sent.is_deleted:
            return
        if sent.receives >= MAX_RECEIVES:
            body = msgspec.json.encode(sent.message).decode()
            self._world.dead_letters.send(body, "received too often")
            return
        await self._show(sent)
