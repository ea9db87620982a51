"""The page of the document format: its examples compile, and what it builds in Python is what it shows in YAML."""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from baton import Workflow
from baton.core.compile import compile_document
from baton.core.definition import read_definition
from baton.core.docschema import document_schema
from baton.core.document import parse_document
from baton.core.schema import violations
from baton.tools import define
from baton.tools.define import Registry, tool
from tests.docs.pages import ROOT, Page
from tests.kit import corpus

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


def test_its_document_compiles(registry: Registry) -> None:
    graph = compile_document(blocks("yaml")[0], registry.specs())
    assert {node.kind for node in graph.nodes} == {"task", "wait"}


def test_what_it_builds_in_python_is_the_document_it_shows(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = blocks("python")
    assert len([line for line in source.splitlines() if line]) <= 15
    page: Any = ModuleType("page_of_documents")
    monkeypatch.setitem(sys.modules, page.__name__, page)
    exec(compile(source, PAGE.name, "exec"), page.__dict__)
    assert isinstance(page.greet, Workflow)
    assert issubclass(page.Guest, BaseModel)
    written = parse_document(blocks("yaml")[0]).value
    built = page.greet.document()
    assert {key: built[key] for key in ("name", "nodes", "output")} == {
        key: written[key] for key in ("name", "nodes", "output")
    }
    assert built["input"] == page.Guest.model_json_schema()
    assert page.greet.compile(registry).output == compile_document(blocks("yaml")[0], registry.specs()).output


def test_every_example_of_a_node_has_the_right_shape() -> None:
    examples = [text for text in blocks("yaml") if text.startswith("nodes:")]
    assert len(examples) == 3
    for text in examples:
        _, problems = read_definition({"name": "w", **parse_document(text).value})
        assert problems == ()


def test_every_call_it_lists_is_one_of_the_builder() -> None:
    called = set(re.findall(r"^\| `\.(\w+)\(", PAGE.text, re.MULTILINE)) | {"to_yaml"}
    public = {name for name in vars(Workflow) if not name.startswith("_")} - {"input", "saga"}
    assert called == public


def test_every_document_of_the_simulation_is_valid_under_the_schema() -> None:
    texts = [text for text in vars(corpus).values() if isinstance(text, str) and "\nnodes:" in text]
    texts += [corpus.chain_of(3), corpus.fan_of(4)]
    assert len(texts) >= 8
    schema = document_schema()
    assert [violations(schema, parse_document(text).value) for text in texts] == [()] * len(texts)


def test_its_modeline_leads_from_the_application_to_the_schema() -> None:
    found = re.findall(r"\$schema=(\S+)", PAGE.text)
    assert found
    for path in found:
        assert (ROOT / "layers/app/sagas" / path).resolve() == ROOT / "docs/workflow.schema.json"
    assert f"$schema={found[0]}\n" in (ROOT / "layers/app/sagas/dinner.yaml").read_text("utf-8")
