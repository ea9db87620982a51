"""What a kind of node is called, and what it opens, is known where the kind is: in core/nodes/ and core/documents/nodes/.

The law: no other file asks `node.kind == "wait"` or `isinstance(event, WaitOpened)`. The files that still do are
listed. Which file may import a kind is in law.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import baton
from baton.core.nodes.registry import KINDS

PACKAGE = Path(baton.__file__).parent
ROOMS = ("core/nodes/", "core/documents/nodes/", "core/log/work.py")
NAMES = frozenset(KINDS)
STRUCTS = frozenset(
    {"WaitOpened", "WaitClosed", "ChildOpened", "ChildReported", "ChildClosed", "NodePassed", "Wait", "Child"}
)
"""The events of one kind each, and open work. Those of attempts are of every kind that calls tools."""

# What still knows kinds, and how often. A number may fall, and a line go; nothing may be added.
LEFT = {
    # what a report of a child costs, and who performs children
    "core/read/usage.py": 2,
    "runtime/performers/tend_children.py": 1,
}


def known_kinds(source: str) -> Iterator[str]:
    """Every place in a source where the name of a kind is compared, or a struct of one is asked for."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and any(map(_is_kind, (node.left, *node.comparators))):
            if NAMES & _texts(node):
                yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Dict) and len(NAMES & _keys(node)) > 1:
            yield f"{node.lineno}: a table by kinds"
        elif isinstance(node, ast.keyword) and node.arg == "kind" and NAMES & _texts(node.value):
            yield f"{node.value.lineno}: kind={ast.unparse(node.value)}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            if STRUCTS & _names(node.args[1]):
                yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.MatchClass) and STRUCTS & _names(node.cls):
            yield f"{node.lineno}: case {ast.unparse(node.cls)}"


def _is_kind(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "kind") or (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and node.slice.value == "kind"
    )


def _texts(node: ast.AST) -> set[str]:
    return {
        one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }


def _keys(node: ast.Dict) -> set[str]:
    return {one.value for one in node.keys if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def _names(node: ast.AST) -> set[str]:
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def test_nothing_else_knows_the_kinds() -> None:
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        name = str(file.relative_to(PACKAGE).as_posix())
        if not name.startswith(ROOMS) and (places := list(known_kinds(file.read_text(encoding="utf-8")))):
            found[name] = places
    assert not {name: places for name, places in found.items() if len(places) > LEFT.get(name, 0)}
    assert all((PACKAGE / name).exists() for name in LEFT)


def test_a_planted_question_about_a_kind_is_found() -> None:
    planted = """
if node.kind == "wait" or shown["kind"] in ("pass", "task"):
    isinstance(event, ev.WaitOpened | ev.Parked)
marks = {"task": 1, "wait": 2, "other": 3}
Node(name="a", kind="task")
match work:
    case Child(): pass
"""
    lines = sorted(place.partition(":")[0] for place in known_kinds(planted))
    assert lines == ["2", "2", "3", "4", "5", "7"]


def test_what_only_sounds_like_a_kind_is_not_taken_for_one() -> None:
    assert not list(known_kinds('{"workflow": name}; notice.kind == "high"; isinstance(x, Waiter)'))
