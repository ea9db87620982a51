"""No helper process outlives its worker, however that ends; and what the app does when it is imported harms none.

Each test has processes of its own, which takes a quarter of a second.
"""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import subprocess
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from baton.ports import NoRoom, StepContext, StepFailure
from baton.tools.processes import wire
from baton.tools.processes.pool import Helpers
from tests.kit.sentences import Says

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing ties a process to another")
T = TypeVar("T")
ROOT = Path(__file__).parents[2]
CONTEXT = StepContext(saga="s1", tenant="acme", user="ada", node="n")

# A worker with one helper at work, which has a child of its own. It says which processes there are, and waits.
WORKER = """
import asyncio, sys
sys.path[:0] = {path!r}
from baton.ports import NoRoom, StepContext
from baton.tools.processes.pool import Helpers

async def main():
    helpers = Helpers("worked")
    while True:
        try:
            await helpers.perform("worked.wait", {{}}, StepContext(saga="s", tenant="t", user="u", node="n"))
        except NoRoom:
            await asyncio.sleep(0.01)

asyncio.run(main())
"""
WORKED = """
import os, subprocess, time
from baton import tool

@tool("worked.wait")
def wait() -> None:
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    os.write(1, f"{os.getppid()} {os.getpid()} {child.pid}\\n".encode())
    time.sleep(1000)
"""
THREADED = """
import os, threading
from baton import tool

threading.Thread(target=threading.Event().wait, daemon=True).start()
IMPORTED_BY = os.getpid()

@tool("threaded.who")
def who() -> list[int]:
    return [os.getpid(), IMPORTED_BY, threading.active_count()]
"""
CONNECTED = """
import os, socket
from baton import tool

ENDS = socket.socketpair()
IMPORTED_BY = os.getpid()

@tool("connected.who")
def who() -> list[int]:
    return [os.getpid(), IMPORTED_BY, 2]
"""
BROKEN = """
raise RuntimeError("no such place")
"""


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 20))


async def call(helpers: Helpers, tool: str) -> Any:
    while True:
        try:
            return await helpers.perform(tool, {}, CONTEXT)
        except NoRoom:
            await asyncio.sleep(0.01)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with apps, which helpers find as they find what the worker can import."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, source in {
        "worked": WORKED,
        "threaded": THREADED,
        "connected": CONNECTED,
        "broken": BROKEN,
    }.items():
        (tmp_path / f"{name}.py").write_text(source)
    return tmp_path


def test_all_processes_die_with_their_worker(write: Path) -> None:
    path = [str(write), str(ROOT / "layers/engine")]
    worker = subprocess.Popen([sys.executable, "-c", WORKER.format(path=path)], stdout=subprocess.PIPE)
    assert worker.stdout is not None
    with worker.stdout:
        pids = [int(pid) for pid in worker.stdout.readline().split()]
        handles = [os.pidfd_open(pid) for pid in pids]
        worker.kill()
        worker.wait()
        for handle in handles:
            assert select.select([handle], [], [], 20)[0], "it is alive, and no process is left to stop it"
            os.close(handle)
    assert len(pids) == 3


def test_nothing_is_left_of_helpers_that_are_closed_or_forgotten() -> None:
    async def scenario() -> None:
        helpers = Helpers("tests.kit.app.plain")
        too_early = asyncio.create_task(helpers.perform("plain.who", {}, CONTEXT))
        await asyncio.sleep(0)
        too_early.cancel()
        with pytest.raises(NoRoom, match="is being started"):  # nothing was done, so nothing has timed out
            await too_early
        found = await call(helpers, "plain.who")
        assert helpers._count == 1
        handles = [os.pidfd_open(found[name]) for name in ("pid", "imported_by")]
        await helpers.close()
        for handle in handles:
            assert select.select([handle], [], [], 0)[0]
            os.close(handle)
        await helpers.close()
        assert (await call(helpers, "plain.who"))["pid"] != found["pid"], "it can be used again"

    gc.freeze()  # what tests before have left is not its own, and takes seconds to look at
    before = len(list(Path("/proc/self/fd").iterdir()))
    run(scenario())
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_a_forker_that_was_killed_is_replaced_and_so_are_its_helpers() -> None:
    async def scenario() -> None:
        helpers = Helpers("tests.kit.app.plain")
        try:
            found = await call(helpers, "plain.who")
            with_it = os.pidfd_open(found["pid"])
            os.kill(found["imported_by"], signal.SIGKILL)
            assert select.select([with_it], [], [], 20)[0], "its helper dies with it"
            os.close(with_it)
            again = await call(helpers, "plain.who")
            assert again["imported_by"] != found["imported_by"]
        finally:
            await helpers.close()

    run(scenario())


@pytest.mark.parametrize("app", ["threaded", "connected"])
def test_what_cannot_be_shared_by_a_fork_is_imported_by_each_helper_itself(app: str, write: Path) -> None:
    async def scenario() -> None:
        helpers = Helpers(app)
        try:
            pid, imported_by, threads = await call(helpers, f"{app}.who")
            assert (imported_by, threads) == (pid, 2)
        finally:
            await helpers.close()

    run(scenario())


def test_an_app_that_cannot_be_imported_a_second_time_fails_the_step_and_says_why(
    write: Path, caplog: pytest.LogCaptureFixture, says: Says
) -> None:
    async def scenario() -> None:
        helpers = Helpers("broken")
        try:
            with pytest.raises(StepFailure) as caught:
                await call(helpers, "broken.any")
            assert caught.value.code == "tool_missing"
            says(caught.value.message)
        finally:
            await helpers.close()

    run(scenario())
    assert "broken.py" in caplog.text


def test_a_process_that_cannot_be_started_fails_no_step(monkeypatch: pytest.MonkeyPatch, says: Says) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    helpers = Helpers("tests.kit.app.plain")
    with says.raised(NoRoom):
        run(helpers.perform("plain.who", {}, CONTEXT))
    assert helpers._count == 0, "it took no place"


def test_frames_are_put_together_from_whatever_pieces_come() -> None:
    frames = [
        wire.Frame(wire.LOG, 1, b"a" * 300),
        wire.Frame(wire.VALUE, 1, b""),
        wire.Frame(wire.LOG, 2, b"b"),
    ]
    data = b"".join(wire.encode(*frame) for frame in frames)
    for size in (1, 7, 10, 1_000):
        decoder = wire.Decoder(300)
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        assert [frame for piece in pieces for frame in decoder.feed(piece)] == frames


@pytest.mark.parametrize("data", [wire.encode(wire.LOG, 1, b"x" * 301), b"\xff" * 9, b"\0" * 9])
def test_what_is_no_frame_or_too_long_a_one_is_refused_by_its_first_bytes(data: bytes) -> None:
    with pytest.raises(wire.InvalidFrame), suppress(StopIteration):
        next(wire.Decoder(300).feed(data[:9]))
