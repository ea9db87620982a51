"""Contract of `Schedules`, and of the due index that has them beside sagas."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from baton.core.graph.graph import QUEUE, Schedule
from baton.core.schedules import Opening, ScheduleRecord, TickOutcome
from baton.errors import CorruptLog
from baton.ports import SWEEP, TIMER, WORK, Due
from baton.ports.log import shard_of
from baton.ports.triggers import schedule_ref
from tests.contract.stores import SHARDS, AwsStores, Stores

NOW = 1_790_000_000_000
RECORD = ScheduleRecord(
    tenant="acme",
    workflow="report",
    number=1,
    version=3,
    by="mia",
    anchor=NOW - 5,
    schedule=Schedule(cron="0 18 * * fri", timezone="Europe/Berlin", overlap=QUEUE, input={"n": 1.5}),
    next=NOW + 60_000,
    due=NOW,
    opening=Opening(NOW, {"a": [1, None]}, "full"),
    running=("s-1",),
    started=4,
    skipped=3,
    missed=2,
    refused=1,
    recent=(TickOutcome(NOW - 9, "started", "s-1"), TickOutcome(NOW - 3, "missed", count=2)),
)


def due(stores: Stores, lane: str = TIMER, until: int = NOW) -> list[tuple[str, int]]:
    found = (one for shard in range(SHARDS) for one in stores.log.due(lane, shard, 0, until, 10))
    return [(str(ref), at) for ref, at in found]


def test_what_is_written_is_read(stores: Stores) -> None:
    assert stores.store.schedules.read_schedule("acme", "report") is None
    assert stores.store.schedules.write_schedule(RECORD)
    assert stores.store.schedules.read_schedule("acme", "report") == RECORD
    assert stores.store.schedules.read_schedule("globex", "report") is None


def test_a_write_that_has_not_seen_the_newest_is_refused(stores: Stores) -> None:
    assert not stores.store.schedules.write_schedule(replace(RECORD, number=2)), "there is none"
    assert stores.store.schedules.write_schedule(RECORD)
    assert not stores.store.schedules.write_schedule(replace(RECORD, by="tom"))
    second = replace(RECORD, number=2, by="tom")
    assert stores.store.schedules.write_schedule(second)
    assert not stores.store.schedules.write_schedule(replace(RECORD, number=2))
    assert stores.store.schedules.read_schedule("acme", "report") == second


def test_a_write_that_is_repeated_finds_itself(stores: Stores) -> None:
    assert stores.store.schedules.write_schedule(RECORD)
    assert stores.store.schedules.write_schedule(RECORD)
    assert due(stores) == [("T#acme#SAGA#~report", NOW)]


def test_the_due_index_has_a_schedule_among_the_timers_and_moves_it(stores: Stores) -> None:
    stores.store.schedules.write_schedule(RECORD)
    assert due(stores) == [("T#acme#SAGA#~report", NOW)]
    assert due(stores, WORK) == due(stores, SWEEP) == []
    stores.store.schedules.write_schedule(replace(RECORD, number=2, due=NOW + 1))
    assert due(stores) == []
    assert due(stores, until=NOW + 1) == [("T#acme#SAGA#~report", NOW + 1)]
    stores.store.schedules.write_schedule(replace(RECORD, number=3, due=0))
    assert due(stores, until=NOW * 2) == []


def test_a_page_of_the_due_index_ends_and_goes_on_at_a_schedule(stores: Stores) -> None:
    ref = schedule_ref("acme", "report")
    shard = shard_of(ref.id, SHARDS)
    names = [
        name for number in range(60) if shard_of(f"~w{number}", SHARDS) == shard for name in [f"w{number}"]
    ]
    for name in names:
        stores.store.schedules.write_schedule(replace(RECORD, workflow=name))
    found: list[Due] = []
    after = None
    while page := stores.log.due(TIMER, shard, 0, NOW, 2, after):
        found += page
        after = page[-1]
    assert sorted(one.id for one, _ in found) == sorted(f"~{name}" for name in names)


def test_the_schedules_of_a_tenant_are_listed_by_name_in_pages(stores: Stores) -> None:
    for tenant, name in (("acme", "c"), ("acme", "a"), ("globex", "b"), ("acme", "b")):
        stores.store.schedules.write_schedule(replace(RECORD, tenant=tenant, workflow=name, due=0))
    stores.store.schedules.write_schedule(
        replace(RECORD, tenant="acme", workflow="b", number=2, schedule=None, due=0)
    )
    first, last = stores.store.schedules.listed("acme", "", 2)
    assert ([one.workflow for one in first], last) == (["a", "b"], "b")
    assert first[1].schedule is None
    rest, last = stores.store.schedules.listed("acme", last, 2)
    assert ([one.workflow for one in rest], last) == (["c"], "")
    assert stores.store.schedules.listed("initech", "", 2) == ([], "")


def test_of_writers_at_once_one_is_taken(concurrent_stores: Stores) -> None:
    concurrent_stores.store.schedules.write_schedule(RECORD)
    tries = [replace(RECORD, number=2, by=f"w-{number}") for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(concurrent_stores.store.schedules.write_schedule, tries))
    assert sum(done) == 1
    assert concurrent_stores.store.schedules.read_schedule("acme", "report") == tries[done.index(True)]


def test_a_schedule_that_cannot_be_read_says_so_and_can_be_put_off(moto: Stores) -> None:
    assert isinstance(moto, AwsStores)
    moto.store.schedules.write_schedule(RECORD)
    ref = schedule_ref("acme", "report")
    key = {"pk": {"S": str(ref)}, "sk": {"S": "HEAD"}}
    moto._aws.dynamodb.update_item(
        TableName=moto.store.log.table_of(ref),
        Key=key,
        UpdateExpression="SET d = :d",
        ExpressionAttributeValues={":d": {"B": b"{"}},
    )
    with pytest.raises(CorruptLog, match="schedule"):
        moto.store.schedules.read_schedule("acme", "report")
    assert moto.log.postpone(ref, NOW, NOW + 60)
    assert due(moto, until=NOW + 60) == [("T#acme#SAGA#~report", NOW + 60)]


def test_a_name_that_a_crash_has_left_alone_is_no_schedule(moto: Stores) -> None:
    assert isinstance(moto, AwsStores)
    item = {"pk": {"S": "T#acme#SCHEDULES"}, "sk": {"S": "report"}}
    moto._aws.dynamodb.put_item(TableName=moto.store.log.table_of(schedule_ref("acme", "report")), Item=item)
    assert moto.store.schedules.listed("acme", "", 5) == ([], "")
