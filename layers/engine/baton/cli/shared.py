"""What the commands hand to each other: how to reach the API, and how to show an answer.

Belongs here: running one asynchronous call from a command, `--json`, the console. No command.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from rich.console import Console

from baton.cli.client import Api
from baton.cli.connection import find_connection

WIDTH = 110
T = TypeVar("T")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
key_option = click.option(
    "--key", metavar="KEY", help="Idempotency-Key: the same key never does it twice. Default: a new one."
)


@dataclass(frozen=True, slots=True)
class Shared:
    """What was said before the command's own name."""

    url: str | None
    token: str | None

    def call(self, use: Callable[[Api], Awaitable[T]]) -> T:
        """Open the API, use it, close it. Raises `Failed`."""
        connection = find_connection(self.url, self.token)

        async def run() -> T:
            async with Api(connection) as api:
                return await use(api)

        return asyncio.run(run())


def console() -> Console:
    """Standard output as it is now (looked up late, so that it can be redirected); never marked up."""
    width = None if sys.stdout.isatty() else WIDTH
    return Console(markup=False, highlight=False, emoji=False, soft_wrap=True, width=width)


def print_json(value: Any, *, line: bool = False) -> None:
    """One JSON document; with `line` on one line, for streams of them."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=None if line else 2))
