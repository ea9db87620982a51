"""Schedules in a deployment: a tick starts one saga at its time, however many workers look at it, and what is not started is said."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from baton.core.limits import Limits
from baton.core.schedules import ScheduleRecord
from baton.errors import CorruptLog
from baton.ports import Head, Message
from baton.ports.triggers import schedule_ref
from tests.kit.documents import chain_of
from tests.kit.views import JsonAnswers
from tests.kit.virtual_time import EPOCH
from tests.kit.world import TENANT, USER, World

QUICK = "name: report\nnodes: {a: {value: '${input}'}}\noutput: '${ctx.a.output}'\nschedule: "
SLOW = "name: report\nnodes: {a: {wait: {for: 150s}}}\nschedule: "


def record(world: World, name: str = "report") -> ScheduleRecord:
    found = world.store.schedules.read_schedule(TENANT, name)
    assert found is not None
    return found


def told(world: World) -> list[tuple[str, int]]:
    return [(one.what, one.count) for one in record(world).recent]


def started(world: World) -> list[Head]:
    return sorted(world.log.heads(), key=lambda head: head.created)


async def register(world: World, text: str) -> None:
    await world.service().register(text, json_only=False)


async def look(world: World, name: str = "report") -> None:
    assert await world.work([Message(str(schedule_ref(TENANT, name)))]) == []


async def test_a_tick_starts_one_saga_at_its_time_with_its_input() -> None:
    world = World.start()
    await register(world, QUICK + "{rate: 5m, input: {day: '${schedule.time}', of: '${schedule.name}'}}")
    anchor = record(world).anchor
    await asyncio.sleep(620)
    first, second = started(world)
    assert (first.user, first.workflow, first.ref.tenant) == (USER, "report", TENANT)
    assert [0 <= head.created - anchor - n * 300_000 < 2_000 for n, head in ((1, first), (2, second))]
    view = await world.queries().show(first.ref.id)
    assert view["result"]["of"] == "report"
    assert view["result"]["day"].endswith("+00:00")
    assert (record(world).started, told(world)) == (2, [("started", 1)] * 2)


async def test_every_minute_is_started_in_its_minute() -> None:
    world = World.start()
    await register(world, QUICK + "{rate: 1m, overlap: allow}")
    anchor = record(world).anchor
    await asyncio.sleep(30 * 60 + 30)
    late = [head.created - anchor - n * 60_000 for n, head in enumerate(started(world), 1)]
    assert len(late) == 30
    # The first may come before the reconciler has seen it.
    assert max(late[1:]) < 2_000
    assert min(late) >= 0


async def test_a_cron_expression_follows_its_time_zone() -> None:
    world = World.start()
    await register(world, QUICK + "{cron: '0 18 * * *', timezone: Europe/Berlin, input: '${schedule.time}'}")
    await asyncio.sleep(86_400)
    (head,) = started(world)
    view = await world.queries().show(head.ref.id)
    assert view["result"][11:16] == "18:00"


async def test_while_a_saga_is_at_work_ticks_are_skipped_and_counted() -> None:
    world = World.start()
    await register(world, SLOW + "{rate: 1m}")
    await asyncio.sleep(7 * 60 + 5)
    assert [what for what, _ in told(world)] == ["started", "skipped", "skipped"] * 2 + ["started"]
    assert (record(world).started, record(world).skipped) == (3, 4)


async def test_queued_ticks_start_one_after_the_other() -> None:
    world = World.start()
    await register(world, SLOW + "{rate: 2m, overlap: queue, catch_up: 3}")
    await asyncio.sleep(40 * 60)
    heads = started(world)
    assert all(after.created - before.created >= 150_000 for before, after in pairwise(heads))
    assert len(heads) >= 10
    assert record(world).missed > 0, "more came than could be started"


async def test_after_an_outage_the_newest_is_started() -> None:
    world = World.start(reconciler_on=False)
    await register(world, QUICK + "{rate: 1h}")
    await asyncio.sleep(10 * 3_600 + 1_800)
    world.switch_on()
    await look(world)
    assert told(world) == [("missed", 9), ("started", 1)]


async def test_a_wake_that_comes_twice_or_too_early_starts_nothing() -> None:
    world = World.start(reconciler_on=False)
    await register(world, QUICK + "{rate: 1h}")
    await look(world)
    assert started(world) == []
    await asyncio.sleep(3_600)
    await asyncio.gather(*(look(world) for _ in range(5)))
    assert len(started(world)) == 1
    assert record(world).started == 1


async def test_a_worker_whose_clock_is_behind_waits_for_the_tick() -> None:
    world = World.start(reconciler_on=False)
    await register(world, QUICK + "{rate: 1h}")
    tick = record(world).next
    await asyncio.sleep((tick - 2_000 - EPOCH) / 1_000 - asyncio.get_running_loop().time())
    await look(world)
    (head,) = started(world)
    assert head.created >= tick


async def test_a_start_that_the_quota_refuses_is_tried_until_the_next_tick_and_then_counted() -> None:
    world = World.start(limits=Limits(tenant_sagas=1), timeout_s=60)
    await register(world, chain_of(300, 5.0))
    await register(world, QUICK + "{rate: 10m}")
    await world.service().start("chain", {"n": 0}, "k")
    await asyncio.sleep(15 * 60)
    shown = await JsonAnswers(world.service().schedules).show("report")
    assert "1 sagas at work" in shown["refused"]
    assert shown["starting_at"] is not None
    await asyncio.sleep(20 * 60)
    assert told(world) == [("refused", 1), ("started", 1), ("started", 1)]
    assert "1 sagas at work" in record(world).recent[0].why
    assert (record(world).refused, record(world).started) == (1, 2)


async def test_a_new_version_changes_or_removes_the_schedule() -> None:
    world = World.start()
    await register(world, QUICK + "{rate: 5m}")
    await register(world, QUICK + "{rate: 1h}")
    now = record(world)
    assert (now.version, now.due - now.anchor) == (2, 3_600_000)
    await register(world, QUICK.removesuffix("schedule: "))
    assert (record(world).due, record(world).schedule) == (0, None)
    await asyncio.sleep(7_200)
    assert started(world) == []


async def test_a_registration_that_died_before_the_row_is_repaired_by_the_next_tick() -> None:
    world = World.start()
    await register(world, QUICK + "{rate: 5m}")
    before = record(world)
    await register(world, QUICK + "{rate: 1h}")
    after = record(world)
    world.store.schedules.write_schedule(replace(before, number=after.number + 1))
    await asyncio.sleep(310)
    assert record(world).version == 2
    assert started(world) == []
    await asyncio.sleep(3_610)
    assert len(started(world)) == 1


async def test_an_input_that_the_newest_version_refuses_is_said() -> None:
    world = World.start()
    await register(world, QUICK + "{rate: 5m, input: {n: 1}}")
    there = record(world)
    assert there.schedule is not None
    spoilt = replace(
        there, number=2, schedule=msgspec.structs.replace(there.schedule, input=["x" * 9_000_000])
    )
    world.store.schedules.write_schedule(spoilt)
    await asyncio.sleep(310)
    last = record(world).recent[-1]
    assert (last.what, record(world).refused) == ("failed", 1)
    assert "bytes" in last.why


async def test_a_schedule_that_cannot_be_read_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World.start(reconciler_on=False)
    await register(world, QUICK + "{rate: 5m}")

    def read_schedule(*_: Any) -> None:
        raise CorruptLog("the schedule cannot be read")

    monkeypatch.setattr(world.store.schedules, "read_schedule", read_schedule)
    await look(world)
    assert [body for body, _ in world.dead_letters.letters] == ['{"saga":"T#acme#SAGA#~report"}']
