"""Circuit breakers as lines of text."""

from __future__ import annotations

import json
from typing import Any

from baton.cli.text.render import helping, waits
from baton.cli.text.tables import breaker_lines, breaker_rows
from baton.core.failures.breakers import (
    Breaker,
    BreakerTerms,
    FailureReport,
    forced_open,
    with_probe,
    with_reports,
    with_verdict,
)
from baton.runtime.requests.operators import breaker_view
from baton.words.event_words import EventWords
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says
from tests.kit.views import as_json

NOW = 1_790_000_000_000
TERMS = BreakerTerms(failures=2, pause_ms=30_000)


def views() -> list[dict[str, Any]]:
    opened = with_reports(Breaker(), (FailureReport(NOW, "timeout", 2, 3, "i-1"),), TERMS, NOW, 0.0)
    probing = with_probe(opened, "p", NOW + 99_000, TERMS, NOW + 40_000)
    closed = with_verdict(probing, "p", "", TERMS, NOW + 41_000, 0.0)
    forced = forced_open(Breaker(), "ann", 0, NOW)
    named = {"payments": opened, "a": probing, "b": closed, "c": forced, "d": Breaker(version=1)}
    return [as_json(breaker_view(name, there)) for name, there in named.items()]


def test_a_list_has_a_line_for_each(says: Says) -> None:
    says(breaker_rows(views()))
    assert breaker_rows([]) == []


def test_one_is_shown_with_its_failures_and_changes(says: Says) -> None:
    says(breaker_lines(views()[2]))


def test_of_much_the_newest_is_shown() -> None:
    there = Breaker()
    for number in range(15):
        there = forced_open(there, f"u{number}", 0, NOW + number)
    lines = breaker_lines(as_json(breaker_view("x", there)))
    assert len(lines) == 13
    assert lines[-1] == "          … and 5 before"


def test_the_command_lists_shows_opens_and_resets(api: FakeApi, baton: Baton) -> None:
    one = views()[0]
    api.on("GET /breakers", (200, {"breakers": views()[:2], "next": None}))
    api.on("GET /breakers/payments", (200, one))
    api.on("POST /breakers/payments/open", (202, one))
    api.on("POST /breakers/payments/reset", (202, one))
    assert baton("breakers").stdout.splitlines() == breaker_rows(views()[:2])
    assert json.loads(baton("breakers", "--json").stdout) == {"breakers": views()[:2]}
    assert baton("breakers", "show", "payments").stdout.splitlines() == breaker_lines(one)
    assert baton("breakers", "open", "payments", "--for", "10m").stdout.splitlines() == breaker_lines(one)
    assert json.loads(baton("breakers", "reset", "payments", "--json").stdout) == one


def test_that_nothing_was_known_of_an_opened_one_is_said(api: FakeApi, baton: Baton, says: Says) -> None:
    """Its name may be misspelt, and then no call is held back."""
    api.on("POST /breakers/paymnets/open", (202, views()[3]))
    api.on("POST /breakers/payments/open", (202, views()[0]))
    says(baton("breakers", "open", "paymnets").stderr)
    assert baton("breakers", "open", "payments").stderr == ""


def test_the_command_says_what_is_missing(baton: Baton, says: Says) -> None:
    says(baton("breakers", "show").stderr)
    says(baton("breakers", "reset", "payments", "--for", "10m").stderr)


def test_none_is_said_to_be_none(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /breakers", (200, {"breakers": [], "next": None}))
    says(baton("breakers").stdout)


def test_an_error_budget_has_a_line_for_each_workflow(api: FakeApi, baton: Baton, says: Says) -> None:
    rows = [
        {"key": "dinner", "completed": 1_201, "failed": 3, "allowed": 12, "left": 9},
        {"key": "shop", "completed": 9, "failed": 2, "allowed": 0, "left": -2},
    ]
    page = {"day": "2026-11-22", "percent": 1.0, "workflows": rows, "looked_at": 9, "next": None}
    api.on("GET /error-budgets", (200, page))
    says(baton("error-budget").stdout.splitlines())
    assert json.loads(baton("error-budget", "--json", "--day", "2026-11-22").stdout)["percent"] == 1.0


def test_without_an_error_budget_that_is_said(api: FakeApi, baton: Baton, says: Says) -> None:
    row = {"key": "dinner", "completed": 4, "failed": 1, "allowed": None, "left": None}
    page = {"day": "2026-11-22", "percent": None, "workflows": [row], "looked_at": 5, "next": None}
    api.on("GET /error-budgets", (200, page))
    says(baton("error-budget").stdout.splitlines())


def test_an_event_says_that_a_step_waits(says: Says) -> None:
    event = {"kind": "step_held", "node": "pay", "breaker": "payments", "at": NOW, "until": NOW + 60_000}
    said = EventWords().of(event)
    assert said is not None
    says(said[0])


def test_a_saga_says_what_it_waits_for_and_where_to_look(says: Says) -> None:
    active = {
        "node": "pay",
        "state": "held",
        "breaker": "payments",
        "since": NOW,
        "until": "2026-09-21T14:14:20Z",
    }
    saga = {"id": "s1", "status": "waiting", "active": [active, {**active, "node": "again"}]}
    says(waits(saga, NOW)[0])
    says([(why, line.rpartition("baton ")[2]) for why, line in helping(saga) if "breakers" in line])


def test_an_event_and_a_saga_say_which_money_a_step_waits_for(says: Says) -> None:
    event = {
        "kind": "step_held",
        "node": "pay",
        "limit": "budget_saga",
        "amount": 30_000,
        "first": True,
        "at": NOW,
        "until": NOW + 60_000,
    }
    said = EventWords().of(event)
    assert said is not None
    says(said[0])
    assert {"limit", "amount", "first", "until"} <= set(said[1])
    active = {
        "node": "pay",
        "state": "held",
        "limit": "budget_saga",
        "needs_usd": 0.03,
        "since": NOW,
        "until": NOW + 24_000,
    }
    saga = {"id": "s1", "status": "waiting", "active": [active]}
    says(waits(saga, NOW)[0])
    assert list(helping(saga)) == []
