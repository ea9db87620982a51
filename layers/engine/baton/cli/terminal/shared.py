"""What the commands hand to each other: how to reach the API, and how to show an answer.

rich and httpx are imported when something is shown or asked, so that `baton --help` need not wait for them.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from baton.client.connection import find_connection
from baton.words.text import counted, escaped

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from baton.client.api import Api

WIDTH = 110
T = TypeVar("T")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def _checked_key(_: click.Context, __: click.Parameter, key: str | None) -> str | None:
    if key is not None and (not key.strip() or not (key.isascii() and key.isprintable())):
        # An empty one is a variable of the shell that was not set: a new key would do everything twice.
        raise click.BadParameter("a key is made of printable ASCII characters, at least one")
    return key


key_option = click.option(
    "--key",
    metavar="KEY",
    callback=_checked_key,
    help="Idempotency-Key: the same key never does it twice. Default: a new one.",
)


@dataclass(frozen=True, slots=True)
class Shared:
    """What was said before the command's own name."""

    url: str | None
    token: str | None
    auth: str | None = None

    def call(self, use: Callable[[Api], Awaitable[T]]) -> T:
        """Open the API, use it, close it. Raises `Failed`."""
        import asyncio

        from baton.client.api import Api

        connection = find_connection(self.url, self.token, self.auth)

        async def run() -> T:
            async with Api(connection) as api:
                return await use(api)

        return asyncio.run(run())

    def token_for(self, user: str, groups: Sequence[str], roles: Sequence[str]) -> str:
        """A token of the local run for another user. Raises `Failed`."""
        import asyncio

        from baton.client.transport import token_for

        connection = find_connection(self.url, self.token, self.auth)
        return asyncio.run(token_for(connection, user, groups, roles))


def console(*, stderr: bool = False) -> Console:
    """Standard output as it is now (looked up late, so that it can be redirected); never marked up.

    No colour and no other style with NO_COLOR, and none where it is no terminal.
    """
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        stderr=stderr,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=True,
        width=None if stream.isatty() else WIDTH,
        color_system=None if os.environ.get("NO_COLOR") or not stream.isatty() else "auto",
    )


def terminal_width() -> int | None:
    """Columns of the terminal that standard output is; None where it is
    none, and lines are as long as they are.
    """
    return console().width if sys.stdout.isatty() else None  # rich takes FORCE_COLOR for a terminal


def paired(title: str, command: str) -> str:
    """A command behind what it is for, or below it where the terminal has no room for both."""
    whole = f"{title} {command}"
    room = console(stderr=True).width if sys.stderr.isatty() else None
    return whole if room is None or len(whole) <= room else f"{title}\n  {command}"


def print_table(table: Table) -> None:
    """A table; where it is no terminal without the blanks that fill up its last column."""
    out = console()
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as captured:
        out.print(table)
    for line in captured.get().removesuffix("\n").split("\n"):
        click.echo(line.rstrip())


def print_json(value: Any, *, line: bool = False) -> None:
    """One JSON document; with `line` on one line, for streams of them."""
    click.echo(escaped(json.dumps(value, ensure_ascii=not is_unicode(), indent=None if line else 2)))


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A line on standard error that says how far something has come;
    nothing where standard error is no terminal.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.status import Status

    with Status("", console=console(stderr=True)) as status:
        yield status.update


async def gathered(
    pages: AsyncIterator[tuple[list[dict[str, Any]], str | None]], one: str
) -> tuple[list[dict[str, Any]], str | None]:
    """All items of the pages of a list, and the cursor after the last; says how many it has. `one`: of what."""
    found: list[dict[str, Any]] = []
    after: str | None = None
    with progress() as say:
        async for page, cursor in pages:
            found += page
            after = cursor
            say(counted(len(found), one))
    return found, after


def is_unicode() -> bool:
    """Whether standard output can show box-drawing characters."""
    try:
        "│●◇←↺…".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


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
