"""The rate limit of a tenant over HTTP: who is counted, what a refusal says, and what goes on without the store."""

from __future__ import annotations

import itertools
import json

import pytest

from baton.runtime.requests import rates
from tests.handlers.deployment import Deployment, Interference, throttled
from tests.handlers.http import Answer, Http
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial", "TenantRateLimit": "1"}
LIMIT = 10
_windows = itertools.count(179_000_000)


class Still:
    """A clock that stands in a window of its own, a quarter into it, so that no test runs over its end."""

    def __init__(self) -> None:
        self.at = next(_windows) * rates.WINDOW_MS + 2_500

    def now(self) -> int:
        return self.at


@pytest.fixture(autouse=True)
def clock(http: Http, monkeypatch: pytest.MonkeyPatch) -> Still:
    still = Still()
    monkeypatch.setattr(http.module._api._limiter, "_clock", still)
    return still


def gets(http: Http, count: int, path: str = "/tools", **options: str) -> list[Answer]:
    return [http.get(path, **options) for _ in range(count)]


def test_a_tenant_that_has_used_up_its_window_is_told_when_to_come_back(
    http: Http, clock: Still, says: Says
) -> None:
    assert {answer.status for answer in gets(http, LIMIT)} == {200}
    refused = http.get("/tools")
    problem = refused.problem(429, "too-many-requests")
    says(problem["detail"])
    assert refused.headers["retry-after"] == "8"
    clock.at += 8_000
    assert http.get("/tools").status == 200


def test_a_refused_request_does_nothing(http: Http, deployment: Deployment) -> None:
    gets(http, LIMIT)
    before = deployment.items()
    http.post("/workflows", "name: x").problem(429, "too-many-requests")
    assert deployment.items() == before


def test_every_user_of_a_tenant_counts_and_no_other_tenant_does(http: Http) -> None:
    gets(http, LIMIT // 2, user="ada")
    gets(http, LIMIT // 2, user="grace")
    assert http.get("/tools", user="eve").status == 429
    assert http.get("/tools", tenant="globex").status == 200


def test_what_is_open_to_everybody_is_not_counted(http: Http) -> None:
    gets(http, LIMIT)
    for path in ("/health", "/openapi.json"):
        assert {answer.status for answer in gets(http, LIMIT + 1, path)} == {200}


def test_a_request_that_is_refused_counts_like_any_other(http: Http) -> None:
    refused = [
        *gets(http, LIMIT - 7, roles="[answer]"),
        *gets(http, 2, "/nowhere"),
        *(http.post("/tools", "{}") for _ in range(2)),
        *(http.post("/sagas", "no json") for _ in range(2)),
        http.get("/sagas/none"),
    ]
    assert {answer.status for answer in refused} == {403, 404, 405, 400}
    for path in ("/tools", "/nowhere"):
        assert http.get(path).status == 429


def test_a_request_without_an_identity_counts_for_no_tenant(http: Http) -> None:
    assert {answer.status for answer in gets(http, LIMIT + 1, "/nowhere", tenant="")} == {404}
    assert http.get("/tools").status == 200


def test_a_large_request_counts_as_several(http: Http, monkeypatch: pytest.MonkeyPatch, says: Says) -> None:
    monkeypatch.setattr(http.module._api._limiter, "_bytes_each", 1_000)
    assert http.post("/workflows", "x" * 7_500).status == 400
    says(http.post("/workflows", "x" * 7_500).problem(429, "too-many-requests")["detail"])
    assert http.get("/tools").status == 429, "the refusal has used up what was left"


def test_a_large_answer_counts_as_several(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(json.dumps(http.get("/tools").body, separators=(",", ":")))
    monkeypatch.setattr(http.module._api._limiter, "_bytes_each", size // 4)
    assert [answer.status for answer in gets(http, 3)] == [200, 200, 429]


def test_a_table_that_is_busy_lets_everybody_through(http: Http) -> None:
    table = Interference(http.module._api._limiter._rates._client)
    with table.answering("UpdateItem", lambda _: throttled()):
        assert {answer.status for answer in gets(http, LIMIT + 5)} == {200}


def test_a_window_takes_a_row_that_the_table_forgets(
    http: Http, deployment: Deployment, clock: Still
) -> None:
    gets(http, 3)
    (row,) = [item for item in deployment.items() if item["pk"]["S"] == "T#acme#RATE"]
    window = clock.at - clock.at % rates.WINDOW_MS
    assert row["sk"]["S"] == f"0{window}"
    assert int(row["ttl"]["N"]) == window // 1_000 + 3_600
