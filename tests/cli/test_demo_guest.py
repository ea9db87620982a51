"""The guest of the demo: confirms each plan once, and has another wish once the table is held."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from baton.client.api import Api
from baton.client.connection import Connection
from baton.demo.evidence import Course
from baton.demo.scenario import CHANGE, Guest
from tests.cli.conftest import FakeApi
from tests.kit.sentences import Says

PLAN = {"id": "0.ask@0", "node": "ask", "message": "Book it.", "details": {"understood": "a table"}}
SAGA = {"id": "s1", "questions": [PLAN, {"id": "0.other", "node": "other", "details": None}]}
ACCEPTED = (202, {"id": "s1", "status": "running", "version": 3})


def play(api: FakeApi, *do: Callable[[Guest], Awaitable[None]]) -> tuple[list[str], Course]:
    said: list[str] = []
    course = Course(planning="s1")

    async def run() -> None:
        async with Api(Connection(api.url, "secret-token")) as client:
            guest = Guest(client, said.append, course)
            for one in do:
                await one(guest)

    asyncio.run(run())
    return said, course


def look(guest: Guest) -> Awaitable[None]:
    return guest.look(SAGA)


def change(guest: Guest) -> Awaitable[None]:
    return guest.change(SAGA)


def logs(api: FakeApi, *of_child: dict[str, Any]) -> None:
    opened = {"events": [{"kind": "child_opened", "child": "s1.0.c"}]}
    api.on("GET /sagas/s1/events", (200, {"entries": [opened], "next": None}))
    api.on("GET /sagas/s1.0.c/events", (200, {"entries": [{"events": list(of_child)}], "next": None}))
    api.on("POST /sagas/s1/answer", ACCEPTED)
    api.on("POST /sagas/s1/signals/follow_up", ACCEPTED)


def sent(api: FakeApi) -> list[Any]:
    return [asked.json for asked in api.asked if asked.method == "POST"]


def test_a_plan_is_confirmed_once_and_no_other_question_is_answered(api: FakeApi, says: Says) -> None:
    logs(api)
    said, _ = play(api, look, look)
    assert sent(api) == [{"ask": "0.ask@0", "action": "confirm"}]
    says(said)


def test_the_other_wish_comes_once_and_after_the_table_is_held(api: FakeApi, says: Says) -> None:
    logs(api, {"kind": "step_succeeded", "node": "hold"})
    said, course = play(api, change, look, change, change)
    assert sent(api)[1:] == [{"payload": CHANGE}]
    assert course.changed_ms > 0
    says(said[-1])


def test_until_then_nothing_is_said(api: FakeApi) -> None:
    logs(api, {"kind": "step_succeeded", "node": "begin"})
    _, course = play(api, look, change)
    assert (len(sent(api)), course.changed_ms) == (1, 0)


def test_a_child_that_is_recorded_and_not_yet_there_is_looked_for_again(api: FakeApi) -> None:
    logs(api)
    api.on("GET /sagas/s1.0.c/events", (404, {"title": "no", "detail": "no"}))
    _, course = play(api, look, change)
    assert course.changed_ms == 0
