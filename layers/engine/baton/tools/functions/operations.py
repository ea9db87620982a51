"""The operations of a workflow function, and what a run of it has asked for."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from baton.ports.functions import OperationRequest
from baton.tools.functions.agents import Read

T = TypeVar("T")
_is_taken = re.compile(r"(undo|t\d+(-|$))").match
"""Names in the log of an operation's inverse, and of an agent's turns and calls."""
_is_item = re.compile(r"[A-Za-z0-9_-]{1,64}").fullmatch


class BeginsAgain(BaseException):
    """End of a run of a function that has made a checkpoint."""


class Operation(asyncio.Future[T], Generic[T]):
    """Operation of a saga that a function has asked for; to be awaited, or handed to `asyncio`.

    It has begun, whether it is awaited or not. Cancelling it stops it.
    """

    item: str = ""
    is_used: bool = False
    left: Callable[[str], None]
    read: Read | None = None
    """Makes the result of its JSON; None: the result is the JSON."""
    can_expire: bool = False
    by: str = ""
    """The key of the signal that the result is."""
    refuse: Callable[[str], None] | None = None
    """Refuses a signal that does not fit, and waits for another one."""
    is_answered: bool = False

    def cancel(self, msg: Any = None) -> bool:
        """Stop the operation: the function goes on without it."""
        is_cancelled = super().cancel(msg)
        if is_cancelled:
            self.left(self.item)
        return is_cancelled

    def __await__(self) -> Generator[Any, None, T]:
        self.is_used = True
        return super().__await__()

    __iter__ = __await__

    def add_done_callback(self, fn: Any, *, context: Any = None) -> None:
        self.is_used = True
        super().add_done_callback(fn, context=context)


class Callback(Operation[T]):
    """Operation that ends when a holder of its `token` reports to `POST /callbacks/{token}`.

    `url`: the whole address; empty if the deployment does not know its own.
    """

    token: str = ""
    url: str = ""


class Update(Generic[T]):
    """Signal that a function answers: its payload is `value`."""

    def __init__(self, value: T, answer: Callable[[Any], Operation[None]]) -> None:
        self.value = value
        self._answer = answer

    def answer(self, value: Any) -> Operation[None]:
        """Answer the sender, who gets `value` as JSON. It is in the log when that has been awaited."""
        return self._answer(value)


class FunctionRun:
    """A run of a function, as its session (run.py) and its context share it.

    `open`: its operations without a result, by item; `unheard`: those that ended before they were awaited.
    `asked`, `left` and `changes`: since it last waited. `checkpointed`: the state of its checkpoint.
    `published`: all that it has published, if that has changed. `lacks_tokens`: it has asked for a callback,
    and has no tokens.
    """

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.now = 0
        self.checkpointed: list[Any] = []
        self.open: dict[str, Operation[Any]] = {}
        self.unheard: dict[str, Operation[Any]] = {}
        self.asked: list[OperationRequest] = []
        self.left: list[str] = []
        self.changes: list[str] = []
        self.published: dict[str, Any] | None = None
        self.lacks_tokens = False

    def leave(self, item: str) -> None:
        """Stop an operation: the function goes on without it."""
        if self.open.pop(item, None) is not None:
            self.left.append(item)


def item_of(label: str) -> str:
    """Return the name in the log of an operation with this label: letters, digits, `_` and `-`."""
    item = label.replace("[", "-").replace("]/", "--").replace("/", "--").replace("#", "-")
    if _is_taken(item):
        item = f"o-{item}"  # no label gives that: a `-` stands before a number or another one
    if not _is_item(item):
        item = f"{re.sub('[^A-Za-z0-9_-]', '-', item)[:40]}-{hashlib.sha256(label.encode()).hexdigest()[:16]}"
    return item
