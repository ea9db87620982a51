"""Work that a node has opened: it ends by itself at some time, or by something that happens outside.

A closed union, because it is a part of snapshots. A state has one map of it, by slot; what each member means to folds, forks
and limits is said here, so that these need not know which it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from baton.core.log.agents import Agent
from baton.core.log.maps import Map
from baton.core.log.records import Ask, Failure, Response, Value
from baton.core.log.replans import Replanning

CHILDREN_IN_A_WINDOW = 64
"""So many report to one window of an inbox: a window is one page of a query, and many windows are many partitions."""


class Wait(msgspec.Struct, frozen=True, omit_defaults=True, tag="wait"):
    """For a time, for a signal, or for the first of both."""

    arguments: ClassVar[dict[str, Any]] = {}
    """Those of the call that a question is about, if they are not the step's."""
    until: int | None = None
    signal: str = ""

    @property
    def due(self) -> int | None:
        """When it ends by itself; None: never."""
        return self.until

    @property
    def orphan(self) -> Child | None:
        """The child saga that goes on when its parent drops this work."""
        return None

    def hears(self, child: str) -> bool:
        """Whether the end of this child saga is what it waits for."""
        return False

    @property
    def ask(self) -> Ask | None:
        """The question that it has open."""
        return None

    def after_fork(self, before: Open | None, *, is_ending: bool, later: int = 0) -> Open | None:
        """This work after a fork to a cut where it was open; `before` is the work open there before the fork.

        `later`: the milliseconds from the cut to the fork.
        """
        return self


class Child(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="child"):
    """For a child saga; `status` is empty until it reported its end, in this `window` of its parent's inbox.

    A signal of the name `listens` calls it off: the child is cancelled, and waited for.
    """

    arguments: ClassVar[dict[str, Any]] = {}
    saga: str
    workflow: str
    input: Value
    window: int = 0
    listens: str = ""
    status: str = ""
    output: Value = Value()
    failure: Failure | None = None
    undoable: bool = False

    @property
    def signal(self) -> str:
        """The name of the signal that ends it."""
        return self.listens

    @property
    def due(self) -> int | None:
        return None

    @property
    def orphan(self) -> Child | None:
        return None if self.status else self

    def hears(self, child: str) -> bool:
        return child == self.saga and not self.status

    @property
    def ask(self) -> Ask | None:
        return None

    def after_fork(self, before: Open | None, *, is_ending: bool, later: int = 0) -> Open | None:
        """One that is open on both sides goes on; it is opened anew when it was cancelled with what the fork leaves."""
        is_kept = not is_ending and before is not None and before.hears(self.saga)
        return self if self.status or is_kept else None


class Question(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="question"):
    """For a person's answer, until it expires."""

    ask: Ask
    arguments: dict[str, Any] = {}

    @property
    def signal(self) -> str:
        """Answers have a route of their own, and no workflow can wait for one."""
        return ""

    @property
    def due(self) -> int | None:
        return self.ask.due

    @property
    def orphan(self) -> Child | None:
        return None

    def hears(self, child: str) -> bool:
        return False

    def after_fork(self, before: Open | None, *, is_ending: bool, later: int = 0) -> Open | None:
        """One that has not changed since the cut stays as it is; else there is as much time to everything as there was at the cut."""
        if before is not None and before.ask == self.ask:
            return self
        return replace(self, ask=self.ask.postponed(later))


class Callback(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="callback"):
    """For work elsewhere, which a tool has handed over with a token. `heartbeat_ms` 0: no sign of life is expected.

    `heard_at`: the last sign of life, at first the time when it was handed over. `skew_ms`: how far apart the clocks may be of
    those who write and judge it. `response`: a provider of models has it, and is asked how it is; a callback only says that it is over.
    """

    arguments: ClassVar[dict[str, Any]] = {}
    id: str
    since: int
    until: int
    heartbeat_ms: int = 0
    heard_at: int = 0
    skew_ms: int = 0
    response: Response | None = None

    @property
    def signal(self) -> str:
        """Callbacks have a route of their own, and no workflow can wait for one."""
        return ""

    @property
    def heartbeat_by(self) -> int | None:
        """When the next sign of life is due; None: none is expected."""
        return self.heard_at + self.heartbeat_ms if self.heartbeat_ms else None

    @property
    def due(self) -> int | None:
        by = self.heartbeat_by
        return self.until if by is None else min(self.until, by + self.skew_ms)

    @property
    def orphan(self) -> Child | None:
        return None

    def hears(self, child: str) -> bool:
        return False

    @property
    def ask(self) -> Ask | None:
        return None

    def after_fork(self, before: Open | None, *, is_ending: bool, later: int = 0) -> Open | None:
        """One that is open on both sides goes on. Any other is over elsewhere, and handed over anew."""
        is_kept = not is_ending and isinstance(before, Callback) and before.id == self.id
        return before if is_kept else None


def responses_left(
    before: Mapping[str, Open], after: Mapping[str, Open], ended: Collection[str]
) -> list[Response]:
    """Those that were worked on `before`, and that nothing waits for `after`. `ended`: the callbacks of attempts that have ended."""
    return [
        work.response
        for slot, work in before.items()
        if isinstance(work, Callback)
        and work.response is not None
        and work.id not in ended
        and after.get(slot) != work
    ]


Open = Wait | Child | Question | Callback | Agent | Replanning | Map


def children_in(work: Mapping[str, Open]) -> dict[str, Child]:
    """The child sagas in a map of open work, by slot."""
    return {slot: one for slot, one in work.items() if isinstance(one, Child)}
