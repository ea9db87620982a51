"""The costs of a saga, and of a tenant's day."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from baton.core.limits import DAY_MS
from baton.core.log.codec import decode_entry
from baton.core.log.events import HIT, MISS, WorkflowRecovered
from baton.core.log.folding.forks import fork_in
from baton.core.log.state import LISTS, status_of
from baton.core.money import MICRO
from baton.core.read.costs import BillingSettings, Cost, CostPage, ModelCosts, cost_view
from baton.core.read.day_costs import DayCosts
from baton.core.read.usage import Claims, Ledger
from baton.errors import NotFound, TooLarge, Unreadable, UserError
from baton.ports import Clock, Listed, Log, Place, Record
from baton.runtime.engine.request import SAGA_ID, Opened, Request, foreign_cursor, read_cursor, write_cursor
from baton.runtime.invocation.context import StoreRetrier
from baton.runtime.log.history import ReadingTime, readable, records_of
from baton.runtime.starting.start import body_hash

_FORK = b'"forked"'  # the tag of its event
PAGE = 200  # entries read at once, so that a long log is never in memory as a whole


async def saga_cost(
    log: Log, call: StoreRetrier, clock: Clock, opened: Opened, deployment: BillingSettings
) -> Cost:
    """Return the answer of `GET /sagas/{id}/cost`, computed from the log. See `Ledger`. See `Ledger`.

    The log of a saga that was forked is read twice: first for where.
    Raises `TooLarge` for one that takes too much of the request's time.
    """
    head, state, program = opened.head, opened.history.state, opened.program
    time = ReadingTime(clock, call.deadline)
    cuts, lost = set[int](), set[int]()
    if state.lineage.branch:
        async for record in _records(log, call, opened, time):
            # Decoding takes far longer than looking, and forks are rare.
            for entry in readable([record] if _FORK in record.data else ()):
                if (fork := fork_in(entry)) is not None:
                    cuts.add(fork.cut)
                    if isinstance(entry.events[0], WorkflowRecovered):
                        lost.update(range(fork.cut + 1, entry.version))
    models = ModelCosts()
    ledger = Ledger(program, deployment, cuts=cuts, claims=Claims.of(program.graph))
    async for record in _records(log, call, opened, time):
        if record.version in lost:
            continue
        entry = decode_entry(record.data)
        if record.version <= state.origin.copied:
            ledger.add_copy(entry, record.data, record.size)
            continue
        ledger.add(entry, record.data, record.size)
        models.add(entry)
    usage = ledger.total(head.epoch, is_held=bool(head.owner) or state.epoch > head.epoch)
    return cost_view(
        state.origin.saga,
        status_of(state, program),
        usage,
        ledger.steps,
        state.counts.invocations,
        models.lines(),
        models.agent_steps,
        (models.cache[HIT], models.cache[MISS]),
    )


async def _records(log: Log, call: StoreRetrier, opened: Opened, time: ReadingTime) -> AsyncIterator[Record]:
    """Yield the records up to the state: later ones may belong to a lease that the head does not know."""
    state = opened.history.state
    async with aclosing(records_of(log, call, opened.head.ref, state.lineage.branch + 1, 0, PAGE)) as pages:
        async for page in pages:
            for record in page:
                if record.version <= state.version:
                    yield record
            if page[-1].version >= state.version:
                return
            time.check("added up", state.version, page[-1].version)


LOOKED_AT = 2_000
"""Rows that one page looks at, at most: about half a megabyte of the index."""
_AT_ONCE = 500
GROUPS = LISTS["open"][0] + LISTS["done"][0]
_FIRST = "0"  # no id sorts before it


class _Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Position in the rows: the shard, and the last row read."""

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
    """Return the sums of the next rows of a day, their number, and the next cursor, as `rows_of_day`."""
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
    """Let each of the next rows of a day be taken.
    Return how many these are, and the cursor behind them (None: they were the last).

    `day` counts from 1970; `most`: so many rows are looked at. A saga's day is that of its row: when it last
    began to run, began to wait or ended. Of groups `of_any_day` earlier days count, too. Raises `UserError`
    for a cursor of another list.
    """
    begins = {group: 0 if group in of_any_day else day * DAY_MS for group in groups}
    end = (day + 1) * DAY_MS
    return await rows_between(log, call, tenant, begins, end, [day], cursor, take, most)


async def rows_between(
    log: Log,
    call: StoreRetrier,
    tenant: str,
    begins: Mapping[str, int],
    end: int,
    of: Any,
    cursor: str,
    take: Callable[[Listed], None],
    most: int,
) -> tuple[int, str | None]:
    """Let each of the next rows of these groups be taken that has changed since the beginning of its group.
    Returns and raises as `rows_of_day`. `of`: what the cursor is for.
    """
    parts = [(group, shard) for group in begins for shard in range(log.limits.status_shards)]
    named = body_hash([tenant, *of])[:8]
    part, after = 0, (end, _FIRST)
    if cursor:
        part, after = _read(cursor, named, len(parts), (min(begins.values()), end))
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
            since=begins[group],
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
        raise UserError("the cursor belongs to another request; leave it out to begin anew")
    if found.part >= parts or not within[0] <= found.place[0] <= within[1]:
        raise foreign_cursor()
    return found.part, found.place


def costs_page(
    day: str,
    by: str,
    sums: DayCosts,
    looked: int,
    cursor: str | None,
    left_out: list[str] | UnsetType = UNSET,
) -> CostPage:
    """Return a page of `GET /costs`."""
    return CostPage(day=day, by=by, costs=sums.rows(), looked_at=looked, next=cursor, left_out=left_out)


MOST: Final = 50
"""Sagas whose logs one page reads."""
_AWS_AT_ONCE: Final = 10


async def aws_costs(
    request: Request, day: int, by: str, cursor: str
) -> tuple[DayCosts, int, str | None, list[str]]:
    """Return the sums of the next sagas of a day, how many these are, the cursor behind them,
    and those that could not be read.

    A saga counts on the day of its row, with all that it has cost so far, as its models do.
    """
    engine, call, rows = request.engine, request.parts.call, list[Listed]()
    looked, after = await rows_of_day(
        engine.log, call, request.caller.tenant, day, cursor, rows.append, GROUPS, MOST
    )
    sums, left_out = DayCosts(by), list[str]()

    async def add(row: Listed) -> None:
        try:
            opened = await request.open(row.id)
            found = await saga_cost(engine.log, call, engine.clock, opened, BillingSettings.of(engine.limits))
        except (NotFound, TooLarge, Unreadable):
            left_out.append(row.id)
        else:
            sums.add(row.workflow, row.user, {"": (0, 0, found.usd.aws * MICRO)})

    for first in range(0, len(rows), _AWS_AT_ONCE):
        await asyncio.gather(*(add(row) for row in rows[first : first + _AWS_AT_ONCE]))
    return sums, looked, after, sorted(left_out)
