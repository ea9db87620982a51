"""Pipelines of documents: what is wrong with one is told when the document is compiled, unless a value comes later."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import ToolSpec
from baton.core.pipelines import pipeline
from baton.errors import InvalidDefinition, Problem
from tests.kit.sentences import Says


def spec(name: str, steps: dict[str, Any]) -> ToolSpec:
    properties = {"steps": steps, "data": {"type": "object"}}
    parameters = {
        "type": "object",
        "properties": properties,
        "required": ["steps"],
        "additionalProperties": False,
    }
    return ToolSpec(name=name, version="1", effect="pure", parameters=parameters, result={})


TOOLS = {
    "std.pipeline": spec("std.pipeline", pipeline.schema(requests=False)),
    "std.http_pipeline": spec("std.http_pipeline", pipeline.schema(requests=True)),
}


def problems(
    with_: dict[str, Any], tool: str = "std.pipeline", tools: dict[str, ToolSpec] = TOOLS
) -> list[Problem]:
    text = json.dumps(
        {"name": "a", "input": {"type": "object"}, "nodes": {"n": {"tool": tool, "with": with_}}}
    )
    try:
        compile_document(text, tools)
    except InvalidDefinition as error:
        return [Problem(one.path, one.message, one.suggestion) for one in error.problems]
    return []


GOOD = {"op": "table_sort", "by": "a"}


def test_every_mistake_of_a_pipeline_is_a_problem_of_its_document(says: Says) -> None:
    steps = [{"op": "table_sorted"}, GOOD | {"input": "tt"}, GOOD | {"by": 5}]
    says(problems({"data": {"t": "${input.rows}"}, "steps": steps}))


@pytest.mark.parametrize(
    ("tool", "with_"),
    [
        ("std.pipeline", {"data": {"t": "${input.rows}"}, "steps": [GOOD]}),
        ("std.pipeline", {"data": {"t": "${input.rows}"}, "steps": [GOOD | {"by": "${input.by}"}]}),
        ("std.pipeline", {"data": "${input.data}", "steps": [GOOD | {"input": "t"}]}),
        ("std.http_pipeline", {"steps": [{"op": "http_request", "url": "https://x"}, GOOD]}),
    ],
)
def test_a_good_pipeline_and_one_that_is_known_later_are_no_problem(tool: str, with_: dict[str, Any]) -> None:
    assert problems(with_, tool) == []


def test_where_the_names_of_the_data_come_later_the_schema_judges() -> None:
    (problem,) = problems({"data": "${input.data}", "steps": [{"op": "sort"}]})
    assert (problem.path, "anyOf" in problem.message) == ("/nodes/n/with/steps/0", True)


def test_an_applications_own_tool_of_the_name_is_judged_by_its_own_schema() -> None:
    own = {"std.pipeline": spec("std.pipeline", {"type": "array"})}
    assert problems({"data": {"t": 1}, "steps": ["anything"]}, tools=own) == []
    assert problems({"data": {"t": 1}, "steps": 5}, tools=own)
