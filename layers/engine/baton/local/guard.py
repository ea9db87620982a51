"""Guard process that kills what a local run leaves. Standard library only. `+PID`, `-PID`: its input."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterable


def watch(lines: Iterable[bytes]) -> set[int]:
    """Return the groups that remain when the input ends."""
    groups: set[int] = set()
    for line in lines:
        pid = int(line[1:])
        if line.startswith(b"+"):
            groups.add(pid)
        else:
            groups.discard(pid)
    return groups


def main() -> None:
    """End the processes of a run once the run itself has gone."""
    for group in watch(sys.stdin.buffer):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
