"""When a store is busy, gone or wrong: patience inside the request's time, then an answer that says so."""

from __future__ import annotations

import json
import logging
from itertools import pairwise

import pytest

from tests.handlers.deployment import Deployment, Interference, Item, throttled
from tests.handlers.http import Http
from tests.handlers.pauses import Pauses
from tests.handlers.sagas import ADA, ECHO, PARTY, begin
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
SAGA = f"/sagas/{ADA.id}"


@pytest.fixture
def table(http: Http) -> Interference:
    begin(http.engine, ADA, PARTY)
    return Interference(http.engine.log._client)


def test_a_throttled_table_is_asked_again_with_growing_pauses(http: Http, table: Interference) -> None:
    with table.answering("GetItem", lambda n: throttled() if n <= 4 else None) as moments:
        assert http.get(SAGA).status == 200
    assert len(moments) == 5
    pauses = [after - before for before, after in pairwise(moments)]
    # Each at least half of what it may be at most, which doubles from 20 ms.
    assert all(pause >= 0.010 * 2**index for index, pause in enumerate(pauses))


def test_a_table_throttled_for_longer_than_the_request_is_an_answer_in_time(
    http: Http, table: Interference, deployment: Deployment, pauses: Pauses, says: Says
) -> None:
    before = deployment.items()
    event = http.event("POST", f"{SAGA}/signals/guests_changed", key="k")
    with table.answering("PutItem", lambda _: throttled()) as moments:
        problem = http.send(event).problem(503, "unavailable")
    assert 5_000 < pauses.passed < 15_000
    says(problem["detail"])
    assert len(moments) > 2
    assert deployment.items() == before
    assert http.send(event).status == 202  # as the answer said


@pytest.mark.parametrize("status", [500, 503])
def test_health_says_when_the_table_does_not_answer(
    status: int, http: Http, table: Interference, pauses: Pauses
) -> None:
    fault = (status, {"Error": {"Code": "InternalServerError", "Message": "no"}})
    event = http.event("GET", "/health")
    with table.answering("GetItem", lambda _: fault):
        http.send(event).problem(503, "unavailable")


def test_a_write_whose_answer_was_lost_is_recognised_as_ones_own(
    http: Http, table: Interference, deployment: Deployment
) -> None:
    http.register(ECHO)
    with table.losing("PutItem", 1):  # that of the head
        saga = http.start("echo", 1, key="k")
    with table.losing("PutItem", 1):
        cancelled = http.post(f"/sagas/{saga}/cancel")
    assert (cancelled.status, cancelled.body["version"]) == (202, 2)
    logs = [item["sk"]["S"] for item in deployment.items() if saga in item["pk"]["S"]]
    assert sorted(logs) == ["HEAD", "LOG#0000#0000000001", "LOG#0000#0000000002"]


@pytest.mark.parametrize("path", ["", "/events", "/cancel", "/resume", "/forks", "/signals/guests_changed"])
def test_a_saga_that_this_version_cannot_read_is_refused_by_name_and_left_alone(
    path: str, http: Http, table: Interference, deployment: Deployment
) -> None:
    newer = json.dumps({"format": 2, "version": 2, "events": []}).encode()
    item: Item = {"pk": {"S": str(ADA)}, "sk": {"S": "LOG#0000#0000000002"}, "d": {"B": newer}}
    deployment.dynamodb.put_item(TableName=deployment.table, Item=item)
    before = deployment.items()
    reading = path in ("", "/events")
    body = {"version": 1} if path == "/forks" else {}
    answer = http.get(SAGA + path) if reading else http.post(SAGA + path, body)
    # A resume diagnoses first, and says what would be right.
    refusal = (409, "not-allowed-now") if path == "/resume" else (500, "unreadable-log")
    assert "format 2" in answer.problem(*refusal)["detail"]
    assert deployment.items() == before


def test_a_defect_is_logged_and_tells_the_caller_nothing_of_the_inside(
    http: Http, table: Interference, caplog: pytest.LogCaptureFixture
) -> None:
    refused = (400, {"Error": {"Code": "AccessDeniedException", "Message": "arn:aws:iam::1:role/secret"}})
    with table.answering("GetItem", lambda _: refused), caplog.at_level(logging.ERROR):
        answer = http.get(SAGA)
    problem = answer.problem(500, "internal")
    assert "arn:" not in str(problem)
    assert any("secret" in str(record.exc_info) for record in caplog.records if record.exc_info)
