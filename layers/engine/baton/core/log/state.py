"""The folded state of a saga: exactly what later decisions can still need.

No transitions here (see folding/fold.py), no status (see state.py) and no
decisions (see core/decide/decide.py). Values are replaced, never changed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import msgspec

from baton.core.failures.alternatives import Alternative
from baton.core.failures.strategies.base import History
from baton.core.graph.index import GraphIndex
from baton.core.log import events as ev
from baton.core.log.events import (
    Ask,
    CancelRequested,
    Notice,
    Parked,
    SagaEnded,
    Shown,
    SignalReceived,
    Value,
)
from baton.core.log.records import Child, Failure, Paused, SharedLimit
from baton.core.log.scopes import Made
from baton.core.log.undos import Earlier, Undoable
from baton.core.log.work import Open, children_in

KEYS_REMEMBERED = 200  # and those of signals that wait, and of forks, however many
NOTICES_REMEMBERED = 50
UNKNOWN_OUTCOME = "unknown_outcome"  # of an effect that may have happened
FAULT = "fault"  # why an attempt ended that was stopped because the engine could not go on
FORK_KEY = "/fork/"  # begins as no signal's key can: those begin with the signal's name
ANSWER = ":answer"  # the name of the signal that answers a question: none that a workflow can wait for
LONGEST_ID = 400  # characters of a saga's id: it is a key of the table, and a part of its children's ids


ITEM_PATTERN = (
    "[A-Za-z0-9_-]{1,64}"  # neither @, # nor `.`, which separate the parts of a slot and of a question's id
)
_is_item = re.compile(ITEM_PATTERN).fullmatch


def slot_of(node: str, iteration: tuple[int, ...], item: str = "") -> str:
    """The name of one round of one node: `book`, or `book@2.0` in the third round of an outer loop.

    A node that does several things at once has one slot more for each of them: `book#item`, `book@2.0#item`.
    """
    slot = f"{node}@{'.'.join(map(str, iteration))}" if iteration else node
    return f"{slot}#{item}" if item else slot


@lru_cache(maxsize=4096)  # a step asks some ten times of the same slot
def node_of(slot: str) -> tuple[str, tuple[int, ...]]:
    """The node and the round that a slot is of, whatever its item."""
    if "#" in slot:
        slot = owner_of(slot)
    node, found, rounds = slot.partition("@")
    return (node, tuple(map(int, rounds.split(".")))) if found else (node, ())


def check_item(item: str) -> str:
    """The same text. Raises `ValueError` for one that would make the slot of an item ambiguous."""
    if not _is_item(item):
        raise ValueError(f"{item[:100]!r} names no item: write 1 to 64 letters, digits, `_` and `-`")
    return item


def item_of(slot: str) -> str:
    """The item of a slot; empty where it is its node's own."""
    return slot.partition("#")[2]


def owner_of(slot: str) -> str:
    """The slot of the node itself, of one of an item."""
    return slot.partition("#")[0]


_V = TypeVar("_V")


def without(values: dict[str, _V], keys: Collection[str]) -> dict[str, _V]:
    """The same values, less those of these keys."""
    if not values or values.keys().isdisjoint(keys):
        return values
    left = values.copy()  # of a wide graph's slots many times faster than one by one
    for key in keys:
        left.pop(key, None)
    return left


class Signal(msgspec.Struct, frozen=True, omit_defaults=True):
    """A signal that waits to be taken.
    `at`: when it was sent; 0 in old snapshots.
    `by`: who answered a question; empty for other signals.
    """

    name: str
    key: str
    payload: Value
    failure: Failure | None = None
    by: str = ""
    at: int = 0

    @classmethod
    def of(cls, event: SignalReceived) -> Signal:
        """What is kept of one."""
        by = event.by if event.name == ANSWER else ""
        return cls(event.name, event.key, event.payload, event.failure, by, event.at)

    def is_in_time(self, until: int | None) -> bool:
        """Tell whether it came before the time of a wait was over, whenever a worker has looked."""
        return until is None or self.at < until


class Failing(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A step some of whose attempts have failed: how many, the last failure, and what is done about it.

    `history` and `policies` (uses by name) are what was done since it began; the rest is what
    `StrategyChosen` said.
    `builds`: under which code it has failed with a defect since a person last decided, the newest last;
    `incident`: the code of
    the failure that on-call knows of.
    `decided`: the owner of the claim of which a person has said what became of it; `given`: what has come of
    it.
    `handovers`: how often what was handed over elsewhere has ended without success. `correction`: what was
    wrong about the last
    answer of a model that was refused.
    `kept`: what would undo the last attempt needs of its arguments.
    `began`: when the first attempt of an inverse began, later by the time that it was held back.
    `acted`: an attempt before the last may have acted, and nothing has said what came of it.
    `key`: as `kept`, of the last attempt that may have acted.
    `left`: the step goes on with another call since the last attempt, and what the
    attempts until now may have done is in the list of what is undone by itself.
    """

    attempts: int
    failure: Failure
    history: History = History()
    policies: dict[str, int] = {}
    strategy: str = ""
    due_at: int = 0
    hooks: tuple[str, ...] = ()
    hint: str = ""
    way: Alternative | None = None
    arguments: dict[str, Any] = {}
    ask: Ask | None = None
    look: bool = False
    decided: str = ""
    given: Value | None = None
    handovers: int = 0
    correction: str = ""
    kept: Value | None = None
    began: int = 0
    builds: tuple[str, ...] = ()
    incident: str = ""
    acted: bool = False
    key: str = ""
    left: bool = False


class Held(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A step that waits for a circuit breaker, since `at`, and asks again at `until`.
    `state`: that of the breaker.
    """

    breaker: str
    at: int
    until: int
    state: str = "open"


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """The entries `first`..`last` (both included) of `branch` are part of this history."""

    branch: int
    first: int
    last: int


class Used(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a saga or a node has used of what its limits count.

    `last`: when a step of it last ended; `since`: when a fork gave the saga its time anew.
    """

    hops: int = 0
    bytes: int = 0
    cost: int = 0
    last: int = 0
    since: int = 0
    tokens: int = 0


class Origin(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The facts of a saga's start. They do not change."""

    tenant: str = ""
    saga: str = ""
    user: str = ""
    workflow: str = ""
    graph: str = ""
    """The hash of the graph that it runs; of a named graph of a document,
    that of the document's, `#` and the name.
    """
    input: Value = Value()
    parent: str = ""
    """The key of the saga that waits for this one, where in it, and in which window of its inbox."""
    parent_slot: str = ""
    parent_window: int = 0
    depth: int = 0
    """The number of sagas above it."""
    scope: str = ""
    """Its place in the sagas above, whatever the branch that they are in:
    what happens once there happens once in all.
    """
    handled: bool = False
    """Whether a saga above goes on from its failure."""
    last: str = ""
    """What its deployment does in place of a question: `escalate` or `fail`. Empty: it asks."""
    traceparent: str = ""
    started_at: int = 0
    ends_by: int = 0
    """Until when it may last. 0: as long as it takes."""
    expires: int = 0
    """When all that is stored of it may be deleted. 0: never."""
    labels: dict[str, str] = {}
    outer: Value | None = None
    """Of a named graph: `item`, `index`, `last_error` and `ctx` of the
    place that it was started from, as far as it names them.
    """
    passed: dict[str, Value] = {}
    """Those of them that are values of its starter, by what its expressions call them: they are not copied.
    """
    before: tuple[Earlier, ...] = ()
    """The sagas that were in its place before forks above it, the newest first."""
    shared_limits: tuple[SharedLimit, ...] = ()
    """The limits of money of the sagas above it, the nearest first."""


class Lineage(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The entries that are its history: the closed segments of earlier
    branches, then `first` to the newest of `branch`.
    """

    branch: int = 0
    first: int = 1
    closed: tuple[Segment, ...] = ()


class Recovery(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Traces of crashes of its invocations."""

    consecutive_crashes: int = 0
    """Revivals in a row without any progress."""
    epoch: int = 0
    """That of the last revival."""
    interruptions: dict[str, int] = {}
    """By slot, how often the end of an invocation cut it off since the last progress."""
    possibly_running: tuple[str, ...] = ()
    """Slots that were possibly running when an invocation ended, and have not reported since."""
    deaths: dict[str, int] = {}
    """By slot, how many workers died while it was under way, and nothing is
    assumed of what they had asked for.
    """


class Counts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How often something has happened, in all branches.
    Only of `children` a decision is made: where they report.
    """

    steps: int = 0
    invocations: int = 0
    revivals: int = 0
    interrupted: int = 0
    children: int = 0


class Money(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Millionths of a dollar."""

    spent: int = 0
    """What tools and children said that they cost."""
    budget: int = 0
    """What it may spend; 0: the default."""
    models: dict[str, tuple[int, int, int]] = {}
    """Of models alone, by name: tokens read, tokens written, and cost."""


class Outbox(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Notices to people."""

    due: tuple[Notice, ...] = ()
    sent: tuple[str, ...] = ()
    """The keys of the last notices that were sent."""
    rows: dict[str, Shown] = {}
    """Questions that the inbox shows, or may show, by their ids: those that
    are open, and others until they are withdrawn.
    """


class State(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """All of a saga that matters from here on, by concern.
    A slot is a key wherever a dictionary has no other key.
    """

    version: int = 0
    last_at: int = 0
    epoch: int = 0
    invocation: str = ""
    origin: Origin = Origin()
    lineage: Lineage = Lineage()

    # ---- where it is
    tokens: dict[str, dict[str, bool]] = {}
    """What has arrived: sender to alive."""
    errors: dict[str, dict[str, tuple[Failure, ...]]] = {}
    """What the dead tokens carry, by sender."""
    closed: dict[str, tuple[str, ...]] = {}
    """Of a join that fired early: the senders that had not spoken, less those that have since."""
    admitted: tuple[str, ...] = ()
    """Slots whose `when` is known to hold."""
    begun: dict[str, int] = {}
    """When the turn of a slot came whose time is limited."""
    first_started_at: dict[str, int] = {}
    """The same, kept over a fork."""
    outputs: dict[str, Value] = {}
    """By node, what a later step can still read."""
    previous: dict[str, Value] = {}
    """By LOOP/NODE, what a round reads of the one before."""
    pauses: dict[str, Paused] = {}
    """First nodes of rounds that begin after a pause, until they have ended."""

    # ---- what it has open
    open: dict[str, Open] = {}
    approved: dict[str, tuple[str, ...]] = {}
    """By slot, the digests of the calls that people have approved there."""
    items: dict[str, Value | None] = {}
    """Slots of items whose node is not settled: what each gave, None while it is at work."""
    made: dict[str, Made] = {}
    """By digest, calls that have succeeded and that a model may plan again, the newest last."""
    orphaned_children: tuple[Child, ...] = ()
    """Those that a fork or a join left behind and that are not cancelled yet."""
    signals: tuple[Signal, ...] = ()
    keys: dict[str, str] = {}
    """Signals and forks that are remembered, by their keys."""

    # ---- how it ends, and what went wrong
    cancel: CancelRequested | None = None
    failure: Failure | None = None
    result: Value | None = None
    """What it completes with, from the moment an end was reached."""
    parked: Parked | None = None
    parked_in: int = 0
    """The version of the entry that has parked it, or did so last."""
    stood: int = 0
    """For how many milliseconds its time has stood still, before it went on last."""
    ended: SagaEnded | None = None
    failing: dict[str, Failing] = {}
    held: dict[str, Held] = {}
    """Steps that wait for a circuit breaker."""
    corrections: dict[str, tuple[int, ...]] = {}
    """When answers of models were of no use (folding/received.py)."""
    recovery: Recovery = Recovery()
    undo: Undoable = Undoable()

    # ---- what it has used, and what people are told
    counts: Counts = Counts()
    used: dict[str, Used] = {}
    """Scopes with limits that count: nodes by name, the saga as an empty text."""
    money: Money = Money()
    outbox: Outbox = Outbox()

    def items_of(self, slot: str) -> dict[str, Value | None]:
        """The items of a node that does several things at once, by their names; empty until it has begun."""
        if not self.items or "#" in slot:
            return {}
        first = len(begin := f"{slot}#")
        return {one[first:]: value for one, value in self.items.items() if one.startswith(begin)}

    def has_begun(self, slot: str) -> bool:
        """Whether the node at `slot` has something open: then it was let begin, and what is open goes on."""
        return slot in self.open or bool(self.items_of(slot))

    @property
    def children(self) -> dict[str, Child]:
        """The child sagas that are open, by slot."""
        return children_in(self.open)

    @property
    def late(self) -> set[str]:
        """The slots of maps that have gone on, and whose other items run beside what follows."""
        return {slot for slot, one in self.open.items() if one.is_late}

    @property
    def in_flight(self) -> int:
        """Tokens emitted and not yet consumed: zero, with nothing open, is the end of the saga."""
        return sum(map(len, self.tokens.values()))

    @property
    def is_stopping(self) -> bool:
        """Whether it starts nothing any more, because it was cancelled, has
        failed, has its result, or undoes what it has done.
        """
        is_over = self.cancel is not None or self.failure is not None or self.result is not None
        return is_over or self.undo.work is not None

    @property
    def stands_still(self) -> bool:
        """Tell whether it is parked for a defect: its time-outs do not run out then, and nothing is undone."""
        return self.parked is not None and self.parked.at > 0

    @property
    def kills_workers(self) -> bool:
        """Whether it is parked because its workers kept dying: nothing whatever is done for it then."""
        return self.parked is not None and self.parked.code == "worker_killed"


FINISHED = frozenset({"completed", "failed", "cancelled", "rolled_back", "rollback_failed"})
WAITING = frozenset({"waiting", "suspended", "paused", "parked", "reflecting"})


class Turns(Protocol):
    """Knows when a node is ready: `Program`."""

    def has_come(self, state: State, slot: str) -> bool:
        """Whether what has arrived at `slot` is all that its join waits for."""


def status_of(state: State, turns: Turns | None = None) -> str:
    """The status that the log implies; whatever else shows a status is a cache of this.

    `turns` tells a join that still waits for an edge from one that is ready to run. Without it such a join
    counts as running.
    """
    if state.ended is not None:
        return state.ended.status
    if state.version == 0:
        return "pending"
    if state.parked is not None:
        return "parked"
    if state.undo.work is not None:
        return "suspended" if _all_ask(state, state.undo.work.steps) else "compensating"
    if state.is_stopping:
        return "running"
    if not (state.open or state.failing or state.held or state.pauses):
        return "running"
    for slot in state.tokens:
        is_open = (
            state.has_begun(slot)
            or slot in state.held
            or slot in state.pauses
            or _is_held(state.failing.get(slot))
        )
        if not is_open and (turns is None or turns.has_come(state, slot)):
            return "running"
    asks = any(failing.ask is not None for failing in state.failing.values())
    asks = asks or any(work.ask is not None for work in state.open.values())
    return "suspended" if asks else "waiting"


def _all_ask(state: State, slots: Collection[str]) -> bool:
    """Whether each of these steps waits for a person."""
    return bool(slots) and all(
        (slot in state.failing and state.failing[slot].ask is not None)
        or (slot in state.open and state.open[slot].ask is not None)
        for slot in slots
    )


def _is_held(failing: Failing | None) -> bool:
    """Whether a step waits for an answer, or for its next attempt."""
    return failing is not None and (failing.ask is not None or failing.due_at > 0)


def group_of(status: str) -> str:
    """Which part of the status index a status belongs to: `open`, `waiting` or `done`."""
    if status in FINISHED:
        return "done"
    return "waiting" if status in WAITING else "open"


LISTS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "open": (("open", "waiting"), ""),
    "done": (("done",), ""),
    **{
        status: ((group_of(status),), status)
        for status in (
            "running",
            "waiting",
            "suspended",
            "parked",
            "compensating",
            "completed",
            "failed",
            "cancelled",
            "rolled_back",
            "rollback_failed",
        )
    },
}
"""What a list of sagas can be asked for, as groups of the status index and, within them, one status.

Only what a saga can come to in this release; `pending` is none, because the first entry makes it `running`.
"""


def carriers(event: ev.Settles) -> Collection[tuple[str, str]]:
    """Sender and receiver of the tokens that carry an event's `errors`.

    Dead ones of the node itself.
    Of a failure that is caught its handlers know, too, and so do the
    unchosen ways out of a loop that ends with it.
    """
    if not event.errors:
        return ()
    is_lost = all(error.handled for error in event.errors)
    is_caught = any(token.alive for token in event.emits if token.src == event.node)
    return frozenset(
        (token.src, token.dst)
        for token in event.emits
        if (token.src == event.node and token.alive == is_caught) or (is_lost and not token.alive)
    )


def unrescued(
    ways: GraphIndex, src: str, name: str, arrived: Mapping[str, bool], carried: Iterable[Failure]
) -> tuple[Failure, ...]:
    """What the dead edge from `src` to `name` carries, less the failures
    that were caught and are rescued there.

    They are by a live edge from their handlers, or from nodes that are reached
    only through those; and at a handler by any failure that it is there for. An
    edge that is only taken when `src` fails is not lost by what else has failed.
    """
    is_handler = name in ways.handlers.get(src, ())
    return tuple(
        one for one in carried if not one.handled or not (is_handler or _is_rescued(ways, name, arrived, one))
    )


def _is_rescued(ways: GraphIndex, name: str, arrived: Mapping[str, bool], failure: Failure) -> bool:
    if any(alive and name in ways.handlers.get(src, ()) for src, alive in arrived.items()):
        return True
    through = ways.only_through(failure.node, failure.handled)
    return any(alive and src in through for src, alive in arrived.items())
