"""Bounds of a patch of an agent: paths, guards and calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from baton import tool
from baton.core.documents.compile import compile_document
from baton.core.effects.keys import GRANTED_LIST_KEY
from baton.core.graph.patches import operation_problems, patched_problems, visible_values
from baton.tools.define import Registry, ToolError
from tests.core.build import tool_spec

PATHS = ("/nodes/report", "/nodes/check_*", "/nodes/pay/with/note")


@pytest.mark.parametrize(
    ("path", "is_listed"),
    [
        ("/nodes/report", True),
        ("/nodes/report/with/text", True),
        ("/nodes/check_1", True),
        ("/nodes/check_/after", True),
        ("/nodes/pay/with/note", True),
        ("/nodes/pay/with/note/0", True),
        ("/nodes/pay/with", False),
        ("/nodes/pay", False),
        ("/nodes/reports", False),
        ("/nodes/check_me", False),  # the agent itself
        ("/nodes/check_me/agent/turns", False),
        ("/nodes/check_me~1", True),
        ("/nodes", False),
        ("/nodes/", False),
        ("", False),
        ("/", False),
        ("nodes/report", False),
        ("/limits", False),
        ("//nodes/report", False),
        ("/nodes/report~1../pay", False),
        ("/nodes/*", False),
    ],
)
def test_an_operation_touches_what_is_listed_and_never_the_agent(path: str, is_listed: bool) -> None:
    for operation in (
        {"op": "replace", "path": path, "value": 1},
        {"op": "test", "path": path, "value": 1},
        {"op": "copy", "path": "/nodes/report", "from": path},
    ):
        found = [*operation_problems(PATHS, "check_me", [operation])]
        assert [one.path for one in found] == (
            [] if is_listed else [f"/operations/0/{[*operation][-1] if 'from' in operation else 'path'}"]
        )


OPENAPI = tool_spec(
    "std.openapi", api={"type": "string"}, operation={"type": "string"}, operations={GRANTED_LIST_KEY: True}
)
SEAT = replace(tool_spec("seat-guests"), calls=("note",))


def registry() -> Registry:
    made = Registry()

    @tool("note", registry=made, effect="pure")
    async def note(text: str = "") -> str:
        return text

    @tool("pay", registry=made, undo="refund")
    async def pay(cents: int) -> int:
        return cents

    @tool("renew", registry=made, carries_out="refresh_page", for_tools="note")
    async def renew() -> None:
        """Renew."""

    @tool("refund", registry=made)
    async def refund(cents: int) -> None:
        """Undo."""

    @tool("mail", registry=made, requires_approval=True)
    async def mail(to: str) -> None:
        """Send."""

    @tool("wipe", registry=made)
    async def wipe(text: str = "") -> str:
        return text

    return made


WORKFLOW: Mapping[str, Any] = {
    "name": "w",
    "nodes": {
        "plan": {
            "agent": {
                "model": "m",
                "prompt": "p",
                "tools": ["note", "pay", "mail", "std.openapi", {"workflow": "ship@2"}, {"ask": "wipe"}],
                "operations": {"shop": ["find", "refund"]},
                "requires_approval": {"pay": True, "shop:refund": True},
                "patch": ["/nodes/*"],
            }
        },
        "report": {"tool": "note", "after": "plan", "limits": {"hops": 3}},
        "settle": {"tool": "pay", "with": {"cents": 1}, "requires_approval": True, "after": "report"},
        "scout": {"agent": {"model": "m", "prompt": "p", "tools": ["note"], "turns": 2}, "after": "settle"},
        "many": {
            "map": "${input.many}",
            "agent": {"model": "m", "prompt": "p", "tools": ["note"]},
            "after": "scout",
        },
    },
}


def test_no_tool_of_an_application_has_the_name_of_the_call() -> None:
    with pytest.raises(ToolError):
        tool("patch_workflow", registry=Registry())(lambda: None)


def problems(**nodes: Any) -> list[str]:
    """The places of the problems when nodes of the document become others; None: left out."""
    tools = {**registry().specs(), OPENAPI.name: OPENAPI, SEAT.name: SEAT}
    kept = {name: node for name, node in {**WORKFLOW["nodes"], **nodes}.items() if node is not None}
    after = {**WORKFLOW, "nodes": kept}
    graphs = (
        compile_document(json.dumps(WORKFLOW), tools, json_only=True),
        compile_document(json.dumps(after), tools, json_only=True),
    )
    return sorted({one.path for one in patched_problems(WORKFLOW, after, graphs, "plan")})


REPORT, SETTLE, SCOUT, MANY = (WORKFLOW["nodes"][name] for name in ("report", "settle", "scout", "many"))


@pytest.mark.parametrize(
    ("nodes", "places"),
    [
        ({}, []),
        ({"report": {"value": {"tool": "wipe"}, "after": "plan", "limits": {"hops": 3}}}, []),
        ({"report": None, "settle": {**SETTLE, "after": "plan"}}, []),
        ({"extra": {"tool": "note", "after": "plan"}}, []),
        ({"extra": {"tool": "mail", "with": {"to": "a"}, "after": "plan"}}, []),
        ({"extra": {"workflow": "ship@2", "after": "plan"}}, []),
        ({"extra": {"human": {"title": "Well?"}, "after": "plan"}}, []),
        ({"extra": {"tool": "note", "after": "plan", "limits": {"hops": 1}}}, []),
        ({"settle": {**SETTLE, "with": {"cents": 2}}}, []),
        # calls that the agent has not, or not without a person
        ({"extra": {"tool": "wipe", "after": "plan"}}, ["/nodes/extra"]),
        ({"extra": {"tool": "pay", "with": {"cents": 9}, "after": "plan"}}, ["/nodes/extra"]),
        ({"extra": {"workflow": "ship", "after": "plan"}}, ["/nodes/extra"]),
        ({"report": {**REPORT, "compensate": {"tool": "wipe"}}}, ["/nodes/report"]),
        ({"settle": {**SETTLE, "compensate": {"tool": "pay", "with": {"cents": 9}}}}, ["/nodes/settle"]),
        ({"settle": {**SETTLE, "compensate": {"with": {"cents": 9}}}}, []),
        ({"report": {**REPORT, "replan": {"model": "m", "tools": ["wipe"]}}}, ["/nodes/report"]),
        ({"scout": {**SCOUT, "agent": {**SCOUT["agent"], "tools": ["wipe"]}}}, ["/nodes/scout"]),
        ({"report": {**REPORT, "map": {"over": "${input.many}"}, "tool": "wipe"}}, ["/nodes/report"]),
        ({"many": {**MANY, "agent": {**MANY["agent"], "tools": ["note", "wipe"]}}}, ["/nodes/many"]),
        ({"many": {**MANY, "agent": {**MANY["agent"], "prompt": "q"}}}, []),
        ({"extra": {"tool": "std.openapi", "with": {"api": "shop", "operation": "find"}, "after": "plan"}}, []),
        ({"extra": {"tool": "std.openapi", "with": {"api": "shop", "operation": "refund"}, "after": "plan"}}, ["/nodes/extra"]),
        ({"extra": {"tool": "std.openapi", "with": {"api": "${input.api}", "operation": "find", "operations": {"shop": ["find", "refund"]}}, "after": "plan"}}, ["/nodes/extra"]),
        ({"extra": {"function": "seat-guests", "after": "plan"}}, ["/nodes/extra"]),
        # guards
        ({"report": {**REPORT, "limits": {"hops": 9}}}, ["/nodes/report/limits"]),
        ({"report": {"tool": "note", "after": "plan"}}, ["/nodes/report/limits"]),
        ({"settle": {**SETTLE, "requires_approval": {"to": {"group": "friends"}}}}, ["/nodes/settle/requires_approval"]),
        ({"scout": {**SCOUT, "agent": {**SCOUT["agent"], "patch": ["/nodes/settle"]}}}, ["/nodes/scout/agent/patch"]),
        ({"extra": {"agent": {"model": "m", "prompt": "p", "patch": ["/nodes/settle"]}, "after": "plan"}}, ["/nodes/extra/agent/patch"]),
    ],
)  # fmt: skip
def test_a_patch_changes_no_guard_and_calls_what_the_agent_may_call_by_itself(
    nodes: Mapping[str, Any], places: list[str]
) -> None:
    assert problems(**nodes) == places


def test_the_agent_sees_the_values_at_its_paths_and_not_its_own_node() -> None:
    found = visible_values(
        WORKFLOW, ("/nodes/*/agent/turns", "/nodes/report", "/nodes/gone", "/nodes/pl*"), "plan"
    )
    assert found == {"/nodes/scout/agent/turns": 2, "/nodes/report": REPORT}
