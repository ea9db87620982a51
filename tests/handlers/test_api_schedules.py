"""Schedules over HTTP: what is shown of them, and what callers do."""

from __future__ import annotations

from tests.handlers.http import Http
from tests.kit.sentences import Says

REPORT = """
name: report
nodes: {a: {value: "${input}"}}
schedule: {cron: "0 18 * * fri", timezone: Europe/Berlin, input: {day: "${schedule.time}"}}
"""


def test_a_caller_sees_a_schedule_and_an_operator_pauses_and_resumes_it(http: Http, says: Says) -> None:
    notes = http.register(REPORT)["notes"]
    says(notes[-1])
    shown = http.get("/schedules/report").body
    assert (shown["cron"], shown["rate"], shown["timezone"]) == ("0 18 * * fri", None, "Europe/Berlin")
    assert (shown["state"], shown["overlap"], shown["catch_up"]) == ("active", "skip", 1)
    assert http.get("/schedules").body == {"schedules": [shown], "next": None}
    paused = http.post("/schedules/report/pause", {}, roles="operate")
    assert (paused.status, paused.body["state"], paused.body["next_at"]) == (202, "paused", None)
    resumed = http.post("/schedules/report/resume", {}, roles="operate")
    assert (resumed.status, resumed.body["next_at"]) == (202, shown["next_at"])


def test_a_saga_is_triggered_once_for_a_key(http: Http) -> None:
    http.register(REPORT)
    first = http.post("/schedules/report/trigger", {}, roles="run", headers={"idempotency-key": "k"})
    again = http.post("/schedules/report/trigger", {}, roles="run", headers={"idempotency-key": "k"})
    assert (first.status, again.status) == (201, 200)
    assert first.body["id"] == again.body["id"]
    assert first.headers["location"] == f"/sagas/{first.body['id']}"


def test_another_tenant_sees_nothing(http: Http) -> None:
    http.register(REPORT)
    http.get("/schedules/report", tenant="globex").problem(404, "not-found")
    assert http.get("/schedules", tenant="globex").body["schedules"] == []


def test_only_who_may(http: Http) -> None:
    http.register(REPORT)
    for deed, role in (("pause", "run"), ("resume", "run"), ("trigger", "operate")):
        http.post(f"/schedules/report/{deed}", {}, roles=role).problem(403, "forbidden")
    detail = http.post("/schedules/dinner/pause", {}, roles="operate").problem(404, "not-found")["detail"]
    assert "has no schedule" in detail
