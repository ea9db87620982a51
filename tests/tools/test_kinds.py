"""`@node_kind`: what an application declares, and that check, builder and API know it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from baton import Workflow, tool
from baton.cli.documents.app import Source
from baton.cli.documents.check import document_problems
from baton.core.documents.compile import compile_document
from baton.core.documents.nodes.own import OwnKind, Step
from baton.errors import InvalidDefinition
from baton.testing import run
from baton.tools.define import NODE_KINDS, Registry, ToolError, node_kind
from tests.kit.sentences import Says


class Twice(BaseModel):
    """Asks twice."""

    text: str

    def nodes(self, step: Step) -> dict[str, dict[str, Any]]:
        ask = {"tool": "ask", "with": {"text": self.text}}
        return {"first": ask, "second": {**ask, "after": step("first")}}


def declared(**more: Any) -> dict[str, OwnKind]:
    kinds: dict[str, OwnKind] = {}
    node_kind("ask_twice", example={"text": "Well?"}, kinds=kinds, **more)(Twice)
    return kinds


def tools() -> Registry:
    registry = Registry()

    @tool("ask", registry=registry)
    async def ask(text: str) -> str:
        return text

    return registry


def test_a_model_becomes_a_kind_and_stays_as_it_was(says: Says) -> None:
    kind = declared(title="Ask twice", icon="▣")["ask_twice"]
    assert (kind.title, kind.icon, kind.version, kind.description) == ("Ask twice", "▣", "1", "Asks twice.")
    assert kind.example == {"ask_twice": {"text": "Well?"}}
    assert Twice(text="a", more=1).text == "a"
    text = "name: w\nnodes: {a: {ask_twice: {text: hm, more: 1}}}"
    with says.raised(InvalidDefinition):
        compile_document(text, tools().specs(), kinds=declared())


@pytest.mark.parametrize("name", ["Ask", "ask-twice", "", "2"])
def test_a_kind_has_a_name_as_fields_have(name: str, says: Says) -> None:
    with says.raised(ToolError):
        node_kind(name, example={}, kinds={})(Twice)


def test_a_kind_says_its_nodes_and_its_name_is_its_own(says: Says) -> None:
    class Nothing(BaseModel):
        pass

    with says.raised(ToolError):
        node_kind("nothing", example={}, kinds={})(Nothing)
    kinds = declared()
    node_kind("ask_twice", example={}, kinds=kinds)(Twice)

    class Other(Twice):
        pass

    with says.raised(ToolError):
        node_kind("ask_twice", example={}, kinds=kinds)(Other)


def test_the_builder_writes_such_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NODE_KINDS, "ask_twice", declared()["ask_twice"])
    flow = Workflow("w")
    begin = flow.value("begin", {"text": "Well?"})
    asked = flow.node("asked", "ask_twice", {"text": begin.output["text"]}, after=begin)
    flow.output(asked.output)
    assert flow.document()["nodes"]["asked"] == {
        "ask_twice": {"text": "${ctx.begin.output.text}"},
        "after": "begin",
    }
    assert [node.name for node in flow.compile(tools()).nodes] == ["begin", "asked__first", "asked"]


def test_a_saga_runs_its_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NODE_KINDS, "ask_twice", declared()["ask_twice"])
    text = "name: w\nnodes: {a: {ask_twice: {text: hm}}, b: {value: '${ctx.a.output}!', after: a}}\noutput: ${ctx.b.output}"
    assert run(text, {}, tools=tools()).output == "hm!"


def test_baton_check_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NODE_KINDS, "ask_twice", declared()["ask_twice"])
    source = Source("w.yaml", "name: w\nnodes: {a: {ask_twice: {text: hm}}}")
    graph, problems = document_problems(source, tools().specs(), {})
    assert graph is not None
    assert problems == ()
