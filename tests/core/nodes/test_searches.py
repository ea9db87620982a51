"""A search for tools is among those that its caller may call: the compiler says which, and neither author nor model."""

from __future__ import annotations

import json
from typing import Any

from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import ToolSpec
from baton.core.graph.graph import Graph

NAMES = ("std.search_tools", "table.hold", "table.search", "deposit.pay")
MAY_CALL = ["std.search_tools", "table.hold", "table.search"]


def compiled(node: dict[str, Any], takes: str = "among", **document: Any) -> Graph:
    properties: dict[str, Any] = {"query": {}, takes: {}}
    parameters = {"type": "object", "properties": properties}
    tools = {
        name: ToolSpec(name=name, version="1", effect="pure", parameters=parameters, result={})
        for name in NAMES
    }
    return compile_document(json.dumps({"name": "a", "nodes": {"one": node}, **document}), tools)


AGENT = {"agent": {"model": "m", "prompt": "p", "tools": ["table.*", "std.search_tools"]}}
SEARCH = {"tool": "std.search_tools", "with": {"query": "free", "among": ["deposit.pay"]}}
RAILS = {"allowed_tools": ["table.*", "std.search_tools"]}


def test_an_agent_searches_among_its_own_tools() -> None:
    (node,) = compiled(AGENT).nodes
    assert node.agent is not None
    assert {call.tool: call.arguments for call in node.agent.calls} == {
        "std.search_tools": {"among": MAY_CALL}, "table.hold": None, "table.search": None,
    }  # fmt: skip


def test_a_node_searches_among_what_guardrails_allow_and_without_them_as_its_author_says() -> None:
    assert compiled(SEARCH, guardrails=RAILS).nodes[0].arguments == {"query": "free", "among": MAY_CALL}
    assert compiled(SEARCH, guardrails={"allowed_transitions": {}}).nodes[0].arguments == SEARCH["with"]
    assert compiled(SEARCH).nodes[0].arguments == SEARCH["with"]


def test_an_applications_own_tool_of_that_name_is_a_tool_like_others() -> None:
    own = {"tool": "std.search_tools", "with": {"query": "free"}}
    assert compiled(own, takes="within", guardrails=RAILS).nodes[0].arguments == own["with"]
