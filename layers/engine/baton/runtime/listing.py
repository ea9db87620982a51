"""Lists of sagas: the shards of the status index merged into one order, page by page.

A cursor holds how far each shard has been read. What a row holds is the port's business.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from baton.core.state import LISTS
from baton.core.toolspec import nearest
from baton.errors import UserError
from baton.ports import Listed, Log, Place
from baton.runtime.cursors import foreign_cursor, read_cursor, write_cursor
from baton.runtime.patience import Patience
from baton.runtime.start import body_hash

LOOKED_AT = 200  # rows of a shard that one page looks at to find those that a filter lets through
_FILTER_DIGITS = 8


class _Read(msgspec.Struct, frozen=True, array_like=True):
    """How far a shard has been read: from the beginning (no place), after a place, or to its end."""

    place: Place | None = None
    ended: bool = False


class _Cursor(msgspec.Struct, frozen=True, array_like=True):
    filter: str
    reads: tuple[_Read, ...]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Cursor).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Which sagas of a tenant: `status` is a key of `LISTS` or empty for all; `since` in epoch ms."""

    tenant: str
    status: str = ""
    workflow: str = ""
    since: int = 0

    def __post_init__(self) -> None:
        if self.status and self.status not in LISTS:
            hint = nearest(self.status, LISTS) or f"there are {', '.join(LISTS)}"
            raise UserError(f"there is no status `{self.status[:40]}`. {hint}")

    @property
    def groups(self) -> Sequence[str]:
        return LISTS[self.status][0] if self.status else ("open", "waiting", "done")

    @property
    def exact(self) -> str:
        return LISTS[self.status][1] if self.status else ""

    @property
    def fingerprint(self) -> str:
        return body_hash([self.status, self.workflow, self.since])[:_FILTER_DIGITS]

    async def page(
        self, log: Log, call: Patience, limit: int, cursor: str
    ) -> tuple[Sequence[Listed], str | None]:
        """The next sagas, the latest change first, and the cursor of the page after (None: no more).

        With a filter a page may hold fewer than `limit`, even none, and still have one after it. Raises
        `UserError` for a cursor that is not of this list.
        """
        parts = [(group, shard) for group in self.groups for shard in range(log.shards)]
        reads = self._reads(cursor, len(parts))
        look = limit if not (self.workflow or self.exact) else max(limit, LOOKED_AT)

        async def read(group: str, shard: int, done: _Read) -> tuple[Sequence[Listed], Place | None]:
            if done.ended:
                return (), None
            return await call(
                log.listed,
                self.tenant,
                group,
                shard,
                limit=look,
                since=self.since,
                workflow=self.workflow,
                status=self.exact,
                after=done.place,
            )

        found = await asyncio.gather(
            *(read(group, shard, done) for (group, shard), done in zip(parts, reads, strict=True))
        )
        # Below the place where some shard stopped looking it may have rows that nobody has seen yet.
        known_from = max((place[0] for _, place in found if place is not None), default=0)
        merged = heapq.merge(
            *([(row, index) for row in rows] for index, (rows, _) in enumerate(found)),
            key=lambda pair: -pair[0].changed,
        )
        shown = [pair for pair in merged if pair[0].changed >= known_from][:limit]
        after = tuple(
            _after(done, rows, place, [row for row, of in shown if of == index])
            for index, (done, (rows, place)) in enumerate(zip(reads, found, strict=True))
        )
        more = not all(read.ended for read in after)
        return [row for row, _ in shown], self._cursor(after) if more else None

    def _cursor(self, reads: tuple[_Read, ...]) -> str:
        return write_cursor(_encode(_Cursor(self.fingerprint, reads)))

    def _reads(self, cursor: str, parts: int) -> tuple[_Read, ...]:
        if not cursor:
            return (_Read(),) * parts
        try:
            decoded = _decode(read_cursor(cursor))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise foreign_cursor() from error
        if decoded.filter != self.fingerprint or len(decoded.reads) != parts:
            raise UserError("the cursor belongs to a list with other filters; leave it out to begin anew")
        return decoded.reads


def _after(done: _Read, rows: Sequence[Listed], place: Place | None, shown: Sequence[Listed]) -> _Read:
    if len(shown) == len(rows):
        return _Read(place, ended=place is None)
    return _Read(shown[-1].place) if shown else done
