"""Versions of workflows on the command line: their tags."""

from __future__ import annotations

import json

from baton.ports.records import Tag, TagMove
from baton.runtime.requests.versions import tag_view
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says
from tests.kit.views import as_json

MOVES = (
    TagMove(version=0, by="mia", at=1_790_000_180_000, reason="it failed"),
    TagMove(version=3, by="ann", at=1_790_000_060_000),
    TagMove(version=2, by="bob", at=1_790_000_000_000, reason="the first"),
)
MAIN = as_json(tag_view(Tag(tenant="acme", workflow="pay", name="main", writes=2, moves=MOVES[1:])))
CANARY = as_json(tag_view(Tag(tenant="acme", workflow="pay", name="canary", writes=3, moves=MOVES)))
PAY = {"name": "pay", "version": 3, "graph": "9" * 64, "nodes": [], "edges": [], "document": "…"}


def test_a_tag_is_moved(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("POST /workflows/pay/tags/main", (202, MAIN))
    says(baton("tag", "pay", "main", "3", "--was", "2", "--reason", "tried").stdout)
    assert api.asked[-1].json == {"version": 3, "was": 2, "reason": "tried"}
    assert json.loads(baton("tag", "pay", "main", "3", "--json").stdout) == MAIN
    api.on("POST /workflows/pay/tags/canary", (202, CANARY))
    says(baton("tag", "pay", "canary", "--delete").stdout)
    assert api.asked[-1].json == {"version": None, "was": None, "reason": ""}


def test_a_tag_needs_a_version_or_to_be_deleted(baton: Baton, says: Says) -> None:
    says([baton("tag", "pay", "main").stderr, baton("tag", "pay", "main", "3", "--delete").stderr])


def test_tags_are_listed_with_their_moves(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /workflows/pay", (200, PAY | {"tags": [CANARY, MAIN]}), (200, PAY | {"tags": []}))
    says(baton("tags", "pay").stdout)
    says(baton("tags", "pay").stderr)
    api.on("GET /workflows/pay", (200, PAY | {"tags": [MAIN]}))
    assert json.loads(baton("tags", "pay", "--json").stdout) == {"tags": [MAIN]}
    says(baton("workflows", "pay").stdout)


def test_a_workflow_is_shown_by_tag(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /workflows/pay/tags/main", (200, MAIN))
    api.on("GET /workflows/pay/3", (200, PAY))
    assert json.loads(baton("workflows", "pay@main", "--json").stdout) == PAY
    api.on("GET /workflows/pay/tags/canary", (200, CANARY))
    says(baton("workflows", "pay@canary").stderr)
