"""A workflow as the API describes it, as boxes to draw and as text.

Belongs here: what the nodes of a document say in a few words. How they are laid out is graph.py's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.cli.graph import Box
from baton.cli.text import plain, span


def boxes(workflow: Mapping[str, Any]) -> list[Box]:
    """The boxes of `nodes` and `edges` as `GET /workflows/{name}` gives them, in their order."""
    before: dict[str, list[str]] = {}
    for edge in workflow["edges"]:
        before.setdefault(str(edge["to"]), []).append(str(edge["from"]))
    return [
        Box(
            plain(str(node["name"])),
            str(node["kind"]),
            plain(_what(node)),
            tuple(before.get(str(node["name"]), ())),
        )
        for node in workflow["nodes"]
    ]


def _what(node: Mapping[str, Any]) -> str:
    if node["kind"] == "wait":
        return _wait(node.get("wait_ms"), node.get("signal"))
    if node["kind"] == "workflow":
        return f"workflow {node.get('workflow', '')}"
    return str(node.get("tool") or node["kind"])


def _wait(ms: int | None, signal: str | None) -> str:
    if not signal:
        return f"wait {span(ms)}"
    return f"wait for {signal}" + (f", at most {span(ms)}" if ms else "")
