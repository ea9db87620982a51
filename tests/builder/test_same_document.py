"""What is built is what YAML would have been: the same value, the same graph, the same hash."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from pydantic import BaseModel, Field

import sagas
from baton import Workflow
from baton.cli.documents.app import documents as files
from baton.core.conditions.document import read_condition
from baton.core.documents.compile import compile_document
from baton.core.documents.models import KINDS_TO_COME
from baton.core.documents.text import parse_document
from baton.core.graph.graph import encode_graph, hash_of
from baton.tools.define import REGISTRY
from sagas import dinner as table
from tests.builder.evening import dinner
from tests.builder.rebuilding import CONDITIONS, rebuilt
from tests.core.build import FEW, PROPERTY
from tests.core.documents import TOOLS, documents, shaped_documents


def test_the_dinner_that_is_built_is_the_dinner_that_is_written() -> None:
    (path,) = [path for path in files(sagas) if path.name == "dinner.yaml"]
    written = path.read_text("utf-8")
    assert dinner.document() == parse_document(written).value
    by_yaml = encode_graph(compile_document(written, REGISTRY.specs()))
    assert hash_of(encode_graph(dinner.compile())) == hash_of(by_yaml)
    assert hash_of(encode_graph(compile_document(dinner.to_yaml(), REGISTRY.specs()))) == hash_of(by_yaml)


# ---- any document ------------------------------------------------------------------------------------------------


@given(documents())
@PROPERTY
def test_any_document_can_be_built_and_comes_back_from_its_own_yaml(document: dict[str, Any]) -> None:
    built = rebuilt(document)
    assert built.document() == document
    assert list(built.document()["nodes"]) == list(document["nodes"])
    assert parse_document(built.to_yaml()).value == document
    assert encode_graph(built.compile(TOOLS)) == encode_graph(compile_document(json.dumps(document), TOOLS))


@given(shaped_documents())
@FEW
def test_whatever_a_document_can_say_can_be_built(document: dict[str, Any]) -> None:
    for node in document["nodes"].values():
        if to_come := node.keys() & set(KINDS_TO_COME):
            node["value"] = node.pop(*to_come)  # no worker can run those, so there is no call for them
    built = rebuilt(document)
    assert built.document() == document
    assert parse_document(built.to_yaml()).value == document


@given(CONDITIONS)
@PROPERTY
def test_any_condition_can_be_built(condition: Any) -> None:
    problems = read_condition(condition, "", {"done": {}})[1]
    assert [one for one in problems if "is never compared with" not in one.message] == []
    nodes = {"b": {"tool": "t"}, "a": {"value": 1, "when": condition}}
    document = {"name": "w", "nodes": nodes}
    assert rebuilt(document).document() == document


# ---- fields ------------------------------------------------------------------------------------------------------


class Evening(BaseModel):
    """What a dinner is asked for."""

    city: str = Field(min_length=1)
    party: int = 2


class Mood(StrEnum):
    GOOD = "good"


def test_every_field_of_a_document_is_written_as_it_was_given() -> None:
    built = Workflow("w", description="An evening.", input=Evening)
    first = built.task(
        "first", "t", with_={"x": (1, Mood.GOOD, None)}, timeout=timedelta(minutes=5), description="Look."
    )
    built.wait("pause", timedelta(milliseconds=1_500), after=[first])
    built.wait("yes", signal="approved", timeout="2d", after="pause", description="Ask.")
    other = built.workflow("bar", "bar@2", with_={"who": built.saga.user}, after=["yes", first])
    built.workflow("same", Workflow("other"), after=[])
    built.output(f"{other.output['the bar']} and {built.saga.id}")
    assert built.document() == {
        "name": "w",
        "description": "An evening.",
        "input": Evening.model_json_schema(),
        "nodes": {
            "first": {
                "tool": "t",
                "with": {"x": [1, "good", None]},
                "timeout": "300s",
                "description": "Look.",
            },
            "pause": {"wait": {"for": "1500ms"}, "after": ["first"]},
            "yes": {"wait": {"signal": "approved", "timeout": "2d"}, "after": "pause", "description": "Ask."},
            "bar": {"workflow": "bar@2", "with": {"who": "${saga.user}"}, "after": ["yes", "first"]},
            "same": {"workflow": "other", "after": []},
        },
        "output": '${ctx.bar.output["the bar"]} and ${saga.id}',
    }
    assert [node.kind for node in built.compile(TOOLS).nodes] == [
        "task",
        "wait",
        "workflow",
        "wait",
        "workflow",
    ]


ASKED = """
name: w
nodes:
  sort:
    model:
      name: small
      prompt: {words: "${input.words}"}
      instructions: Sort them.
      fallbacks: [large]
      max_output: 200
      temperature: 0.5
      corrections: 1
      price: {input: 0.25, output: 2}
    output_schema: {type: array, items: {type: string}}
    timeout: 60s
  find:
    agent: {model: p/large, prompt: "Find ${ctx.sort.output}.", thinking: low, tools: [t, "t*"], signal: more, turns: 5, calls: 9, calls_in_a_turn: 3, tokens: 9000, summarise: {model: m, max_output: 99}}
    after: sort
    on_failure: fail
    limits: {cost_usd: 0.5}
output: "${ctx.find.output}"
"""


def test_models_and_agents_that_are_built_are_those_that_are_written() -> None:
    built = Workflow("w")
    sort = built.model(
        "sort",
        "small",
        {"words": built.input.words},
        instructions="Sort them.",
        fallbacks=("large",),
        max_output=200,
        temperature=0.5,
        corrections=1,
        price={"input": 0.25, "output": 2},
        output_schema=list[str],
        timeout=timedelta(minutes=1),
        retry=None,
    )
    find = built.agent(
        "find",
        "p/large",
        f"Find {sort.output}.",
        tools=["t", "t*"],
        signal="more",
        thinking="low",
        turns=5,
        calls=9,
        calls_in_a_turn=3,
        tokens=9_000,
        summarise={"model": "m", "max_output": 99},
        after=sort,
        on_failure="fail",
        limits={"cost_usd": 0.5},
    )
    built.output(find.output)
    assert built.document() == parse_document(ASKED).value
    by_yaml = encode_graph(compile_document(ASKED, TOOLS))
    assert hash_of(encode_graph(built.compile(TOOLS))) == hash_of(by_yaml)


def test_the_tools_of_an_agent_may_be_given_as_functions() -> None:
    built = Workflow("w")
    asks = {"ask": "boss", "expires": timedelta(days=2)}
    built.agent("c", "m", "Go.", tools=[table.search, asks, {"tool": table.search}])
    assert built.document()["nodes"]["c"]["agent"]["tools"] == [
        "table.search",
        {"ask": "boss", "expires": "172800s"},
        {"tool": "table.search"},
    ]
    built.agent("a", "m", "Go.", tools=table.search)
    built.agent("b", "m", "Go.", tools=[table.search, "table.*"], after="a")
    nodes = built.document()["nodes"]
    assert (nodes["a"]["agent"]["tools"], nodes["b"]["agent"]["tools"]) == (
        "table.search",
        ["table.search", "table.*"],
    )


def test_what_is_not_given_is_not_written() -> None:
    built = Workflow("w")
    built.task("a", "t")
    built.output(None)
    assert built.document() == {"name": "w", "nodes": {"a": {"tool": "t"}}, "output": None}
    assert built.to_yaml() == "name: w\nnodes:\n  a:\n    tool: t\noutput: null\n"


def test_a_document_is_a_copy() -> None:
    given: dict[str, Any] = {"x": [1]}
    built = Workflow("w", input={"type": "object"})
    built.task("a", "t", with_=given)
    given["x"].append(2)
    built.document()["nodes"]["a"]["with"]["x"].append(3)
    built.document()["input"]["type"] = "string"
    assert built.document()["nodes"]["a"]["with"] == {"x": [1]}
    assert built.document()["input"] == {"type": "object"}


def test_a_workflow_shows_what_it_is() -> None:
    built = Workflow("w")
    built.task("a", "t")
    assert repr(built) == "<workflow w with 1 nodes>"
    assert repr(built.input.a) == "<reference ${input.a}>"


# ---- what a worker pays --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import baton", ("baton.builder", "pydantic", "yaml")),
        (
            "from baton import Workflow; w = Workflow('w'); w.output(w.task('a', 't', with_={'x': w.input.x}).output)",
            (
                "pydantic",
                "yaml",
                "jsonschema_rs",
                "baton.core.documents.read",
                "baton.core.documents.compile",
            ),
        ),
        (
            "import baton.tools.define",
            ("baton.builder", "baton.core.documents.read", "baton.core.documents.compile"),
        ),
    ],
)
def test_building_loads_neither_compiler_nor_parser(code: str, absent: tuple[str, ...]) -> None:
    """A module of the application is imported by every worker, its workflows included."""
    script = f"{code}\nimport sys\nprint([name for name in {absent!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("described", "schema"),
    [
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Annotated[int, Field(ge=1)], {"type": "integer", "minimum": 1}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        ({"type": "object"}, {"type": "object"}),
    ],
    ids=["list", "union", "annotated", "literal", "schema"],
)
def test_whatever_pydantic_describes_can_be_the_input(described: object, schema: dict[str, Any]) -> None:
    assert Workflow("w", input=described).document()["input"] == schema
    # As a user writes it, for the type checker.
    assert Workflow("w", input=int | None).document() == Workflow("w", input=int | None).document()
