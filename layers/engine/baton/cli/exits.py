"""How `baton` ends: the exit statuses, and the errors that carry them.

Belongs here: the statuses, their meaning, how an error is printed. No command, no HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

import click

from baton.cli.text import plain

OK = 0
NO = 1
USAGE = 2
REFUSED = 3
DENIED = 4
UNREACHABLE = 5

HELP = """\
Exit statuses:

  0  done
  1  the answer is no: a document has problems, a watched saga did not complete,
     the demo's promises did not hold
  2  the command line is wrong, or a file cannot be read
  3  the API refused the request (not found, input does not match, conflict)
  4  no address or token is known, or the API did not accept the token
  5  the API could not be reached or failed
"""


class Failed(click.ClickException):
    """Ends the command with `exit_code` after `message`, and `more` lines below it, on stderr."""

    def __init__(self, exit_code: int, message: str, *more: str) -> None:
        super().__init__(plain(message))
        self.exit_code = exit_code
        self.more = tuple(map(plain, more))

    def show(self, file: IO[Any] | None = None) -> None:
        stream = click.get_text_stream("stderr") if file is None else file
        click.echo(f"baton: {self.message}", file=stream)
        for line in self.more:
            click.echo(f"  {line}", file=stream)


def refused(status: int, problem: Mapping[str, Any]) -> Failed:
    """The failure that an RFC 9457 problem document stands for, each of its errors on its own line."""
    title = str(problem.get("title") or "The API refused the request")
    detail = str(problem.get("detail") or "")
    message = f"{title} ({status})" + (f": {detail}" if detail and detail != title else "")
    errors = problem.get("errors")
    lines = (
        [line_of(error) for error in errors if isinstance(error, Mapping)] if isinstance(errors, list) else []
    )
    if status in (401, 403):
        lines.append(
            "The token comes from --token, BATON_TOKEN or .baton/local.json (written by `baton up`)."
        )
        return Failed(DENIED, message, *lines)
    return Failed(UNREACHABLE if status >= 500 else REFUSED, message, *lines)


def line_of(error: Mapping[str, Any], file: str = "") -> str:
    """One problem as one line: `file:line:column  path  message  (suggestion)`, whatever of it is known."""
    place = file
    if error.get("line"):
        line, column = int(error["line"]), int(error.get("column") or 1)
        place = f"{file}:{line}:{column}" if file else f"line {line}, column {column}"
    path = str(error.get("path") or "")
    suggestion = str(error.get("suggestion") or "")
    parts = [place, path, str(error.get("message") or ""), f"({suggestion})" if suggestion else ""]
    return "  ".join(part for part in parts if part)
