"""How messages name this command, so that what they print can be typed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from baton.client.connection import command_line, program
from tests.kit.patience import PATIENCE_S


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script `.venv/bin/baton` below the current directory, which runs now; nothing is on the path."""
    path = tmp_path / ".venv" / "bin" / "baton"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    return path


def test_without_the_venv_activated_it_is_a_path(script: Path) -> None:
    assert (program(), command_line("up")) == (".venv/bin/baton", ".venv/bin/baton up")


def test_with_the_venv_activated_it_is_the_name(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "baton"


def test_another_baton_on_the_path_is_not_this_one(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other" / "baton"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    assert program() == ".venv/bin/baton"


def test_from_elsewhere_the_path_is_whole_and_quoted(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert program() == str(script)
    (elsewhere / "baton").write_text("#!/bin/sh\n")
    monkeypatch.setattr(sys, "argv", [str(elsewhere / "baton")])
    monkeypatch.chdir(tmp_path)
    assert program() == "'else where/baton'"


def test_called_otherwise_it_is_the_script_beside_the_interpreter(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["-c"])
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    assert program() == ".venv/bin/baton"


def test_where_there_is_no_script_at_all_it_is_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["-c"])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert program() == "baton"


def test_it_can_be_run_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "baton.cli", "shwo"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, "Usage: baton" in done.stderr, "show" in done.stderr) == (2, True, True), (
        done.stderr
    )
