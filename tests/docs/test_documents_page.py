"""The page of the document format: its examples compile, and what it builds in Python is what it shows in YAML."""

from __future__ import annotations

import json
import re
import sys
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from baton import Workflow, builder
from baton.core.conditions.document import FIELDS as CONDITIONS
from baton.core.conditions.schema import violations
from baton.core.documents.compile import compile_document
from baton.core.documents.models import KINDS
from baton.core.documents.nodes.own import OwnKind
from baton.core.documents.nodes.registry import NODE_TYPES
from baton.core.documents.schema import document_schema
from baton.core.documents.text import parse_document
from baton.core.effects.toolspec import ToolSpec
from baton.tools import define
from baton.tools.define import Registry, tool
from tests.docs.pages import ROOT, Page
from tests.kit import documents, mishaps

PAGE = Page(ROOT / "docs/documents.md")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The two tools of the page, in the module it imports them from."""
    registry = Registry()
    monkeypatch.setattr(define, "REGISTRY", registry)

    @tool("greeting.write", effect="pure", registry=registry)
    def write(name: str) -> str:
        return name

    @tool("greeting.send", registry=registry)
    def send(text: str) -> dict[str, str]:
        return {"sent": text}

    module: Any = ModuleType("sagas.greeting")
    module.write, module.send = write, send
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return registry


def test_the_words_that_make_a_kind_are_all_named() -> None:
    (sentence,) = re.findall(
        r"^A node has exactly one of (.*?),? which makes", PAGE.text, re.MULTILINE | re.DOTALL
    )
    assert re.findall(r"`(\w+)`", sentence) == [kind.key for kind in NODE_TYPES]


def test_its_document_compiles(registry: Registry) -> None:
    graph = compile_document(blocks("yaml")[0], registry.specs())
    assert {node.kind for node in graph.nodes} == {"task", "wait"}


def test_what_it_builds_in_python_is_the_document_it_shows(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, source, more = blocks("python")
    assert len([line for line in source.splitlines() if line]) <= 15
    page: Any = ModuleType("page_of_documents")
    monkeypatch.setitem(sys.modules, page.__name__, page)
    exec(compile(source, PAGE.name, "exec"), page.__dict__)
    exec(compile(more, PAGE.name, "exec"), page.__dict__)
    assert isinstance(page.greet, Workflow)
    assert issubclass(page.Guest, BaseModel)
    written = parse_document(blocks("yaml")[0]).value
    built = page.greet.document()
    assert {key: built[key] for key in ("name", "nodes", "output")} == {
        key: written[key] for key in ("name", "nodes", "output")
    }
    assert built["input"] == page.Guest.model_json_schema()
    assert page.greet.compile(registry).output == compile_document(blocks("yaml")[0], registry.specs()).output
    read = page.careful.document()["nodes"]["read"]
    assert (read["loop"]["while"], read["branch"]["rules"][0]["if"]) == ("output.again", "output.rating > 3")
    assert page.careful.compile(registry).nodes


def examples() -> list[str]:
    """Parts of documents: with everything that they need but a name and tools."""
    return [
        text for text in blocks("yaml") if re.search("^nodes:", text, re.MULTILINE) and "\nname:" not in text
    ]


def test_it_has_an_example_of_everything() -> None:
    """Of each kind of node, of what any node may have, and of what a document may have."""
    values = [parse_document(text).value for text in examples()]
    nodes = [node for value in values for node in value["nodes"].values()]
    assert {key for node in nodes for key in node} >= {*KINDS, "when", "branch", "loop", "join", "limits"}
    assert {key for value in values for key in value} >= {"schemas", "timeout", "limits", "guardrails"}
    rules = [rule["if"] for node in nodes for rule in node.get("branch", {}).get("rules", ())]
    assert {next(iter(rule)) for rule in rules if isinstance(rule, dict)} == {*CONDITIONS} - {"any", "not"}


@pytest.mark.parametrize("text", examples(), ids=lambda text: text[:60])
def test_every_example_compiles(text: str) -> None:
    value = {"name": "w", **parse_document(text).value}
    started = {node["graph"] for node in value["nodes"].values() if "graph" in node} - value.get(
        "graphs", {}
    ).keys()
    if started:  # the example of the kind is one node
        value["graphs"] = {name: {"nodes": {"n": {"value": 1}}} for name in started} | value.get("graphs", {})
    bodies = [value["nodes"], *(graph["nodes"] for graph in value.get("graphs", {}).values())]
    used = {node["tool"] for nodes in bodies for node in nodes.values() if "tool" in node}
    used |= {tool for node in value["nodes"].values() for tool in node.get("agent", {}).get("tools", ())}
    anything: dict[str, Any] = {"type": "object", "properties": {}}
    tools = {
        name: ToolSpec(name=name, version="1", effect="pure", parameters=anything, result={}) for name in used
    }
    for name in (node["function"] for node in value["nodes"].values() if "function" in node):
        tools[name] = ToolSpec(
            name=name, version="1", effect="pure", parameters=anything, result={}, calls=()
        )
    assert compile_document(json.dumps(value), tools).nodes


def test_its_kind_of_an_application_compiles() -> None:
    page: Any = ModuleType("page_of_kinds")
    source = blocks("python")[0]
    kinds: dict[str, OwnKind] = {}
    exec(
        compile(source.replace("example={", "kinds=kinds, example={"), PAGE.name, "exec"),
        page.__dict__ | {"kinds": kinds},
    )
    tools = {
        name: ToolSpec(name=name, version="1", effect="pure", parameters={"properties": {}}, result={})
        for name in ("table.search", "table.hold")
    }
    text = json.dumps({"name": "w", "nodes": {"a": {"reserve": {"city": "Rome"}}}})
    assert [node.name for node in compile_document(text, tools, kinds=kinds).nodes] == ["a__search", "a"]


def test_every_call_it_lists_is_one_of_the_builder() -> None:
    called = set(re.findall(r"^\| `\.(\w+)\(", PAGE.text, re.MULTILINE)) | {"to_yaml"}
    public = {
        name for name, found in vars(Workflow).items() if name[0] != "_" and not isinstance(found, property)
    }
    assert called == public


def test_it_lists_every_helper_of_the_builder() -> None:
    helpers = {name for name in builder.__all__ if name[0].islower()}
    assert {name for name in helpers if f"`{name}(" in PAGE.text or f", `{name}(" in PAGE.text} == helpers - {
        "rule"
    }


def test_every_document_of_the_simulation_is_valid_under_the_schema() -> None:
    found = [*vars(documents).values(), *vars(mishaps).values()]
    texts = [text for text in found if isinstance(text, str) and "\nnodes:" in text]
    texts += [documents.chain_of(3), documents.fan_of(4)]
    assert len(texts) >= 12
    schema = document_schema()
    assert [violations(schema, parse_document(text).value) for text in texts] == [()] * len(texts)


def test_its_modeline_leads_from_the_application_to_the_schema() -> None:
    found = re.findall(r"\$schema=(\S+)", PAGE.text)
    assert found
    for path in found:
        assert (ROOT / "layers/app/sagas" / path).resolve() == ROOT / "docs/workflow.schema.json"
    assert f"$schema={found[0]}\n" in (ROOT / "layers/app/sagas/dinner.yaml").read_text("utf-8")
