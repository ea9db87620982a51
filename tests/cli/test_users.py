"""`baton users`: the list, and what an operator decides about one."""

from __future__ import annotations

import json

import pytest

from baton.client.exits import REFUSED
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

FREE = {
    "user": "ada",
    "state": "open",
    "spent_usd": 0.35,
    "reserved_usd": 0.1,
    "limit_usd": 5.0,
    "left_usd": 4.55,
    "blocked_until": None,
    "blocked": False,
    "own_limit_usd": None,
    "by": None,
    "at": None,
    "note": None,
}
EVE = FREE | {
    "user": "eve",
    "state": "blocked",
    "blocked": True,
    "spent_usd": 0.0,
    "reserved_usd": 0.0,
    "by": "grace",
    "at": "2026-11-29T09:12:44.123Z",
    "note": "a loop\x1b[31m of a script",
}
BOB = FREE | {"user": "bob", "state": "spent", "spent_usd": 9.0, "limit_usd": 9.0, "own_limit_usd": 9.0}


def test_users_are_listed_by_what_they_have_spent_each_once(api: FakeApi, baton: Baton, says: Says) -> None:
    first = {"day": "2026-11-29", "users": [EVE, FREE], "next": "more"}
    api.on("GET /users", (200, first), (200, {"day": "2026-11-29", "users": [BOB, EVE], "next": None}))
    says(baton("users").stdout.splitlines())
    api.on("GET /users", (200, first | {"next": None}))
    assert json.loads(baton("users", "--json").stdout) == {"day": "2026-11-29", "users": [FREE, EVE]}


def test_a_limit_of_its_own_is_said_of_one_who_has_money_left(api: FakeApi, baton: Baton, says: Says) -> None:
    row = FREE | {"limit_usd": 9.0, "own_limit_usd": 9.0}
    api.on("GET /users", (200, {"day": "2026-11-29", "users": [row], "next": None}))
    says(baton("users").stdout.splitlines()[0])


def test_without_any_the_day_is_said(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /users", (200, {"day": "2026-11-29", "users": [], "next": None}))
    says(baton("users").stdout)


def test_one_user_is_shown_with_what_was_decided(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /users", (200, {"day": "2026-11-29", "users": [EVE], "next": None}))
    says(baton("users", "show", "eve").stdout.splitlines())
    assert api.asked[-1].query == {"user": "eve"}


@pytest.mark.parametrize(
    ("words", "route", "body"),
    [
        ("block eve", "block", {"user": "eve"}),
        ("unblock eve --note fine", "unblock", {"user": "eve", "note": "fine"}),
        ("limit eve 2.50", "limit", {"user": "eve", "limit_usd": "2.50"}),
        ("unlimit eve", "limit", {"user": "eve", "limit_usd": None}),
    ],
)
def test_the_command_decides(
    api: FakeApi, baton: Baton, words: str, route: str, body: dict[str, str | None], says: Says
) -> None:
    api.on(f"POST /users/{route}", (202, BOB))
    done = baton("users", *words.split())
    assert json.loads(api.asked[-1].text) == body
    says(done.stdout)
    says(done.stderr)
    assert json.loads(baton("users", *words.split(), "--json").stdout) == BOB


def test_a_block_of_a_user_of_whom_nothing_is_known_says_so(api: FakeApi, baton: Baton, says: Says) -> None:
    """The name may be misspelt, and then no saga is held back."""
    api.on("POST /users/block", (202, EVE))
    says(baton("users", "block", "evve").stderr)


def test_where_no_day_is_counted_no_sum_is_shown(api: FakeApi, baton: Baton, says: Says) -> None:
    row = FREE | {"limit_usd": None, "left_usd": None}
    api.on("GET /users", (200, {"day": "2026-11-29", "users": [row], "next": None}))
    says(baton("users").stdout.splitlines()[0])
    assert "reserved  $0.10" in baton("users", "show", "ada").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("show", "give the USER"),
        ("limit ada", "limit needs one"),
        ("block ada 2", "an amount of dollars goes with limit"),
        ("show ada --note x", "--note goes with"),
    ],
)
def test_the_command_says_what_is_missing(baton: Baton, words: str, said: str) -> None:
    assert said in baton("users", *words.split()).stderr


def test_a_start_of_a_blocked_user_says_so_and_asks_for_no_other_token(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    problem = {
        "type": "urn:baton:problem:user-blocked",
        "title": "An operator has blocked the user",
        "detail": "an operator has blocked `ada`: no saga of this user starts",
    }
    api.on("POST /sagas", (403, problem))
    done = baton("start", "dinner")
    says(done.stderr)
    assert "token" not in done.stderr
    assert done.exit_code == REFUSED


def test_a_budget_says_that_its_user_is_blocked(api: FakeApi, baton: Baton, says: Says) -> None:
    budget = {key: FREE[key] for key in ("user", "spent_usd", "reserved_usd", "limit_usd", "left_usd")}
    more = {
        "day": "2026-11-29",
        "blocked_until": None,
        "blocked": True,
        "saga_limit_usd": None,
        "tenant": None,
    }
    api.on("GET /budget", (200, budget | more))
    says(baton("budget").stdout)


def test_facts_of_a_user_are_listed_and_erased(api: FakeApi, baton: Baton, says: Says) -> None:
    fact = {"at": "2026-11-29T10:03:01.000Z", "saga": "k99d910e03abd9c92", "text": "Prefers window seats"}
    api.on("GET /users/facts", (200, {"facts": [fact], "next": "more"}), (200, {"facts": [], "next": None}))
    says(baton("facts", "ada").stdout)
    assert api.asked[-1].query == {"user": "ada", "limit": "100", "cursor": "more"}
    api.on("POST /users/forget", (200, {"erased": 200, "more": True}), (200, {"erased": 3, "more": False}))
    says(baton("facts", "ada", "--erase").stdout)
    assert json.loads(api.asked[-1].text) == {"user": "ada"}
