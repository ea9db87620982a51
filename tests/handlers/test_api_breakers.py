"""Circuit breakers over HTTP: what is shown of them, and what an operator does."""

from __future__ import annotations

from baton.core.failures.breakers import Breaker, BreakerTerms, FailureReport, with_reports
from baton.runtime.engine.request import write_cursor
from tests.handlers.http import Http
from tests.kit.sentences import Says

TERMS = BreakerTerms(failures=2)


def break_down(http: Http, name: str = "payments", tenant: str = "acme") -> None:
    now = http.engine.clock.now()
    there = with_reports(Breaker(), (FailureReport(now, "timeout", 2, 3, "i-1"),), TERMS, now, 0.0)
    assert http.engine.store.breakers.write_breaker(tenant, name, there, now) is None


def test_a_caller_sees_state_failures_and_transitions(http: Http, says: Says) -> None:
    break_down(http)
    shown = http.get("/breakers/payments").body
    assert shown["state"] == "open"
    assert shown["next_probe_at"] > shown["since"]
    assert (shown["opened"], shown["probes"]) == (1, 0)
    assert [(one["code"], one["count"], one["calls"]) for one in shown["failures"]] == [("timeout", 2, 3)]
    says([(one["to"], one["why"]) for one in shown["transitions"]])
    assert http.get("/breakers").body == {"breakers": [shown], "next": None}


def test_breakers_are_listed_in_pages_and_each_tenant_sees_its_own(http: Http) -> None:
    for name in ("b", "a", "c"):
        break_down(http, name)
    break_down(http, "d", tenant="globex")
    first = http.get("/breakers", query={"limit": "2"}).body
    assert [one["name"] for one in first["breakers"]] == ["a", "b"]
    rest = http.get("/breakers", query={"limit": "2", "cursor": first["next"]}).body
    assert [one["name"] for one in rest["breakers"]] == ["c"]
    assert rest["next"] is None


def test_a_cursor_of_another_list_is_refused(http: Http, says: Says) -> None:
    for place in (b'[1,"s1"]', b"x" * 2_000):
        answer = http.get("/breakers", query={"cursor": write_cursor(place)})
        says(answer.problem(400, "bad-request")["detail"])


def test_one_that_nothing_is_known_of_is_not_found(http: Http, says: Says) -> None:
    says(http.get("/breakers/payments").problem(404, "not-found")["detail"])
    http.post("/breakers/payments/reset", {}, roles="operate").problem(404, "not-found")


def test_an_operator_opens_and_resets_one(http: Http, says: Says) -> None:
    opened = http.post("/breakers/payments/open", {}, roles="operate")
    assert (opened.status, opened.body["state"], opened.body["next_probe_at"]) == (202, "open", None)
    opened = http.post("/breakers/payments/open", {"for_s": "10m"}, roles="operate")
    assert opened.body["next_probe_at"] is not None
    closed = http.post("/breakers/payments/reset", {}, roles="operate")
    assert (closed.status, closed.body["state"]) == (202, "closed")
    by = [(one["to"], one["by"], one["why"]) for one in closed.body["transitions"]]
    says(by[0][0::2])
    assert http.get("/breakers/payments").body == closed.body


def test_only_an_operator_may(http: Http) -> None:
    break_down(http)
    for deed in ("open", "reset"):
        http.post(f"/breakers/payments/{deed}", {}, roles="run").problem(403, "forbidden")
    http.get("/breakers/Payments").problem(404, "not-found")
