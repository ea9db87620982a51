"""The README does what it says: its workflow compiles, its tool runs."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from baton.core.documents.compile import compile_document
from baton.ports import StepContext
from baton.tools import define
from baton.tools.define import Registry
from baton.tools.perform import ToolPerformer
from tests.docs.pages import README

APP = "layers/app/sagas/"


def file(name: str) -> str:
    return README.files()[APP + name]


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """What importing the README's Python file declares, apart from everything else."""
    registry = Registry()
    monkeypatch.setattr(define, "REGISTRY", registry)
    path = tmp_path / "readme_tools.py"
    path.write_text(file("greeting.py"), "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    yield registry
    del sys.modules[path.stem]


def test_it_says_what_baton_is_in_exactly_two_sentences() -> None:
    first = next(one for one in README.text.split("\n\n")[1:] if not one.startswith("!["))
    assert len(re.findall(r"[.!?](?:\s|$)", first)) == 2


def test_its_files_belong_into_the_app_layer() -> None:
    assert set(README.files()) == {f"{APP}greeting.py", f"{APP}greeting.yaml", f"{APP}greeter.py"}


def test_its_workflow_has_fifteen_lines_and_compiles_against_its_tools(registry: Registry) -> None:
    document = file("greeting.yaml")
    assert len(document.strip().splitlines()) == 15
    graph = compile_document(document, registry.specs())
    assert graph.name == "greeting"
    assert {node.kind for node in graph.nodes} == {"task", "wait"}


def test_the_same_as_a_function_has_fifteen_lines_at_most() -> None:
    assert len(file("greeter.py").strip().splitlines()) <= 15


def test_its_tools_give_what_the_text_shows(registry: Registry) -> None:
    performer = ToolPerformer(registry)
    context = StepContext(saga="s", tenant="t", user="u", node="n", idempotency_key="the-key")

    async def greet() -> Any:
        text = await performer.perform("greeting.write", {"name": "Ada"}, context)
        return await performer.perform("greeting.send", {"text": text}, context)

    assert asyncio.run(greet()) == {"sent": "Hello, Ada!", "key": "the-key"}
    assert '"sent": "Hello, Ada!"' in README.text
