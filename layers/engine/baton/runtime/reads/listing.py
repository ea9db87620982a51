"""Lists of sagas: the shards of the status index merged into one order, page by page.

A cursor holds how far each shard has been read, and what is newer than the list it belongs to. What a row
holds is the port's business.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from baton.core.expressions.spelling import hinted, nearest
from baton.core.log.status import LISTS
from baton.errors import UserError
from baton.ports import Listed, Log, Place
from baton.runtime.engine.cursors import foreign_cursor, read_cursor, write_cursor
from baton.runtime.engine.request import SAGA_ID
from baton.runtime.invocation.store_retrier import StoreRetrier
from baton.runtime.starting.start import body_hash

LOOKED_AT = 200  # rows of a shard that one page looks at to find those that a filter lets through
_FILTER_DIGITS = 8

# A cursor comes from outside, and a store has no patience with a place that cannot be: it must be one that
# a list can have come to. Which tenant's it is, is never read from it.
_NEWEST = 10**15
_Moment = Annotated[int, msgspec.Meta(ge=0, le=_NEWEST)]
_Id = Annotated[str, msgspec.Meta(pattern=rf"^{SAGA_ID}\Z")]


class _Read(msgspec.Struct, frozen=True, array_like=True):
    """How far a shard has been read: from the beginning (no place), after a place, or to its end."""

    place: tuple[_Moment, _Id] | None = None
    ended: bool = False


class _Cursor(msgspec.Struct, frozen=True, array_like=True):
    """`newest`: nothing that is still to be shown had changed later when the page before was read."""

    filter: str
    newest: _Moment
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
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.status and self.status not in LISTS:
            hint = nearest(self.status, LISTS) or f"there are {', '.join(LISTS)}"
            raise UserError(hinted(f"there is no status `{self.status[:40]}`", hint))

    @property
    def groups(self) -> Sequence[str]:
        return LISTS[self.status][0] if self.status else ("open", "waiting", "done")

    @property
    def exact(self) -> str:
        return LISTS[self.status][1] if self.status else ""

    @property
    def fingerprint(self) -> str:
        return body_hash(
            [self.tenant, self.status, self.workflow, self.since, *([self.labels] if self.labels else [])]
        )[:_FILTER_DIGITS]

    async def page(
        self, log: Log, call: StoreRetrier, limit: int, cursor: str
    ) -> tuple[Sequence[Listed], str | None]:
        """The next sagas, the latest change first, and the cursor of the page after (None: no more).

        With a filter a page may hold fewer than `limit`, even none, and still have one after it. What has
        begun or changed since the page before belongs in front of the list: it is on no later page. Raises
        `UserError` for a cursor that is not of this list.
        """
        parts = [(group, shard) for group in self.groups for shard in range(log.limits.status_shards)]
        before = self._before(cursor, len(parts))
        look = limit if not (self.workflow or self.exact or self.labels) else max(limit, LOOKED_AT)

        async def read(group: str, shard: int, done: _Read) -> tuple[Sequence[Listed], Place | None]:
            if done.ended:
                return (), None
            rows, place = await call(
                log.listed,
                self.tenant,
                group,
                shard,
                limit=look,
                since=self.since,
                workflow=self.workflow,
                status=self.exact,
                labels=self.labels,
                after=done.place,
            )
            return [row for row in rows if row.changed <= before.newest], place

        found = _each_once(
            await asyncio.gather(
                *(read(group, shard, done) for (group, shard), done in zip(parts, before.reads, strict=True))
            )
        )
        # Below the place where some shard stopped looking it may have rows that no page has shown yet.
        known_from = max((place[0] for _, place in found if place is not None), default=0)
        merged = heapq.merge(
            *([(row, index) for row in rows] for index, (rows, _) in enumerate(found)),
            key=lambda pair: -pair[0].changed,
        )
        shown = [pair for pair in merged if pair[0].changed >= known_from][:limit]
        after = tuple(
            _after(done, rows, place, [row for row, of in shown if of == index])
            for index, (done, (rows, place)) in enumerate(zip(before.reads, found, strict=True))
        )
        rows = [row for row, _ in shown]
        if all(read.ended for read in after):
            return rows, None
        newest = rows[-1].changed if rows else min(known_from, before.newest)
        return rows, write_cursor(_encode(_Cursor(self.fingerprint, newest, after)))

    def _before(self, cursor: str, parts: int) -> _Cursor:
        if not cursor:
            return _Cursor(self.fingerprint, _NEWEST, (_Read(),) * parts)
        try:
            decoded = _decode(read_cursor(cursor))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise foreign_cursor() from error
        if decoded.filter != self.fingerprint or len(decoded.reads) != parts:
            raise UserError("the cursor belongs to a list with other filters; leave it out to begin anew")
        if any(read.place is not None and read.place[0] < self.since for read in decoded.reads):
            raise foreign_cursor()
        return decoded


def _each_once(
    found: Sequence[tuple[Sequence[Listed], Place | None]],
) -> Sequence[tuple[Sequence[Listed], Place | None]]:
    """Without the older of two rows of one saga, which moved to another group while the page was read."""
    newest: dict[str, tuple[int, int]] = {}
    for index, (rows, _) in enumerate(found):
        for row in rows:
            newest[row.id] = max(newest.get(row.id, (0, 0)), (row.changed, index))
    return [
        ([row for row in rows if newest[row.id] == (row.changed, index)], place)
        for index, (rows, place) in enumerate(found)
    ]


def _after(done: _Read, rows: Sequence[Listed], place: Place | None, shown: Sequence[Listed]) -> _Read:
    if len(shown) == len(rows):
        return _Read(place, ended=place is None)
    return _Read(shown[-1].place) if shown else done
