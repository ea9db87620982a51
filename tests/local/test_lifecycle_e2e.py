"""Starting and stopping: what is said when it cannot start, and that nothing stays behind, however it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from baton.local.processes import LocalRunError
from baton.local.run import LocalRun
from tests.kit.patience import PATIENCE_S
from tests.kit.sentences import Says
from tests.local.project import write_project

pytestmark = pytest.mark.e2e
REPOSITORY = Path(__file__).parents[2]
PROGRAM = """
import asyncio, sys
from pathlib import Path
from baton.local.run import LocalRun

async def main():
    async with LocalRun(Path(sys.argv[1])) as run:
        print("ready", flush=True)
        await run.invoke("Worker", {"do": "hang once"})

asyncio.run(main())
"""


def family(run_dir: Path) -> set[int]:
    """Every process that runs in a folder below that one."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(entry.joinpath("cwd").readlink()).startswith(str(run_dir)):
                found.add(int(entry.name))
        except OSError:
            continue
    return found


def gone(run_dir: Path) -> bool:
    give_up = time.monotonic() + PATIENCE_S
    while family(run_dir):
        if time.monotonic() > give_up:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    ("number", "shell"),
    [
        # tests/cli/test_local_commands.py ends `up` by it, too.
        pytest.param(signal.SIGINT, "", marks=pytest.mark.soak),
        (signal.SIGKILL, ""),
        (signal.SIGTERM, "trap '' INT; "),  # as a shell starts a job in the background
    ],
)
def test_nothing_stays_behind_whatever_ends_the_program(
    tmp_path: Path, number: signal.Signals, shell: str
) -> None:
    template = write_project(tmp_path)
    template.write_text(template.read_text().replace("Timeout: 4", "Timeout: 60"))
    # Where the tests themselves run in the background SIGINT is ignored, and would be by whatever they start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    program = subprocess.Popen(
        ["/bin/sh", "-c", f'{shell}exec "$@"', "sh", sys.executable, "-c", PROGRAM, str(template)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=REPOSITORY,
        text=True,
    )
    signal.signal(signal.SIGINT, before)
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    give_up = time.monotonic() + PATIENCE_S
    while len(family(tmp_path)) < 5:  # MiniStack, three functions, and what one of them has started
        assert time.monotonic() < give_up
        time.sleep(0.1)
    os.kill(program.pid, number)
    program.wait(timeout=PATIENCE_S)
    program.stdout.close()
    assert gone(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        (
            "worker/app.py",
            "import no_such_module\n",
            r"Worker \(.*worker, handler app.handler\) does not start: ",
        ),
        (
            "machine.asl.json",
            '{"StartAt": "A", "States": {"A": {"Type": "Wait"}}}',
            "Machine: A: the type Wait",
        ),
    ],
)
def test_a_project_that_cannot_run_is_told_what_is_wrong_and_leaves_nothing_behind(
    tmp_path: Path, file: str, content: str, says: str
) -> None:
    template = write_project(tmp_path)
    (tmp_path / file).write_text(content)

    async def start() -> None:
        async with LocalRun(template):
            pass

    with pytest.raises(LocalRunError, match=says) as refusal:
        asyncio.run(start())
    assert "No module named 'no_such_module'" in str(refusal.value) or "Wait" in content
    assert gone(tmp_path)


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    async def start(port: int) -> None:
        async with LocalRun(write_project(tmp_path), api_port=port):
            pass

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(LocalRunError, match=r"port \d+"):
            asyncio.run(start(other.getsockname()[1]))


def test_an_event_source_that_does_not_exist_cannot_be_switched_off(tmp_path: Path, says: Says) -> None:
    with says.raised(LocalRunError):
        LocalRun(tmp_path / "template.yaml", switched_off=frozenset({"queues"}))
