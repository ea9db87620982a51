"""The mend row of the protocol table: the time since which the code of this process is deployed.

reconcile.py selects the sagas to wake for that; core/decide/retries.py decides the worker's action.
"""

from __future__ import annotations

import msgspec

from baton.ports import Clock, Offload
from baton.ports.outside import Entities

ROLLING_MS = 900_000
"""Longest time, in ms, that processes of the previous code may go on after a deploy: no invocation lasts
longer.
"""
BUILDS_KEPT = 8
_KEY = ("/deployment", "code", "deployed")
"""Entity that names the deployed code. No tenant's name has a slash, so no tool of a tenant can write it."""


class Deployed(msgspec.Struct, frozen=True, omit_defaults=True):
    """The newest code, since when, and the builds before it, the newest last."""

    build: str
    at: int
    before: tuple[str, ...] = ()


class DeployedBuild:
    """Deployment as one process knows it.
    `build`: its code; empty: unknown, and no saga is mended by itself.
    """

    def __init__(self, entities: Entities, clock: Clock, offload: Offload, build: str) -> None:
        self._entities = entities
        self._clock = clock
        self._offload = offload
        self.build = build
        self._at: int | None = None

    async def tries_before(self) -> int | None:
        """Return the time before which the last attempt of a step must lie for the step to be mended; None:
        this process is not to say. Raises engine faults.
        """
        if not self.build:
            return None
        if self._at is None:
            self._at = await self._since()
        if self._at is None:
            return None
        # Only then has the last worker of earlier code parked something.
        return self._at + (ROLLING_MS if self._clock.now() >= self._at + ROLLING_MS else 0)

    async def _since(self) -> int | None:
        """Return the time since which its code is deployed, which it writes if no other process has.
        Read once: what other processes write later is for them.
        """
        there = await self._offload(self._entities.get, *_KEY)
        known = None if there is None else msgspec.convert(there.data, Deployed)
        if known is not None and known.build == self.build:
            return known.at
        now = self._clock.now()
        if known is not None and self.build in known.before and now < known.at + ROLLING_MS:
            return None
        before = () if known is None else (*(one for one in known.before if one != self.build), known.build)
        mine = Deployed(self.build, now, before[-BUILDS_KEPT:])
        version = 0 if there is None else there.version
        data, key = msgspec.json.decode(msgspec.json.encode(mine)), f"{self.build}.{version}"
        written = await self._offload(self._entities.put, *_KEY, data, key=key, expected=version)
        # One that was done before was an earlier request's, at another time; where another process was first, what that says counts.
        return now if written.is_new else None
