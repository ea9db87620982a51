"""The drawing of a workflow: what shapes look like, and that nothing is drawn that is not so."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.cli.text import graph
from baton.cli.text.graph import Box, DrawnPart, GraphShape, draw, layers, mermaid

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_SIDES = {line: sides for sides, line in graph._LINES.items() if sides}
_STEP = {_UP: (-1, 0), _DOWN: (1, 0), _LEFT: (0, -1), _RIGHT: (0, 1)}
_BACK = {_UP: _DOWN, _DOWN: _UP, _LEFT: _RIGHT, _RIGHT: _LEFT}


def boxes(text: str, kind: str = "task") -> list[Box]:
    """`a; b < a; c < a b`: nodes with those they come after."""
    found = []
    for part in text.split(";"):
        name, _, before = part.partition("<")
        found.append(Box(name.strip(), kind, "", tuple(before.split())))
    return found


def picture(text: str) -> str:
    """The drawing, without the notes at joins."""
    return "\n" + "\n".join(line.partition("←")[0].rstrip() for line in draw(boxes(text))) + "\n"


def test_a_line_is_a_column() -> None:
    assert (
        picture("a; b < a; c < b")
        == """
●  a
●  b
●  c
"""
    )


def test_a_diamond_parts_and_comes_back() -> None:
    assert (
        picture("a; b < a; c < a; d < b c")
        == """
●    a
├─╮
● │  b
│ ●  c
├─╯
●    d
"""
    )


def test_an_edge_that_skips_a_node_keeps_a_lane_of_its_own() -> None:
    assert (
        picture("a; b < a; c < b; d < a c")
        == """
●    a
├─╮
│ ●  b
│ ●  c
├─╯
●    d
"""
    )


def test_chains_are_finished_one_after_the_other() -> None:
    assert (
        picture("a; b1 < a; c1 < a; b2 < b1; c2 < c1; d < b2 c2")
        == """
●    a
├─╮
● │  b1
● │  b2
│ ●  c1
│ ●  c2
├─╯
●    d
"""
    )


def test_two_beginnings_join() -> None:
    assert (
        picture("a; b; c < a b")
        == """
●    a
│ ●  b
├─╯
●    c
"""
    )


def test_what_follows_nothing_keeps_a_distance() -> None:
    assert (
        picture("a; b; c < a; d < b")
        == """
●  a
●  c

●  b
●  d
"""
    )


def test_a_crossing_interrupts_the_line_and_a_tee_does_not() -> None:
    assert (
        picture("a; b; c < a b; d < a b; e < c; f < c d")
        == """
●      a
├─╮
│ │ ●  b
│◂│◂╯
● │    c
├─│─╮
● │ │  e
  ● │  d
  ╰─┤
    ●  f
"""
    )


def test_a_line_that_could_be_read_both_ways_has_an_arrow() -> None:
    assert (
        picture("a; b; c < b; d < a b")
        == """
●    a
│ ●  b
│◂┤
● │  d
  ●  c
"""
    )


def test_many_alike_hang_on_one_lane() -> None:
    middle = "; ".join(f"b{n} < a" for n in range(5))
    assert (
        picture(f"a; {middle}; z < b0 b1 b2 b3 b4")
        == """
●    a
├─●  b0
├─●  b1
├─●  b2
├─●  b3
├─●  b4
●    z
"""
    )


def test_many_alike_beside_a_longer_way() -> None:
    middle = "; ".join(f"b{n} < a" for n in range(5))
    assert (
        picture(f"a; x < a; {middle}; y < x; z < y b0 b1 b2 b3 b4")
        == """
●      a
├─╮
● │    x
● │    y
│ ├─●  b0
│ ├─●  b1
│ ├─●  b2
│ ├─●  b3
│ ├─●  b4
├─╯
●      z
"""
    )


def test_many_that_begin_and_end_alone() -> None:
    assert (
        picture("a; b; c; d; e")
        == """
╭─●  a
├─●  b
├─●  c
├─●  d
╰─●  e
"""
    )


def test_kinds_have_marks_and_joins_say_what_they_wait_for() -> None:
    shape = [
        Box("a", "task", "table.hold"),
        Box("b", "wait", "wait 5.0 s", ("a",)),
        Box("c", "workflow", "workflow invite", ("a",)),
        Box("d", "task", "table.confirm", ("b", "c")),
    ]
    assert draw(shape) == [
        "●    a  table.hold",
        "├─╮",
        "○ │  b  wait 5.0 s",
        "│ ◆  c  workflow invite",
        "├─╯",
        "●    d  table.confirm    ← b, c",
    ]


def test_a_join_of_many_names_some_and_counts_the_rest() -> None:
    middle = "; ".join(f"b{n} < a" for n in range(20))
    last = draw(boxes(f"a; {middle}; z < {' '.join(f'b{n}' for n in range(20))}"))[-1]
    assert last.endswith("← b0, b1, b2 and 17 more")


def test_long_names_are_whole_and_what_they_do_is_cut_at_the_width() -> None:
    name = "n" * 64
    shape = [Box(name, "task", "t" * 100), Box("b", "task", "short", (name,))]
    first, second = draw(shape, 80)
    assert name in first
    assert (len(first), first[-1]) == (80, "…")
    assert second.startswith("●  b ")
    assert name in draw(shape, 40)[0], "a name is never cut"


def test_without_unicode_everything_is_ascii() -> None:
    shape = [Box("a", "wait", "w" * 200), *boxes("b; c < b; d < b; e < c d a; f < d")]
    assert all(line.isascii() for line in draw(shape, plain=True))


def wide(width: int) -> list[Box]:
    """Chains of two beside each other: nothing in them is alike, so each needs a lane."""
    text = "; ".join(f"a{n} < s; b{n} < a{n}" for n in range(width))
    return boxes(f"s; {text}; z < {' '.join(f'b{n}' for n in range(width))}")


def test_more_lanes_than_fit_become_layers_with_all_their_edges() -> None:
    lines = draw(wide(40), 100)
    assert [line for line in lines if line.startswith("layer")] == [f"layer {n}" for n in (1, 2, 3, 4)]
    assert any(line.split() == ["●", "b17", "←", "a17"] for line in lines)
    assert lines[1].split() == ["●", "s"]


def test_a_hundred_nodes_fit_into_the_width() -> None:
    lines = draw(wide(25), 110)
    assert max(map(len, lines)) <= 110
    assert not lines[0].startswith("layer")


def test_ten_thousand_nodes_are_drawn_in_no_time() -> None:
    chain = [Box("n0", "task", "")] + [Box(f"n{n}", "task", "", (f"n{n - 1}",)) for n in range(1, 10_000)]
    assert len(draw(chain)) == 10_000


def test_the_layer_of_a_node_is_the_longest_way_to_it() -> None:
    assert layers(boxes("a; b < a; c < b; d < a c")) == {"a": 1, "b": 2, "c": 3, "d": 4}


def test_mermaid_gets_ids_that_are_no_words_of_its_language() -> None:
    shape = [
        Box("end", "task", 'say "hi"'),
        Box("b", "wait", "wait", ("end",)),
        Box("c", "workflow", "", ("b",)),
    ]
    assert mermaid(GraphShape([DrawnPart("", shape)])) == "\n".join(
        [
            "flowchart TD",
            '  n0["end<br/>say #quot;hi#quot;"]',
            '  n1(["b<br/>wait"])',
            '  n2[["c"]]',
            "  n0 --> n1",
            "  n1 --> n2",
        ]
    )


# ---- nothing is drawn that is not so -----------------------------------------------------------------------------


@st.composite
def shapes(draw_: st.DrawFn) -> list[Box]:
    """Any graph of up to fourteen nodes, in a topological order."""
    found: list[Box] = []
    for n in range(draw_(st.integers(1, 14))):
        before = draw_(st.sets(st.integers(0, n - 1), max_size=4)) if n else set()
        found.append(Box(f"n{n}", "task", "", tuple(f"n{b}" for b in sorted(before))))
    return found


@settings(max_examples=80, deadline=None)
@given(shapes())
def test_the_edges_can_be_read_from_the_drawing(shape: list[Box]) -> None:
    bundle, graph.BUNDLE = graph.BUNDLE, 1_000  # hangers-on are read in another way
    try:
        lines = draw(shape, 1_000)
    finally:
        graph.BUNDLE = bundle
    assert read(lines) == {(before, box.name) for box in shape for before in box.before}


def read(lines: list[str]) -> set[tuple[str, str]]:
    """The edges that an eye would follow: down from a mark, along the lines, to the marks below."""
    rows = [line.partition("n")[0] if "●" in line else line for line in lines]
    names = {row: line.split("←")[0].split()[-1] for row, line in enumerate(lines) if "●" in line}
    edges = set()
    for row, name in names.items():
        seen: set[tuple[int, int, int]] = set()
        ways = [(row, rows[row].index("●"), _DOWN)]
        while ways:
            y, x, side = ways.pop()
            y, x = y + _STEP[side][0], x + _STEP[side][1]
            if (y, x, side) in seen:
                continue
            seen.add((y, x, side))
            found = rows[y][x : x + 1] if 0 <= y < len(rows) and x >= 0 else ""
            if found == "●" and side == _DOWN:
                edges.add((name, names[y]))
            elif found == "│" and side in (_LEFT, _RIGHT):
                ways.append((y, x, side))  # interrupted: it goes on behind
            elif found == ("◂" if side == _LEFT else "▸"):
                ways += [(y, x, side), (y, x + _STEP[side][1], _DOWN)]  # into the lane, and on behind it
            elif _SIDES.get(found, 0) & _BACK[side]:
                # No line leads upwards: what comes from above is another way to the same node.
                ways += [(y, x, s) for s in (_DOWN, _LEFT, _RIGHT) if _SIDES[found] & s and s != _BACK[side]]
    return edges


@pytest.mark.parametrize("text", ["a; b < a; c < a; d < b c", "a; b; c < a; d < b"])
def test_the_reader_of_drawings_reads(text: str) -> None:
    named = [Box(f"n{box.name}", "task", "", tuple(f"n{b}" for b in box.before)) for box in boxes(text)]
    assert read(draw(named)) == {(before, box.name) for box in named for before in box.before}
