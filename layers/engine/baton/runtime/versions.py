"""Versions of the worker's code: how many open sagas stay with each, and the deletion of those with none.

Sagas of workflow functions stay with a version (runtime/worker/pinned.py). Nothing counts them: an operator who
asks has the due index read, in which every open saga is, and the heads of its sagas.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from baton.ports import LANES, Clock, Due, Head, Log, Offload, SagaRef
from baton.ports.process import CodeVersion, DeployedVersions
from baton.runtime.mending import ROLLING_MS

PER_PAGE = 1_000
NEWEST = "the newest"
ROLLING = "invocations of it may still run, up to 15 minutes after the deploy"
UNSURE = "a worker has died and no other has taken its saga yet"
_FAR = 2**53


class PinnedVersion(Struct, frozen=True):
    """A version with the number of open sagas that stay with it; `why` it is kept, empty if it is drained."""

    version: str
    at: int
    sagas: int
    why: str


class VersionKeeper:
    """Report of the versions, and deletion of drained ones."""

    def __init__(self, log: Log, deployed: DeployedVersions, clock: Clock, offload: Offload) -> None:
        self._log = log
        self._deployed = deployed
        self._clock = clock
        self._offload = offload

    async def report(self) -> list[PinnedVersion]:
        """Return all versions, the oldest first, and those that open sagas name and that do not exist."""
        versions = await self._offload(self._deployed.listed)
        sagas, is_unsure = await self._count()
        missing = [
            PinnedVersion(version, 0, count, "does not exist")
            for version, count in sorted(sagas.items())
            if version not in {one.version for one in versions}
        ]
        return [*missing, *(self._judged(one, versions, sagas, is_unsure) for one in versions)]

    async def delete_drained(self) -> list[PinnedVersion]:
        """Delete the drained versions. Return all as they were, with those."""
        found = await self.report()
        for one in found:
            if not one.why:
                await self._offload(self._deployed.delete, one.version)
        return found

    def _judged(
        self, one: CodeVersion, versions: Sequence[CodeVersion], sagas: Counter[str], is_unsure: bool
    ) -> PinnedVersion:
        newest = max((other.at for other in versions if other.is_newest), default=_FAR)
        why = ""
        if one.is_newest:
            why = NEWEST
        elif count := sagas[one.version]:
            why = f"{count:,} open {'saga stays' if count == 1 else 'sagas stay'} with it"
        elif self._clock.now() < newest + ROLLING_MS:
            why = ROLLING
        elif is_unsure:
            why = UNSURE
        return PinnedVersion(one.version, one.at, sagas[one.version], why)

    async def _count(self) -> tuple[Counter[str], bool]:
        """Return the number of open sagas by version, and true if the version of some is not known.

        The lanes are read twice, because a saga may pass from one that is not read yet to one that is.
        """
        known = dict[SagaRef, tuple[str, bool]]()
        for lane in (*LANES, *LANES):
            for shard in range(self._log.limits.due_shards):
                await self._lane(lane, shard, known)
        return Counter(version for version, _ in known.values() if version), any(
            is_unsure for _, is_unsure in known.values()
        )

    async def _lane(self, lane: str, shard: int, known: dict[SagaRef, tuple[str, bool]]) -> None:
        after: Due | None = None
        while True:
            page = await self._offload(self._log.due, lane, shard, 0, _FAR, PER_PAGE, after)
            refs = [ref for ref, _ in page if ref not in known and not ref.is_schedule]
            heads = await asyncio.gather(*(self._offload(self._log.read_head, ref) for ref in refs))
            known.update((head.ref, (head.code_version, self._is_unsure(head))) for head in heads if head)
            if len(page) < PER_PAGE:
                return
            after = page[-1]

    def _is_unsure(self, head: Head) -> bool:
        """Return true if a worker has died that may have begun a function and not told the head."""
        return bool(head.owner) and not head.code_version and head.until <= self._clock.now()
