"""Plain functions with effects, well-behaved and not: what a helper process has to stand, or to be killed for.

An app module like any other: a helper process imports it by its name.
"""

# ruff: noqa: T201  # as tools do
from __future__ import annotations

import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

from baton import Context, StepFailure, tool
from baton.core.models.usage import Usage
from baton.ports import NoRoom

IMPORTED_BY = os.getpid()
_log = logging.getLogger("plain.app")


@tool("plain.who")
def who() -> dict[str, int]:
    """Which process this is, and which has imported the app."""
    return {"pid": os.getpid(), "imported_by": IMPORTED_BY, "threads": threading.active_count()}


@tool("plain.pure", effect="pure")
def pure() -> int:
    """The same, of a function that need not be stopped."""
    return os.getpid()


@tool("plain.coroutine")
async def coroutine() -> int:
    """The same, of one that is cancelled."""
    return os.getpid()


@tool("plain.echo")
def echo(value: Any) -> Any:
    """Give it back."""
    return value


@tool("plain.prints")
def prints() -> None:
    """Print in each of the ways."""
    print("printed")
    print("complained", file=sys.stderr)
    own = threading.Thread(target=print, args=("from a thread",))
    own.start()
    own.join()
    print("no end", end="")


@tool("plain.told")
def told(context: Context) -> list[Any]:
    """What it was told besides its arguments."""
    return [context.node, list(context.iteration), context.idempotency_key, context.traceparent,
            os.environ.get("PLAIN_TRACE", "")]  # fmt: skip


@tool("plain.busy")
def busy(context: Context) -> str:
    """Say everything that can be said besides a result."""
    context.spend("0.25")
    context.put_row("table", "t1", {"seats": 2})
    _log.info("not worth a word")
    _log.warning("table %s", "t1", extra={"seats": 2})
    try:
        raise KeyError("t2")
    except KeyError:
        _log.exception("no table")
    context.spend("0.5")
    return "done"


@tool("plain.noise")
def noise() -> str:
    """Write to standard output, where no tool should."""
    print("from a tool")  # that is the point
    os.write(1, b"\xff\x00\n")
    _log.warning("half a character: \ud800 and %s", "x" * 300_000, extra={"of": object()})
    return "done"


@tool("plain.wait")
def wait(begun: str, pipe: str, done: str, context: Context) -> None:
    """Say that it has begun, wait at a named pipe, and then have an effect."""
    context.spend("0.125")
    # Only Linux can find what has left its group.
    child = subprocess.Popen(["sleep", "1000"], start_new_session=sys.platform == "linux")
    pids = [os.getpid(), child.pid]
    if sys.platform == "linux":  # only there one is found that has lost its parent, too
        orphan = subprocess.run(
            ["sh", "-c", "sleep 1000 >&2 & echo $!"], stdout=subprocess.PIPE, check=True, text=True
        )
        pids.append(int(orphan.stdout))
    part = Path(begun + ".part")
    part.write_text(" ".join(map(str, pids)))
    part.rename(begun)
    with Path(pipe).open("rb") as end:
        end.read()
    Path(done).touch()


@tool("plain.end")
def end(how: str, context: Context) -> None:
    """Come to an end that is none."""
    context.spend("0.5")
    if how == "exit":
        os._exit(3)
    if how == "memory":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "segv":
        ctypes.string_at(0)
    if how == "garbage":
        for number in range(3, 64):
            try:
                os.write(number, b"\xff" * 64)
            except OSError:
                continue
        time.sleep(1_000)


class _Unavailable(Exception):
    """As libraries for HTTP raise it."""

    status_code = 503
    headers: ClassVar = {"Retry-After": "7"}


@tool("plain.fail")
def fail(how: str) -> Any:
    """Fail, each time in another way."""
    ways: dict[str, BaseException] = {
        "error": ValueError("no table"),
        "service": _Unavailable("closed today"),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt("stop"),
        "half": OSError("half \ud800"),
        "long": ValueError("x" * 1_000_000),
        "own": StepFailure("sold_out", "no table for 9"),
        "told": StepFailure("Sold-Out", "no table", kind="recoverable", status=409, retry_after="9"),
        "full": NoRoom("the kitchen is full"),
    }
    if how in ways:
        raise ways[how]
    if how == "deep":
        value: Any = 1
        for _ in range(sys.getrecursionlimit() * 5):
            value = [value]
        return value
    return {"nan": float("nan"), "object": object(), "large": "x" * 2_000}[how]


@tool("plain.held")
def held(usd: str, context: Context, spends: str = "") -> None:
    """Hold money, and report what a model has used, and what it has cost."""
    held = context.hold_sync(usd)
    context.usage.append(Usage(model="m", input=7))
    if spends:
        held.spend(spends)


@tool("plain.units")
def units(
    names: list[str], path: str, context: Context, dies_at: str = "", how: str = "kill", size: int = 0
) -> list[str]:
    """Do one unit after the other, each a line in a file; once, die in the middle of one."""
    file = Path(path)
    first = not file.exists()

    def do(name: str) -> str:
        with file.open("a") as lines:
            lines.write(f"{name} {context.key(name)}\n")
        if first and name == dies_at:
            if how == "raise":
                raise ConnectionError("the line is dead")
            os.kill(os.getpid(), signal.SIGKILL)
        return f"{name} is done" + size * "!"

    return [context.once_sync(name, do, name) for name in names]


@tool("plain.left_behind")
def left_behind(path: str, context: Context) -> None:
    """Leave a thread behind that names a unit when the call is over."""

    def late() -> None:
        while not Path(path).exists():
            time.sleep(0.005)
        try:
            context.once_sync("late", lambda: None)
        except StepFailure as failure:
            Path(path + ".said").write_text(failure.message)

    context.once_sync("in time", lambda: None)
    threading.Thread(target=late, daemon=True).start()
