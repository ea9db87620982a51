"""Where the nodes of a graph are drawn: none upon another, edges downwards, loops around their nodes; five nodes and two hundred."""

from __future__ import annotations

import re
import time
from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from baton.console.drawing import (
    HEIGHT,
    WIDTH,
    Became,
    Edge,
    Layout,
    became,
    draw_svg,
    drawings,
    lay_out,
    lay_out_rows,
)

PHONE = 390


def of(edges: list[tuple[int, int]], count: int) -> Layout:
    names = [f"n{number}" for number in range(count)]
    return lay_out(names, [Edge(f"n{a}", f"n{b}", "after") for a, b in edges], {})


def check(made: Layout) -> None:
    for (x, y), (other_x, other_y) in combinations(made.places.values(), 2):
        assert abs(x - other_x) >= WIDTH or abs(y - other_y) >= HEIGHT
    for x, y in made.places.values():
        assert 0 <= x <= made.width - WIDTH
        assert 0 <= y <= made.height - HEIGHT
    for line in made.lines:
        if line.edge.kind != "again":
            heights = [y for _, y in line.points]
            assert heights == sorted(heights)


def test_a_diamond_has_three_layers() -> None:
    made = of([(0, 1), (0, 2), (1, 3), (2, 3)], 4)
    check(made)
    heights = [made.places[f"n{number}"][1] for number in range(4)]
    assert heights[0] < heights[1] == heights[2] < heights[3]


def test_a_graph_of_no_node_is_drawn_as_nothing() -> None:
    assert of([], 0).places == {}


@settings(deadline=None)  # others run on this machine
@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30))
def test_no_node_is_drawn_upon_another(pairs: list[tuple[int, int]]) -> None:
    edges = [(a, b) for a, b in pairs if a < b]
    check(of(edges, 12))
    made = lay_out_rows(
        [f"n{one}" for one in range(12)], [Edge(f"n{a}", f"n{b}", "after") for a, b in edges], {}
    )
    check(made)
    assert {x for x, _ in made.places.values()} == {made.places["n0"][0]}
    assert made.width <= PHONE
    assert all(x >= 0 for line in made.lines for x, _ in line.points)


def test_a_loop_is_a_box_around_its_nodes_and_leads_back() -> None:
    edges = [
        Edge("a", "b", "after"),
        Edge("b", "c", "after"),
        Edge("c", "b", "again"),
        Edge("c", "d", "break"),
    ]
    made = lay_out(["a", "b", "c", "d"], edges, {"b": ["c"], "c": ["c"]})
    (frame,) = made.frames
    for name, is_inside in (("a", False), ("b", True), ("c", True), ("d", False)):
        x, y = made.places[name]
        assert (frame.y <= y and y + HEIGHT <= frame.y + frame.height) is is_inside
        assert frame.x <= x
    (back,) = [line for line in made.lines if line.edge.kind == "again"]
    assert back.points[0][1] > back.points[1][1]


def wide(count: int) -> dict[str, Any]:
    nodes = [{"name": f"step_{number}", "kind": "task"} for number in range(count)]
    edges = [
        {"from": f"step_{number // 3}", "to": f"step_{number}", "kind": "after"} for number in range(1, count)
    ]
    edges += [
        {"from": f"step_{number}", "to": f"step_{number + 40}", "kind": "branch"}
        for number in range(0, count - 40, 7)
    ]
    return {"name": "wide", "nodes": nodes, "edges": edges}


def test_two_hundred_nodes_are_drawn_quickly_and_in_little() -> None:
    began = time.process_time()
    drawn = draw_svg(wide(200), {f"step_{number}": Became("ran") for number in range(80)}, "/console/sagas/s")
    assert time.process_time() - began < 5
    assert len(drawn) < 150_000


def test_names_are_shown_as_text_and_links_stay_inside() -> None:
    name = '"><script>alert(1)</script>'
    workflow = {"name": name, "nodes": [{"name": name, "kind": name}], "edges": []}
    drawn = draw_svg(workflow, {}, "/console/sagas/s")
    assert "<script>" not in drawn
    assert 'href="/console/sagas/s?node=%22%3E%3Cscript' in drawn


def test_a_node_asks_where_an_item_of_it_asks_and_else_it_is_what_it_says_itself() -> None:
    states = {"": "running", "0": "asking", "1": "ready"}
    active = [
        {"node": "m", "state": state, **({"item": item} if item else {})} for item, state in states.items()
    ]
    assert became({"active": active}, None)["m"].word == "asking"
    assert became({"active": active[::2]}, None)["m"].word == "running"


def test_a_map_is_folded_into_its_counts_and_a_graph_is_zoomed_by_its_size() -> None:
    steps = [
        *(
            {"node": "each", "item": str(n), "became": "failed" if n == 2 else "ran", "version": n + 2}
            for n in range(3)
        ),
        {"node": "each", "item": "", "became": "ran", "version": 9},
        {"node": "think", "item": "t1", "became": "ran", "version": 9},
    ]
    known = became({"active": [{"node": "think", "state": "running"}]}, {"steps": steps})
    workflow = {
        "name": "w",
        "nodes": [{"name": name, "kind": "map", "loops": ()} for name in ("each", "think")],
        "edges": [{"from": "each", "to": "think", "kind": ""}],
    }
    whole, half, fitted = (draw_svg(workflow, known, "/console/sagas/s", zoom) for zoom in (100, 50, None))
    assert "each: map, ran, 3 items, 1 failed" in whole
    assert "think: map, running<" in whole
    sizes = [re.search(r'width="(\d+%?)"', one) for one in (whole, half, fitted)]
    wide, less, all_of_it = (one[1] for one in sizes if one)
    assert (int(less), all_of_it) == (int(wide) // 2, "100%")


def test_edges_of_one_row_share_a_lane_and_others_run_beside_each_other() -> None:
    edges = [("a", "c"), ("a", "d"), ("b", "d"), ("c", "d")]
    made = lay_out_rows(["a", "b", "c", "d"], [Edge(a, b, "after") for a, b in edges], {})
    lanes = [{x for x, _ in line.points} - {made.places["a"][0]} for line in made.lines]
    assert lanes[0] == lanes[1] != lanes[2]
    assert {x for x, _ in made.lines[3].points} == {made.places["a"][0] + WIDTH // 2}, "straight down"


def test_a_graph_that_is_too_wide_to_be_read_beside_a_panel_is_drawn_in_rows() -> None:
    def screens(nodes: int, **more: Any) -> list[str]:
        return [one for one, _ in drawings(wide(nodes), {}, "/console/sagas/s", **more)]

    assert screens(5, is_beside=True) == screens(60) == ["desk", "phone"]
    assert screens(60, is_beside=True) == screens(201) == ["any"]
    ((_, drawn),) = drawings(wide(60), {}, "/console/sagas/s", chosen="step_7", is_beside=True)
    assert drawn.count('aria-current="true"') == 1


def test_what_a_rollback_has_taken_back_looks_so() -> None:
    steps = [
        {"node": node, "item": item, "became": became}
        for node, item, became in (
            ("done", "", "ran"),
            ("kept", "", "ran"),
            ("pay", "", "ran"),
            ("ship", "", "ran"),
            ("pay", "undo", "ran"),
            ("kept", "undo", "failed"),
        )
    ]
    active = [{"node": "ship", "item": "undo", "state": "running"}]
    known = became({"active": active}, {"steps": steps})
    assert {name: one.word for name, one in known.items()} == {
        "done": "ran",
        "kept": "not_undone",
        "pay": "undone",
        "ship": "undoing",
    }
