"""What the models of a tenant's sagas have cost on a day, read off the rows of the status index page by page.

Nothing is written for it: a row shows what the last release of its saga left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec

from baton.core.limits import DAY_MS
from baton.core.log.status import LISTS
from baton.core.read.day_costs import DayCosts
from baton.errors import UserError
from baton.ports import Listed, Log, Place
from baton.runtime.engine.cursors import foreign_cursor, read_cursor, write_cursor
from baton.runtime.engine.request import SAGA_ID
from baton.runtime.invocation.store_retrier import StoreRetrier
from baton.runtime.starting.start import body_hash

LOOKED_AT = 2_000
"""Rows that one page looks at, at most: about half a megabyte of the index."""
_AT_ONCE = 500
GROUPS = LISTS["open"][0] + LISTS["done"][0]
_FIRST = "0"  # no id sorts before it


class _Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Which shard is read, and after which row."""

    filter: str
    part: Annotated[int, msgspec.Meta(ge=0, le=10_000)]
    place: tuple[
        Annotated[int, msgspec.Meta(ge=0, le=10**15)], Annotated[str, msgspec.Meta(pattern=rf"^{SAGA_ID}\Z")]
    ]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Cursor).decode


async def day_costs(
    log: Log, call: StoreRetrier, tenant: str, day: int, by: str, cursor: str, most: int = LOOKED_AT
) -> tuple[DayCosts, int, str | None]:
    """The sums of the next rows of a day, how many these are, and the cursor behind them, as `rows_of_day`."""
    sums = DayCosts(by)

    def take(row: Listed) -> None:
        sums.add(row.workflow, row.user, row.models)

    return sums, *await rows_of_day(log, call, tenant, day, cursor, take, GROUPS, most)


async def rows_of_day(
    log: Log,
    call: StoreRetrier,
    tenant: str,
    day: int,
    cursor: str,
    take: Callable[[Listed], None],
    groups: Sequence[str],
    most: int = LOOKED_AT,
    of_any_day: Sequence[str] = (),
) -> tuple[int, str | None]:
    """Let each of the next rows of a day be taken. Returns how many these are, and the cursor behind them (None: they were the last).

    `day` counts from 1970; `most`: so many rows are looked at. A saga's day is that of its row: when it last began to run, began to wait or ended. Of groups `of_any_day`
    earlier days count, too. Raises `UserError` for a cursor of another list.
    """
    parts = [(group, shard) for group in groups for shard in range(log.limits.status_shards)]
    begin, end, named = day * DAY_MS, (day + 1) * DAY_MS, body_hash([tenant, day])[:8]
    part, after = 0, (end, _FIRST)
    if cursor:
        part, after = _read(cursor, named, len(parts), (0 if of_any_day else begin, end))
    looked = 0
    while part < len(parts):
        if looked >= most:
            return looked, write_cursor(_encode(_Cursor(named, part, after)))
        group, shard = parts[part]
        rows, place = await call(
            log.listed,
            tenant,
            group,
            shard,
            limit=min(_AT_ONCE, most - looked),
            since=0 if group in of_any_day else begin,
            after=after,
        )
        looked += len(rows)
        for row in rows:
            if row.changed < end:
                take(row)
        part, after = (part + 1, (end, _FIRST)) if place is None else (part, place)
    return looked, None


def _read(cursor: str, named: str, parts: int, within: tuple[int, int]) -> tuple[int, Place]:
    try:
        found = _decode(read_cursor(cursor))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise foreign_cursor() from error
    if found.filter != named:
        raise UserError("the cursor belongs to another day; leave it out to begin anew")
    if found.part >= parts or not within[0] <= found.place[0] <= within[1]:
        raise foreign_cursor()
    return found.part, found.place


def answer_of(day: str, by: str, sums: DayCosts, looked: int, cursor: str | None) -> dict[str, Any]:
    """A page of `GET /costs`."""
    return {"day": day, "by": by, "costs": sums.rows(), "looked_at": looked, "next": cursor}
