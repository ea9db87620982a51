"""The page of the guest: what it asks of the public API, what it shows, and that looking ahead costs the guest nothing."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from examples.guest.page import Page
from examples.guest.story import tell
from examples.guest.warming import KEPT_S, MOST_AT_ONCE, Warmer, understood
from tests.kit.sentences import Says

HOSTILE = "<script>alert(1)</script>\u202e"
AT = "2026-12-24T19:30:00+00:00"
ASK = {
    "id": "0.ask.1",
    "title": "Shall I arrange this?",
    "message": f"Book the table at {HOSTILE} for 4.",
    "options": ["confirm", "change", "stop"],
    "choices": [{"id": "confirm", "label": "Yes, do that"}, {"id": "stop", "label": "No"}],
}
OPEN: dict[str, Any] = {
    "id": "s1",
    "status": "suspended",
    "active": [{"node": "ask", "state": "asking"}, {"node": "heard", "state": "waiting"}],
    "questions": [ASK],
    "result": None,
    "error": None,
    "parked": None,
}
ARRANGED = OPEN | {
    "status": "completed",
    "active": [],
    "questions": [],
    "result": {
        "arranged": True,
        "why": "",
        "tables": [{"house": "Lantern", "party": 4, "code": "L-17"}],
        "orders": [{"items": ["Pad Thai"], "house": "Lantern", "total_cents": 3600}],
    },
}
STEPS = [{"node": "plan", "became": "ran"}, {"node": "check", "became": "ran"}]
CHILD = [{"node": "hold", "became": "ran"}, {"node": "deposit", "became": "skipped"}]


class Baton:
    """The API as far as the page asks it. `asked`: each request as (method, path, body, key)."""

    def __init__(self, view: dict[str, Any] = OPEN, status: int = 200) -> None:
        self.view, self.status, self.asked = view, status, list[tuple[str, str, Any, str]]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path, body = request.url.path, json.loads(request.content or b"null")
        assert request.headers["authorization"] == "Bearer the-token"
        self.asked.append((request.method, path, body, request.headers.get("idempotency-key", "")))
        if self.status != 200:
            return httpx.Response(self.status, json={"detail": f"no: {HOSTILE}"})
        if path.endswith("/explain"):
            return httpx.Response(200, json={"steps": CHILD if "/child/" in path else STEPS})
        if path.endswith("/events"):
            given = {"v": {"words": f"Dinner {HOSTILE}"}}
            events = [{"kind": "saga_started", "input": given}, {"kind": "child_opened", "child": "child"}]
            return httpx.Response(200, json={"entries": [{"events": events}]})
        if request.method == "POST":
            return httpx.Response(201, json={"id": "s1"})
        return httpx.Response(200, json=self.view)


class Guest:
    """A browser at the page."""

    def __init__(self, baton: Baton, host: str = "127.0.0.1") -> None:
        self.baton, self.page = baton, Page(now=lambda: 1_790_000_000.0, transport=httpx.MockTransport(baton))
        self.page.learn("http://api.test", "the-token")
        self.host = host

    def get(self, path: str) -> httpx.Response:
        return asyncio.run(self._send("GET", path, None))

    def post(self, path: str, form: dict[str, str], token: str | None = None) -> httpx.Response:
        found = re.search('name="token" value="([^"]+)"', self.get("/").text)
        own = found[1] if found else ""
        return asyncio.run(self._send("POST", path, form | {"token": own if token is None else token}))

    async def _send(self, method: str, path: str, form: dict[str, str] | None) -> httpx.Response:
        transport = httpx.ASGITransport(self.page.app())
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{self.host}") as client:
            answer = await client.request(method, path, data=form)
            if self.page.warmer is not None:
                await self.page.warmer.settled()
            return answer


def test_words_become_an_evening_and_the_same_form_starts_one() -> None:
    baton = Baton()
    guest = Guest(baton)
    key = re.search('name="key" value="([^"]+)"', guest.get("/").text)
    assert key
    form = {"words": " Dinner for four in Vienna. ", "at": "2026-12-24T19:30", "key": key[1]}
    done = [guest.post("/", form) for _ in range(2)]
    assert [(one.status_code, one.headers["location"]) for one in done] == [(303, "/evenings/s1")] * 2
    body = {"words": "Dinner for four in Vienna.", "input": {"at": AT}}
    assert baton.asked == [("POST", "/intentions", body, key[1])] * 2


@pytest.mark.parametrize(
    "form", [{"words": " "}, {"words": "x" * 1_001}, {"words": "Dinner", "at": "tonight"}]
)
def test_words_that_are_none_are_asked_for_again_and_start_nothing(form: dict[str, str]) -> None:
    baton = Baton()
    seen = Guest(baton).post("/", {"at": "2026-12-24T19:30", "key": "k"} | form)
    assert (seen.status_code, baton.asked) == (422, [])
    assert 'role="alert"' in seen.text


def test_the_guest_sees_what_happens_and_answers(says: Says) -> None:
    baton = Baton()
    guest = Guest(baton)
    seen = guest.get("/evenings/s1")
    assert "We have a question" in seen.text
    assert "<bdi>Dinner &lt;script&gt;" in seen.text
    says.within(seen.text, 2)
    assert "deposit is paid" not in seen.text
    assert "<script>alert" not in seen.text
    assert "http://api.test/console/sagas/s1" in seen.text
    done = guest.post(
        "/evenings/s1/answer", {"ask": "0.ask.1", "action": "confirm", "comment": "", "key": "k"}
    )
    assert done.status_code == 303
    assert baton.asked[-1] == ("POST", "/sagas/s1/answer", {"ask": "0.ask.1", "action": "confirm"}, "k")
    guest.post("/evenings/s1/say", {"words": "For six.", "key": "k2"})
    assert baton.asked[-1] == ("POST", "/sagas/s1/signals/follow_up", {"payload": "For six."}, "k2")


def test_in_the_end_the_guest_sees_what_is_arranged_or_why_nothing_is(says: Says) -> None:
    seen = Guest(Baton(ARRANGED)).get("/evenings/s1").text
    assert "Your evening is arranged" in seen
    says.within(seen)
    assert "Pad Thai, brought to Lantern, $36.00" in seen
    assert "data-open" not in seen
    left = ARRANGED | {"result": {"arranged": False, "why": "the guest did not want it"}}
    says(tell(left, STEPS, ()).trouble)
    failed = ARRANGED | {"status": "failed", "result": None, "error": {"says": "The service is down."}}
    assert tell(failed, (), ()).trouble == "The service is down."
    assert tell(failed, (), ()).headline == "It did not work out"


def test_only_the_pages_own_forms_on_this_machine_do_anything() -> None:
    baton = Baton()
    for path in ("/", "/warm", "/evenings/s1/answer", "/evenings/s1/say"):
        assert (
            Guest(baton).post(path, {"words": "x", "at": "2026-12-24T19:30"}, token="another").status_code
            == 403
        )
    assert Guest(baton, host="evil.test").get("/").status_code == 403
    assert baton.asked == []
    policy = Guest(baton).get("/").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")


def test_a_refusal_of_the_api_is_said_as_text_and_before_it_is_known_the_page_says_so() -> None:
    seen = Guest(Baton(status=404)).get("/evenings/none")
    assert seen.status_code == 404
    assert "&lt;script&gt;" in seen.text
    guest = Guest(Baton())
    guest.page = Page()
    assert guest.get("/").status_code == 503


@pytest.mark.parametrize(
    ("words", "city", "party"),
    [
        ("Dinner for four in Vienna tonight, something Th", "Vienna", 4),
        ("in Graz. No, in Porto for 6", "Porto", 6),
        ("a quiet place in Bergen", "Bergen", 2),
        ("for twelve in Ghent", "Ghent", 12),
    ],
)
def test_what_is_wanted_is_told_from_words_that_are_not_finished(words: str, city: str, party: int) -> None:
    wanted = understood(words, AT)
    assert wanted is not None
    assert (wanted.city, wanted.party) == (city, party)


def test_without_a_city_there_is_nothing_to_look_for() -> None:
    assert understood("something nice for four", AT) is None


class Looks:
    """Sagas that look, which end when `gate` is open. `started`: (workflow, input, key)."""

    def __init__(self, result: Any = None, status: str = "completed") -> None:
        self.started, self.gate = list[tuple[str, Any, str]](), asyncio.Event()
        self.seconds, self._view = 1_000_000_000.0, {"status": status, "result": result}

    async def start(self, workflow: str, given: dict[str, Any], key: str) -> str:
        self.started.append((workflow, given, key))
        return "look-1"

    async def show(self, saga: str) -> Any:
        return self._view if self.gate.is_set() else {"status": "running", "result": None}

    async def sleep(self, _: float) -> None:
        await self.gate.wait()

    def warmer(self) -> Warmer:
        return Warmer(self.start, self.show, lambda: self.seconds, self.sleep)


def run(work: Callable[[], Any]) -> None:
    asyncio.run(work())


FOUND = {"tables": [{"house": "Lantern"}, {"house": "Lantern"}, {"house": "Quayside"}]}


def test_a_look_is_made_once_in_five_minutes_and_never_waited_for() -> None:
    async def work() -> None:
        looks = Looks(FOUND)
        warmer = looks.warmer()
        for words in ("Dinner in Vienna", "Dinner in Vienna, something Thai"):
            assert warmer.warm(words, AT) == ""  # at once, though no look has ended
            await asyncio.sleep(0)
        looks.gate.set()
        await warmer.settled()
        assert warmer.warm("Dinner in Vienna", AT) == "Free in Vienna for 2: Lantern, Quayside."
        given = {"city": "Vienna", "party": 2, "at": AT}
        assert [one[:2] for one in looks.started] == [("look", given)]
        looks.seconds += KEPT_S
        assert warmer.warm("Dinner in Vienna", AT) == ""
        await warmer.settled()
        keys = {one[2] for one in looks.started}
        assert len(looks.started) == len(keys) == 2

    run(work)


def test_a_look_that_fails_is_one_that_did_not_happen() -> None:
    async def work() -> None:
        looks = Looks(status="failed")
        looks.gate.set()
        warmer = looks.warmer()
        for _ in range(2):
            assert warmer.warm("in Vienna", AT) == ""
            await warmer.settled()
        assert len(looks.started) == 2
        assert len({one[2] for one in looks.started}) == 1  # the API has one saga for both

    run(work)


def test_no_table_is_said_and_many_writers_begin_few_looks() -> None:
    async def work() -> None:
        looks = Looks()
        warmer = looks.warmer()
        for number in range(2 * MOST_AT_ONCE):
            warmer.warm(f"in City{number}", AT)
        await asyncio.sleep(0)
        assert len(looks.started) == MOST_AT_ONCE
        looks.gate.set()
        await warmer.settled()
        assert warmer.warm("in City0", AT).startswith("No table for 2 is free in City0")

    run(work)


def test_the_page_looks_while_the_guest_is_writing_and_says_nothing_of_what_fails() -> None:
    baton = Baton(OPEN | {"status": "completed", "result": FOUND})
    guest = Guest(baton)
    form = {"words": "Dinner for four in Vienna", "at": "2026-12-24T19:30"}
    assert guest.post("/warm", form).json() == {"known": ""}
    assert guest.post("/warm", form).json() == {"known": "Free in Vienna for 4: Lantern, Quayside."}
    assert [one[:2] for one in baton.asked] == [("POST", "/sagas"), ("GET", "/sagas/s1")]
    failing = Guest(Baton(status=429))
    assert [failing.post("/warm", form).json() for _ in range(2)] == [{"known": ""}] * 2
    script = guest.get("/static/page.js").text
    assert "PAUSE = 500" in script
