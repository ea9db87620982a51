"""Incidents, dead letters, breakers and schedules in the console: what is shown, what is offered to whom, and what is done once."""

from __future__ import annotations

import pytest

from baton.console.acting import Kind
from baton.console.controls import BREAKER, INCIDENT, LETTER, SCHEDULE, USER_DEEDS
from baton.core.failures.breakers import Breaker, BreakerTerms, FailureReport, with_reports
from baton.core.letters import Letter
from baton.core.log.events import Notice
from baton.web.routes import ROUTES
from tests.handlers.browsing import HOSTILE, SECRET, VARIABLE, Browser
from tests.handlers.browsing import PARAMETERS as _PARAMETERS
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, ECHO, GRACE, asking
from tests.handlers.test_api_schedules import REPORT
from tests.kit.sentences import Says

PARAMETERS = _PARAMETERS
EMPTY = {
    "incidents": "There is no open incident.",
    "dead-letters": "There is no dead letter.",
    "breakers": "Nothing is known of any circuit breaker",
    "schedules": "There is no schedule.",
    "users": "no operator has decided about a user",
}


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


@pytest.fixture
def browser(http: Http) -> Browser:
    return Browser(http)


@pytest.fixture
def troubled(http: Http, browser: Browser) -> Browser:
    """A tenant in which everything is in trouble, in hostile words: an incident, two letters, a breaker, a schedule."""
    asking(http.engine, ADA, escalated=True)
    now = http.engine.clock.now()
    for ref in (ADA, GRACE):
        letter = Letter(
            id=ref.id,
            tenant=ref.tenant,
            saga=ref.id,
            code="unreadable_log",
            reason=HOSTILE,
            node="say",
            body=HOSTILE,
            messages=1,
            attempts=5,
            first=now,
            since=now,
            last=now,
            at=now,
        )
        assert http.engine.store.letters.write(letter, 0)
    there = with_reports(
        Breaker(), (FailureReport(now, "timeout", 2, 3, "i-1"),), BreakerTerms(failures=2), now, 0.0
    )
    assert http.engine.store.breakers.write_breaker("acme", "payments", there, now) is None
    http.register(REPORT)
    return browser


@pytest.mark.parametrize("kind", [INCIDENT, LETTER, BREAKER, SCHEDULE], ids=lambda kind: kind.at)
def test_a_deed_names_the_role_and_the_path_of_its_route(kind: Kind) -> None:
    routes = {route.id: route for route in ROUTES}
    for deed in kind.deeds:
        route = routes[deed.route]
        assert route.path == f"/{kind.at}/{{{kind.parameter}}}/{deed.name}"
        assert (route.roles, route.has_key) == ((deed.role,), deed.has_key)


@pytest.mark.parametrize("at", EMPTY)
def test_an_empty_page_says_how_something_comes_to_be_there(at: str, browser: Browser) -> None:
    seen = browser.get(f"/console/{at}")
    assert seen.status == 200
    assert EMPTY[at] in seen.text
    assert f"https://api.test/{at}" in seen.text
    assert "baton " in seen.text


def test_what_does_not_exist_is_not_there(browser: Browser) -> None:
    for path in ("dead-letters/none", "breakers/none", "schedules/none", "breakers/NONE!"):
        assert browser.get(f"/console/{path}").status == 404
    assert browser.post("/console/incidents/i019b76daf4003f0c1d2a7b9e/resolve").status == 404
    assert browser.post("/console/breakers/none/reset").status == 404


def test_an_incident_is_resolved_and_its_saga_stays(http: Http, troubled: Browser, says: Says) -> None:
    seen = troubled.get("/console/incidents")
    says.within(seen.text)
    assert f'href="/console/sagas/{ADA.id}"' in seen.html
    (incident,) = http.get("/incidents").body["incidents"]
    page = f"/console/incidents/{incident['id']}"
    assert f'href="{page}"' in seen.html
    check_page(troubled, page)
    one = troubled.get(page)
    assert "What helps" in one.text
    assert f'href="/console/sagas/{ADA.id}/questions/' in one.html
    assert f'href="/console/sagas/{ADA.id}/resume"' in one.html
    assert "Incidents 1 failures" in troubled.get("/console").text
    taken = troubled.post(f"{page}/acknowledge", {"note": HOSTILE})
    seen = troubled.get(taken.headers["location"])
    assert "You have it." in seen.text
    assert "&lt;script&gt;" in seen.html
    assert "Incidents 0 failures" in troubled.get("/console").text
    assert "ada has it" in troubled.get("/console/incidents").text
    assert "not acknowledged." in troubled.get("/console/incidents?status=unacknowledged").text
    done = troubled.post(f"/console/incidents/{incident['id']}/resolve")
    assert "is resolved" in troubled.get(done.headers["location"]).text
    (incident,) = http.get("/incidents").body["incidents"]
    assert (incident["status"], incident["resolved_by"]) == ("resolved", "ada")
    says.within(troubled.get("/console/incidents").text)
    assert "resolved" in troubled.get("/console/incidents?status=resolved").text
    assert http.get(f"/sagas/{ADA.id}").body["status"] == "parked"


def test_letters_are_counted_before_they_are_redriven(http: Http, troubled: Browser, says: Says) -> None:
    assert ADA.id in troubled.get("/console/dead-letters", node="say").text
    assert "No dead letter fits" in troubled.get("/console/dead-letters", node="other").text
    seen = troubled.get("/console/dead-letters/redrive", reason="unreadable_log")
    assert "2 match." in seen.text
    assert "baton dlq redrive --reason unreadable_log" in seen.text
    assert len(http.get("/dead-letters").body["dead_letters"]) == 2
    seen = troubled.post("/console/dead-letters/redrive", {"reason": "unreadable_log"})
    says.within(seen.text, 2)
    (left,) = http.get("/dead-letters").body["dead_letters"]
    assert left["id"] == GRACE.id


def test_one_letter_is_redriven_or_discarded_with_a_reason(http: Http, troubled: Browser, says: Says) -> None:
    page = f"/console/dead-letters/{ADA.id}"
    done = troubled.post(f"{page}/redrive")
    says.within(troubled.get(done.headers["location"]).text)
    refused = troubled.post(f"/console/dead-letters/{GRACE.id}/discard", {"reason": ""})
    assert (refused.status, "Nothing was done." in refused.text) == (422, True)
    assert troubled.post(f"/console/dead-letters/{GRACE.id}/discard", {"reason": HOSTILE}).status == 303
    seen = troubled.get(f"/console/dead-letters/{GRACE.id}")
    assert "discarded" in seen.text
    assert "&lt;script&gt;" in seen.html


def test_a_breaker_is_opened_for_a_while_and_reset(http: Http, troubled: Browser, says: Says) -> None:
    page = "/console/breakers/payments"
    says.within(troubled.get(page).text)
    refused = troubled.post(f"{page}/open", {"for_s": "a moment"})
    assert refused.status == 422
    assert 'value="a moment"' in refused.html
    assert troubled.post(f"{page}/open", {"for_s": "10m"}).status == 303
    assert http.get("/breakers/payments").body["next_probe_at"] is not None
    done = troubled.post(f"{page}/reset")
    seen = troubled.get(done.headers["location"])
    says.within(seen.text)
    assert f'action="{page}/reset"' not in seen.html
    assert http.get("/breakers/payments").body["state"] == "closed"


def test_a_schedule_is_paused_resumed_and_starts_one_saga_for_a_form(http: Http, troubled: Browser) -> None:
    page = "/console/schedules/report"
    assert "0 18 * * fri" in troubled.get("/console/schedules").text
    troubled.post(f"{page}/pause")
    seen = troubled.get(f"{page}?done=pause")
    assert "It is paused." in seen.text
    assert f'action="{page}/pause"' not in seen.html
    troubled.post(f"{page}/resume")
    assert http.get("/schedules/report").body["state"] == "active"
    form = {"key": troubled.get(page).field("key")}
    one, again = (troubled.post(f"{page}/trigger", form) for _ in range(2))
    assert one.headers["location"] == again.headers["location"]
    assert one.headers["location"].removeprefix("/console/sagas/") in troubled.get(page).text


def test_a_deed_about_a_user_names_the_role_and_the_path_of_its_route() -> None:
    routes = {route.id: route for route in ROUTES}
    for deed in USER_DEEDS:
        assert routes[deed.route].path == f"/users/{deed.name}"
        assert routes[deed.route].roles == (deed.role,)


def test_a_user_at_work_is_on_the_first_page_where_no_user_has_a_rule(http: Http, browser: Browser) -> None:
    http.register(ECHO)
    http.post("/sagas", {"workflow": "echo"})
    user = http.get("/sagas").body["sagas"][0]["user"]
    assert [one["user"] for one in http.get("/users").body["users"]] == [user]
    text = browser.get("/console/users").text
    assert user in text
    assert "No saga is at work" not in text


def test_a_user_is_blocked_limited_and_unblocked(http: Http, browser: Browser, says: Says) -> None:
    name = "arn:aws:sts::1:assumed-role/dev/eve"
    taken = browser.post("/console/users/block", {"user": name, "note": HOSTILE})
    assert taken.status == 303
    seen = browser.get(taken.headers["location"])
    says.within(seen.text)
    assert "&lt;script&gt;" in seen.html
    assert 'action="/console/users/block"' not in seen.html
    assert seen.field("user") == name
    assert "blocked" in browser.get("/console/users").text
    refused = browser.post("/console/users/limit", {"user": name, "limit_usd": "much"})
    assert refused.status == 422
    assert 'value="much"' in refused.html
    assert browser.post("/console/users/limit", {"user": name, "limit_usd": "2"}).status == 303
    (one,) = http.get("/users").body["users"]
    assert (one["state"], one["own_limit_usd"]) == ("blocked", 2)
    browser.post("/console/users/unblock", {"user": name})
    browser.post("/console/users/limit", {"user": name})
    (one,) = http.get("/users").body["users"]
    assert (one["state"], one["own_limit_usd"]) == ("open", None)
    assert browser.post("/console/users/block").status == 422


PAGES = (
    "incidents",
    "dead-letters",
    f"dead-letters/{ADA.id}",
    "dead-letters/redrive",
    "breakers",
    "breakers/payments",
    "schedules",
    "schedules/report",
    "users",
)


def test_a_viewer_sees_no_form_and_does_nothing(http: Http, troubled: Browser) -> None:
    viewer = Browser(http, user="vera", roles=("read",))
    for path in PAGES:
        seen = viewer.get(f"/console/{path}")
        assert seen.status == (403 if path.startswith(("dead-letters", "users")) else 200)
        assert 'method="post" action="/console/sign-out"' in seen.html
        assert seen.html.count('method="post"') == 1
    for path in (
        "breakers/payments/open",
        "schedules/report/pause",
        "schedules/report/trigger",
        "users/block",
    ):
        seen = viewer.post(f"/console/{path}")
        assert seen.status == 403
        assert "needs the role" in seen.text


def test_pages_hold_what_every_page_does(http: Http, troubled: Browser) -> None:
    hostile = Notice(
        key=f"{GRACE.id}/1.incident",
        to="on_call",
        code="service_down",
        message=HOSTILE,
        severity="high",
        node=HOSTILE[:100],
        at=1_767_225_600_000,
        incident=True,
    )
    http.engine.store.notice_record.open(GRACE.tenant, GRACE.id, hostile)
    assert "&lt;script&gt;" in troubled.get("/console/incidents").html
    for path in PAGES:
        check_page(troubled, f"/console/{path}")


def check_page(browser: Browser, path: str) -> None:
    """One heading and one main part, no script or style, each form with its token, hostile text as text."""
    seen = browser.get(path)
    assert seen.status == 200, (path, seen.text)
    elements = seen.elements()
    tags = [tag for tag, _ in elements]
    assert tags.count("h1") == tags.count("main") == 1, path
    assert "style" not in tags, path
    assert all("src" in attributes for tag, attributes in elements if tag == "script"), path
    assert not any(
        "style" in attributes or any(name.startswith("on") for name in attributes)
        for _, attributes in elements
    )
    assert "<script>alert(1)" not in seen.html, path
    assert seen.html.count('method="post"') == seen.html.count('name="csrf"'), path
    assert "curl " in seen.text, path
    # Every field is in a label, or hidden.
    inside = seen.html.count("<label")
    shown = [
        at for tag, at in elements if tag in ("input", "select", "textarea") and at.get("type") != "hidden"
    ]
    assert len([at for at in shown if not at.get("aria-label")]) <= inside, path


def test_a_page_renews_itself_and_one_that_refuses_stays_as_it_is(troubled: Browser) -> None:
    for path in PAGES:
        is_live = 'data-tag="' in troubled.get(f"/console/{path}").html
        assert is_live == (path != "dead-letters/redrive"), path
    assert 'data-tag="' not in troubled.post("/console/breakers/payments/open", {"for_s": "x"}).html


def test_who_only_answers_sees_the_start_page_without_sagas(
    http: Http, troubled: Browser, says: Says
) -> None:
    seen = Browser(http, user="vera", roles=("answer",)).get("/console")
    assert seen.status == 200
    assert "Waiting for you" in seen.text
    says.within(seen.text)
    assert "At work" not in seen.text
