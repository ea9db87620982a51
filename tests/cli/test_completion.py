"""Completion: the scripts, what is offered, and that nothing of it can be slow or loud."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from baton.cli import main
from baton.client import transport
from tests.cli.conftest import Baton, FakeApi

SAGAS = {
    "sagas": [
        {"id": "k1a", "workflow": "dinner", "status": "parked"},
        {"id": "k2", "workflow": "w", "status": "s"},
    ]
}


def complete(*words: str, env: dict[str, str]) -> list[str]:
    """What bash would offer for the last of the words."""
    asked = {
        "_BATON_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["baton", *words]),
        "COMP_CWORD": str(len(words)),
    }
    result = CliRunner().invoke(
        main, [], prog_name="baton", env={**asked, **env}, complete_var="_BATON_COMPLETE"
    )
    assert result.exit_code == 0, result.output
    return [line.partition(",")[2] for line in result.output.splitlines() if line]


@pytest.fixture
def env(api: FakeApi) -> dict[str, str]:
    return {"BATON_URL": api.url, "BATON_TOKEN": "t"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(baton: Baton, shell: str) -> None:
    script = baton("completion", shell).stdout
    assert f"_BATON_COMPLETE={shell}_complete" in script


def test_the_script_is_one_that_bash_can_read(baton: Baton) -> None:
    script = baton("completion", "bash").stdout
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


def test_an_unknown_shell_is_refused(baton: Baton) -> None:
    assert baton("completion", "powershell").exit_code == 2


def test_commands_and_options_are_offered_without_the_api(api: FakeApi, env: dict[str, str]) -> None:
    assert complete("re", env=env) == ["remind", "render", "replay", "resolve", "resume", "retry"]
    assert complete("answer", "s1", "", env=env) == complete("answer", "s1", "q", "", env=env)
    assert complete("answer", "s1", "r", env=env) == ["retry", "reject"]
    assert "--watch" in complete("show", "--w", env=env)
    assert api.asked == []


def test_documents_are_files_for_the_shell_to_offer(api: FakeApi, env: dict[str, str]) -> None:
    for command in ("check", "deploy-workflow"):
        asked = {"_BATON_COMPLETE": "bash_complete", "COMP_WORDS": f"baton {command} lay", "COMP_CWORD": "2"}
        result = CliRunner().invoke(
            main, [], prog_name="baton", env={**asked, **env}, complete_var="_BATON_COMPLETE"
        )
        assert result.output == "file,lay\n"


def test_sagas_workflows_tools_and_kinds_are_offered(api: FakeApi, env: dict[str, str]) -> None:
    api.on("GET /sagas", (200, SAGAS))
    api.on("GET /workflows", (200, {"workflows": [{"name": "dinner", "version": 3}]}))
    api.on("GET /tools", (200, {"tools": [{"name": "table.hold", "description": "Hold.\n\nLong."}]}))
    api.on("GET /node-types", (200, {"node_types": [{"kind": "wait", "description": "Waits."}]}))
    assert complete("show", "k1", env=env) == ["k1a"]
    assert complete("cancel", "k", env=env) == ["k1a", "k2"]
    assert complete("start", "", env=env) == ["dinner"]
    assert complete("tools", "t", env=env) == ["table.hold"]
    assert complete("node-types", "", env=env) == ["wait"]


def test_nodes_that_a_saga_has_come_to_are_offered(api: FakeApi, env: dict[str, str]) -> None:
    steps = [{"node": "pay", "text": "to `pack`"}, {"node": "pack", "text": ""}]
    api.on("GET /sagas/k1/explain", (200, {"steps": steps, "open": [{"node": "ask", "text": "`ask` waits"}]}))
    assert complete("explain", "k1", "pa", env=env) == ["pay", "pack"]
    assert complete("explain", "k2", "pa", env=env) == []


@pytest.mark.parametrize(
    "answer", [(500, {"title": "Broken"}), (200, "<html>"), (200, {"sagas": [3]}), (200, [1])]
)
def test_whatever_goes_wrong_is_silent(api: FakeApi, env: dict[str, str], answer: tuple[int, object]) -> None:
    api.on("GET /sagas", answer)
    assert complete("show", "k", env=env) == []


def test_without_an_address_nothing_is_offered(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.chdir(str(tmp_path))
    assert complete("show", "k", env={"BATON_URL": "", "BATON_TOKEN": ""}) == []


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_who_is_typing_does_not_wait_for_a_slow_api(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert transport.GLANCE_S <= 1.0
    monkeypatch.setattr(transport, "GLANCE_S", 0.05)
    began = time.monotonic()
    assert complete("show", "k", env={"BATON_URL": silent, "BATON_TOKEN": "t"}) == []
    assert time.monotonic() - began < transport.TOTAL_S


def test_help_and_completion_load_none_of_the_heavy_libraries() -> None:
    heavy = "httpx", "rich", "pydantic", "msgspec", "botocore", "yaml", "asyncio", "baton.wiring"
    program = "import sys, baton.cli.commands; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert set(heavy) & set(loaded) == set()
