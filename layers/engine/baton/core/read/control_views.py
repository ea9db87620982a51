"""How a node goes on, as the API shows it: `when`, `branch`, `catch`, `loop`. The rest of a node is in views.py."""

from __future__ import annotations

from typing import Any

import msgspec

from baton.core.graph.graph import Node, Pause


def control_view(node: Node) -> dict[str, Any]:
    """Whether it runs, what it waits for, and where it goes on; conditions as the graph has them."""
    shown: dict[str, Any] = {}
    if node.when is not None:
        shown["when"] = plain(node.when)
    if (join := node.join) is not None:
        tolerated = None if join.tolerated < 0 else join.tolerated
        shown["join"] = {"wait_for": join.need or "all", "tolerated_failures": tolerated, "rest": join.rest}
    if (branch := node.branch) is not None:
        shown["branch"] = {
            "rules": [{"if": plain(rule.condition), "then": list(rule.then)} for rule in branch.rules],
            "choose": branch.choose or None,
            "among": list(branch.among),
            "default": list(branch.default),
        }
    if node.catch:
        shown["catch"] = [
            {
                "code": list(rule.codes),
                "class": list(rule.kinds),
                "if": None if rule.condition is None else plain(rule.condition),
                "then": list(rule.then),
            }
            for rule in node.catch
        ]
    if (loop := node.loop) is not None:
        shown["loop"] = {
            "while": plain(loop.condition),
            "max_iterations": loop.max_iterations,
            "back_to": loop.back_to,
            "break_path": list(loop.break_path),
            "timeout_path": list(loop.timeout_path),
        }
        if loop.pause is not None:
            shown["loop"]["pause"] = _pause(loop.pause)
        if loop.initial is not None:
            shown["loop"]["initial"] = loop.initial
        if loop.poll is not None:
            shown["loop"]["within_ms"] = loop.poll.within_ms or None
    return shown


def _pause(pause: Pause) -> Any:
    """As a document may have it."""
    if pause.of is not None:
        return pause.of
    if pause.factor == 1.0:
        return f"{pause.ms}ms"
    return {"first": f"{pause.ms}ms", "factor": pause.factor, "most": f"{pause.most_ms}ms"}


def plain(value: Any) -> Any:
    """As JSON would give it back: with lists."""
    return msgspec.json.decode(msgspec.json.encode(value))
