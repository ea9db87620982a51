"""The page of conversations, over a log of any length: parts, order, values beside the log, and what a page may weigh."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest

from baton.console.conversations import LARGEST_VALUE, MOST_VALUES, conversations
from baton.console.rendering import render
from baton.console.visits import Html, Session, Unchanged, Visit
from baton.errors import NotFound, UserError
from tests.kit.sentences import Says

MOST_BYTES = 150_000
TIMES = {"started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:00:02Z"}
HOSTILE = {"digest": "<script>", "size": "many"}


def log_of(turns: int, *, text: str = "said", stored: int = 0) -> list[dict[str, Any]]:
    """Three entries a turn: it begins, it answers with a call, the call comes back. The call of the last one has not."""
    events: list[dict[str, Any]] = [{"kind": "saga_started"}]
    given = {"v": {"model": "m", "instructions": "i", "prompt": "p"}}
    events.append({"kind": "agent_began", "given": given})
    for number in range(1, turns + 1):
        call = {"tool": "table.search", "arguments": {"words": text}}
        output: dict[str, Any] = {"v": {"text": f"{text} {number}", "calls": [call]}}
        if stored:
            output = {"ref": f"cas://sha256/{number:064x}@9", "size": stored}
        usage = [{"model": "m", "input": 100, "cached": 80, "output": 7}]
        events += [
            {"kind": "turn_began", "turn": number},
            {"kind": "step_succeeded", "item": f"t{number}", "output": output, "usage": usage, **TIMES},
            {"kind": "step_succeeded", "item": f"t{number}-0", "output": {"v": HOSTILE}, **TIMES},
        ]
    return [
        {"version": version, "events": [{"node": "plan", "iteration": [], **event}]}
        for version, event in enumerate(events[:-1], 1)
    ]


class Api:
    """Answers as the API's routes do, `most` entries at once; `asked` has their names."""

    roles, tenant = frozenset({"read"}), "acme"

    def __init__(self, entries: list[dict[str, Any]], status: str = "running", most: int = 1_000) -> None:
        self.entries, self.status, self.most, self.asked = entries, status, most, list[str]()

    async def __call__(
        self,
        route: str,
        path: Mapping[str, str] = {},
        query: Mapping[str, str] = {},
        body: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> Any:
        self.asked.append(route)
        if route == "showSaga":
            return {"id": "s1", "status": self.status, "version": len(self.entries)}
        if route == "showValue":
            if int(path["digest"], 16) % 2:
                raise NotFound("it is not there any more")
            return {"value": {"text": f"stored {int(path['digest'], 16)}"}, "next": None}
        after, limit = int(query["after"]), min(int(query["limit"]), self.most)
        found = [one for one in self.entries if one["version"] > after]
        return {"entries": found[:limit], "next": found[limit - 1]["version"] if len(found) > limit else None}


def look(api: Api, seen: str = "", **query: str) -> tuple[str, str]:
    """The page and its tag; the page is empty where nothing has changed."""
    visit = Visit(
        session=Session({"sub": "ada"}, "csrf"), call=api, path={"saga": "s1"}, query=query, form={}, now=0, token="",
        api="https://api.test", seen=seen,
    )  # fmt: skip
    found = asyncio.run(conversations(visit))
    if isinstance(found, Unchanged):
        return "", ""
    assert isinstance(found, Html)
    common = {"title": "", "session": None, "now": 0, "live": None, "nav": (), "api": ""}
    return render(found.template, common | dict(found.data)), found.tag


def turns_in(html: str) -> list[int]:
    return [int(one) for one in re.findall(r"<h3>Turn (\d+)", html)]


def walk(api: Api, words: str, **query: str) -> list[int]:
    """The turns of all pages, from link to link."""
    found = list[int]()
    while True:
        html, _ = look(api, **query)
        found += turns_in(html)
        link = re.search(rf'href="[^"?]*\?([^"]*)">{words}', html)
        if link is None:
            return found
        query = dict(one.split("=") for one in link[1].replace("&amp;", "&").split("&"))


@pytest.mark.parametrize("turns", [1, 49, 50, 51, 200])
@pytest.mark.parametrize("most", [7, 1_000])
def test_every_turn_is_on_one_page_whichever_way_a_person_goes(turns: int, most: int) -> None:
    log = log_of(turns)
    newest_first = walk(Api(log, most=most), "Older turns", order="new")
    assert newest_first == list(range(turns, 0, -1))
    assert walk(Api(log, "completed", most), "Newer turns") == list(range(1, turns + 1))
    assert walk(Api(log, "completed", most), "Older turns", order="new") == newest_first


def test_a_conversation_begins_with_its_first_turn_and_the_newest_one_is_a_link_away() -> None:
    assert turns_in(look(Api(log_of(200)))[0])[0] == 1
    html, _ = look(Api(log_of(200)), order="new")
    assert turns_in(html)[0] == 200
    assert html.index("no result yet") < html.index("Turn 199")
    assert html.count("no result") == 1
    assert "Entries 452 to 601 of the 601" in html


def test_a_call_that_repeats_another_one_has_the_result_of_that(says: Says) -> None:
    log = log_of(2)
    began = {"kind": "calls_began", "calls": [{"item": "t2-0", "tool": "table.search", "repeats": "t1-0"}]}
    log.append({"version": len(log) + 1, "events": [{"node": "plan", "iteration": [], **began}]})
    html, _ = look(Api(log))
    says.within(html)
    assert "no result" not in html


@pytest.mark.parametrize("status", ["failed", "cancelled", "rolled_back"])
def test_of_a_saga_that_has_ended_nothing_is_still_to_come(status: str) -> None:
    html, _ = look(Api(log_of(3), status))
    assert html.count("no result</span>") == 1
    assert " yet" not in html


@pytest.mark.parametrize("text", ["said", "x" * 3_000, "<&\"'" * 750])
def test_a_page_of_a_long_conversation_is_bounded_whatever_was_said(text: str, says: Says) -> None:
    api = Api(log_of(200, text=text))
    html, _ = look(api)
    assert len(html.encode()) <= MOST_BYTES
    assert len(turns_in(html)) >= 45
    assert api.asked == ["showSaga", "listEvents"]
    says.within(html)


def test_texts_that_are_stored_are_read_the_newest_first_and_as_many_as_there_is_room_for() -> None:
    api = Api(log_of(60, stored=20_000))
    html, _ = look(api, order="new")
    assert api.asked.count("showValue") == MOST_VALUES
    assert "stored 60" in html
    assert "stored 58" in html
    assert f'href="/console/sagas/s1/values/{59:064x}"' in html, "one that is gone has a link that says so"
    assert f'href="/console/sagas/s1/values/{40:064x}"' in html
    large = Api(log_of(2, stored=LARGEST_VALUE + 1))
    assert "65,537 bytes" in look(large)[0]
    assert "showValue" not in large.asked


def test_a_part_that_nothing_can_change_is_not_read_again() -> None:
    api = Api(log_of(200))
    _, tag = look(api, order="new", before="300")
    api.entries += log_of(1)
    api.asked.clear()
    assert look(api, tag, order="new", before="300") == ("", "")
    assert api.asked == ["showSaga"]
    assert look(api, look(api)[1]) == ("", "")


def test_a_part_without_a_turn_is_passed_over() -> None:
    news = [
        {"version": version, "events": [{"kind": "signal_received", "key": "k", "payload": {"v": 1}}]}
        for version in range(10, 400)
    ]
    assert turns_in(look(Api(log_of(3)[:9] + news), order="new")[0]) == [3, 2, 1]
    nothing, _ = look(Api(news))
    assert "No agent" in nothing


@pytest.mark.parametrize("before", ["x", "-1", "1e9"])
def test_a_version_that_is_none_is_refused(before: str, says: Says) -> None:
    with says.raised(UserError):
        look(Api(log_of(1)), order="new", before=before)
