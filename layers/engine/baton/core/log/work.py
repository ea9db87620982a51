"""Open work of a node: it ends by itself at some time, or by an event from outside.

The union is closed, because it is a part of snapshots. A state has one map of it, by slot. Each kind of work
defines its meaning to folds, forks and limits (records.py), so that these need not distinguish kinds.

At the end, the journal of a step: the units of its work that its tool has named (`context.once`). A unit is
an operation below the step. The state only has the place of the newest one; the results are in the log, and
each event names the entry of those before it, so a step of many units costs the state nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar, Final, NamedTuple, Self

import msgspec
from msgspec.structs import replace

from baton.core.expressions import duration_text, iso
from baton.core.log.functions import RunningFunction
from baton.core.log.records import About, Ask, Child, Failure, Gives, Response, Root, Value, Work
from baton.core.log.scopes import Agent, Map, Replanning
from baton.core.models.usage import Allowance, Usage

CHILDREN_IN_A_WINDOW = 64
"""Number of children that report to one window of an inbox: a window is one page of a query, and many windows
are many partitions.
"""


class Wait(Work, frozen=True, omit_defaults=True, tag="wait"):
    """A wait for a time, for a signal, or for the first of both."""

    until: int | None = None
    signal: str = ""

    def view(self, schema: Any) -> dict[str, Any]:
        shown = {"signal": self.signal or None, "until": None if self.due is None else iso(self.due)}
        return shown | {"payload": schema} if self.signal and schema is not None else shown

    @property
    def due(self) -> int | None:
        return self.until

    def postponed(self, later: int) -> Self:
        """Return the wait with a later time-out for its signal. A wait for a time alone keeps its time."""
        return replace(self, until=self.until + later) if self.until is not None and self.signal else self


class Question(Work, msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="question"):
    """A wait for a person's answer, until the question expires."""

    ask: Ask
    arguments: dict[str, Any] = {}
    word = "asking"

    def view(self, schema: Any) -> dict[str, Any]:
        return {"ask": self.ask.id, "until": iso(self.ask.ends_at)}

    @property
    def due(self) -> int | None:
        return self.ask.due

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self | None:
        """Return the question unchanged if it has not changed since the cut; else with as much time left as
        at the cut.
        """
        if before is not None and before.ask == self.ask:
            return self
        return self.postponed(later)

    def postponed(self, later: int) -> Self:
        return replace(self, ask=self.ask.postponed(later))


class Callback(Work, frozen=True, omit_defaults=True, kw_only=True, tag="callback"):
    """A wait for work elsewhere, which a tool has handed over with a token.

    `heartbeat_ms` 0: no sign of life is expected.
    `heard_at`: the last sign of life, at first the time of the handover. `skew_ms`: the largest difference
    between the clocks of those who write and judge it.
    `response`: a provider of models has the work, and is polled; a callback only reports its end.
    `key`: the idempotency key of the call, if it is kept.
    """

    id: str
    since: int
    until: int
    heartbeat_ms: int = 0
    heard_at: int = 0
    skew_ms: int = 0
    response: Response | None = None
    key: str = ""

    def view(self, schema: Any) -> dict[str, Any]:
        by = self.heartbeat_by
        return {
            "callback": self.id,
            "since": iso(self.since),
            "until": iso(self.until),
            "heard_at": iso(self.heard_at) if by else None,
            "heartbeat_by": iso(by) if by else None,
        }

    @property
    def heartbeat_by(self) -> int | None:
        """Time at which the next sign of life is due; None: none is expected."""
        return self.heard_at + self.heartbeat_ms if self.heartbeat_ms else None

    @property
    def due(self) -> int | None:
        by = self.heartbeat_by
        return self.until if by is None else min(self.until, by + self.skew_ms)

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self | None:
        """Return the callback if it is open on both sides of the fork.

        Any other is over elsewhere, and is handed over anew.
        """
        if is_ending or not isinstance(before, type(self)) or before.id != self.id:
            return None
        return before

    def postponed(self, later: int) -> Self:
        return replace(self, until=self.until + later, heard_at=self.heard_at + later)


def responses_left(
    before: Mapping[str, Open], after: Mapping[str, Open], ended: Collection[str]
) -> list[Response]:
    """Return the responses that were worked on `before`, and that nothing waits for `after`.

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


Open = Wait | Child | Question | Callback | Agent | Replanning | Map | RunningFunction


def children_in(work: Mapping[str, Open]) -> dict[str, Child]:
    """Return the child sagas in a map of open work, by slot."""
    return {slot: one for slot, one in work.items() if isinstance(one, Child)}


def child_in(work: Mapping[str, Open], slot: str) -> Child | None:
    """Return the child saga at a slot of a map of open work, or None."""
    one = work.get(slot)
    return one if isinstance(one, Child) else None


SIGNAL, PERSON, ELSEWHERE = "wait", "person", "elsewhere"


class Opens(About, frozen=True, omit_defaults=True, kw_only=True):
    """An event with which a node opens work."""

    awaits: ClassVar[str] = ""
    """Kind of event that it waits for: a SIGNAL or a time, a PERSON, or work ELSEWHERE.

    Empty: the node is at work itself.
    """

    def work(self) -> Open:
        """Return the work that is open from now on."""
        raise NotImplementedError

    @property
    def words(self) -> str:
        """Description of the event that the work waits for."""
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

    @property
    def words(self) -> str:
        until = "" if self.until is None else iso(self.until)
        if not self.signal:
            return until
        return f"the signal `{self.signal}`" + (f", until {until} at most" if until else "")


class WaitClosed(Gives, frozen=True, tag="wait_closed", omit_defaults=True, kw_only=True):
    """A wait ended. `by` is "time" or the key of the signal that ended it."""

    became = "waited"
    by: str


class QuestionOpened(Opens, frozen=True, tag="question_opened", omit_defaults=True, kw_only=True):
    """A node asks a person. The result of the question is in `question_closed`.

    `arguments`: those of a call that needs an approval, if they differ from the step's own.
    """

    awaits = PERSON
    ask: Ask
    arguments: dict[str, Any] = {}  # noqa: RUF012  # each struct has its own

    def work(self) -> Open:
        return Question(ask=self.ask, arguments=self.arguments)

    @property
    def words(self) -> str:
        return f"an answer to the question `{self.ask.id}`, until {iso(self.ask.ends_at)} at most"


class QuestionClosed(About, frozen=True, tag="question_closed", omit_defaults=True, kw_only=True):
    """A question has its answer, or it `expired`.

    About a failed step: `retry` (perhaps with other arguments), `use`, `fail`. About a step whose call needs
    an approval: with `approve` the step goes on; with any other answer it fails in the same entry. `by` is
    the key of the signal that brought the answer. The effect of the answer follows in the same entry, except
    for an effect with an unknown outcome: the next attempt records the person's `output`.
    """

    made = ("output",)
    ask: str
    action: str
    at: int
    by: str = ""
    arguments: dict[str, Any] = {}  # noqa: RUF012  # each struct has its own
    output: Value | None = None


class QuestionEscalated(About, frozen=True, tag="question_escalated", omit_defaults=True, kw_only=True):
    """A question had no answer when a step of its escalation was `due`: its audience is told again, or the
    question goes `to` others.

    If several steps are due at once, people are told of the last alone. Without `due`, a person (`by`) asked
    for the reminder.
    """

    ask: str
    at: int
    due: int = 0
    to: str | None = None
    by: str = ""


class QuestionClaimed(About, frozen=True, tag="question_claimed", omit_defaults=True, kw_only=True):
    """A person claimed a question (`to`); without `to`, the question is for its whole audience again."""

    ask: str
    at: int
    by: str
    to: str = ""


class ChildOpened(Opens, frozen=True, tag="child_opened", omit_defaults=True, kw_only=True):
    """A child saga will be started under this id; recorded before its start.

    `number` counts the children of a saga from 1, over all its branches; 0 in logs that did not count them. A
    signal of the name `listens` cancels the child. `until`: the end of its time; 0: never. `passed`, of a
    named graph of a document: see `SagaStarted`; includes `input` if that is kept as a blob, too.
    `detached`: it has no parent, and is reported as soon as it exists, with its id. `allowed`: what limits
    of tokens and turns leave to it.
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
    detached: bool = False
    allowed: Allowance | None = None

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
            detached=self.detached,
            allowed=self.allowed,
        )

    @property
    def words(self) -> str:
        until = f", until {iso(self.until)} at most" if self.until else ""
        return f"the child saga `{self.child}`{until}"


class ChildOverdue(About, frozen=True, tag="child_overdue", omit_defaults=True, kw_only=True):
    """The time of a child is over: its parent asks it to stop and to undo its effects, and waits for it.

    `until`: the child's time has stood still, so its time is not over before this moment.
    """

    at: int
    until: int = 0


class ChildReported(Root, frozen=True, tag="child_reported", omit_defaults=True, kw_only=True):
    """A child ended; its parent's worker writes this event, several in one entry.

    `cost` is the child's total cost in micro-dollars. `undoable`: the child has effects that can be undone.
    `used`: the tokens and turns that count for limits of its parent, with those of sagas below it.
    """

    slot: str
    child: str
    status: str
    output: Value = Value()
    failure: Failure | None = None
    cost: int = 0
    undoable: bool = False
    used: Allowance | None = None

    @property
    def end(self) -> dict[str, Any]:
        """The fields of the open work that say how the child has ended."""
        end = {"status": self.status, "output": self.output, "failure": self.failure}
        return {**end, "undoable": self.undoable}


class ChildClosed(Gives, frozen=True, tag="child_closed", omit_defaults=True, kw_only=True):
    """The workflow node of a child is done: the child reported success, or the child was cancelled by the
    signal `by`. `prior` and `lasting` are as those of `StepSucceeded`.
    """

    child: str
    by: str = ""
    prior: int | None = None
    lasting: bool = False


class ChildrenAbandoned(Root, frozen=True, tag="children_abandoned", omit_defaults=True, kw_only=True):
    """Children were asked to stop: a fork or a join left them behind, or their saga undoes its effects.

    `undo`: the saga undoes its effects, and first waits for the report of what the children have undone.
    """

    children: tuple[str, ...]
    undo: bool = False


class CallbackOpened(Opens, frozen=True, tag="callback_opened", omit_defaults=True, kw_only=True):
    """A tool handed its work over, and returned: the attempt goes on elsewhere, until the callback or the end
    of its time.

    It has the fields of any event that ends the run of a tool. `heartbeat_ms` 0: no sign of life is expected;
    `skew_ms`: the delay in judging silence, because clocks differ. `response`: a provider of models has the
    work; the cost is then the held amount, and `assumed`. `usage`: tokens that models have read and written
    before the handover. `key`: as in `StepSucceeded`.
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

    @property
    def words(self) -> str:
        until = f", until {iso(self.until)} at most"
        if self.response is not None:
            return f"the answer of `{self.response.model}`{until}"
        often = f", with a heartbeat every {duration_text(self.heartbeat_ms)}" if self.heartbeat_ms else ""
        return f"the callback `{self.callback}`{until}{often}"


class CallbackHeartbeat(About, frozen=True, tag="callback_heartbeat", omit_defaults=True, kw_only=True):
    """A sign of life of work elsewhere. It wakes no worker."""

    callback: str
    at: int


class AgentBegan(Opens, frozen=True, tag="agent_began", omit_defaults=True, kw_only=True):
    """An agent began, with its prompt and settings."""

    made = ("given",)
    given: Value
    listens: str = ""

    def work(self) -> Open:
        return Agent(given=self.given, listens=self.listens)

    @property
    def words(self) -> str:
        return "the answer of its model"


class MapBegan(Opens, frozen=True, tag="map_began", omit_defaults=True, kw_only=True):
    """A map began, over a list of this size."""

    made = ("over",)
    over: Value
    size: int

    def work(self) -> Open:
        return Map(over=self.over, size=self.size)

    @property
    def words(self) -> str:
        return f"its {self.size:,} items"


class FunctionBegan(Opens, frozen=True, tag="function_began", omit_defaults=True, kw_only=True):
    """A function began, with its arguments.

    `build`: code of a worker, with which the saga stays; empty: with none.
    """

    made = ("given",)
    given: Value
    at: int
    build: str = ""

    def work(self) -> Open:
        return RunningFunction(given=self.given, began=self.at)

    @property
    def words(self) -> str:
        return "what it returns"


class ReplanBegan(Opens, frozen=True, tag="replan_began", omit_defaults=True, kw_only=True):
    """A model is asked for alternatives to a step that has failed. After `until` no alternative begins."""

    until: int

    def work(self) -> Open:
        return Replanning(until=self.until)

    @property
    def words(self) -> str:
        return "what a model puts in its place"


MOST_UNITS: Final = 1_000
"""Most units of one step."""
MOST_BYTES: Final = 16_777_216
"""Most bytes of JSON in the results of all units of one step: an attempt has them in memory."""


class Journal(msgspec.Struct, frozen=True, omit_defaults=True):
    """The journal of a step at work.

    `head`: the version of the entry with its newest units. `units`: their number; `size`: the bytes of their
    results.
    """

    head: int = 0
    units: int = 0
    size: int = 0


class UnitRecorded(About, frozen=True, tag="unit_recorded", omit_defaults=True, kw_only=True):
    """A tool did a unit of its step's work, and does not do it again.

    `name` is the tool's own name for it. `key` is the same in all attempts at the same call, and differs for
    any other unit. `size`: bytes of its output. `prior`: the version of the entry with the units before it;
    0: there are none. `cost`: micro-dollars that its attempt has reported since the unit before.
    """

    made = ("output",)
    name: str
    key: str
    output: Value
    size: int
    at: int
    prior: int = 0
    cost: int = 0


class UnitsInEntry(NamedTuple):
    """Units of one step in an entry, the newest first, and the version of the entry with those before."""

    units: list[UnitRecorded]
    prior: int


def units_in(events: Iterable[Root], slot: str) -> UnitsInEntry:
    """Return the units of the step at a slot that an entry has."""
    found = [one for one in events if isinstance(one, UnitRecorded) and one.slot == slot]
    return UnitsInEntry(found[::-1], found[0].prior if found else 0)
