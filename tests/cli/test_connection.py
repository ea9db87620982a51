"""Where the commands find the API: options, environment, the file of `baton up`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from baton.cli.connection import Connection, find_connection, project_root, remove_local, write_local
from baton.cli.exits import Failed
from tests.cli.conftest import Baton, FakeApi

HERE = Connection("http://127.0.0.1:8080", "local-token")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "template.yaml").touch()
    (tmp_path / "deep" / "down").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_file_is_for_its_owner_only(project: Path) -> None:
    path = write_local(project, HERE)
    assert path == project / ".baton" / "local.json"
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_older_file_with_other_rights_is_replaced(project: Path) -> None:
    path = write_local(project, HERE)
    path.chmod(0o644)
    write_local(project, HERE)
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_file_is_found_from_deep_down(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_local(project, HERE)
    monkeypatch.chdir(project / "deep" / "down")
    assert find_connection(None, None) == HERE
    assert project_root() == project


def test_what_was_said_beats_the_file(project: Path) -> None:
    write_local(project, HERE)
    assert find_connection("https://api.example/", "mine") == Connection("https://api.example", "mine")


def test_the_local_token_is_not_shown_to_another_address(project: Path) -> None:
    write_local(project, HERE)
    with pytest.raises(Failed, match="no token") as failure:
        find_connection("https://api.example", None)
    assert failure.value.exit_code == 4


def test_the_local_token_goes_with_the_local_address(project: Path) -> None:
    write_local(project, HERE)
    assert find_connection(HERE.url, None) == HERE


def test_without_any_address_the_way_out_is_named(project: Path) -> None:
    with pytest.raises(Failed, match="no address") as failure:
        find_connection(None, None)
    assert (failure.value.exit_code, "baton up" in failure.value.more[0]) == (4, True)


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_file_is_named_or_passed_over(project: Path, text: str) -> None:
    write_local(project, HERE).write_text(text)
    with pytest.raises(Failed, match=r"local\.json|no address"):
        find_connection(None, None)


def test_leaving_removes_only_ones_own_file(project: Path) -> None:
    path = write_local(project, HERE)
    path.write_text(json.dumps({"url": "u", "token": "t", "pid": os.getpid() + 1}))
    remove_local(project)
    assert path.exists()
    write_local(project, HERE)
    remove_local(project)
    assert not path.exists()
    remove_local(project)


def test_outside_a_project_the_template_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Failed, match=r"no template.yaml"):
        project_root()


def test_the_token_is_in_no_printed_form() -> None:
    assert HERE.token not in repr(HERE)


def test_commands_use_the_file(api: FakeApi, baton: Baton, project: Path) -> None:
    api.on("GET /sagas/s1", (200, {"id": "s1", "status": "running"}))
    write_local(project, Connection(api.url, "from-the-file"))
    assert baton("show", "s1", env={"BATON_URL": None, "BATON_TOKEN": None}).exit_code == 0
    assert api.asked[0].headers["authorization"] == "Bearer from-the-file"
