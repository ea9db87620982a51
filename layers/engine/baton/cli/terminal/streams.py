"""The standard streams as the shell left them: closed, of another encoding, without a reader, on a full disk."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress

# Errors that end printing for good and are no mistake of a program.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def open_streams() -> None:
    """Make standard output and error printable: closed ones go nowhere, what an encoding lacks becomes `?`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123  # for the whole process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace" if name == "stderr" else "replace")


def is_full(error: OSError) -> bool:
    """Whether this is about what was printed, and not about something that a command does."""
    return error.errno in _FULL


def drop_output() -> None:
    """What is still to be printed goes nowhere: Python would try once more at its end, and complain."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
