"""Tools that a worker has to survive: slow ones, endless ones, large ones, and one that kills its process.

An app module like any other (see BATON_APP): importing it registers the tools. Their effects go into the
books of books.py, so that what was done twice is not counted by the engine itself.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Any

from baton import Context, StepFailure, tool
from tests.kit.app.books import Books


async def _act(context: Context, seconds: float) -> None:
    books = Books.of_environment()
    deed = (context.saga, context.node, context.idempotency_key)
    books.write("begun", *deed)
    await asyncio.sleep(seconds)
    books.do_once(*deed)
    books.write("ended", *deed)


@tool("trial.work")
async def work(context: Context, n: int = 0, seconds: float = 0) -> int:
    """Take some time, have an effect, return the number."""
    await _act(context, seconds)
    return n


@tool("trial.held", timeout="10m")
async def held(context: Context, gate: str, n: int = 0) -> int:
    """The same, but it takes until the test opens the gate."""
    books = Books.of_environment()
    deed = (context.saga, context.node, context.idempotency_key)
    books.write("begun", *deed)
    while not books.is_open(gate):
        await asyncio.sleep(0.01)
    books.do_once(*deed)
    books.write("ended", *deed)
    return n


@tool("trial.echo", effect="pure")
async def echo(value: Any) -> Any:
    """Return what it was given."""
    return value


@tool("trial.kill")
async def kill(context: Context, gate: str) -> None:
    """Kill the whole process once the gate is open, as running out of memory does."""
    books = Books.of_environment()
    books.write("begun", context.saga, context.node, context.idempotency_key)
    while not books.is_open(gate):
        await asyncio.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


@tool("trial.forever", timeout="10m")
async def forever(context: Context) -> None:
    """Need more time than any invocation has."""
    Books.of_environment().write("begun", context.saga, context.node, context.idempotency_key)
    await asyncio.sleep(600)


@tool("trial.stubborn", effect="pure", timeout="10m")
def stubborn(context: Context, seconds: float = 60) -> None:
    """The same in a thread, which cannot be stopped."""
    Books.of_environment().write("begun", context.saga, context.node, context.idempotency_key)
    time.sleep(seconds)


@tool("trial.blocking", timeout="10m")
def blocking(context: Context, seconds: float = 60) -> None:
    """The same in a helper process, which is killed."""
    stubborn(context, seconds)


HANDED: list[str] = []
ADDRESSES: list[str] = []
"""The tokens that `trial.hand_over` was given, and where to show them."""


@tool("trial.hand_over")
async def hand_over(context: Context) -> None:
    """Hand work over."""
    HANDED.append(context.callback_token)
    ADDRESSES.append(context.callback_url)


@tool("trial.large", effect="pure")
async def large(size: int) -> str:
    """Return that many characters."""
    return "x" * size


@tool("trial.fail", effect="pure")
async def fail(code: str, message: str) -> None:
    """Fail as told."""
    raise StepFailure(code, message)
