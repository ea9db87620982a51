"""A saga of 500 entries in the console: its first views are small and do not take the server long."""

from __future__ import annotations

import asyncio
import time

import pytest

from baton.core.log.events import SignalReceived, Value
from baton.runtime.context import Invocation
from baton.runtime.history import History
from baton.runtime.parts import Engine, Parts
from tests.handlers.browsing import PARAMETERS as _PARAMETERS
from tests.handlers.browsing import SECRET, VARIABLE, Browser
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, PARTY, begin

PARAMETERS = _PARAMETERS
ENTRIES = 500
MOST_BYTES = 150_000
MOST_S = 1.5  # five times as long as it takes where nothing else is going on


def lengthen(engine: Engine) -> None:
    """Entries as callers put them."""

    async def work() -> None:
        now = engine.clock.now()
        parts = Parts(engine, Invocation("caller-1", now, now + 60_000))
        head = await parts.call(parts.log.read_head, ADA)
        assert head is not None
        history = History(parts.log, parts.blobs, parts.call, ADA)
        await history.load(head)
        for number in range(ENTRIES - 1):
            said = Value(v={"number": number, "words": "news of the evening"})
            signal = SignalReceived(name=f"news_{number}", key=f"{number}", payload=said, by="ada", at=now)
            assert await history.append(history.next_entry((signal,), at=now, invocation="caller-1", epoch=0))

    asyncio.run(work())


def test_the_first_views_are_small_and_quick(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)
    begin(http.engine, ADA, PARTY)
    lengthen(http.engine)
    browser = Browser(http)
    for path in ("", "/log", "/graph", "/time"):
        page = f"/console/sagas/{ADA.id}{path}"
        seen, took = browser.get(page), []  # the first one makes the template ready
        for _ in range(5):
            began = time.process_time()
            seen = browser.get(page)
            took.append(time.process_time() - began)
        assert seen.status == 200, seen.text
        assert len(seen.html.encode()) < MOST_BYTES, page
        # The processor's time, which is not that of others on this machine; moto's table is in it.
        assert min(took) < MOST_S, (page, took)
