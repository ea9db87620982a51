"""A small process that outlives the local run by a moment: when the run is gone, it kills what is left.

Run as a script, standard library only. Its input says which process groups to look after (`+PID`) and
which have ended (`-PID`); the end of the input means that the run has ended, however that happened.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterable


def watch(lines: Iterable[bytes]) -> set[int]:
    """The groups that were still there when the input ended."""
    groups: set[int] = set()
    for line in lines:
        pid = int(line[1:])
        if line.startswith(b"+"):
            groups.add(pid)
        else:
            groups.discard(pid)
    return groups


def main() -> None:
    for group in watch(sys.stdin.buffer):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
