"""Schedules through the deployed functions: registered over HTTP, found by the reconciler's index, started by the worker."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.schedules import ScheduleRecord
from baton.ports import TIMER, SagaRef
from baton.ports.log import shard_of
from baton.ports.triggers import schedule_ref
from tests.handlers.deployment import SHARDS, Deployment
from tests.handlers.http import Http
from tests.handlers.workers import Worker

REPORT = """
name: report
nodes: {a: {value: "${input}"}}
output: "${ctx.a.output}"
schedule: {rate: 1h, input: {day: "${schedule.time}"}, labels: {team: books}}
"""
REF = schedule_ref("acme", "report")
HOUR = 3_600_000


def overdue(http: Http) -> ScheduleRecord:
    """As if it had been registered an hour earlier."""
    schedules = http.engine.store.schedules
    there: ScheduleRecord | None = schedules.read_schedule("acme", "report")
    assert there is not None
    moved = {"anchor": there.anchor - HOUR - 5, "next": there.next - HOUR - 5, "due": there.due - HOUR - 5}
    assert schedules.write_schedule(replace(there, number=there.number + 1, **moved))
    return there


def test_a_tick_that_is_due_starts_a_saga_that_any_list_shows(
    http: Http, worker: Worker, deployment: Deployment
) -> None:
    http.register(REPORT)
    overdue(http)
    shard = shard_of(REF.id, SHARDS)
    (due,) = deployment.log.due(TIMER, shard, 0, http.engine.clock.now(), 10)
    assert due[0] == REF
    assert worker.wake(REF) == []
    shown = http.get("/schedules/report").body
    assert (shown["ticks"]["started"], shown["recent"][0]["what"]) == (1, "started")
    saga = shown["recent"][0]["saga"]
    assert worker.wake(SagaRef("acme", saga)) == []
    view = http.get(f"/sagas/{saga}").body
    assert (view["status"], view["labels"]) == ("completed", {"team": "books"})
    assert [row["id"] for row in http.get("/sagas", query={"label": "team=books"}).body["sagas"]] == [saga]
    assert deployment.log.due(TIMER, shard, 0, http.engine.clock.now(), 10) == []


def test_wakes_of_a_schedule_come_twice_and_beside_those_of_sagas(http: Http, worker: Worker) -> None:
    http.register(REPORT)
    overdue(http)
    saga = SagaRef("acme", http.start("report"))
    assert worker.wake(REF, saga, REF) == []
    assert worker.wake(REF) == []
    assert http.get("/schedules/report").body["ticks"]["started"] == 1
    assert http.get(f"/sagas/{saga.id}").body["status"] == "completed"
    assert len(http.get("/sagas").body["sagas"]) == 2


def test_a_wake_for_a_schedule_that_is_gone_does_nothing(worker: Worker) -> None:
    assert worker.wake(schedule_ref("acme", "nothing")) == []
