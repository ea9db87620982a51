"""Child processes: each in a session of its own, its output in a log file, none outliving the run.

What the processes are for is not known here (see functions/sandbox.py and aws/ministack.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

_GUARD = str(Path(__file__).with_name("guard.py"))
_LIFELINE = str(Path(__file__).with_name("lifeline.py"))


class Children:
    """All child processes of one run. `open` comes first, `close` last."""

    def __init__(self) -> None:
        self._guard: asyncio.subprocess.Process | None = None

    async def open(self) -> None:
        self._guard = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            _GUARD,
            "baton-guard",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C at the terminal is not meant for it
        )

    async def start(
        self,
        module: str,
        *arguments: str,
        name: str,
        environment: Mapping[str, str],
        folder: Path,
        log: BinaryIO,
    ) -> asyncio.subprocess.Process:
        """`python -m module arguments` in `folder`, with exactly this environment. `name` is what `ps` shows.

        On Linux the child dies with the *thread* that called this (prctl(2), PR_SET_PDEATHSIG): that is
        the event loop's, and must never be one of an executor.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            _LIFELINE,
            name,
            str(os.getpid()),
            module,
            *arguments,
            env=dict(environment),
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        self._tell(f"+{process.pid}")
        return process

    async def end(self, process: asyncio.subprocess.Process, patience_s: float) -> None:
        """SIGTERM to a child, and SIGKILL if it has not ended by then."""
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), patience_s)
        self.kill(process.pid)

    def kill(self, pid: int) -> None:
        """SIGKILL to a child and everything it started (it leads their group). Gone already is fine."""
        # macOS answers EPERM, not ESRCH, for a group of which only a zombie is left.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)

    def ended(self, pid: int) -> None:
        """To be called when a child has ended: ends what it had started, and forgets it."""
        self.kill(pid)
        self._tell(f"-{pid}")

    async def close(self) -> None:
        """Kills what is left; waits for the guard only."""
        if self._guard is not None:
            if self._guard.stdin is not None:
                self._guard.stdin.close()
            await self._guard.wait()

    def _tell(self, line: str) -> None:
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.write(f"{line}\n".encode())


def peak_memory_mb(pid: int) -> int:
    """The most memory the process ever used, in MB; 0 where the system does not tell."""
    try:
        with Path(f"/proc/{pid}/status").open(encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) // 1024
    except OSError:
        pass
    return 0
