"""A workflow as the API describes it, drawn: what branches, loops and joins do can be read from their lines."""

from __future__ import annotations

from typing import Any

from baton.cli.text.graph import DrawnPart, GraphShape, boxes, draw, mermaid


def shown(*nodes: dict[str, Any], edges: str) -> dict[str, Any]:
    """A workflow as the API describes it; `edges` as `a>b:branch`."""
    found = []
    for each in edges.split():
        ends, _, kind = each.partition(":")
        sender, receiver = ends.split(">")
        found.append({"from": sender, "to": receiver, "kind": kind or "after"})
    return {"nodes": [{"kind": "task", "tool": "t"} | node for node in nodes], "edges": found}


CONTROL = shown(
    {"name": "get", "kind": "pass", "tool": ""},
    {"name": "draft", "loops": ["judge"]},
    {
        "name": "judge",
        "loops": ["judge"],
        "loop": {"back_to": "draft", "max_iterations": 5, "timeout_path": ["ask"]},
    },
    {"name": "ask", "kind": "wait", "wait_for": "${input.pause}"},
    {
        "name": "sort",
        "when": {"is": "cel", "expression": "input.go"},
        "branch": {"rules": [{"then": ["a"]}, {"then": ["b", "c"]}], "among": [], "default": ["c"]},
    },
    {"name": "a"},
    {"name": "b"},
    {"name": "c", "when": {"is": "schema"}},
    {"name": "j", "join": {"wait_for": 2, "tolerated_failures": 1, "rest": "run"}},
    {
        "name": "k",
        "join": {"wait_for": 1, "tolerated_failures": None},
        "branch": {"rules": [], "choose": "output", "among": ["z"], "default": []},
    },
    {"name": "z", "kind": "wait", "wait_until": "${input.at}"},
    edges="get>draft draft>judge judge>ask:timeout judge>sort:break judge>draft:again sort>a:branch sort>b:branch "
    "sort>c:branch a>j b>j c>j ask>k j>k k>z:branch",
)


def test_branches_loops_and_joins_say_what_they_do() -> None:
    assert draw(boxes(CONTROL), 120) == [
        "◇        get    value",
        "●        draft  t",
        "●        judge  t  ↺ draft, at most 5 rounds, then ask",
        "├─╮",
        "○ │      ask    wait for ${input.pause}",
        "│ ●      sort   t  if input.go  ? a | b, c | else c",
        "│ ├─┬─╮",
        "│ ● │ │  a      t",
        "│ │ ● │  b      t",
        "│ ├─╯ │",
        "│ │   ●  c      t  if schema",
        "│ ├───╯",
        "│ ●      j      t                        ← a, b, c (2 of 3, 1 may fail)",
        "├─╯",
        "●        k      t                        ← ask, j (any)  ? z",
        "○        z      wait until ${input.at}",
    ]
    assert all(line.isascii() for line in draw(boxes(CONTROL), 120, plain=True))


def test_mermaid_says_which_edges_are_taken_when() -> None:
    lines = mermaid(GraphShape([DrawnPart("", boxes(CONTROL))])).splitlines()
    assert '  n0("get<br/>value")' in lines
    assert {line.strip() for line in lines if "." in line or "break" in line} >= {
        "n2 -. timeout .-> n3",
        "n2 -- break --> n4",
        "n4 -. branch .-> n5",
        "n2 -. again .-> n1",
    }
    assert "  n5 --> n8" in lines


def test_where_a_failure_leads_is_part_of_the_drawing() -> None:
    failing = {"name": "a", "catch": [{"then": ["b"]}, {"then": ["c", "d"]}]}
    found = boxes(shown(failing, {"name": "b"}, edges="a>b:catch"))
    assert found[0].note == "! b | c, d"
    assert "-. catch .->" in mermaid(GraphShape([DrawnPart("", found)]))
