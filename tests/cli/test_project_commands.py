"""`baton render` and `baton upgrade` in a project of one's own, and what `up` asks of it first."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from baton import wiring
from baton.cli.commands import main
from baton.cli.machine.running import template_of
from baton.client.connection import project_root
from baton.client.exits import NO, REFUSED, USAGE, CommandFailed
from baton.project.deployment import LOCAL_TEMPLATE, TEMPLATE
from baton.scaffold.make import make_project
from baton.tools.standard import PINS
from baton.tools.standard.mcp import read_pins
from tests.kit.remote_tools import RemoteServer
from tests.kit.sentences import Says


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = make_project(tmp_path / "my-sagas").folder
    monkeypatch.chdir(folder)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    return folder


def baton(*arguments: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, list(arguments))


def append(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8") as written:
        written.write(text)


def test_the_deployment_follows_its_configuration(project: Path, says: Says) -> None:
    append(project / "baton.toml", "[functions]\nworker = {memory = 2048}\n")
    done = baton("render")
    says(done.stdout)
    assert "Default: 2048" in (project / TEMPLATE).read_text("utf-8")


def test_a_mistake_changes_nothing(project: Path, says: Says) -> None:
    before = (project / TEMPLATE).read_text("utf-8")
    append(project / "baton.toml", "[functons]\n")
    done = baton("render")
    assert done.exit_code == REFUSED
    says(done.stderr)
    assert (project / TEMPLATE).read_text("utf-8") == before


def test_a_project_that_owns_its_template_is_told_how_to_get_a_configuration(
    project: Path, says: Says
) -> None:
    (project / "baton.toml").unlink()
    (project / "template.yaml").write_text("")
    done = baton("render")
    assert done.exit_code == USAGE
    says(done.stderr.replace(str(project), "HERE"))


def test_the_folder_of_the_deployment_belongs_to_the_project(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "deployment")
    assert project_root() == project


def test_a_secret_without_a_value_here_is_named_before_anything_starts(
    project: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.delenv("SHOP_KEY", raising=False)
    append(project / "baton.toml", "")
    text = (project / "baton.toml").read_text("utf-8")
    (project / "baton.toml").write_text(text.replace("[secrets]\n", '[secrets]\nSHOP_KEY = "/shop/key"\n'))
    with pytest.raises(CommandFailed) as refused:
        template_of(project)
    assert refused.value.exit_code == REFUSED
    says([refused.value.message, *refused.value.more])
    (project / ".env").write_text("SHOP_KEY=mine\n")
    assert template_of(project) == (project / TEMPLATE, {"SHOP_KEY": "mine", "BATON_SECRETS": ""})


def test_images_run_here_as_folders(project: Path) -> None:
    append(project / "baton.toml", '[functions]\npackage = "image"\n')
    assert template_of(project) == (project / LOCAL_TEMPLATE, {})


def test_an_upgrade_is_shown_and_asked_for(project: Path) -> None:
    toml = project / "baton.toml"
    toml.write_text(toml.read_text("utf-8").replace('baton = "0.1.0"', 'baton = "0.0.9"'))
    refused = baton("render")
    assert (refused.exit_code, "baton upgrade" in refused.stderr) == (REFUSED, True)
    shown = baton("upgrade", "--dry-run")
    assert shown.exit_code == 0, shown.stderr
    assert "From Baton 0.0.9 to 0.1.0" in shown.stdout
    assert 'baton = "0.0.9"' in toml.read_text("utf-8")
    assert baton("upgrade", "--yes").exit_code == 0
    assert baton("render").exit_code == 0
    assert baton("upgrade", "--undo").exit_code == 0
    assert 'baton = "0.0.9"' in toml.read_text("utf-8")
    assert baton("upgrade", "--undo").exit_code == USAGE


SERVER = """
[mcp.crm]
url = "https://crm.example.com/mcp"
credential = "bearer"
[mcp.crm.tools]
lookup = {effect = "pure"}
"add-note" = {requires_approval = true}
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> RemoteServer:
    """In the place of the client of HTTP."""
    made = RemoteServer(credential="sk-4711-of-the-crm")
    monkeypatch.setattr(wiring, "LazyHttpClient", lambda *_, **__: made)
    return made


def test_the_tools_of_a_server_are_pinned_beside_those_of_the_project(
    project: Path, server: RemoteServer, says: Says
) -> None:
    append(project / "baton.toml", SERVER)
    append(project / ".env", "BATON_API_KEY_CRM=sk-4711-of-the-crm\n")
    pins = project / "layers/app/sagas" / PINS
    done = baton("mcp", "--check")
    assert (done.exit_code, pins.is_file()) == (NO, False)
    first = baton("mcp")
    assert first.exit_code == 0
    found = read_pins(pins).servers["crm"].tools
    assert [(one.effect, one.requires_approval) for one in found.values()] == [
        ("once", True),
        ("pure", False),
    ]
    assert "sk-4711" not in pins.read_text("utf-8")
    server.tools["lookup"] = {**server.tools["lookup"], "description": "Look twice."}
    says(first.stdout + baton("mcp", "--check").stdout + baton("mcp").stdout)
    assert json.loads(baton("mcp", "--json").stdout)["changes"] == []


def test_a_file_of_pins_that_cannot_be_read_is_written_anew(project: Path, server: RemoteServer) -> None:
    append(project / "baton.toml", SERVER)
    append(project / ".env", "BATON_API_KEY_CRM=sk-4711-of-the-crm\n")
    pins = project / "layers/app/sagas" / PINS
    assert baton("mcp").exit_code == 0
    text = pins.read_text("utf-8")
    pins.write_text("<<<<<<< HEAD\n" + text)  # a conflict of a merge
    checked = baton("mcp", "--check")
    assert (checked.exit_code, "baton mcp" in checked.stderr) == (REFUSED, True)
    assert baton("mcp").exit_code == 0
    assert pins.read_text("utf-8") == text


def test_what_keeps_a_server_from_being_pinned_is_said(
    project: Path, server: RemoteServer, says: Says
) -> None:
    append(project / "baton.toml", SERVER)
    without = baton("mcp")
    append(project / ".env", "BATON_API_KEY_CRM=wrong-key-of-the-crm\n")
    refused = baton("mcp")
    append(project / "baton.toml", "find = {}\n")
    (project / ".env").write_text("BATON_API_KEY_CRM=sk-4711-of-the-crm\n")
    os.environ.pop("BATON_API_KEY_CRM")
    missing = baton("mcp")
    assert {one.exit_code for one in (without, refused, missing)} == {REFUSED}
    says(without.stderr + refused.stderr + missing.stderr)
