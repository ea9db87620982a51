"""Pages of logs that hold much: what fits is shown, the rest is linked to, and no page is more than Lambda can answer with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from baton.console import saga, site
from baton.core.log.events import SignalReceived, Value
from tests.handlers.browsing import PARAMETERS as _PARAMETERS
from tests.handlers.browsing import SECRET, VARIABLE, Browser
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, append, append_each, begin
from tests.kit.sentences import Says

PARAMETERS = _PARAMETERS
SAGA = f"/console/sagas/{ADA.id}"
MOST = 6_000_000
DEAR = '"<&\\\n'  # most of it is five or six characters of HTML, or of JSON in JSON


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


@pytest.fixture
def browser(http: Http) -> Browser:
    return Browser(http)


def events(count: int, payload: Any) -> Iterator[SignalReceived]:
    for number in range(count):
        yield SignalReceived(name="more", key=f"k{number}", payload=Value(v=payload), by="ada", at=1)


def weight(html: str) -> int:
    return len(json.dumps(html, ensure_ascii=False).encode())


def walk(browser: Browser) -> list[int]:
    """The versions on all pages of the log, from link to link."""
    found, path = list[int](), f"{SAGA}/log"
    while path:
        seen = browser.get(path)
        assert (seen.status, weight(seen.html) < MOST) == (200, True)
        versions = [int(one) for one in re.findall(r'id="v(\d+)"', seen.html)]
        assert versions, "a page has an entry at least"
        found += versions
        link = re.search(r'rel="next" href="([^"]*)"', seen.html)
        path = link[1] if link else ""
    return found


def test_a_log_of_large_entries_is_on_more_pages_and_every_entry_is_on_one(
    http: Http, browser: Browser
) -> None:
    begin(http.engine, ADA)
    append_each(http.engine, (events(55, '"' * 300) for _ in range(49)))
    assert walk(browser) == list(range(1, 51))


def test_an_entry_with_more_than_a_page_has_room_for_says_so(
    http: Http, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saga, "_ROOM", 60_000)
    begin(http.engine, ADA)
    append(http.engine, *events(20, DEAR * 600))
    seen = browser.get(f"{SAGA}/log?after=1")
    (left,) = re.findall(r"(\d+) more events", seen.text)
    assert seen.html.count("<summary>Data") + int(left) == 20
    assert f'href="{SAGA}/log.json?after=1"' in seen.html
    assert walk(browser) == [1, 2]


@pytest.mark.parametrize("payload", [DEAR * 600, [1] * 2_000, [[[1]] * 200] * 3, "ü\x00" * 500])
def test_a_download_is_no_more_than_an_answer_has_room_for(
    http: Http, browser: Browser, monkeypatch: pytest.MonkeyPatch, payload: Any
) -> None:
    monkeypatch.setattr(saga, "MOST_DOWNLOADED", 150_000)
    begin(http.engine, ADA)
    append_each(http.engine, (events(10, payload) for _ in range(6)))
    found, after = list[int](), 0
    while True:
        seen = browser.get(f"{SAGA}/log.json", after=str(after))
        page = json.loads(seen.html)
        found += [one["version"] for one in page["entries"]]
        assert weight(seen.html) < 150_000 or len(page["entries"]) == 1
        if page["next"] is None:
            break
        after = page["next"]
    assert found == list(range(1, 8))


def test_a_page_that_is_too_large_all_the_same_says_so(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setattr(site, "_MOST_ANSWERED", 3_000)
    seen = browser.get("/console/tools")
    assert seen.status == 500
    says(seen.text)
