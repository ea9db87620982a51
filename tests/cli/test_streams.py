"""Commands print whatever became of their streams: closed, full, unread, or of an encoding that lacks characters."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from baton.cli import main
from baton.cli.terminal.shared import print_json
from baton.client import exits
from tests.cli.conftest import FakeApi
from tests.kit.patience import PATIENCE_S
from tests.kit.sentences import Says

BATON = [sys.executable, "-c", "from baton.cli import main; main(prog_name='baton')"]
SAGAS = {
    "sagas": [{"id": "k1", "workflow": "d\u00eener \U0001f377", "status": "completed"}],
    "next": None,
}


@pytest.fixture
def env(api: FakeApi) -> dict[str, str]:
    api.on("GET /sagas", (200, SAGAS))
    entry = {"version": 1, "at": 0, "invocation": "i", "epoch": 1, "events": [{"kind": "saga_started"}]}
    api.on("GET /sagas/k1/events", (200, {"entries": [entry], "next": None}))
    return {"PATH": os.environ["PATH"], "BATON_URL": api.url, "BATON_TOKEN": "t"}


def in_shell(command: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """`BATON` in the command is the program."""
    script = f'BATON() {{ \'{BATON[0]}\' -c "{BATON[2]}" "$@"; }}; {command}'
    return subprocess.run(
        ["bash", "-c", script], env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.mark.parametrize("command", ["list --json", "--help"])
def test_output_without_a_reader_ends_without_a_word(env: dict[str, str], command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [*BATON, *command.split()],
        env=env,
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_S,
        check=False,
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (exits.UNREAD, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a full device")
def test_a_full_disk_is_said_once(env: dict[str, str], says: Says) -> None:
    ended = in_shell("BATON list >/dev/full", env)
    assert ended.returncode == exits.USAGE
    says(ended.stderr)


def test_a_closed_output_is_no_reason_to_fail(env: dict[str, str]) -> None:
    ended = in_shell("BATON list >&- && BATON list 2>&-", env)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "k1" in ended.stdout


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("command", ["list", "events k1", "list --help"])
def test_what_an_encoding_lacks_is_replaced(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch, encoding: str, command: str
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as end:
        main(command.split(), prog_name="baton")
    assert end.value.code == 0
    assert written.getvalue()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_the_same_in_every_encoding_and_steers_no_terminal(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    value = {"text": "\x1b[31m \x9b31m \x7f \u202e \ud800 \u00e4 \u6771\u3000\u4eac \U0001f377"}
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    print_json(value, line=True)
    text = written.getvalue().decode(encoding if encoding != "ascii" else "utf-8")
    assert json.loads(text) == value
    assert text.rstrip("\n").isprintable()
