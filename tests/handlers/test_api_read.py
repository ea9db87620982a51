"""Reading sagas over HTTP: what is shown of one, and its log in pages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.core.log.events import Parked, SagaEnded, SignalReceived, StepSucceeded, Value
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, ECHO, PARTY, append, append_each, begin
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
SAGA = f"/sagas/{ADA.id}"


def end(http: Http, status: str = "completed", output: Any = None) -> None:
    append(http.engine, SagaEnded(status=status, output=Value(v=output)))


def test_a_saga_is_shown_with_what_it_is_waiting_for(http: Http) -> None:
    begin(http.engine, ADA, PARTY)
    shown = http.get(SAGA).body
    assert (shown["id"], shown["workflow"], shown["user"]) == (ADA.id, "party", "ada")
    assert (shown["version"], shown["branch"], shown["steps"]) == (1, 0, 0)
    assert [active["node"] for active in shown["active"]] == ["guests"]
    assert (shown["result"], shown["error"], shown["reason"]) == (None, None, None)


def test_the_result_of_a_completed_saga_is_shown(http: Http) -> None:
    begin(http.engine, ADA, ECHO)
    end(http, output={"table": "by the window"})
    shown = http.get(SAGA).body
    assert (shown["status"], shown["result"]) == ("completed", {"table": "by the window"})


@pytest.mark.parametrize("size", [1_900_000, 2_100_000])
def test_a_result_that_no_answer_has_room_for_is_shown_as_where_it_is(size: int, http: Http) -> None:
    begin(http.engine, ADA, ECHO)
    text = '"' * (size // 2)
    data = json.dumps(text).encode()
    ref = http.engine.blobs.put(ADA.tenant, data)
    append(http.engine, SagaEnded(status="completed", output=Value(ref=ref, size=len(data))))
    shown = http.get(SAGA).body
    whole = (text, None) if size < 2_000_000 else (None, {"ref": ref, "size": len(data)})
    assert (shown["result"], shown["large_result"]) == whole


def test_a_result_that_looks_like_a_reference_is_a_result(http: Http) -> None:
    begin(http.engine, ADA, ECHO)
    end(http, output={"ref": "cas://x", "size": 9})
    shown = http.get(SAGA).body
    assert (shown["result"], shown["large_result"]) == ({"ref": "cas://x", "size": 9}, None)


def test_a_parked_saga_is_shown_with_its_reason(http: Http) -> None:
    begin(http.engine, ADA, ECHO)
    append(http.engine, Parked(code="over_budget", message="too slow", node="say"))
    shown = http.get(SAGA).body
    assert (shown["status"], shown["reason"]) == ("parked", "over_budget: too slow")


def pages(http: Http, limit: int) -> list[list[int]]:
    """The versions on each page of a saga's events."""
    found, after = [], 0
    while True:
        page = http.get(f"{SAGA}/events", query={"after": str(after), "limit": str(limit)}).body
        found.append([entry["version"] for entry in page["entries"]])
        if page["next"] is None:
            return found
        after = page["next"]


def signal(number: int, payload: Any = None) -> SignalReceived:
    return SignalReceived(name="guests_changed", key=f"k{number}", payload=Value(v=payload), by="ada", at=1)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (1, [[1], [2], [3], [4], [5]]),
        (2, [[1, 2], [3, 4], [5]]),
        (4, [[1, 2, 3, 4], [5]]),
        (5, [[1, 2, 3, 4, 5]]),
        (1_000, [[1, 2, 3, 4, 5]]),
    ],
)
def test_events_come_in_pages_each_entry_once(limit: int, expected: list[list[int]], http: Http) -> None:
    begin(http.engine, ADA, PARTY)
    for number in range(4):
        append(http.engine, signal(number))
    assert pages(http, limit) == expected


def test_pages_go_on_over_a_fork(http: Http) -> None:
    begin(http.engine, ADA, PARTY)
    append(http.engine, signal(1))
    http.post(f"{SAGA}/forks", {"version": 1})
    append(http.engine, signal(2))
    append(http.engine, signal(3))
    assert pages(http, 2) == [[1, 2], [3, 4], [5]]
    entries = http.get(f"{SAGA}/events").body["entries"]
    assert [entry["branch"] for entry in entries] == [0, 0, 0, 1, 1]


def test_a_page_of_large_entries_is_cut_so_that_lambda_can_answer_it(http: Http) -> None:
    begin(http.engine, ADA, PARTY)
    append_each(http.engine, ([signal(number, f"{number}-" + '"' * 100_000)] for number in range(16)))
    found = pages(http, 1_000)
    assert [version for page in found for version in page] == list(range(1, 18))
    assert len(found) > 1


def test_which_way_a_saga_went_comes_in_pages_and_a_node_is_explained(http: Http, says: Says) -> None:
    begin(http.engine, ADA, PARTY)
    page = http.get(f"{SAGA}/explain", query={"limit": "1"}).body
    assert (page["saga"], page["status"], page["steps"], page["next"]) == (ADA.id, "running", [], None)
    assert [(one["node"], one["state"]) for one in page["open"]] == [("guests", "ready")]
    answer = http.get(f"{SAGA}/explain/guests").body
    assert [one["state"] for one in answer["iterations"]] == ["ready"]
    says(http.get(f"{SAGA}/explain/gests").problem(404, "not-found")["detail"])


def test_an_entry_is_shown_with_who_wrote_it_when_and_under_which_lease(http: Http) -> None:
    begin(http.engine, ADA, ECHO)
    done = StepSucceeded(
        node="say",
        attempt=1,
        output=Value(v=1),
        started_at=1_000,
        ended_at=2_000,
        tool="trial.echo",
        tool_version="1",
        schema_hash="abc",
    )
    append(http.engine, done)
    first, second = http.get(f"{SAGA}/events").body["entries"]
    assert (first["format"], first["epoch"], first["invocation"]) == (1, 0, f"seed-{ADA.id}")
    assert first["traceparent"].startswith("00-aaaa")
    assert (second["epoch"], second["invocation"], second["cold"]) == (1, "worker-1", False)
    (event,) = second["events"]
    assert event["started_at"] == "1970-01-01T00:00:01.000Z"
    assert (event["tool"], event["tool_version"], event["schema_hash"]) == ("trial.echo", "1", "abc")
