"""Claims of once-only effects as lines of text, and the command for them."""

from __future__ import annotations

import json
from typing import Any

from baton.cli.text.tables import claim_lines, claim_rows
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

KEY = "0123456789abcdef0123456789abcdef"
AT = "2026-11-22T10:00:03Z"
HELD: dict[str, Any] = {
    "key": KEY,
    "tool": "pay.card",
    "status": "in_progress",
    "saga": "s1",
    "node": "pay",
    "iteration": [1, 2],
    "item": "3",
    "attempt": 2,
    "since": AT,
    "updated_at": AT,
    "held_until": AT,
    "result": None,
    "large_result": None,
    "error": None,
    "shared_until": None,
    "expires_at": None,
    "freed_by": None,
    "freed_because": None,
}
OVER = {**HELD, "held_until": None, "item": "", "iteration": [], "attempt": 0, "expires_at": AT}
DONE = {**OVER, "status": "completed", "result": {"payment": "p1"}, "shared_until": AT}
LARGE = {**DONE, "result": None, "large_result": {"ref": "cas://sha256/00", "size": 9_000}}
FAILED = {**OVER, "status": "failed", "error": {"code": "declined", "message": "no money"}}
FREED = {**OVER, "status": "freed", "freed_by": "ann", "freed_because": "no payment"}


def test_a_list_has_a_line_for_each(says: Says) -> None:
    says(claim_rows([HELD, DONE]))


def test_one_is_shown_with_what_came_of_it(says: Says) -> None:
    for one in (HELD, DONE, LARGE, FAILED, FREED):
        says(claim_lines(one))


def test_the_command_lists_finds_shows_and_frees(api: FakeApi, baton: Baton) -> None:
    api.on(
        "GET /sagas/s1/claims",
        (200, {"claims": [HELD], "next": 7}),
        (200, {"claims": [HELD, DONE], "next": None}),
    )
    api.on("GET /claims", (200, {"claims": [DONE], "next": None}))
    api.on(f"GET /claims/{KEY}", (200, HELD))
    api.on(f"POST /claims/{KEY}/free", (202, FREED))
    assert json.loads(baton("claims", "s1", "--json").stdout) == {"claims": [DONE]}
    assert baton("claims", "find", "pay.card", "--set", "invoice=17").stdout.splitlines() == claim_rows(
        [DONE]
    )
    assert baton("claims", "show", KEY).stdout.splitlines() == claim_lines(HELD)
    freed = baton("claims", "free", KEY, "--reason", "no payment", "--force", "--json")
    assert json.loads(freed.stdout) == FREED


def test_options_that_do_not_go_together_are_refused(baton: Baton, says: Says) -> None:
    for words in (
        ("claims", "show"),
        ("claims", "s1", "extra"),
        ("claims", "s1", "--set", "a=1"),
        ("claims", "show", KEY, "--force"),
        ("claims", "free", KEY),
    ):
        says(baton(*words).stderr.splitlines()[-1])
