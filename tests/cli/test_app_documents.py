"""The documents of an application: all are compiled before `baton up` starts anything, and taken up when they change."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from baton.cli.documents.app import load_app, sources_of
from baton.cli.documents.workflows import check_documents
from baton.cli.machine import running
from baton.client.exits import NO, CommandFailed
from tests.cli.conftest import FakeApi
from tests.kit.sentences import Says

TOOL = """
from baton import tool

@tool("app_documents.greet")
def greet(name: str) -> str:
    return name
"""
GOOD = "name: {0}\nnodes:\n  greet: {{tool: app_documents.greet, with: {{name: Ada}}}}\n"
BAD = GOOD.replace("Ada", "[1]").replace("greet:", "greet_:")
FETCH = "name: fetch\nnodes:\n  get: {tool: std.http, with: {url: https://a.example}}\n"
TEMPLATE = "Parameters: {StandardTools: {Type: String, Default: '%s'}}\nResources: {}\n"


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    package = tmp_path / "layers/app/documents_app"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(TOOL)
    (tmp_path / "template.yaml").write_text(TEMPLATE % "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield package
    for name in [name for name in sys.modules if name.startswith("documents_app")]:
        del sys.modules[name]


def checked(root: Path, parameters: dict[str, str] | None = None) -> None:
    check_documents(
        sources_of(load_app("documents_app", root)),
        "documents_app",
        root / "template.yaml",
        parameters or {},
        "local",
    )


def test_all_problems_of_all_documents_are_listed_and_nothing_is_started(
    app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    (app / "a.yaml").write_text(BAD.format("a"))
    (app / "b.yaml").write_text("name: [")
    (app / "c.yaml").write_text(GOOD.format("c"))
    with pytest.raises(CommandFailed) as failed:
        checked(tmp_path)
    assert failed.value.exit_code == NO
    says(failed.value.message)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("layers/app/documents_app/a.yaml:3:")
    assert second.startswith("layers/app/documents_app/b.yaml:2:1  ")


def test_a_standard_tool_that_is_off_is_found_before_anything_is_started(app: Path, tmp_path: Path) -> None:
    (app / "fetch.yaml").write_text(FETCH)
    with pytest.raises(CommandFailed) as failed:
        checked(tmp_path)
    assert "--parameter StandardTools=std.http --parameter HttpHosts=…" in failed.value.more[0]
    with pytest.raises(CommandFailed):
        checked(tmp_path, {"StandardTools": "std.http=another"})
    checked(tmp_path, {"StandardTools": "std.http"})
    (tmp_path / "template.yaml").write_text(TEMPLATE % "std.*")
    checked(tmp_path)
    (tmp_path / "template.yaml").unlink()
    checked(tmp_path)  # what is wrong with the template is told by what reads it as a whole


@pytest.fixture
def taken_up(
    app: Path,
    api: FakeApi,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[[], list[str]]:
    monkeypatch.setenv("BATON_RELOAD_TOKEN", "secret")

    def run() -> list[str]:
        running.main("register", str(tmp_path), "documents_app", api.url)
        return capsys.readouterr().err.splitlines()

    return run


def test_one_line_says_what_was_taken_up(
    app: Path, api: FakeApi, taken_up: Callable[[], list[str]], says: Says
) -> None:
    (app / "a.yaml").write_text(GOOD.format("a"))
    api.on("POST /workflows", (201, {"name": "a", "version": 2}), (200, {"name": "a", "version": 2}))
    says(taken_up())
    assert taken_up() == ["Taken up: the code."]


def test_a_document_with_problems_keeps_no_other_back_and_is_named_in_the_last_line(
    app: Path, api: FakeApi, taken_up: Callable[[], list[str]], says: Says
) -> None:
    (app / "a.yaml").write_text(BAD.format("a"))
    (app / "b.yaml").write_text(GOOD.format("b"))
    (app / "c.yaml").write_text(GOOD.format("c"))
    api.on("POST /workflows", (201, {"name": "b", "version": 3}), (422, {"title": "Refused"}))
    problem, refused, last = taken_up()
    assert problem.startswith("layers/app/documents_app/a.yaml:3:")
    assert refused == "baton: layers/app/documents_app/c.yaml: Refused (422)"
    says(last)


def test_a_registered_document_that_the_new_tools_break_is_named(
    app: Path, api: FakeApi, taken_up: Callable[[], list[str]], says: Says
) -> None:
    (app / "a.yaml").write_text(BAD.format("a"))
    (app / "b.yaml").write_text(BAD.format("b"))
    shown = {"name": "a", "version": 4, "nodes": [], "document": BAD.format("a")}
    api.on("GET /workflows/a", (200, shown))
    api.on("GET /workflows/b", (200, shown | {"name": "b", "document": GOOD.format("b")}))
    lines = taken_up()
    says([line for line in lines if "@" in line])
