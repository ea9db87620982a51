"""What can keep a local run from starting, or stop it: one error, always with what, where and what is right.

No behaviour here; failures of the functions themselves are results (see functions/pool.py), not exceptions.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from baton.errors import BatonError


class LocalRunError(BatonError):
    """The local run cannot start or go on. The message names the place and what would be right."""


class TemplateProblem(LocalRunError):
    """The template asks for something that is wrong, or that the local run does not know."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"template: {where}: {what}")
        self.where = where


def nearest(name: str, known: Iterable[str]) -> str:
    """` (nearest: X)` for the existing name that is most like `name`, or the names if there are few."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f" (nearest: {close[0]})"
    if names and len(names) <= 12:
        return f" (known: {', '.join(names)})"
    return ""


def tail(path: Path, lines: int = 25) -> str:
    """The last lines of a log file, indented, for an error message. Empty if there is no such file."""
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
    # awslambdaric ends the lines of a traceback with \r and indents with no-break spaces.
    plain = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u00a0", " ")
    return "\n".join("    " + line for line in plain.splitlines()[-lines:])
