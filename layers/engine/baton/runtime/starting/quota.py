"""How many sagas of a tenant are worked on at once: those that its callers start, and those that its sagas start.

Nothing is written for it. The status index says how many there are, and it is asked seldom: a process may let a part of
what is free begin before it asks again. So a tenant may come to have somewhat more than its limit, never many times as
much, and nothing has to be given back when a saga ends or waits.

Availability comes first: while the index cannot be asked, sagas begin uncounted, a part of the limit in each process and second.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from baton.errors import StoreUnavailable, Throttled, TooManyRequests
from baton.runtime.invocation.context import InvocationContext

GOOD_FOR_MS = 10_000
FULL_FOR_MS = 1_000
ASK_FOR_MS = 1_000
FEW = 10
_PARTS = 20  # a process may let a twentieth of what is free begin before it asks again
RETRY_AFTER_S = 5


@dataclass(slots=True)
class Room:
    """What a process knows of a tenant: so many sagas more may begin until it asks again. `is_all`: no more are free."""

    left: int
    until: int
    is_all: bool


class Quota:
    """The limit of sagas at work, for one invocation. `rooms` is what the process knows, by tenant."""

    def __init__(self, context: InvocationContext, rooms: dict[str, Room]) -> None:
        self._rooms = rooms
        self._log = context.log
        self._call = context.call
        self._clock = context.clock
        self._most = context.limits.tenant_sagas
        self._lock = asyncio.Lock()

    async def admit(self, tenant: str) -> None:
        """Raises `TooManyRequests` where as many are at work as may be."""
        if not await self.has_room(tenant):
            raise TooManyRequests(
                f"tenant `{tenant}` has {self._most:,} sagas at work, which is all that it may have; "
                f"try again when some of them have ended or wait",
                RETRY_AFTER_S,
            )

    async def has_room(self, tenant: str) -> bool:
        """Whether one more may begin, which then counts."""
        async with self._lock:
            room = self._rooms.get(tenant)
            now = self._clock.now()
            if room is None or now >= room.until or not (room.left or room.is_all):
                room = self._rooms[tenant] = await self._count(tenant)
            if not room.left:
                return False
            room.left -= 1
            return True

    async def _count(self, tenant: str) -> Room:
        shards, call = range(self._log.limits.status_shards), self._call.within(ASK_FOR_MS)
        try:
            found = await asyncio.gather(
                *(call(self._log.at_work, tenant, shard, self._most) for shard in shards)
            )
        except (Throttled, StoreUnavailable):
            return Room(max(self._most // _PARTS, FEW), self._clock.now() + FULL_FOR_MS, is_all=False)
        free = self._most - sum(found)
        now = self._clock.now()
        if free <= FEW:  # those that are being started are in no index yet: not to be counted anew at once
            return Room(max(free, 0), now + FULL_FOR_MS, is_all=True)
        return Room(max(free // _PARTS, FEW), now + GOOD_FOR_MS, is_all=False)
