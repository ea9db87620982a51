"""Graphs of a document in Python: each is a workflow that another one starts."""

from __future__ import annotations

import pytest

from baton import Workflow
from baton.errors import InvalidDefinition
from tests.core.build import tool_spec
from tests.kit.sentences import Says

TOOLS = {"t": tool_spec("t", {}, x={})}


def test_a_workflow_becomes_a_graph_of_the_one_that_starts_it_and_so_do_those_that_it_starts() -> None:
    inner, visit, tell = Workflow("inner"), Workflow("visit"), Workflow("tell")
    inner.value("a", 1)
    visit.output(visit.graph("x", inner, with_={"n": visit.item}).output)
    tell.task("a", "t", with_={"x": tell.last_error.code})
    tour = Workflow("tour", failure_handler=tell)
    tour.graph("trip", visit, map=tour.input.cities)
    tour.graph("again", "visit", map=tour.input.cities)
    made = tour.document()
    assert made["failure_handler"] == {"graph": "tell"}
    assert made["nodes"]["trip"] == {"graph": "visit", "map": "${input.cities}"}
    assert made["graphs"] == {
        "tell": {"nodes": {"a": {"tool": "t", "with": {"x": "${last_error.code}"}}}},
        "visit": {
            "nodes": {"x": {"graph": "inner", "with": {"n": "${item}"}}},
            "output": "${ctx.x.output}",
        },
        "inner": {"nodes": {"a": {"value": 1}}},
    }
    assert sorted(tour.compile(TOOLS).graphs) == ["inner", "tell", "visit"]


def test_what_is_wrong_with_a_graph_is_told_where_it_stands(says: Says) -> None:
    one, other = Workflow("part"), Workflow("part")
    one.value("a", 1)
    one.value("a", 2)
    whole = Workflow("whole")
    whole.graph("x", one)
    whole.graph("y", other)
    with pytest.raises(InvalidDefinition) as refused:
        whole.document()
    says(sorted((problem.path, problem.message) for problem in refused.value.problems))
