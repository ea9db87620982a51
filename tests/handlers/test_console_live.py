"""Pages that renew themselves: what has not changed is not made again, what has comes without the page around it."""

from __future__ import annotations

import pytest

from baton.console.acting import pace
from baton.console.visits import OFTEN, SELDOM
from baton.core.log.events import SignalReceived, Value
from tests.handlers.browsing import PARAMETERS as _PARAMETERS
from tests.handlers.browsing import SECRET, VARIABLE, Browser
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, PARTY, append, begin

PARAMETERS = _PARAMETERS
SAGA = f"/console/sagas/{ADA.id}"
LIVE = ("/console", "/console/sagas", "/console/inbox", SAGA, f"{SAGA}/graph", f"{SAGA}/time", f"{SAGA}/log")


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


def test_an_address_with_a_filter_is_asked_for_with_it(browser: Browser) -> None:
    assert 'hx-get="/console/sagas?status=open"' in browser.get("/console/sagas?status=open").html


def test_a_saga_that_has_ended_is_looked_at_seldom() -> None:
    assert [pace({"status": one}) for one in ("running", "suspended", "failed", "completed")] == [
        OFTEN,
        OFTEN,
        SELDOM,
        SELDOM,
    ]
