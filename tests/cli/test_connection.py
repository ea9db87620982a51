"""Where the commands find the API: options, environment, the file of `baton up`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.client.connection import (
    Connection,
    Owner,
    find_connection,
    other_run,
    project_root,
    remove_local,
    write_local,
)
from baton.client.exits import CommandFailed
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

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
    with pytest.raises(CommandFailed, match="no token") as failure:
        find_connection("https://api.example", None)
    assert failure.value.exit_code == 4


def test_the_local_token_goes_with_the_local_address(project: Path) -> None:
    write_local(project, HERE)
    assert find_connection(HERE.url, None) == HERE


def test_without_any_address_the_way_out_is_named(project: Path) -> None:
    with pytest.raises(CommandFailed, match="no address") as failure:
        find_connection(None, None)
    assert (failure.value.exit_code, "baton up" in failure.value.more[0]) == (4, True)


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_file_is_named_or_passed_over(project: Path, text: str, says: Says) -> None:
    write_local(project, HERE).write_text(text)
    with says.raised(CommandFailed):
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


def test_outside_a_project_its_settings_are_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CommandFailed, match=r"no baton.toml"):
        project_root()


def test_the_token_is_in_no_printed_form() -> None:
    assert HERE.token not in repr(HERE)


def test_commands_use_the_file(api: FakeApi, baton: Baton, project: Path) -> None:
    api.on("GET /sagas/s1", (200, {"id": "s1", "status": "running"}))
    write_local(project, Connection(api.url, "from-the-file"))
    assert baton("show", "s1", env={"BATON_URL": None, "BATON_TOKEN": None}).exit_code == 0
    assert api.asked[0].headers["authorization"] == "Bearer from-the-file"


# ---- another run of the same directory


@pytest.fixture
def neighbour(project: Path) -> Iterator[Owner]:
    """Another process that listens, and whose file lies in the project."""
    program = (
        "import socket, sys; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); "
        "print(s.getsockname()[1], flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        owner = Owner(process.pid, f"http://127.0.0.1:{process.stdout.readline().strip()}")
        write_local(project, HERE).write_text(json.dumps({"url": owner.url, "token": "t", "pid": owner.pid}))
        yield owner
        process.kill()


def test_another_live_run_owns_the_file(project: Path, neighbour: Owner) -> None:
    assert other_run(project) == neighbour


def test_up_refuses_the_directory_of_another_run_and_says_how_to_run_beside_it(
    baton: Baton, project: Path, neighbour: Owner
) -> None:
    before = (project / ".baton" / "local.json").read_text()
    for port in ((), ("--port", str(neighbour.port))):
        result = baton("up", *port)
        assert result.exit_code == 1
        assert f"{neighbour.url}, process {neighbour.pid}" in result.stderr
        assert "up --port 0" in result.stderr
    assert (project / ".baton" / "local.json").read_text() == before


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"pid": "x", "url": "u"}', '{"pid": 1e400, "url": "u"}'])
def test_a_file_that_says_nothing_has_no_owner(project: Path, text: str) -> None:
    write_local(project, HERE).write_text(text)
    assert other_run(project) is None


def test_a_run_that_was_killed_owns_nothing(project: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    write_local(project, HERE).write_text(json.dumps({"url": HERE.url, "token": "t", "pid": ended.pid}))
    assert other_run(project) is None


def test_a_number_that_another_process_has_now_owns_nothing(project: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    write_local(project, HERE).write_text(json.dumps({"url": url, "token": "t", "pid": os.getppid()}))
    assert other_run(project) is None


def test_ones_own_file_has_no_other_owner(project: Path) -> None:
    write_local(project, HERE)
    assert other_run(project) is None
