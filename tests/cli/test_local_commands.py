"""`baton up` and `baton demo` for real, in a copy of the project: processes, HTTP, kills, the end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from baton.cli import main
from tests.kit.patience import PATIENCE_S

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
ANOTHER = "layers/app/sagas/waits.yaml"
WAITS = "name: waits\nevents: {start: [TYPE]}\nnodes:\n  go: {wait: {signal: go, timeout: 1h}}\n"
ASKS = "name: asks\nnodes:\n  cook: {human: {title: Can you cook?, to: {group: kitchen}}}\n"
BATON = [sys.executable, "-c", "from baton.cli import main; main()"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What a deployment needs of the project, somewhere else: nothing may depend on where it lies."""
    # With the bytecode that is there: a dozen processes would each compile the engine anew;
    # but not what others are writing just now.
    ignore = shutil.ignore_patterns("*.egg-info", "*.pyc.*")
    for name in ("functions", "layers", "statemachine", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignore)
    shutil.copy(ROOT / "template.yaml", tmp_path)
    return tmp_path


@pytest.fixture
def environment() -> dict[str, str]:
    """Nothing of the tests' own surroundings that could lead to another Baton."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("BATON_", "AWS_"))}


@pytest.fixture
def up(project: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """With two workflows besides the dinner, and told where to keep its data."""
    (project / ANOTHER).write_text(WAITS)
    (project / "layers/app/sagas/asks.yaml").write_text(ASKS)
    command = [*BATON, "up", "--port", "0", "--data", "kept", "--parameter", "EventSources=lantern"]
    process = subprocess.Popen(
        command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with (project / "said").open("w") as said:
        for line in process.stdout:
            said.write(line)
            if "baton start dinner --watch" in line:
                break
    yield process
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)


def run(project: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*BATON, *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def said(project: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The same without a process for it: dozens of them would cost more than all that they ask for."""
    unset = dict.fromkeys(os.environ.keys() - environment.keys())
    with contextlib.chdir(project):
        done = CliRunner(mix_stderr=False).invoke(main, list(arguments), env={**unset, **environment})
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def test_up_runs_the_dinner_takes_up_a_change_and_leaves_nothing_but_the_data_that_it_keeps(
    up: subprocess.Popen[str], project: Path, environment: dict[str, str]
) -> None:
    """The things that the next run finds there are told by tests/local/test_kept_e2e.py, of a run that keeps nothing by tests/scaffold in `make soak`."""
    printed = (project / "said").read_text().partition("export BATON_TOKEN=")
    lines = "".join(printed[1:]).replace("dinner --watch", "dinner --watch --every 250ms --json")
    started = subprocess.run(
        ["bash", "-ec", lines],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert started.returncode == 0, started.stderr
    assert '"pending"' in started.stdout.partition("}")[0], "curl starts one, too"
    saga = json.loads(started.stdout.splitlines()[-1])
    assert (saga["status"], saga["steps"]) == ("completed", 14)
    assert saga["result"]["confirmation"].startswith("T-")
    assert "order_snack" in said(project, environment, "events", saga["id"]).stdout
    again = said(project, environment, "cancel", saga["id"])
    assert (again.returncode, "(409)" in again.stderr) == (3, True)

    _another_user_is_asked(project, environment)

    until = time.monotonic() + PATIENCE_S  # the event that the lines have put on the bus
    while not (sagas := _sagas_of("waits", project, environment)) and time.monotonic() < until:
        time.sleep(0.2)
    (waiting,) = sagas
    (project / ANOTHER).write_text(WAITS.replace("1h", "2h"))
    assert up.stderr is not None
    assert any("Taken up: the code; registered: waits@2." in line for line in up.stderr)
    versions = json.loads(said(project, environment, "workflows", "--json").stdout)["workflows"]
    assert {found["name"]: found["version"] for found in versions}["waits"] == 2

    children = _descendants(up.pid)
    assert len(children) > 3
    up.send_signal(signal.SIGINT)
    up.communicate(timeout=PATIENCE_S)
    assert up.returncode == 0
    assert [file.name for file in (project / ".baton").iterdir()] == ["local-key"], (
        "the logs of a run that ended well are gone"
    )
    assert [pid for pid in children if Path("/proc", str(pid)).exists()] == []
    kept = [file.read_bytes() for file in (project / "kept").rglob("*") if file.is_file()]
    assert any(waiting.encode() in content for content in kept)


def _sagas_of(workflow: str, project: Path, environment: dict[str, str]) -> list[str]:
    listed = json.loads(said(project, environment, "list", "--workflow", workflow, "--json").stdout)
    return [saga["id"] for saga in listed["sagas"]]


def _another_user_is_asked(project: Path, environment: dict[str, str]) -> None:
    """A member of the group finds the question in the inbox, claims it and answers it; a user of no group finds nothing."""
    saga = json.loads(said(project, environment, "start", "asks", "--json").stdout)["id"]
    bob, eve = (
        environment | {"BATON_TOKEN": said(project, environment, "token", *words).stdout.strip()}
        for words in (("bob", "--group", "kitchen"), ("eve", "--group", "bar"))
    )
    until = time.monotonic() + PATIENCE_S / 4  # the inbox follows the log a moment later
    while saga not in (listed := said(project, bob, "inbox").stdout) and time.monotonic() < until:
        time.sleep(0.2)
    assert [listed.splitlines()[1].split()[n] for n in (0, 1, 5, 6)] == [saga, "0.cook", "group", "kitchen"]
    assert said(project, eve, "inbox").stderr == "no question is open for you\n"
    assert said(project, bob, "claim", saga).stdout == f"{saga}  claimed 0.cook\n"
    assert "the caller is the user `eve`" in said(project, eve, "answer", saga, "approve").stderr
    assert said(project, bob, "answer", saga, "approve").stdout == f"{saga}  was answered 0.cook: approve\n"
    ended = said(project, bob, "show", saga, "--watch", "--every", "250ms")
    assert ended.returncode == 0, ended.stderr
    again = said(project, bob, "answer", saga, "approve")
    assert (again.returncode, again.stdout) == (0, f"{saga}  0.cook has this answer already: approve\n")
    other = said(project, bob, "answer", saga, "reject")
    assert (other.returncode, "(409)" in other.stderr) == (3, True)


def test_the_demo_keeps_its_promises(project: Path, environment: dict[str, str]) -> None:
    # The provider of models of the demo refuses every credential but its own: that of the shell is not sent there.
    with_keys = environment | {"OPENAI_API_KEY": "sk-real", "BATON_MODEL_KEY_SCRIPTED": "sk-real"}
    ended = run(project, with_keys, "demo", "--sagas", "6")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "5 completed, 1 cancelled, 1 rolled_back" in ended.stdout
    assert ended.stdout.count("kill -9") in (2, 3), (
        "that of the agent's worker needs a moment that may be missed"
    )
    assert "With a real one: OPENAI_API_KEY=… " in ended.stdout
    assert "approved by another person, over the API" in ended.stdout


@pytest.mark.soak
def test_dinners_fail_over_on_the_local_aws(project: Path, environment: dict[str, str]) -> None:
    """Two of the cases; all of them run in virtual time in tests/example/test_failing_over.py."""
    ended = run(project, environment, "failover", "--only", "full", "--json")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    said = json.loads(ended.stdout)
    ways = {case["fault"]: (case["passed"], case["way"], case["status"]) for case in said["cases"]}
    assert ways == {
        "is full at that time": (True, "another time", "completed"),
        "is full all evening": (True, "waitlist", "completed"),
    }
    assert all(case["took_ms"] and case["attempts"] and case["trace"] for case in said["cases"])
    assert [file.name for file in (project / ".baton").iterdir()] == ["local-key"], (
        "the logs of a run that passed are gone"
    )


def _descendants(pid: int) -> list[int]:
    """All processes below one; only Linux tells."""
    found: list[int] = []
    tasks = Path("/proc", str(pid), "task")
    for task in tasks.iterdir() if tasks.exists() else ():
        for child in (task / "children").read_text().split():
            found += [int(child), *_descendants(int(child))]
    return found
