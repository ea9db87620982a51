"""`baton events --follow`: when it stays, and when nothing more can come."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.conftest import Baton, FakeApi
from tests.cli.test_show import QUESTION, SAGA, entry


def asking(version: int, *events: dict[str, Any]) -> dict[str, Any]:
    return {"entries": [entry(version, events=list(events))], "next": None}


def test_following_stays_while_something_else_goes_on_beside_a_question(api: FakeApi, baton: Baton) -> None:
    ask = {"kind": "strategy_chosen", "node": "a", "strategy": "ask_user", "ask": QUESTION}
    closed = {"kind": "question_closed", "node": "a", "ask": "0.ask.1", "action": "retry"}
    api.on(
        "GET /sagas/s1/events",
        (200, asking(2, ask)),
        (200, {"entries": [], "next": None}),
        (200, asking(3, {"kind": "step_succeeded", "node": "b"})),
        (200, {"entries": [], "next": None}),
        (200, asking(4, closed)),
        (200, asking(5, {"kind": "saga_ended", "status": "completed"})),
    )
    api.on("GET /sagas/s1", (200, SAGA), (200, SAGA | {"status": "running"}))
    result = baton("events", "s1", "--follow", "--every", "1ms", "--json")
    assert result.exit_code == 0
    assert [json.loads(line)["version"] for line in result.stdout.splitlines()] == [2, 3, 4, 5]


def test_following_ends_when_nothing_but_a_question_is_left(api: FakeApi, baton: Baton) -> None:
    ask = {"kind": "strategy_chosen", "node": "a", "strategy": "ask_user", "ask": QUESTION}
    api.on("GET /sagas/s1/events", (200, asking(2, ask)), (200, {"entries": [], "next": None}))
    api.on("GET /sagas/s1", (200, SAGA | {"status": "suspended"}))
    result = baton("events", "s1", "--follow", "--every", "1ms")
    assert (result.exit_code, "waits for an answer" in result.stderr) == (1, True)
