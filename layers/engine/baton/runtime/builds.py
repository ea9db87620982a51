"""Builds of the worker's code: how many open sagas stay with each, and the deletion of those with none.

Sagas of workflow functions stay with a build (runtime/worker/pinned.py). Nothing counts them: for an operator who
asks, the due index is read, in which every open saga is, and the heads of its sagas.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from msgspec import Struct

from baton.ports import LANES, Clock, CodeBuild, DeployedBuilds, Due, Head, Log, Offload, SagaRef
from baton.runtime.mending import ROLLING_MS

PER_PAGE = 1_000
SETTLED_MS = 2 * ROLLING_MS
"""Milliseconds after a deploy for which an invocation of the build before may begin sagas, twice."""
CURRENT = "sagas begin with it"
ROLLING = "the last deploy is less than half an hour old"
UNSURE = "a worker has died, and no other has taken its saga yet"
MISSING = "it is not there: these sagas park when they are woken"
_FAR = 2**53


class PinnedBuild(Struct, frozen=True):
    """A build with the number of open sagas that stay with it. `kept`: why it is kept; empty if it is drained.

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
        """Return all builds, those that open sagas name and that do not exist first, then the oldest first."""
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
