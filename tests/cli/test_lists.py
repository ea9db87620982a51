"""`baton list`, `workflows`, `tools`, `node-types` and `cost`: what they ask for, and what a person sees."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from baton.core.documents.schema import node_types
from tests.cli.conftest import Baton, FakeApi
from tests.docs.pages import ROOT
from tests.kit.sentences import Says

WHEN = "2026-11-22T00:03:37.963Z"


def saga(name: str, **fields: Any) -> dict[str, Any]:
    base = {"id": name, "workflow": "dinner", "status": "running", "user": "me"}
    return base | {"created_at": WHEN, "changed_at": "2026-11-22T00:03:43.275Z"} | fields


def page(*sagas: dict[str, Any], then: str | None = None) -> tuple[int, Any]:
    return 200, {"sagas": list(sagas), "next": then}


# ---- list


def test_a_list_is_a_table_with_a_header(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas", page(saga("s1"), saga("s22", workflow="a-long-name", status="completed")))
    assert baton("list").stdout.splitlines() == [
        "id   workflow     status     started (UTC)        changed (UTC)",
        "s1   dinner       running    2026-11-22 00:03:37  2026-11-22 00:03:43",
        "s22  a-long-name  completed  2026-11-22 00:03:37  2026-11-22 00:03:43",
    ]


def test_filters_are_sent_as_they_were_given(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas", page())
    baton("list", "--status", "parked", "--workflow", "a b", "--since", "2026-11-22T02:00:00+02:00")
    asked = api.asked[0]
    assert asked.query == {
        "status": "parked",
        "workflow": "a b",
        "since": "2026-11-22T00:00:00.000Z",
        "limit": "50",
    }
    assert "a%20b" in asked.raw_query, "a signature is made over that spelling of a space"


def test_since_can_be_so_long_ago(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas", page())
    baton("list", "--since", "2h")
    since = datetime.fromisoformat(api.asked[0].query["since"])
    assert 7_100 < (datetime.now(UTC) - since).total_seconds() < 7_300


def test_a_since_that_is_neither_is_explained(api: FakeApi, baton: Baton) -> None:
    result = baton("list", "--since", "yesterday")
    assert (result.exit_code, api.asked) == (2, [])
    assert "2h" in result.stderr
    assert "2026-11-22T10:00:00Z" in result.stderr


def test_cursors_are_followed_up_to_the_limit(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas", page(saga("s1"), then="c1"), page(then="c2"), page(saga("s2"), then="c3"))
    result = baton("list", "--limit", "2")
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["id", "s1", "s2"]
    assert [(asked.query["limit"], asked.query.get("cursor")) for asked in api.asked] == [
        ("2", None),
        ("1", "c1"),
        ("1", "c2"),
    ]
    assert "There are more" in result.stderr


def test_all_goes_on_until_there_is_no_more(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas", page(saga("s1"), then="c1"), page(saga("s2")))
    result = baton("list", "--all")
    assert [asked.query["limit"] for asked in api.asked] == ["100", "100"]
    assert (len(result.stdout.splitlines()), result.stderr) == (3, "")


def test_a_cursor_that_leads_nowhere_is_not_followed_for_ever(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas", page(saga("s1"), then="c1"))
    result = baton("list", "--all")
    assert (result.exit_code, len(api.asked)) == (5, 2)


def test_programs_get_one_document_with_the_cursor_to_go_on_with(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas", page(saga("s1"), then="c1"))
    result = baton("list", "--limit", "1", "--json")
    assert (json.loads(result.stdout), result.stderr) == ({"sagas": [saga("s1")], "next": "c1"}, "")
    baton("list", "--limit", "1", "--cursor", "c1")
    assert api.asked[-1].query["cursor"] == "c1"


def test_nothing_found_is_said_and_is_no_failure(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas", page())
    assert (baton("list").exit_code, baton("list").stderr) == (0, "no sagas yet\n")
    assert baton("list", "--status", "failed").stderr == "no such sagas\n"


def test_a_status_that_is_none_is_the_apis_to_explain(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /sagas", (400, {"title": "Not valid", "detail": "did you mean `parked`?"}))
    result = baton("list", "--status", "praked")
    assert result.exit_code == 3
    says(result.stderr)


# ---- cost

COST = {
    "saga": "s1",
    "status": "completed",
    "estimated": True,
    "priced": {"region": "us-east-1", "date": "November 2026"},
    "usd": {"total": 0.0000125, "aws": 0.0000125, "models": 0.0},
    "aws": [
        {"what": "DynamoDB writes", "quantity": 19.5, "unit": "write units", "usd": 0.0000122},
        {"what": "SQS", "quantity": 1, "unit": "requests", "usd": 0.0000003},
    ],
    "models": [],
    "steps": 10,
    "invocations": 2,
    "usd_per_million_steps": 1.25,
}


def test_a_cost_is_a_bill_with_its_total_and_its_prices(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /sagas/s1/cost", (200, COST))
    says(baton("cost", "s1").stdout.splitlines())
    assert json.loads(baton("cost", "s1", "--json").stdout) == COST


def test_a_bill_has_a_line_for_each_model_and_node(api: FakeApi, baton: Baton, says: Says) -> None:
    line = {"what": "gpt-5-mini", "node": "plan", "quantity": 2_538, "unit": "tokens", "usd": 0.00003}
    line |= {"requests": 4, "input": 2_391, "cached": 1_024, "output": 147}
    lost = {**line, "what": "requests without an answer", "quantity": 0, "usd": 0.02, "requests": 2}
    api.on("GET /sagas/s1/cost", (200, COST | {"models": [line, lost], "agent_steps": 9}))
    shown = [" ".join(line.split()) for line in baton("cost", "s1").stdout.splitlines()]
    says(shown[3:5])
    says(shown[-2])


def test_a_saga_without_steps_has_no_price_per_step(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1/cost", (200, COST | {"usd_per_million_steps": None}))
    assert "million" not in baton("cost", "s1").stdout


# ---- budget

BUDGET = {
    "user": "ada",
    "day": "2026-11-22",
    "spent_usd": 4.2,
    "reserved_usd": 0.05,
    "limit_usd": 5.0,
    "left_usd": 0.75,
    "blocked_until": None,
    "saga_limit_usd": 1.0,
    "tenant": None,
}


def test_a_budget_says_what_is_left_of_the_day(api: FakeApi, baton: Baton) -> None:
    api.on("GET /budget", (200, BUDGET))
    assert baton("budget").stdout.splitlines() == [
        "user      ada",
        "day       2026-11-22 (UTC)",
        "spent     $4.20",
        "reserved  $0.05",
        "left      $0.75 of $5.00",
        "saga      $1.00 each",
    ]
    assert json.loads(baton("budget", "--json").stdout) == BUDGET


def test_a_budget_that_is_spent_says_until_when(api: FakeApi, baton: Baton) -> None:
    over = {
        "spent_usd": 5.1,
        "reserved_usd": 0.0,
        "left_usd": 0.0,
        "blocked_until": "2026-11-23T00:00:00.000Z",
    }
    api.on("GET /budget", (200, BUDGET | over))
    assert "blocked  until 2026-11-23 00:00:00 UTC" in baton("budget").stdout


def test_a_budget_says_what_is_left_of_the_tenants_day(api: FakeApi, baton: Baton) -> None:
    tenant = {
        "spent_usd": 200.0,
        "reserved_usd": 0.0,
        "limit_usd": 200.0,
        "left_usd": 0.0,
        "blocked_until": "2026-11-23T00:00:00.000Z",
    }
    api.on("GET /budget", (200, BUDGET | {"tenant": tenant}))
    said = "tenant    $0.00 of $200.00 left, blocked until 2026-11-23 00:00:00 UTC"
    assert said in baton("budget").stdout


def test_without_a_limit_there_is_nothing_to_count(api: FakeApi, baton: Baton, says: Says) -> None:
    free = {
        "spent_usd": 0.0,
        "reserved_usd": 0.0,
        "limit_usd": None,
        "left_usd": None,
        "saga_limit_usd": None,
    }
    api.on("GET /budget", (200, BUDGET | free))
    lines = baton("budget").stdout.splitlines()
    says(lines[2:])


# ---- tools and kinds of nodes

TOOL = {
    "name": "table.hold",
    "version": "1",
    "effect": "idempotent",
    "timeout_ms": 5000,
    "description": "Hold a table.\n\nUntil the guest confirms it.",
    "input": {"type": "object", "properties": {"table": {"type": "string"}}},
    "output": {"type": "string"},
    "schema_hash": "d827049039f8",
}


def test_tools_are_listed_with_their_first_line(api: FakeApi, baton: Baton) -> None:
    api.on("GET /tools", (200, {"tools": [TOOL, TOOL | {"name": "a", "timeout_ms": None}]}))
    assert baton("tools").stdout.splitlines() == [
        "tool        version  effect      timeout  description",
        "table.hold  1        idempotent  5.0 s    Hold a table.",
        "a           1        idempotent  default  Hold a table.",
    ]
    assert len(json.loads(baton("tools", "--json").stdout)["tools"]) == 2


def test_what_tools_are_about_and_cost_is_listed_if_any_of_them_says_so(api: FakeApi, baton: Baton) -> None:
    model = TOOL | {"name": "ask", "effect": "once", "domain": "model_call", "cost_usd": 0.05}
    silent = TOOL | {"domain": None, "cost_usd": 0}
    api.on("GET /tools", (200, {"tools": [model, silent]}))
    assert baton("tools").stdout.splitlines() == [
        "tool        version  effect      timeout  domain      cost   description",
        "ask         1        once        5.0 s    model_call  $0.05  Hold a table.",
        "table.hold  1        idempotent  5.0 s                       Hold a table.",
    ]
    shown = baton("tools", "ask").stdout
    assert ("model_call" in shown, "$0.05" in shown) == (True, True)
    assert "domain" not in baton("tools", "table.hold").stdout


def test_one_tool_is_shown_with_its_schemas(api: FakeApi, baton: Baton) -> None:
    api.on("GET /tools", (200, {"tools": [TOOL]}))
    shown = baton("tools", "table.hold").stdout
    for text in (
        "Hold a table. Until the guest confirms it.",
        '"table": {',
        "input\n",
        "output\n",
        "d827049039f8",
    ):
        assert text in shown
    assert json.loads(baton("tools", "table.hold", "--json").stdout) == TOOL


def test_a_tool_that_is_not_there_has_a_neighbour(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /tools", (200, {"tools": [TOOL]}))
    result = baton("tools", "table.hodl")
    assert (result.exit_code, result.stdout) == (3, "")
    says(result.stderr)


NODES: dict[str, Any] = {
    "node_types": [
        {
            "kind": "wait",
            "description": "Waits for a time. No worker runs meanwhile.",
            "schema": {"type": "object"},
            "example": {"wait": {"for": "10m"}},
        }
    ],
    "schema": {"$id": "document"},
}


def test_the_page_shows_the_kinds_of_nodes_as_they_are_listed(api: FakeApi, baton: Baton) -> None:
    api.on("GET /node-types", (200, {"node_types": node_types()}))
    listed = baton("node-types").stdout
    assert f"$ baton node-types\n{listed}```" in (ROOT / "docs/cli.md").read_text("utf-8")


def test_kinds_of_nodes_are_listed_with_their_first_sentence(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /node-types", (200, NODES))
    says(baton("node-types").stdout.splitlines())
    assert json.loads(baton("node-types", "--json").stdout) == NODES


def test_one_kind_of_node_is_shown_with_an_example_as_in_a_document(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    api.on("GET /node-types", (200, NODES))
    shown = baton("node-types", "wait").stdout
    says(shown)
    assert json.loads(baton("node-types", "wait", "--json").stdout) == NODES["node_types"][0]
    assert baton("node-types", "wiat").exit_code == 3


# ---- workflows


def version(number: int) -> dict[str, Any]:
    return {"name": "dinner", "version": number, "graph": "c8698f6a6ed5e3a1", "created_at": WHEN, "by": "ada"}


WORKFLOW = version(2) | {
    "document": "name: dinner\n",
    "input": {"type": "object", "required": ["city"], "properties": {"city": {}, "note": {}}},
    "nodes": [
        {"name": "hold", "kind": "task", "tool": "table.hold"},
        {"name": "pause", "kind": "wait", "wait_ms": 5000, "signal": None},
    ],
    "edges": [{"from": "hold", "to": "pause"}],
}


def test_workflows_are_listed_with_their_newest_version(api: FakeApi, baton: Baton) -> None:
    first, second = {"workflows": [version(2)], "next": "c"}, {"workflows": [version(1)], "next": None}
    api.on("GET /workflows", (200, first), (200, second), (200, first))
    assert baton("workflows").stdout.splitlines() == [
        "workflow  registered (UTC)     by   graph",
        "dinner@2  2026-11-22 00:03:37  ada  c8698f6a6ed5",
        "dinner@1  2026-11-22 00:03:37  ada  c8698f6a6ed5",
    ]
    assert json.loads(baton("workflows", "--limit", "1", "--json").stdout) == first


def test_one_workflow_is_drawn_with_its_versions(api: FakeApi, baton: Baton) -> None:
    api.on("GET /workflows/dinner", (200, WORKFLOW | {"versions": [version(2), version(1)]}))
    shown = baton("workflows", "dinner").stdout
    assert "input       city, [note]" in shown
    assert "dinner@1  2026-11-22" in shown
    assert shown.endswith("\n  ●  hold   table.hold\n  ○  pause  wait 5.0 s\n")


def test_one_version_of_a_workflow_is_asked_for(api: FakeApi, baton: Baton) -> None:
    api.on("GET /workflows/dinner/2", (200, WORKFLOW))
    assert json.loads(baton("workflows", "dinner@2", "--json").stdout) == WORKFLOW
    assert "●  hold" in baton("workflows", "dinner@2").stdout


def test_the_document_alone_can_go_into_a_file(api: FakeApi, baton: Baton) -> None:
    api.on("GET /workflows/dinner", (200, WORKFLOW | {"document": "name: dinner"}))
    assert baton("workflows", "dinner", "--document").stdout == "name: dinner\n"
    assert baton("workflows", "--document").exit_code == 2


@pytest.mark.parametrize("command", ["list", "workflows", "tools", "node-types"])
def test_what_a_service_says_cannot_steer_the_terminal(api: FakeApi, baton: Baton, command: str) -> None:
    evil = "\x1b]0;owned\x07"
    api.on("GET /sagas", page(saga(evil, status=evil, workflow=evil)))
    api.on("GET /workflows", (200, {"workflows": [version(1) | {"by": evil, "name": evil}], "next": None}))
    api.on("GET /tools", (200, {"tools": [TOOL | {"name": evil, "description": evil}]}))
    node = NODES["node_types"][0] | {"kind": evil, "description": evil}
    api.on("GET /node-types", (200, {"node_types": [node]}))
    assert baton(command).exit_code == 0
    assert "\x1b" not in baton(command).output
