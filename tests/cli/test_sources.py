"""Documents wherever they are: files, and workflows built in Python."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.cli.documents.app import load_app, sources_of
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

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
CODE = """
from baton import WorkflowContext, workflow
from built_app.greeting import greet

@workflow("coded")
async def code(name: str, context: WorkflowContext) -> str:
    return await context.step(greet, name)
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


def test_a_built_workflow_is_checked_and_drawn_like_a_file(baton: Baton, says: Says) -> None:
    result = baton("check", "--app", "built_app", "built_app.greeting:hello")
    assert result.exit_code == 0, result.stderr
    says(result.stdout)


def test_its_problems_are_told_like_those_of_a_file(baton: Baton, says: Says) -> None:
    result = baton("check", "--app", "built_app", "built_app.greeting:broken")
    assert result.exit_code == 1
    says(result.stdout)


def test_a_built_workflow_is_deployed_as_the_text_that_it_builds(baton: Baton, api: FakeApi) -> None:
    api.on("POST /workflows", (201, {"name": "hello", "version": 1, "graph": "abc"}))
    result = baton("deploy-workflow", "--json", "--app", "built_app", "built_app.greeting:hello")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["file"] == "built_app.greeting:hello"
    assert "name: hello" in api.asked[-1].text


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("built_app.greeting:helo", "Did you mean `hello`?"),
        ("built_app.greting:hello", "there is no module `built_app.greting`"),
        ("nowhere.yaml", "there is no file nowhere.yaml"),
        ("layers/app/built_app/greeting.py", "built_app.greeting:NAME"),
        (
            "layers/app/built_app/greeting.py",
            "There are: built_app.greeting:broken, built_app.greeting:hello",
        ),
        ("greeting.py", "built_app.greeting:NAME"),
        ("elsewhere.py", "MODULE:NAME"),
        ("built_app.greeting", "built_app.greeting:NAME"),
        ("built_app.greeting", "There are: built_app.greeting:broken, built_app.greeting:hello"),
        ("built_app.greting", "there is no file built_app.greting"),
    ],
)
def test_what_is_not_there_is_told(baton: Baton, address: str, said: str) -> None:
    result = baton("check", "--app", "built_app", address)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_module_that_fails_says_where(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "layers/app/built_app/other.py").write_text("\n\nimport no_such_library\n")
    result = baton("check", "--app", "built_app", "built_app.greeting:hello")
    assert result.exit_code == 2
    assert "No module named 'no_such_library' (layers/app/built_app/other.py:3)" in result.stderr
    assert "layers/app/requirements.txt" in result.stderr


def test_a_name_in_an_application_that_does_not_load_says_why(
    baton: Baton, tmp_path: Path, says: Says
) -> None:
    (tmp_path / "layers/app/built_app/other.py").write_text(
        "from baton import tool\n\n\n@tool('other')\ndef other(value) -> None: ...\n"
    )
    result = baton("check", "--app", "built_app", "hello")
    assert result.exit_code == 2
    says(result.stderr)


def test_a_name_without_an_application_is_that_of_a_file(baton: Baton) -> None:
    assert "there is no file hello" in baton("check", "--app", "not_there", "hello").stderr


def test_a_module_of_the_application_itself_is_no_package_to_install(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "layers/app/built_app/other.py").write_text("import built_app.helpr\n")
    result = baton("check", "--app", "built_app", "built_app.greeting:hello")
    assert "(layers/app/built_app/other.py:1)" in result.stderr
    assert "requirements.txt" not in result.stderr


def test_a_built_workflow_has_an_address(tmp_path: Path) -> None:
    file = tmp_path / "layers/app/built_app/greeting.py"
    file.write_text(file.read_text().partition("broken =")[0])
    assert [source.name for source in sources_of(load_app("built_app"))] == ["built_app.greeting:hello"]


@pytest.fixture
def coded(tmp_path: Path) -> None:
    (tmp_path / "layers/app/built_app/coded.py").write_text(CODE)


@pytest.mark.usefixtures("coded")
@pytest.mark.parametrize("place", ["coded", "built_app.coded:code"])
def test_a_function_is_checked_by_its_name_or_its_place(baton: Baton, place: str, says: Says) -> None:
    result = baton("check", "--app", "built_app", place)
    assert result.exit_code == 0, result.stderr
    says(result.stdout)


@pytest.mark.usefixtures("coded")
def test_a_name_that_is_no_workflow_is_answered_with_the_nearest(baton: Baton, says: Says) -> None:
    result = baton("check", "--app", "built_app", "codde")
    assert result.exit_code == 2
    says(result.stderr)


@pytest.mark.usefixtures("coded")
def test_without_a_place_all_workflows_are_meant(baton: Baton, api: FakeApi) -> None:
    checked = baton("check", "--json", "--app", "built_app")
    assert [one["file"].partition(":")[2] for one in json.loads(checked.stdout)] == [
        "broken",
        "code",
        "hello",
    ]
    api.on("POST /workflows", (201, {"name": "coded", "version": 1, "graph": "abc"}))
    refused = baton("deploy-workflow", "--app", "built_app")
    assert (refused.exit_code, api.asked) == (1, [])
    assert baton("deploy-workflow", "--app", "built_app", "coded").exit_code == 0
    assert "function: coded" in api.asked[-1].text


def test_an_application_without_a_workflow_says_so(baton: Baton, tmp_path: Path, says: Says) -> None:
    (tmp_path / "layers/app/built_app/greeting.py").unlink()
    result = baton("check", "--app", "built_app")
    assert result.exit_code == 2
    says(result.stderr)
