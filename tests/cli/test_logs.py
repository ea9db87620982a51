"""`baton logs`: what the tools of a saga have printed and logged; and `baton up --debug` without a terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from baton.client.connection import Connection, write_local
from baton.local.logs import WORKER_LOG
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

BEGAN = "2026-11-29T23:17:43.500Z"


def saga(status: str = "running") -> dict[str, Any]:
    return {"id": "s1", "status": status, "created_at": BEGAN}


def line(text: str, of: str = "s1", at: str = "2026-11-29T23:17:43Z") -> str:
    found = {"timestamp": at, "level": "INFO", "message": text, "saga": of, "node": "pay", "attempt": 2}
    return json.dumps(found) + "\n"


@pytest.fixture
def log(api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The worker's log of a local run, to which this directory belongs."""
    monkeypatch.chdir(tmp_path)
    write_local(tmp_path, Connection(api.url, "t"), tmp_path)
    return tmp_path / WORKER_LOG


def test_the_lines_of_a_saga_and_of_its_children_are_printed(log: Path, api: FakeApi, baton: Baton) -> None:
    old = line("of an earlier one", at="2026-11-29T23:17:42Z")
    log.write_text(line("one\ntwo") + line("other", of="s2") + line("child", of="s1.0.send") + old)
    api.on("GET /sagas/s1", (200, saga()))
    assert baton("logs", "s1").stdout.splitlines() == [
        "23:17:43.000 s1 pay attempt 2 | one",
        "23:17:43.000 s1 pay attempt 2 | two",
        "23:17:43.000 s1.0.send pay attempt 2 | child",
    ]


def test_it_follows_until_the_saga_ends(log: Path, api: FakeApi, baton: Baton) -> None:
    log.write_text(line("one"))
    api.on("GET /sagas/s1", (200, saga()), (200, saga()), (200, saga("completed")))
    shown = [json.loads(each) for each in baton("logs", "s1", "--follow", "--json").stdout.splitlines()]
    assert [(each["saga"], each["slot"], each["attempt"], each["text"]) for each in shown] == [
        ("s1", "pay", 2, "one")
    ]
    assert len(api.pauses) == 2


def test_a_saga_without_lines_says_so(log: Path, api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /sagas/s1", (200, saga()))
    found = baton("logs", "s1")
    assert (found.exit_code, found.stdout) == (0, "")
    says(found.stderr)


def test_the_logs_of_a_run_elsewhere_on_this_machine_are_not_asked_of_aws(
    api: FakeApi, baton: Baton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.chdir(tmp_path)
    api.on("GET /sagas/s1", (200, saga()))
    found = baton("logs", "s1")
    assert found.exit_code == 2
    says(found.stderr)


def test_the_logs_of_a_deployment_need_the_name_of_its_stack_and_a_region(
    api: FakeApi, baton: Baton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setattr("baton.cli.deployment.sagas.is_here", lambda _: False)
    api.on("GET /sagas/s1", (200, saga()))
    says(baton("logs", "s1").stderr)
    (tmp_path / "baton.toml").write_text('stack = "shop"\n')
    found = baton("logs", "s1")
    assert found.exit_code == 3
    says(found.stderr)


def test_a_debugger_needs_a_terminal(api: FakeApi, baton: Baton, says: Says) -> None:
    result = baton("up", "--debug")
    assert result.exit_code == 2
    says(result.stderr)
