"""Shared functions of the commands. They import rich and httpx on first use: `baton --help` is quick."""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from baton.cli.terminal.values import Whole
from baton.client.connection import Connection, find_connection
from baton.words.text import counted, escape_controls

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

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
class Listing:
    """Part of a list: `limit` items of it or `everything`, from this cursor on."""

    limit: int
    everything: bool
    cursor: str | None

    @property
    def most(self) -> int | None:
        return None if self.everything else self.limit


LISTED = 50


def list_options(things: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add --limit, --all and --cursor to a command, which gets them as `listing`."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(*arguments: Any, limit: int, everything: bool, cursor: str | None, **options: Any) -> None:
            command(*arguments, listing=Listing(limit, everything, cursor), **options)

        text = "Go on where an earlier list stopped: `next` of its --json answer."
        with_cursor = click.option("--cursor", metavar="CURSOR", help=text)(run)
        text = "All of them, however many."
        with_all = click.option("--all", "everything", is_flag=True, help=text)(with_cursor)
        text = f"At most this many {things}."
        return click.option("--limit", type=Whole(min=1), default=LISTED, show_default=True, help=text)(
            with_all
        )

    return add


@dataclass(frozen=True, slots=True)
class Shared:
    """Options of the command line before the command's name."""

    url: str | None
    token: str | None
    auth: str | None = None

    def connection(self) -> Connection:
        """Return the API that the commands call. Raises `CommandFailed`."""
        return find_connection(self.url, self.token, self.auth)

    def call(self, use: Callable[[Api], Awaitable[T]]) -> T:
        """Open the API, call `use` with it, and close it. Raises `Failed`."""
        import asyncio

        from baton.client.api import Api

        connection = self.connection()

        async def run() -> T:
            async with Api(connection) as api:
                return await use(api)

        return asyncio.run(run())

    def token_for(self, user: str, groups: Sequence[str], roles: Sequence[str]) -> str:
        """Return a token of the local run for another user. Raises `Failed`."""
        import asyncio

        from baton.client.transport import token_for

        connection = self.connection()
        return asyncio.run(token_for(connection, user, groups, roles))


def console(*, stderr: bool = False) -> Console:
    """Return a console of the present standard output, without markup, styled only on a terminal."""
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
    """Return the columns of the terminal. None without a terminal, for lines of any length."""
    return console().width if sys.stdout.isatty() else None  # rich takes FORCE_COLOR for a terminal


def title_and_command(title: str, command: str) -> str:
    """Return a command behind its title, or below it if the terminal is too narrow."""
    whole = f"{title} {command}"
    room = console(stderr=True).width if sys.stderr.isatty() else None
    return whole if room is None or len(whole) <= room else f"{title}\n  {command}"


def print_table(table: Table) -> None:
    """Print a table. Without a terminal, the last column is not padded."""
    out = console()
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as captured:
        out.print(table)
    for line in captured.get().removesuffix("\n").split("\n"):
        click.echo(line.rstrip())


def print_json(value: Any, *, line: bool = False) -> None:
    """Print a JSON document; with `line` on one line, for streams of documents."""
    click.echo(escape_controls(json.dumps(value, ensure_ascii=not is_unicode(), indent=None if line else 2)))


def print_answer(answer: Any, as_json: bool, text: str) -> None:
    """Print an answer of the API: as JSON, or this line for people."""
    if as_json:
        print_json(answer)
    else:
        click.echo(text)


def print_lines(lines: Iterable[str | Text]) -> None:
    """Print lines as they are."""
    out = console()
    for line in lines:
        out.print(line)


def print_more(cursor: str | None) -> None:
    """Say how to see the rest of a list, if there is any."""
    if cursor:
        click.echo("There are more: --limit N or --all.", err=True)


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows progress on standard error, if it is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.status import Status

    with Status("", console=console(stderr=True)) as status:
        yield status.update


async def gather_pages(
    pages: AsyncIterator[tuple[list[dict[str, Any]], str | None]], one: str
) -> tuple[list[dict[str, Any]], str | None]:
    """Return all items of a list's pages, and the last cursor, and show progress. `one`: an item's name."""
    found: list[dict[str, Any]] = []
    after: str | None = None
    with progress() as say:
        async for page, cursor in pages:
            found += page
            after = cursor
            say(counted(len(found), one))
    return found, after


def is_unicode() -> bool:
    """Return true if standard output supports box-drawing characters."""
    try:
        "│●◇←↺…".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


# Errors that end printing for good and are no mistake of a program.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def open_streams() -> None:
    """Make standard output and error printable. Unsupported characters become `?`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123  # for the whole process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace" if name == "stderr" else "replace")


def is_full(error: OSError) -> bool:
    """Return true if the error is about printing, and not about the command's work."""
    return error.errno in _FULL


def drop_output() -> None:
    """Discard the remaining output, because Python would retry it at its end and report an error."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
