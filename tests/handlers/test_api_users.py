"""Users over HTTP: an operator lists them, blocks one, unblocks one, and gives one a limit."""

from __future__ import annotations

from typing import Any

import pytest

from baton.runtime.engine.request import write_cursor
from tests.handlers.http import Http
from tests.handlers.sagas import ECHO
from tests.handlers.test_api_budget import spend
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial", "UserDayBudgetUsd": "2.50"}


def post(http: Http, deed: str, body: dict[str, Any], **more: Any) -> Any:
    return http.post(f"/users/{deed}", body, roles="operate", **more)


def rows(http: Http, **query: str) -> dict[str, dict[str, Any]]:
    found, cursor = dict[str, dict[str, Any]](), ""
    while True:
        page = http.get(
            "/users", query={**query, **({"cursor": cursor} if cursor else {})}, roles="operate"
        ).body
        found |= {row["user"]: row for row in page["users"]}
        cursor = page["next"]
        if not cursor:
            return found


def test_a_blocked_user_starts_nothing_and_others_do(http: Http, says: Says) -> None:
    http.register(ECHO)
    answer = post(http, "block", {"user": "mallory", "note": "a loop"}, user="grace")
    assert answer.status == 202
    assert (answer.body["state"], answer.body["by"], answer.body["note"]) == ("blocked", "grace", "a loop")
    refused = http.post("/sagas", {"workflow": "echo"}, user="mallory")
    says(refused.problem(403, "user-blocked")["detail"])
    assert "retry-after" not in refused.headers
    assert http.post("/sagas", {"workflow": "echo"}, user="ada").status == 201
    assert http.get("/budget", user="mallory").body["blocked"]
    assert post(http, "unblock", {"user": "mallory"}).body["state"] == "open"
    assert http.post("/sagas", {"workflow": "echo"}, user="mallory").status == 201


def test_an_operator_sees_users_at_work_and_those_about_whom_something_is_decided(http: Http) -> None:
    http.register(ECHO)
    http.post("/sagas", {"workflow": "echo"}, user="ada")
    spend(http, 1_200_000)
    post(http, "block", {"user": "arn:aws:sts::1:assumed-role/x/y"})
    found = rows(http)
    assert (found["ada"]["spent_usd"], found["ada"]["state"]) == (1.2, "open")
    assert found["arn:aws:sts::1:assumed-role/x/y"]["state"] == "blocked"
    assert list(rows(http, user="stranger")) == ["stranger"]
    assert rows(http, user="stranger")["stranger"]["spent_usd"] == 0


def test_a_limit_is_put_in_the_place_of_that_of_all_and_taken_back(http: Http) -> None:
    spend(http, 1_200_000)
    limited = post(http, "limit", {"user": "ada", "limit_usd": "1.20"}).body
    assert (limited["state"], limited["limit_usd"], limited["left_usd"]) == ("spent", 1.2, 0)
    http.register(ECHO)
    http.post("/sagas", {"workflow": "echo"}, user="ada").problem(429, "budget-user-day")
    freed = post(http, "limit", {"user": "ada", "limit_usd": None}).body
    assert (freed["state"], freed["own_limit_usd"]) == ("open", None)
    assert http.post("/sagas", {"workflow": "echo"}, user="ada").status == 201


@pytest.mark.parametrize(
    ("deed", "body", "said"),
    [
        ("block", {}, "/user"),
        ("block", {"user": "a b"}, "a user is 1 to 640"),
        ("block", {"user": "ada", "note": "x" * 501}, "/note"),
        ("limit", {"user": "ada"}, "/limit_usd"),
        ("limit", {"user": "ada", "limit_usd": 0}, "blocked instead"),
        ("limit", {"user": "ada", "limit_usd": "0"}, "blocked instead"),
        ("limit", {"user": "ada", "limit_usd": "0.00"}, "not an amount"),
        ("limit", {"user": "ada", "limit_usd": -1}, "must be between"),
        ("limit", {"user": "ada", "limit_usd": True}, "not an amount"),
        ("limit", {"user": "ada", "limit_usd": "1e3"}, "not an amount"),
    ],
)
def test_what_makes_no_sense_is_refused(http: Http, deed: str, body: dict[str, Any], said: str) -> None:
    assert said in post(http, deed, body).problem(422, "invalid-input")["detail"]


def test_only_operators_see_or_decide(http: Http) -> None:
    for deed in ("block", "unblock", "limit"):
        body = {"user": "ada", **({"limit_usd": 1} if deed == "limit" else {})}
        http.post(f"/users/{deed}", body, roles="run answer read").problem(403, "forbidden")
    http.get("/users", roles="run answer read").problem(403, "forbidden")


def test_a_cursor_of_another_list_is_refused(http: Http, says: Says) -> None:
    answer = http.get("/users", query={"cursor": write_cursor(b"x")}, roles="operate")
    says(answer.problem(400, "bad-request")["detail"])
