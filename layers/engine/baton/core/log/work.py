"""Work that a node has opened: it ends by itself at some time, or by something that happens outside.

A closed union, because it is a part of snapshots. A state has one map of it, by slot; what each member means to folds, forks
and limits is said by the work itself (opened.py), so that these need not know which it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from baton.core.log.agents import Agent
from baton.core.log.maps import Map
from baton.core.log.opened import Child, Work
from baton.core.log.records import Ask, Response
from baton.core.log.replans import Replanning

CHILDREN_IN_A_WINDOW = 64
"""So many report to one window of an inbox: a window is one page of a query, and many windows are many partitions."""


class Wait(Work, frozen=True, omit_defaults=True, tag="wait"):
    """For a time, for a signal, or for the first of both."""

    until: int | None = None
    signal: str = ""

    @property
    def due(self) -> int | None:
        return self.until

    def postponed(self, later: int) -> Self:
        """A time that is waited for comes when it comes; what a signal comes too late for does not."""
        return replace(self, until=self.until + later) if self.until is not None and self.signal else self


class Question(Work, msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="question"):
    """For a person's answer, until it expires."""

    ask: Ask
    arguments: dict[str, Any] = {}

    @property
    def due(self) -> int | None:
        return self.ask.due

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self | None:
        """One that has not changed since the cut stays as it is; else there is as much time to everything as there was at the cut."""
        if before is not None and before.ask == self.ask:
            return self
        return self.postponed(later)

    def postponed(self, later: int) -> Self:
        return replace(self, ask=self.ask.postponed(later))


class Callback(Work, frozen=True, omit_defaults=True, kw_only=True, tag="callback"):
    """For work elsewhere, which a tool has handed over with a token. `heartbeat_ms` 0: no sign of life is expected.

    `heard_at`: the last sign of life, at first the time when it was handed over. `skew_ms`: how far apart the clocks may be of
    those who write and judge it. `response`: a provider of models has it, and is asked how it is; a callback only says that it is over. `key`: that of the call, where what undoes it needs it.
    """

    id: str
    since: int
    until: int
    heartbeat_ms: int = 0
    heard_at: int = 0
    skew_ms: int = 0
    response: Response | None = None
    key: str = ""

    @property
    def heartbeat_by(self) -> int | None:
        """When the next sign of life is due; None: none is expected."""
        return self.heard_at + self.heartbeat_ms if self.heartbeat_ms else None

    @property
    def due(self) -> int | None:
        by = self.heartbeat_by
        return self.until if by is None else min(self.until, by + self.skew_ms)

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self | None:
        """One that is open on both sides goes on. Any other is over elsewhere, and handed over anew."""
        if is_ending or not isinstance(before, type(self)) or before.id != self.id:
            return None
        return before

    def postponed(self, later: int) -> Self:
        return replace(self, until=self.until + later, heard_at=self.heard_at + later)


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
