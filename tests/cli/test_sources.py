"""Documents wherever they are: files, and workflows built in Python."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Baton, FakeApi

APP = """
from baton import Workflow, tool

@tool("this_test.greet")
def greet(name: str) -> str:
    return name

hello = Workflow("hello", input={"type": "object"})
hello.task("greet", greet, with_={"name": hello.input.name})
broken = Workflow("broken")
broken.task("greet", "this_test.gret")
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    package = tmp_path / "layers/app/built_app"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "greeting.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in [name for name in sys.modules if name.startswith("built_app")]:
        del sys.modules[name]


def test_a_built_workflow_is_checked_and_drawn_like_a_file(baton: Baton) -> None:
    result = baton("check", "--app", "built_app", "built_app.greeting:hello")
    assert result.exit_code == 0, result.stderr
    assert "built_app.greeting:hello: ok, hello with 1 node" in result.stdout


def test_its_problems_are_told_like_those_of_a_file(baton: Baton) -> None:
    result = baton("check", "--app", "built_app", "built_app.greeting:broken")
    assert result.exit_code == 1
    assert "did you mean `this_test.greet`?" in result.stdout


def test_a_built_workflow_is_deployed_as_the_text_that_it_builds(baton: Baton, api: FakeApi) -> None:
    api.on("POST /workflows", (201, {"name": "hello", "version": 1, "graph": "abc"}))
    result = baton("deploy-workflow", "--json", "--app", "built_app", "built_app.greeting:hello")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["file"] == "built_app.greeting:hello"
    assert "name: hello" in api.asked[-1].text


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("built_app.greeting:helo", "did you mean `hello`?"),
        ("built_app.greting:hello", "there is no module `built_app.greting`"),
        ("nowhere.yaml", "nowhere.yaml"),
    ],
)
def test_what_is_not_there_is_told(baton: Baton, address: str, said: str) -> None:
    result = baton("check", "--app", "built_app", address)
    assert result.exit_code == 2
    assert said in result.stderr
