"""Starting and ending child processes: each in a session of its own, its output in a log file.

What the processes are for is not known here (see pool.py and ministack.py).
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

_LIFELINE = str(Path(__file__).with_name("lifeline.py"))


async def start_module(
    module: str, *arguments: str, environment: Mapping[str, str], folder: Path, log: BinaryIO
) -> asyncio.subprocess.Process:
    """`python -m module arguments` in `folder`, with exactly this environment.

    The parent that the child dies with is the calling *thread*, so this has to be called on the thread
    of the event loop, never in an executor (prctl(2), PR_SET_PDEATHSIG).
    """
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        _LIFELINE,
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


def kill_group(pid: int) -> None:
    """SIGKILL the process and everything it started (it leads its group). Gone already is fine."""
    # macOS answers EPERM, not ESRCH, for a group of which only a zombie is left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


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
