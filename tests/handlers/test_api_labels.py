"""Labels over HTTP: given at the start, shown, and found again in lists."""

from __future__ import annotations

from tests.handlers.http import Http

ECHO = "name: echo\nnodes: {a: {wait: {signal: go}}}\n"


def start(http: Http, **labels: str) -> str:
    answer = http.post("/sagas", {"workflow": "echo", "labels": labels})
    assert answer.status == 201, answer
    return str(answer.body["id"])


def listed(http: Http, label: str, **more: str) -> list[str]:
    return sorted(row["id"] for row in http.get("/sagas", query={"label": label, **more}).body["sagas"])


def test_labels_are_shown_and_lists_find_them(http: Http) -> None:
    http.register(ECHO)
    first, second, third = start(http, customer="4711", team="a"), start(http, customer="4711"), start(http)
    assert http.get(f"/sagas/{first}").body["labels"] == {"customer": "4711", "team": "a"}
    assert http.get(f"/sagas/{third}").body["labels"] == {}
    assert listed(http, "customer=4711") == sorted([first, second])
    assert listed(http, "customer=4711,team=a") == [first]
    assert listed(http, "customer=4711", workflow="other") == []
    rows = {row["id"]: row["labels"] for row in http.get("/sagas").body["sagas"]}
    assert rows[second] == {"customer": "4711"}


def test_a_key_with_other_labels_is_another_body(http: Http) -> None:
    http.register(ECHO)
    key = {"idempotency-key": "k"}
    body = {"workflow": "echo", "labels": {"a": "1"}}
    assert http.post("/sagas", body, headers=key).status == 201
    assert http.post("/sagas", body, headers=key).status == 200
    other = {"workflow": "echo", "labels": {"a": "2"}}
    http.post("/sagas", other, headers=key).problem(422, "idempotency-key-reused")


def test_what_is_no_label_is_refused(http: Http) -> None:
    http.register(ECHO)
    refused = http.post("/sagas", {"workflow": "echo", "labels": {"4": "x"}}).problem(422, "invalid-input")
    assert "a letter first" in refused["detail"]
    http.get("/sagas", query={"label": "customer"}).problem(400, "bad-request")


def test_a_cursor_is_of_its_labels(http: Http) -> None:
    http.register(ECHO)
    for _ in range(3):
        start(http, a="1")
    page = http.get("/sagas", query={"label": "a=1", "limit": "1"}).body
    again = http.get("/sagas", query={"label": "a=2", "limit": "1", "cursor": page["next"]})
    assert "other filters" in again.problem(400, "bad-request")["detail"]


def test_a_schedule_gives_its_sagas_labels(http: Http) -> None:
    http.register(ECHO + "schedule: {rate: 1h, labels: {team: books}}")
    saga = http.post("/schedules/echo/trigger", {}, roles="run").body["id"]
    assert http.get(f"/sagas/{saga}").body["labels"] == {"team": "books"}
