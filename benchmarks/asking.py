"""How many questions a second people can be asked, and what gives way first: arithmetic on what one question writes.

What a question writes is counted as in asked.py, against quotas and parameters as in ceilings.py. A question is asked, told and
answered. The ceilings of the saga that asks it are not here.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import NamedTuple

from baton.adapters.dynamo.items import INBOX_INDEX
from baton.adapters.dynamo.people import ASK_SHARDS
from baton.core.read.costs import READ_BYTES
from benchmarks import asked, quotas
from benchmarks.ceilings import SETTING, Ceiling, Setup
from benchmarks.counts import TABLE_ITSELF, metered
from benchmarks.quotas import ACCOUNT, AWS
from tests.kit.meter import TABLE
from tests.kit.table import create_table

TO_GROUP = "name: w\nnodes: {ask: {human: {title: Pay?, to: {group: ops}}}, done: {value: 1, after: ask}}"
PAGE_ROWS, ROW_BYTES = 50, 1_024  # of a page of a list as it is by default, and of a row at most


class Question(NamedTuple):
    """Write units of a question to a group: on InboxIndex (`row`), and on what of the table and its indexes has most of them. `place`: on the account of a person."""

    row: float
    busiest: float
    place: float


@cache
def counted() -> Question:
    with metered() as meter:
        units = []
        for document in (TO_GROUP, asked.SILENT, asked.ASKS):
            create_table(meter.client, TABLE)
            by, places = Counter[str](), 0.0
            for one in asked.spent_by(meter, document):
                for (index, _), count in one.rows.items():
                    by[index] += count
                by[TABLE_ITSELF] += round(one.units - sum(one.rows.values()))
                places += one.units * (asked.part_of(one) == "place")
            units.append((by, places))
            meter.client.delete_table(TableName=TABLE)
    (group, _), (silent, _), (_, place) = units
    return Question(group[INBOX_INDEX], max((group - silent).values()), place)


def ceilings(setup: Setup, of: Question) -> list[Ceiling]:
    """Questions a second at most, the lowest first."""
    partition = quotas.PARTITION_WRITES.value
    return sorted(
        [
            Ceiling("one person, the account of places", partition / of.place, AWS, ()),
            Ceiling("one person, the partition of the index", partition / of.row, AWS, ()),
            Ceiling("one group, role or on-call, its shards", partition * ASK_SHARDS / of.row, AWS, ()),
            Ceiling("a cold InboxIndex", setup.warm_writes / of.row, SETTING, ("WarmWrites",)),
            Ceiling("a cold table", setup.warm_writes / of.busiest, SETTING, ("WarmWrites",)),
            Ceiling(
                "InboxIndex, its quota",
                setup.quota(quotas.TABLE_WRITES) / of.row,
                ACCOUNT,
                (quotas.TABLE_WRITES.what,),
            ),
        ],
        key=lambda ceiling: ceiling.per_s,
    )


def pages_per_s() -> float:
    """Full pages a second of the list of one group, a role or on-call: each asks every shard for a page."""
    units = PAGE_ROWS * ROW_BYTES / READ_BYTES / 2
    return quotas.PARTITION_READS.value / units
