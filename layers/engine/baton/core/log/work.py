"""Work that a node has opened: it ends by itself at some time, or by something that happens outside.

A closed union, because it is a part of snapshots.
A state has one map of it, by slot; what each member means to folds, forks and limits
is said by the work itself (records.py), so that these need not know which it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self

import msgspec
from msgspec.structs import replace

from baton.core.log.records import About, Ask, Child, Gives, Response, Value, Work
from baton.core.log.scopes import Agent, Map, Replanning
from baton.core.models.usage import Usage

CHILDREN_IN_A_WINDOW = 64
"""So many report to one window of an inbox: a window is one page of a
query, and many windows are many partitions.
"""


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
        """One that has not changed since the cut stays as it is; else there is
        as much time to everything as there was at the cut.
        """
        if before is not None and before.ask == self.ask:
            return self
        return self.postponed(later)

    def postponed(self, later: int) -> Self:
        return replace(self, ask=self.ask.postponed(later))


class Callback(Work, frozen=True, omit_defaults=True, kw_only=True, tag="callback"):
    """For work elsewhere, which a tool has handed over with a token.
    `heartbeat_ms` 0: no sign of life is expected.

    `heard_at`: the last sign of life, at first the time when it was handed over. `skew_ms`: how far apart the
    clocks may be of
    those who write and judge it.
    `response`: a provider of models has it, and is asked how it is; a callback only says that it is over.
    `key`: that of the call, where what undoes it needs it.
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
    """Those that were worked on `before`, and that nothing waits for `after`.
    `ended`: the callbacks of attempts that have ended.
    """
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


SIGNAL, PERSON, ELSEWHERE = "wait", "person", "elsewhere"


class Opens(About, frozen=True, omit_defaults=True, kw_only=True):
    """An event with which a node opens work."""

    awaits: ClassVar[str] = ""
    """What it waits for: a SIGNAL or a time, a PERSON, or work ELSEWHERE. Empty: the node is at work itself.
    """

    def work(self) -> Open:
        """What is open from now on."""
        raise NotImplementedError


class WaitOpened(Opens, frozen=True, tag="wait_opened", omit_defaults=True, kw_only=True):
    """A wait node began: until a time, for a signal, or both, whichever is first.
    `fresh`: signals of its name that came before are lost.
    """

    awaits = SIGNAL
    until: int | None = None
    signal: str = ""
    fresh: bool = False

    def work(self) -> Open:
        return Wait(until=self.until, signal=self.signal)


class WaitClosed(Gives, frozen=True, tag="wait_closed", omit_defaults=True, kw_only=True):
    """`by` is "time" or the key of the signal that ended it."""

    became = "waited"
    by: str


class QuestionOpened(Opens, frozen=True, tag="question_opened", omit_defaults=True, kw_only=True):
    """A node asks a person. What becomes of the question is in `question_closed`.

    `arguments`: of a call that is to be approved, where they are others than the step's own.
    """

    awaits = PERSON
    ask: Ask
    arguments: dict[str, Any] = {}  # noqa: RUF012  # each struct has its own

    def work(self) -> Open:
        return Question(ask=self.ask, arguments=self.arguments)


class ChildOpened(Opens, frozen=True, tag="child_opened", omit_defaults=True, kw_only=True):
    """A child saga is to be started under this id; recorded before it is.

    `number` counts the children of a saga from 1, over all its branches; 0 where they were not counted yet. A
    signal of the
    name `listens` calls it off.
    `until`: when its time is over; 0: never.
    `passed`, of a named graph of a document: see `SagaStarted`; with
    `input` where that is kept as a blob, too.
    """

    awaits = ELSEWHERE
    made = ("input", "passed")
    child: str
    workflow: str
    input: Value
    number: int = 0
    listens: str = ""
    until: int = 0
    passed: dict[str, Value] = {}  # noqa: RUF012  # msgspec copies it

    def work(self) -> Open:
        window = self.number // CHILDREN_IN_A_WINDOW
        return Child(
            saga=self.child,
            workflow=self.workflow,
            input=self.input,
            window=window,
            listens=self.listens,
            until=self.until,
            passed=self.passed,
        )


class CallbackOpened(Opens, frozen=True, tag="callback_opened", omit_defaults=True, kw_only=True):
    """A tool has handed its work over, and returned: the attempt goes on
    elsewhere, until the callback or until its time is over.

    It has what any event has that ends the run of a tool.
    `heartbeat_ms` 0: no sign of life is expected; `skew_ms`: silence is judged so much later, because
    clocks differ. `response`: a provider of models has it; the cost is then what is held, and
    `assumed`. `usage`: what models have read and written before it was handed over. `key`: as
    `StepSucceeded`.
    """

    awaits = ELSEWHERE
    callback: str
    until: int
    attempt: int
    started_at: int
    ended_at: int
    tool: str
    tool_version: str
    schema_hash: str
    heartbeat_ms: int = 0
    skew_ms: int = 0
    recorded: bool = False
    cost: int = 0
    blocked_ms: int = 0
    assumed: int = 0
    response: Response | None = None
    usage: tuple[Usage, ...] = ()
    key: str = ""

    def work(self) -> Open:
        return Callback(
            key=self.key,
            id=self.callback,
            response=self.response,
            since=self.ended_at,
            until=self.until,
            heartbeat_ms=self.heartbeat_ms,
            heard_at=self.ended_at if self.heartbeat_ms else 0,
            skew_ms=self.skew_ms,
        )


class CallbackHeartbeat(About, frozen=True, tag="callback_heartbeat", omit_defaults=True, kw_only=True):
    """A sign of life of work elsewhere. No worker is woken by it."""

    callback: str
    at: int


class AgentBegan(Opens, frozen=True, tag="agent_began", omit_defaults=True, kw_only=True):
    """An agent begins, with its prompt and settings."""

    made = ("given",)
    given: Value
    listens: str = ""

    def work(self) -> Open:
        return Agent(given=self.given, listens=self.listens)


class MapBegan(Opens, frozen=True, tag="map_began", omit_defaults=True, kw_only=True):
    """A map begins, over a list of this size."""

    made = ("over",)
    over: Value
    size: int

    def work(self) -> Open:
        return Map(over=self.over, size=self.size)


class ReplanBegan(Opens, frozen=True, tag="replan_began", omit_defaults=True, kw_only=True):
    """A model is asked what else could be done in place of a step that has failed.
    After `until` no alternative begins.
    """

    until: int

    def work(self) -> Open:
        return Replanning(until=self.until)
