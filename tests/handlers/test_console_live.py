"""Pages that renew themselves: what has not changed is not made again, what has comes without the page around it."""

from __future__ import annotations

import asyncio

import pytest

from baton.console.acting import pace
from baton.console.visits import OFTEN, SLOWEST_POLL_MS
from baton.core.log.events import SignalReceived, Value
from tests.handlers.browsing import PARAMETERS as _PARAMETERS
from tests.handlers.browsing import SECRET, VARIABLE, Browser
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, PARTY, append, begin
from tests.kit.many_signals import add_news

PARAMETERS = _PARAMETERS
SAGA = f"/console/sagas/{ADA.id}"
LIVE = ("/console", "/console/sagas", "/console/inbox", SAGA, f"{SAGA}/graph", f"{SAGA}/log")


@pytest.fixture
def browser(http: Http, monkeypatch: pytest.MonkeyPatch) -> Browser:
    monkeypatch.setenv(VARIABLE, SECRET)
    begin(http.engine, ADA, PARTY)
    return Browser(http)


def look(browser: Browser, path: str, tag: str) -> tuple[int, str, str]:
    """As htmx asks: status, what was sent, and its tag."""
    browser.more = {"hx-request": "true", "if-none-match": tag}
    seen = browser.get(path)
    browser.more = {}
    return seen.status, seen.html, seen.headers.get("etag", "")


@pytest.mark.parametrize("path", LIVE)
def test_what_has_not_changed_is_not_made_again(browser: Browser, path: str) -> None:
    first = browser.get(path)
    assert f'hx-get="{path}"' in first.html
    assert look(browser, path, first.headers["etag"])[:2] == (304, "")


@pytest.mark.parametrize("path", LIVE)
def test_what_has_changed_comes_without_the_page_around_it(browser: Browser, path: str) -> None:
    status, part, tag = look(browser, path, '"another"')
    assert (status, tag[:1]) == (200, '"')
    assert part.strip().partition(">")[0] in browser.get(path).html
    assert not [one for one in ("<html", "<main", "<script", "Sign out") if one in part]


def test_an_entry_of_the_log_changes_the_pages_of_its_saga(http: Http, browser: Browser) -> None:
    tags = {path: browser.get(path).headers["etag"] for path in LIVE if path != "/console/inbox"}
    append(http.engine, SignalReceived(name="more", key="1", payload=Value(v=5), by="ada", at=1))
    for path, before in tags.items():
        if path.startswith(SAGA):
            assert look(browser, path, before)[0] == 200, path


def test_a_log_that_has_grown_sends_the_entries_that_a_page_lacks(http: Http, browser: Browser) -> None:
    page, more = f"{SAGA}/log", SignalReceived(name="more", key="1", payload=Value(v=5), by="ada", at=1)
    append(http.engine, more)
    tag = browser.get(page).headers["etag"]
    append(http.engine, more)
    browser.more = {"hx-request": "true", "if-none-match": tag}
    seen = browser.get(page)
    assert (seen.headers["hx-retarget"], seen.headers["hx-reswap"]) == ("#entries", "beforeend")
    assert [one for one in ("v1", "v2", "v3", "<h1") if f'id="{one}"' in seen.html or one in seen.html] == [
        "v3"
    ]
    assert look(browser, page, seen.headers["etag"])[0] == 304
    assert 'id="entries"' in browser.get(page).html
    # One that asks for another part has nothing of this one.
    assert look(browser, f"{page}?after=1", tag)[1].count("<article") == 2


def test_a_full_page_of_the_log_comes_whole_once_and_is_never_asked_for_again(
    http: Http, browser: Browser
) -> None:
    page = f"{SAGA}/log"
    append_many(http, 49)
    tag = browser.get(page).headers["etag"]
    append_many(http, 1)
    status, html, tag = look(browser, page, tag)
    assert (status, html.count("<article"), f'href="{page}?after=50"' in html) == (200, 50, True)
    append_many(http, 1)
    assert look(browser, page, tag)[0] == 304


def append_many(http: Http, entries: int) -> None:
    asyncio.run(add_news(http.engine, ADA, entries))


def test_an_address_with_a_filter_is_asked_for_with_it(browser: Browser) -> None:
    assert 'hx-get="/console/sagas?status=open"' in browser.get("/console/sagas?status=open").html


def test_a_saga_that_has_ended_is_looked_at_seldom() -> None:
    assert [pace({"status": one}) for one in ("running", "suspended", "failed", "completed")] == [
        OFTEN,
        OFTEN,
        SLOWEST_POLL_MS,
        SLOWEST_POLL_MS,
    ]
