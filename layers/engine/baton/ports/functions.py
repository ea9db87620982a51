"""Ports of workflows that are Python functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

import msgspec

from baton.core.graph.graph import Graph
from baton.core.log.functions import AskedOperation
from baton.core.log.records import Failure


class NoTokensError(Exception):
    """A function has asked for a callback, and its facts have no tokens: they are to be fetched first."""


class FunctionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of the saga for a function of it. `node`: its node. `tools`: the tools that it may call.

    `state`: that of its newest checkpoint, if it has made `checkpoints`. `token`: makes the token of the
    callback of an item; None: the key of tokens has not been read. `api_url`: address of the deployment's
    API; empty if it is not known. `graphs`: named graphs of its workflow. `changes`: changes of its code that
    it has met as changed code (`WorkflowContext.version`). `published`: what it has published before its
    newest checkpoint.
    """

    saga: str
    tenant: str
    user: str
    workflow: str
    slot: str
    node: str
    tools: Collection[str] = ()
    state: Any = None
    checkpoints: int = 0
    token: Callable[[str], str] | None = None
    api_url: str = ""
    graphs: Collection[str] = ()
    changes: Collection[str] = ()
    published: Mapping[str, Any] = {}


class FunctionStep(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The work of a function between two waits: the operations that it asks for, and those that it has left.

    When it `is_over`, it has an `output`, a `failure`, or the state with which it `begins_again`. `changes`:
    changes of its code that it has met here first. `published`: all that it has published, if that has
    changed.
    """

    asked: tuple[AskedOperation, ...] = ()
    left: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    is_over: bool = False
    begins_again: bool = False
    output: Any = None
    failure: Failure | None = None
    published: dict[str, Any] | None = None


class FunctionSession(Protocol):
    """A function in the memory of this process, between two results."""

    def start(self, at: int) -> FunctionStep:
        """Run it from its beginning, at this time, until it waits for operations or is over.

        Raises `NoTokensError`: then it has to be run again from its beginning.
        """
        ...

    def deliver(self, item: str, at: int, output: Any, failure: Failure | None, by: str = "") -> FunctionStep:
        """Give it the result of an operation, and run it on. `output` is JSON; ignored with a `failure`.
        `by`: the key of the signal that the result is.

        Raises `NoTokensError`, as `start` does.
        """
        ...

    def mark_replay(self, *, on: bool) -> None:
        """Tell it whether it does again what the log has already."""
        ...

    def close(self) -> None:
        """Forget it: its coroutines are closed, and ask for nothing more."""
        ...


class WorkflowFunctions(Protocol):
    """The functions of the deployed application."""

    def complete(self, graph: Graph) -> Graph:
        """Return a graph with the tools that the deployed code of its functions names besides those that it
        was registered with.
        """
        ...

    def open(self, name: str, arguments: Any, facts: FunctionFacts) -> FunctionSession:
        """Make a session of a function, which has not started. Raises `StepFailure` for one that is not
        deployed, or that does not take the arguments.
        """
        ...
