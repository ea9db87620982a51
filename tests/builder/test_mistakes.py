"""Every mistake of a builder's user is told with its place and what would be right, and all of them at once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from baton import Workflow
from baton.builder import Reference
from baton.builder.values import DEEPEST
from baton.core.documents import text as document
from baton.errors import InvalidDefinition, Problem
from baton.tools import define
from baton.tools.define import Registry, tool
from tests.core.build import tool_spec
from tests.core.documents import TOOLS
from tests.kit.sentences import Says

TYPED = {
    "table.search": tool_spec(
        "table.search", {"type": "object", "properties": {"tables": {}}}, city={"type": "string"}
    )
}


def told(built: Workflow, tools: Any = None) -> list[Problem]:
    with pytest.raises(InvalidDefinition) as caught:
        built.compile(TOOLS if tools is None else tools)
    return list(caught.value.problems)


@pytest.fixture
def built() -> Workflow:
    return Workflow("w")


def other() -> Any:
    return Workflow("other").task("far", "t")


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


Build = Callable[[Workflow], object]
MISTAKES: list[tuple[str, Build, str]] = [
    ("a node of another workflow", lambda w: w.task("a", "t", with_={"x": [other().output.id]}), "/nodes/a/with/x/0"),
    ("the input of another workflow", lambda w: w.output(Workflow("v").input.x), "/output"),
    ("after a node of another workflow", lambda w: w.task("a", "t", after=other()), "/nodes/a/after"),
    ("after a value", lambda w: w.task("a", "t", after=[w.input]), "/nodes/a/after/0"),  # type: ignore[list-item]  # the mistake
    ("after a number", lambda w: w.task("a", "t", after=5), "/nodes/a/after"),  # type: ignore[arg-type]  # the mistake
    ("a node as a value", lambda w: w.output({"x/y": w.task("b", "t")}), "/output/x~1y"),
    ("a set", lambda w: w.output({1}), "/output"),
    ("no number", lambda w: w.output([float("nan")]), "/output/0"),
    ("a huge number", lambda w: w.output(10**400), "/output"),
    ("half a character", lambda w: w.output("\ud800"), "/output"),
    ("a key that is no text", lambda w: w.output({5: 1}), "/output"),
    ("a dollar before a reference", lambda w: w.output(f"${w.input.price}"), "/output"),
    ("a dollar before a reference as text", lambda w: w.output("$%s" % w.input.price), "/output"),  # noqa: UP031  # the mistake
    ("half a character in a key", lambda w: w.output({"\ud800": 1}), "/output"),
    ("two outputs", lambda w: (w.output(1), w.output(2)), "/output"),  # type: ignore[func-returns-value]  # a list of statements
    ("two nodes", lambda w: (w.task("a", "t"), w.wait("a", "5s")), "/nodes/a"),
    ("a function that is no tool", lambda w: w.task("a", cyclic), "/nodes/a/tool"),
    ("a type without a schema", lambda w: Workflow.__init__(w, "w", input=type(w)), "/input"),
    # What the compiler says goes by the same paths.
    ("a bad name of a model", lambda w: w.model("a", "m 5", "Go."), "/nodes/a/model/name"),
    ("an agent with an unknown tool", lambda w: w.agent("a", "m", "Go.", tools=["tt"]), "/nodes/a/agent/tools/0"),
    ("an agent without an end", lambda w: w.agent("a", "m", "Go.", turns=0), "/nodes/a/agent/turns"),
    ("a prompt of another workflow", lambda w: w.model("a", "m", other().output.id), "/nodes/a/model/prompt"),
    ("an agent with a function that is no tool", lambda w: w.agent("a", "m", "Go.", tools=["t", cyclic]),
     "/nodes/a/agent/tools/1"),
    ("an unknown tool", lambda w: w.task("a", "tt"), "/nodes/a/tool"),
    ("an unknown node", lambda w: w.task("a", "t", after="bb"), "/nodes/a/after"),
    ("a node that need not have run", lambda w: w.task("a", "t", with_={"x": w.task("b", "t").output}),
     "/nodes/a/with/x"),
    ("a wait for nothing", lambda w: w.wait("a"), "/nodes/a/wait"),
    ("no duration", lambda w: w.wait("a", "soon"), "/nodes/a/wait/for"),
    ("a bad name", lambda w: w.task("a b", "t"), "/nodes/a b"),
    ("itself as its child", lambda w: w.workflow("a", w), "/nodes/a/workflow"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("build", "path"),
    [case[1:] for case in MISTAKES],
    ids=[case[0] for case in MISTAKES],
)
def test_a_mistake_is_told(built: Workflow, build: Build, path: str, says: Says) -> None:
    build(built)
    if not built._nodes:
        built.task("z", "t")
    (problem,) = told(built)
    assert (problem.path, problem.line) == (path, 0)
    message = problem.message.partition(": Unable")[0]  # what follows is pydantic's
    says((message, problem.suggestion))


def test_a_keyword_that_an_agent_has_not_is_refused_at_once(built: Workflow, says: Says) -> None:
    with says.raised(TypeError):
        built.agent("a", "m", "Go.", max_outputs=5)  # type: ignore[call-arg]  # the mistake


def test_all_mistakes_are_told_at_once_and_none_twice(built: Workflow, says: Says) -> None:
    search = built.task("search", "table.search", with_={"city": other().output.city, "cty": 1})
    built.task("search", "table.search")
    built.task("last", lambda: None, after=[search, other()], with_={"x": search.output.tabels})
    built.output({1, 2})
    problems = told(built, TYPED)
    assert [problem.path for problem in problems] == [
        "/nodes/search/with/city", "/nodes/search", "/nodes/last/tool", "/nodes/last/after/1", "/output",
        "/nodes/search/with/cty", "/nodes/last/with/x",
    ]  # fmt: skip
    says(problems[-1].suggestion)


def test_a_document_with_mistakes_is_not_given_away(built: Workflow, says: Says) -> None:
    built.output({1})
    for give in (built.document, built.to_yaml):
        with says.raised(InvalidDefinition):
            give()


def test_a_value_without_end_is_a_mistake_and_not_a_crash(built: Workflow, says: Says) -> None:
    built.task("a", "t", with_={"x": cyclic()})
    (problem,) = told(built)
    says(problem.message)


def test_a_value_may_be_as_deep_as_in_a_document(built: Workflow, says: Says) -> None:
    value: Any = 1
    for _ in range(DEEPEST - 4):
        value = [value]
    built.task("a", "t", with_={"x": value})
    built.compile(TOOLS)
    built.task("b", "t", with_={"x": [value]})
    says([problem.message for problem in told(built)])
    assert DEEPEST == document.MAX_DEPTH


def test_what_only_the_reader_of_documents_finds_is_told_too(
    built: Workflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "MAX_VALUES", 20)
    built.output([0] * 20)
    assert [problem.message for problem in told(built)] == ["more than 20 values"]


# ---- references --------------------------------------------------------------------------------------------------


def test_a_reference_is_written_as_an_expression(built: Workflow) -> None:
    value = built.task("a", "t").output
    assert str(value.tables[0].id) == "${ctx.a.output.tables[0].id}"
    assert str(value["k k"]['"']["it's"]) == """${ctx.a.output["k k"]['"']["it's"]}"""
    assert f"{value.größe}!" == '${ctx.a.output["größe"]}!'
    assert str(built.saga.tenant) + str(built.saga.workflow) == "${saga.tenant}${saga.workflow}"


def test_references_are_equal_if_they_name_the_same(built: Workflow) -> None:
    assert built.input.a == built.input["a"]
    assert built.input.a != built.input.b
    assert built.input.a != Workflow("w").input.a
    assert len({built.input.a, built.input["a"], built.input.b}) == 2


@pytest.mark.parametrize("key", ["}", "a\\b", "\"'", -1, 10**9, True, 1.5, None, slice(1, 2)])
def test_a_key_that_no_expression_can_have_is_refused_at_once(built: Workflow, key: Any, says: Says) -> None:
    with says.raised(InvalidDefinition) as caught:
        built.input[key]
    assert caught.value.problems[0].suggestion.startswith("write .name, [0]")


def test_a_format_cannot_be_applied_to_what_is_not_known_yet(built: Workflow, says: Says) -> None:
    with says.raised(InvalidDefinition):
        f"{built.input.total:.2f}"


@pytest.mark.parametrize(
    "use",
    [
        lambda value: value == 3,
        lambda value: value != "x",
        lambda value: 1 if value else 2,
        list,
        len,
    ],
)
def test_a_value_that_is_not_known_yet_decides_nothing(
    built: Workflow, use: Callable[[Reference], object], says: Says
) -> None:
    with says.raised(TypeError):
        use(built.input.x)


def test_names_that_python_asks_for_are_no_fields(built: Workflow) -> None:
    assert not hasattr(built.input, "__array__")
    assert copy.copy(built.input.x) == built.input.x
    with pytest.raises(AttributeError, match=r'write \["_x"\]'):
        built.input._x  # noqa: B018  # the access is the mistake


# ---- tools by their functions ------------------------------------------------------------------------------------


def test_a_tool_may_be_given_as_its_function(
    built: Workflow, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    registry = Registry()
    monkeypatch.setattr(define, "REGISTRY", registry)

    @tool("table.find", registry=registry, effect="pure")
    def find(city: str) -> str:
        return city

    built.task("a", find, with_={"city": "Wien"})
    assert built.document()["nodes"]["a"]["tool"] == "table.find"
    assert built.compile().nodes[0].tool == built.compile(registry).nodes[0].tool == "table.find"

    tool("table.also", registry=registry, effect="pure")(find)
    built.task("b", find)
    says(told(built, registry)[0])
