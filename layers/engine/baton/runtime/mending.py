"""The deployed code: the time since which it is deployed, and earlier builds with which sagas stay.

The first is of the mend row of the protocol table: reconcile.py selects the sagas to wake for it, and
core/decide/retries.py decides the worker's action. The second is what an operator asks (`BuildKeeper`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass

import msgspec

from baton.ports import LANES, Clock, CodeBuild, DeployedBuilds, Due, Head, Log, Offload, SagaRef
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


PER_PAGE = 1_000
SETTLED_MS = 2 * ROLLING_MS
"""Milliseconds after a deploy for which an invocation of the build before may begin sagas, twice."""
CURRENT = "sagas begin with it"
ROLLING = "the last deploy is less than half an hour old"
UNSURE = "a worker has died, and no other has taken its saga yet"
MISSING = "it is not there: these sagas park when they are woken"
_FAR = 2**53


@dataclass(frozen=True)
class PinnedBuild:
    """A build with the number of open sagas that stay with it. `kept`: the reason why it is kept; empty if it
    is drained.

    `version`: the number of its version; empty if there is none.
    """

    build: str
    version: str
    sagas: int
    kept: str


class BuildKeeper:
    """Report of the builds, and deletion of drained ones."""

    def __init__(self, log: Log, deployed: DeployedBuilds, clock: Clock, offload: Offload) -> None:
        self._log = log
        self._deployed = deployed
        self._clock = clock
        self._offload = offload

    async def report(self) -> list[PinnedBuild]:
        """Return all builds, the oldest first; before them, those that open sagas name and that are gone."""
        return [shown for shown, _ in await self._judged()]

    async def delete_drained(self) -> list[PinnedBuild]:
        """Delete the drained builds, and return them."""
        drained = [(shown, one) for shown, one in await self._judged() if one is not None and not shown.kept]
        for _, one in drained:
            await self._offload(self._deployed.delete, one)
        return [shown for shown, _ in drained]

    async def _judged(self) -> list[tuple[PinnedBuild, CodeBuild | None]]:
        builds, deployed_at = await self._offload(self._deployed.listed)
        sagas, is_unsure = await self._count()
        there = {one.build for one in builds}
        found: list[tuple[PinnedBuild, CodeBuild | None]] = [
            (PinnedBuild(build, "", count, MISSING), None)
            for build, count in sorted(sagas.items())
            if build not in there
        ]
        is_rolling = self._clock.now() < deployed_at + SETTLED_MS
        for one in builds:
            kept, count = "", sagas[one.build]
            if one.is_current:
                kept = CURRENT
            elif count:
                kept = f"{count:,} open {'saga stays' if count == 1 else 'sagas stay'} with it"
            elif is_rolling:
                kept = ROLLING
            elif is_unsure:
                kept = UNSURE
            found.append((PinnedBuild(one.build, one.version, count, kept), one))
        return found

    async def _count(self) -> tuple[Counter[str], bool]:
        """Return the number of open sagas by build, and true if the build of some is not known.

        The lanes are read twice, because a saga may pass from one that is not read yet to one that is.
        """
        known = dict[SagaRef, tuple[str, bool]]()
        for lane in (*LANES, *LANES):
            for shard in range(self._log.limits.due_shards):
                await self._lane(lane, shard, known)
        counts = Counter(build for build, _ in known.values() if build)
        return counts, any(is_unsure for _, is_unsure in known.values())

    async def _lane(self, lane: str, shard: int, known: dict[SagaRef, tuple[str, bool]]) -> None:
        after: Due | None = None
        while True:
            page = await self._offload(self._log.due, lane, shard, 0, _FAR, PER_PAGE, after)
            refs = [ref for ref, _ in page if ref not in known and not ref.is_schedule]
            heads = await asyncio.gather(*(self._offload(self._log.read_head, ref) for ref in refs))
            known.update((head.ref, (head.build, self._is_unsure(head))) for head in heads if head)
            if len(page) < PER_PAGE:
                return
            after = page[-1]

    def _is_unsure(self, head: Head) -> bool:
        """Return true if a worker has died that may have begun a function and not told the head."""
        return bool(head.owner) and not head.build and head.until <= self._clock.now()
