"""Exit statuses of `baton`, and the errors that carry them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import IO, Any

import click

from baton.words.text import one_line, plain

OK = 0
NO = 1
USAGE = 2
REFUSED = 3
DENIED = 4
UNREACHABLE = 5
INTERRUPTED = 130
UNREAD = 141

MEANINGS = {
    OK: "done",
    NO: "the answer is no: a document has problems, a watched saga did not complete, the demo's promises did not hold, the local run could not start",
    USAGE: "the command line is wrong, or a file cannot be read or written",
    REFUSED: "the API refused the request (not found, input does not match, conflict)",
    DENIED: "no address, token or AWS credentials are known, or the API did not accept them, or they lack the role",
    UNREACHABLE: "the API could not be reached, was too busy for too long, or failed",
    INTERRUPTED: "interrupted by Ctrl-C",
    UNREAD: "the output has no reader any more, as after `| head`",
}

_SHOWN = "The token comes from --token, BATON_TOKEN or .baton/local.json (written by `baton up`)."
_EARLIER = "That of an earlier `baton up` is refused: `unset BATON_TOKEN`, or paste the line that this run has printed."
_SIGNED = (
    "The request was signed with your AWS credentials (`aws sts get-caller-identity` shows whose they are); "
    "a deployment with AuthMode=jwt wants a token instead: --token or BATON_TOKEN."
)


class CommandFailed(click.ClickException):
    """Error that ends the command: `exit_code`, `message` and `more` on stderr, `problem` of the API."""

    problem: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, exit_code: int, message: str, *more: str) -> None:
        super().__init__(plain(message))
        self.exit_code = exit_code
        self.more = tuple(map(plain, more))

    def about(self, what: str) -> CommandFailed:
        """Return the same failure with the name of one of several subjects."""
        failure = CommandFailed(self.exit_code, f"{what}: {self.message}", *self.more)
        failure.problem = self.problem
        return failure

    def hinting(self, *more: str) -> CommandFailed:
        """Return the same failure with further lines below it."""
        failure = CommandFailed(self.exit_code, self.message, *self.more, *more)
        failure.problem = self.problem
        return failure

    def problems(self) -> list[Mapping[str, Any]]:
        """Return the faults that the API listed, or its detail if it listed none."""
        errors: list[Mapping[str, Any]] = [
            error for error in self.problem.get("errors") or () if isinstance(error, Mapping)
        ]
        return errors or [{"path": "", "message": self.message}]

    def show(self, file: IO[Any] | None = None) -> None:
        stream = click.get_text_stream("stderr") if file is None else file
        click.echo(f"baton: {self.message}", file=stream)
        for line in self.more:
            click.echo(f"  {line}", file=stream)


class Busy(CommandFailed):
    """Error for an API that requests a pause of `pause_s` seconds."""

    def __init__(self, pause_s: float, message: str, *more: str) -> None:
        super().__init__(UNREACHABLE, message, *more)
        self.pause_s = pause_s


class Interrupted(CommandFailed):
    """Error for Ctrl-C, with a note on what continues without this command."""

    def __init__(self, message: str = "interrupted") -> None:
        super().__init__(INTERRUPTED, message)


def problem_failure(status: int, problem: Mapping[str, Any], *, aws: bool = False) -> CommandFailed:
    """Return the failure of an RFC 9457 problem, a line for each error. `aws`: the request was signed."""
    # API Gateway's own refusals have a `message` and nothing else.
    title = str(problem.get("title") or problem.get("message") or "The API refused the request")
    detail = str(problem.get("detail") or "")
    message = f"{title} ({status})" + (f": {detail}" if detail and detail != title else "")
    errors = problem.get("errors")
    lines = (
        [line_of(error) for error in errors if isinstance(error, Mapping)] if isinstance(errors, list) else []
    )
    if status in (401, 403) and not str(problem.get("type")).endswith(":user-blocked"):
        code, lines = DENIED, [*lines, _SIGNED if aws else _SHOWN]
        lines += [_EARLIER] if status == 401 and not aws else []
    else:
        code = UNREACHABLE if status >= 500 or status == 429 else REFUSED
    failure = CommandFailed(code, message, *lines)
    failure.problem = {"status": status, **problem}
    return failure


def line_of(error: Mapping[str, Any], file: str = "") -> str:
    """Return a problem as one line: the known parts of `file:line:column path message (suggestion)`."""
    place = file
    if error.get("line"):
        line, column = int(error["line"]), int(error.get("column") or 1)
        place = f"{file}:{line}:{column}" if file else f"line {line}, column {column}"
    path = str(error.get("path") or "")
    suggestion = str(error.get("suggestion") or "")
    parts = [place, path, str(error.get("message") or ""), f"({suggestion})" if suggestion else ""]
    return one_line("  ".join(part for part in parts if part))
