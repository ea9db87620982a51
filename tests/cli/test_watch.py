"""`show --watch` and `events --follow`: what is asked again, how often, and when it is over."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from baton.cli.terminal.watching import Pace
from baton.client import transport
from tests.cli.conftest import Baton, FakeApi
from tests.cli.test_show import SAGA, entry
from tests.kit.sentences import Says

DONE = SAGA | {"status": "completed", "version": 6}
UNCHANGED = (304, None)


def tagged(document: Any, tag: str) -> tuple[int, Any, dict[str, str]]:
    return 200, document, {"ETag": f'"{tag}"'}


def test_watch_asks_with_the_etag_it_knows(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", tagged(SAGA, "a"), UNCHANGED, UNCHANGED, tagged(DONE, "b"))
    result = baton("show", "s1", "--watch", "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [SAGA, DONE]
    assert [asked.headers.get("if-none-match") for asked in api.asked] == [None, '"a"', '"a"', '"a"']


def test_pauses_grow_while_nothing_changes_and_begin_anew_when_something_does(
    api: FakeApi, baton: Baton
) -> None:
    news = tagged(SAGA | {"version": 6}, "b")
    api.on("GET /sagas/s1", tagged(SAGA, "a"), UNCHANGED, UNCHANGED, news, UNCHANGED, tagged(DONE, "c"))
    baton("show", "s1", "--watch")
    assert api.pauses == [1.0, 1.5, 2.25, 1.0, 1.5]


def test_a_given_pause_stays(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", tagged(SAGA, "a"), UNCHANGED, UNCHANGED, tagged(DONE, "b"))
    baton("show", "s1", "--watch", "--every", "200ms")
    assert api.pauses == [0.2, 0.2, 0.2]


def test_a_pause_never_gets_longer_than_fifteen_seconds(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "pause", api.pause)
    pace = Pace(None)

    async def wait() -> None:
        for _ in range(20):
            await pace.wait()

    asyncio.run(wait())
    assert (max(api.pauses), api.pauses[-1]) == (15.0, 15.0)


def test_a_busy_api_is_given_the_pause_it_asks_for(api: FakeApi, baton: Baton) -> None:
    slow = (429, {"title": "Too many requests"}, {"Retry-After": "7"})
    api.on("GET /sagas/s1", tagged(SAGA, "a"), slow, tagged(DONE, "b"))
    result = baton("show", "s1", "--watch")
    assert (result.exit_code, result.stderr) == (0, "")
    assert api.pauses == [1.0, 7.0]


def test_a_watch_outlasts_a_limit_that_a_single_call_would_not(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    slow = (429, {"title": "Too many requests", "detail": "later"}, {"Retry-After": "60"})
    api.on("GET /sagas/s1", slow, tagged(DONE, "b"))
    assert baton("show", "s1", "--watch").exit_code == 0
    assert api.pauses == [60.0]
    api.on("GET /sagas/s1", slow)
    result = baton("show", "s1")
    assert (result.exit_code, api.pauses) == (5, [60.0])
    says(result.stderr)


def test_retry_after_can_be_a_date(api: FakeApi, baton: Baton) -> None:
    past = (503, {"title": "Busy"}, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})
    api.on("GET /sagas/s1", past, (503, {"title": "Busy"}, {"Retry-After": "soon"}), (200, DONE))
    assert baton("show", "s1").exit_code == 0
    assert all(pause < 2 for pause in api.pauses)


# ---- follow


def page(*entries: dict[str, Any], then: int | None = None) -> dict[str, Any]:
    return {"entries": list(entries), "next": then}


def ended(version: int, status: str = "completed") -> dict[str, Any]:
    return entry(version, events=[{"kind": "saga_ended", "status": status}])


def test_follow_goes_on_after_the_last_entry_until_the_end(api: FakeApi, baton: Baton) -> None:
    api.on(
        "GET /sagas/s1/events",
        tagged(page(entry(1), entry(2)), "a"),
        tagged(page(), "b"),
        UNCHANGED,
        tagged(page(ended(3)), "c"),
    )
    api.on("GET /sagas/s1", (200, SAGA))
    result = baton("events", "s1", "--follow", "--json")
    assert [json.loads(line)["version"] for line in result.stdout.splitlines()] == [1, 2, 3]
    assert result.exit_code == 0
    asked = [(a.query["after"], a.headers.get("if-none-match")) for a in api.of("GET", "/sagas/s1/events")]
    assert asked == [("0", None), ("2", None), ("2", '"b"'), ("2", '"b"')]


def test_what_is_there_already_is_read_without_a_pause(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1/events", tagged(page(entry(1), then=1), "a"), tagged(page(ended(2)), "b"))
    assert baton("events", "s1", "--follow").exit_code == 0
    assert api.pauses == []


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_follow_ends_as_the_saga_does(api: FakeApi, baton: Baton, status: str) -> None:
    api.on("GET /sagas/s1/events", (200, page(entry(1), ended(2, status))))
    result = baton("events", "s1", "--follow")
    assert (result.exit_code, f"the saga ended {status}" in result.stderr) == (1, True)


def test_follow_ends_when_a_person_is_needed(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1/events", (200, page(entry(1, events=[{"kind": "parked", "code": "poison"}]))))
    result = baton("events", "s1", "--follow")
    assert (result.exit_code, "baton resume s1" in result.stderr) == (1, True)


def test_a_parked_saga_goes_on_only_with_what_takes_it_up(api: FakeApi, baton: Baton) -> None:
    """A step that was running may end meanwhile, and a failure may be tolerated."""
    parked = {"kind": "parked", "code": "over_budget", "message": ""}
    ended = {"kind": "saga_ended", "status": "completed"}
    for more, exit_code in (
        ([{"kind": "step_failed", "emits": [{"to": "j"}]}], 1),
        ([{"kind": "step_failed", "emits": []}, ended], 0),
        ([{"kind": "node_passed", "emits": [], "fault": {"code": "x"}}, ended], 0),
        ([{"kind": "node_passed", "emits": [{"to": "j"}], "fault": {"code": "x"}}], 1),
    ):
        page = {"entries": [entry(5, events=[parked, *more])], "next": None}
        api.on("GET /sagas/s1/events", (200, page))
        assert baton("events", "s1", "--follow", "--every", "1ms").exit_code == exit_code


def test_a_forked_saga_goes_on_after_its_end(api: FakeApi, baton: Baton) -> None:
    log = page(entry(1), ended(2, "failed"), entry(3, events=[{"kind": "forked", "cut": 1}]))
    api.on("GET /sagas/s1/events", tagged(log, "a"), tagged(page(ended(4)), "b"))
    assert baton("events", "s1", "--follow").exit_code == 0


def test_a_saga_that_ended_before_is_not_waited_for(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1/events", (200, page()))
    api.on("GET /sagas/s1", (200, DONE))
    assert baton("events", "s1", "--follow", "--after", "6").exit_code == 0
    assert api.pauses == []


def test_a_busy_api_is_followed_more_slowly(api: FakeApi, baton: Baton) -> None:
    slow = (429, {"title": "Too many requests"}, {"Retry-After": "30"})
    api.on("GET /sagas/s1/events", slow, (200, page(ended(1))))
    assert baton("events", "s1", "--follow").exit_code == 0
    assert api.pauses == [30.0]


def test_follow_and_limit_exclude_each_other(baton: Baton) -> None:
    assert baton("events", "s1", "--follow", "--limit", "3").exit_code == 2


# ---- Ctrl-C


@pytest.mark.parametrize("arguments", [("show", "s1", "--watch"), ("events", "s1", "--follow")])
def test_ctrl_c_is_an_end_without_a_trace_and_the_saga_goes_on(
    api: FakeApi, baton: Baton, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: Says
) -> None:
    async def pressed(_: float) -> None:
        raise KeyboardInterrupt

    api.on("GET /sagas/s1", (200, SAGA))
    api.on("GET /sagas/s1/events", (200, page(entry(1))))
    monkeypatch.setattr(transport, "pause", pressed)
    result = baton(*arguments)
    assert result.exit_code == 130
    says(result.stderr)


def test_ctrl_c_ends_any_command_with_its_status(
    api: FakeApi, baton: Baton, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def pressed(_: float) -> None:
        raise KeyboardInterrupt

    api.on("GET /tools", (503, {"title": "Busy"}))
    monkeypatch.setattr(transport, "pause", pressed)
    result = baton("tools")
    assert (result.exit_code, result.stderr) == (130, "baton: interrupted\n")
