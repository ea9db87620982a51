"""Aliases of parameters as lines of text, and the command for them."""

from __future__ import annotations

import json
from typing import Any

from baton.cli.text.tables import alias_rows
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

PROPOSED: dict[str, Any] = {
    "tool": "refund",
    "given": "orderid",
    "parameter": "order_id",
    "status": "proposed",
    "mismatches": 5,
    "sagas": ["s1", "s2"],
    "by": None,
    "at": "2026-11-22T10:00:03Z",
    "useless_because": None,
}
APPROVED = {
    **PROPOSED,
    "status": "approved",
    "by": "ada",
    "useless_because": "`refund` has no parameter `order_id`",
}


def test_a_list_has_a_line_for_each(says: Says) -> None:
    says(alias_rows([PROPOSED, APPROVED]))


def test_the_command_lists_and_decides(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /aliases", (200, {"aliases": []}))
    api.on("POST /aliases", (202, {"aliases": [APPROVED]}))
    says(baton("aliases").stdout)
    approve = "aliases", "approve", "refund", "orderid", "order_id"
    assert baton(*approve).stdout.splitlines() == alias_rows([APPROVED])
    assert json.loads(baton(*approve, "--json").stdout) == {"aliases": [APPROVED]}
    says(baton("aliases", "approve", "refund").stderr.splitlines()[-1])
