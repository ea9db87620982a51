"""The folded state of a saga: exactly the data that later decisions can still need.

Transitions are in folding/fold.py, decisions in core/decide/decide.py. Values are replaced, never changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from baton.core.failures.alternatives import Alternative
from baton.core.failures.codes import SCHEMA_CHANGED
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
from baton.core.log.incarnations import ReplacedSaga
from baton.core.log.records import Child, Failure, Paused, SharedLimit
from baton.core.log.scopes import MadeCall
from baton.core.log.slots import Slot
from baton.core.log.undos import Undoable
from baton.core.log.work import Journal, Open, child_in, children_in
from baton.core.models.usage import Allowance

KEYS_REMEMBERED = 200  # and those of signals that wait, and of forks, however many
NOTICES_REMEMBERED = 50
UNKNOWN_OUTCOME = "unknown_outcome"  # of an effect that may have happened
FAULT = "fault"  # why an attempt ended that was stopped because the engine could not go on
FORK_KEY = "/fork/"  # begins as no signal's key can: those begin with the signal's name
CHANGE_KEY = "/graph/"  # that of a change of the graph
ANSWER = ":answer"  # the name of the signal that answers a question: none that a workflow can wait for
LONGEST_ID = 400  # characters of a saga's id: it is a key of the table, and a part of its children's ids


_V = TypeVar("_V")


def without(values: dict[str, _V], keys: Collection[str]) -> dict[str, _V]:
    """Return the same values without those of these keys."""
    if not values or values.keys().isdisjoint(keys):
        return values
    left = values.copy()  # of a wide graph's slots many times faster than one by one
    for key in keys:
        left.pop(key, None)
    return left


class Signal(msgspec.Struct, frozen=True, omit_defaults=True):
    """A signal that waits to be taken.

    `at`: the time when it was sent; 0 in old snapshots. `by`: the person who answered a question; empty for
    other signals.
    """

    name: str
    key: str
    payload: Value
    failure: Failure | None = None
    by: str = ""
    at: int = 0

    @classmethod
    def of(cls, event: SignalReceived) -> Signal:
        """Return the part of a signal's event that is kept."""
        by = event.by if event.name == ANSWER else ""
        return cls(event.name, event.key, event.payload, event.failure, by, event.at)

    def is_in_time(self, until: int | None) -> bool:
        """Return true if the signal came before the time of a wait was over, no matter when a
        worker checks.
        """
        return until is None or self.at < until


class Failing(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A step with failed attempts: their number, the last failure, and the reaction to it.

    `history` and `policies` (uses by name) are the reactions since the step began; the other fields are from
    `StrategyChosen`.
    `builds`: code under which it has failed with a defect since a person last decided, the newest last.
    `incident`: the code of the failure that on-call knows of.
    `decided`: the owner of the claim whose outcome a person has given; `given`: that outcome.
    `handovers`: number of handovers that ended without success. `correction`: the fault of the model's last
    answer that was refused; `refused`: that answer, as JSON, or its beginning.
    `kept`: the arguments of the last attempt that its inverse needs. `key`: likewise, the idempotency key of
    the last attempt that may have acted.
    `began`: the start of the first attempt of an inverse, later by the time for which it was held back.
    `acted`: an attempt before the last may have acted, and its outcome is unknown.
    `left`: the step goes on with another call since the last attempt, and possible effects of earlier
    attempts have their own place in the list to undo.
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
    refused: str = ""
    kept: Value | None = None
    began: int = 0
    builds: tuple[str, ...] = ()
    incident: str = ""
    acted: bool = False
    key: str = ""
    left: bool = False


class Held(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A step that waits since `at` for a circuit breaker, or for money, and asks again at `until`.

    `state`: that of the breaker. `limit`: the code of the limit whose rest others hold; the next attempt
    needs `amount` of it, in micro-dollars, and reserves that `first`, or else with its request.
    """

    breaker: str
    at: int
    until: int
    state: str = "open"
    limit: str = ""
    amount: int = 0
    first: bool = False


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """The entries `first`..`last` (both included) of `branch` that belong to this history."""

    branch: int
    first: int
    last: int


class Used(msgspec.Struct, frozen=True, omit_defaults=True):
    """Use of a saga or a node that its limits count.

    `last`: the time when a step of it last ended. `since`: the time when a fork restarted the saga's time.
    `turns`: those of its agents, if a saga above limits them. `retries`: those of its steps.
    `retry_time`: the milliseconds of their pauses and repeated attempts.
    """

    hops: int = 0
    bytes: int = 0
    cost: int = 0
    last: int = 0
    since: int = 0
    tokens: int = 0
    retries: int = 0
    retry_time: int = 0
    turns: int = 0


class EarlierGraph(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A graph that the saga ran before, up to its version `last`; the other fields are those of `Origin`."""

    graph: str
    workflow: str
    last: int
    document: str = ""


class Origin(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The facts of a saga's start. Only `GraphChanged` changes some: workflow, graph and document."""

    tenant: str = ""
    saga: str = ""
    user: str = ""
    workflow: str = ""
    graph: str = ""
    """The hash of its graph; of a named graph of a document, the document's hash, `#` and the name."""
    document: str = ""
    """The hash of the document of a graph that is no version of the workflow; empty: it is one."""
    input: Value = Value()
    parent: str = ""
    """The key of the saga that waits for this one; the next two fields are the slot there and the window of
    its inbox.
    """
    parent_slot: str = ""
    parent_window: int = 0
    depth: int = 0
    """The number of sagas above it."""
    scope: str = ""
    """Its place in the sagas above, the same in every branch of them: an effect that happens once there
    happens once in all.
    """
    handled: bool = False
    """True if a saga above goes on from its failure."""
    last: str = ""
    """Action of its deployment in place of a question: `escalate` or `fail`. Empty: the saga asks."""
    traceparent: str = ""
    started_at: int = 0
    ends_by: int = 0
    """The latest moment of its end. 0: no limit."""
    expires: int = 0
    """The moment from which all of its data may be deleted. 0: never."""
    labels: dict[str, str] = {}
    outer: Value | None = None
    """Of a named graph: `item`, `index`, `last_error` and `ctx` of the place that started it, as far as it
    names them.
    """
    passed: dict[str, Value] = {}
    """The values of its starter that are passed by reference, by their names in its expressions: they are not
    copied.
    """
    before: tuple[ReplacedSaga, ...] = ()
    """The sagas that were in its place before forks above it, the newest first."""
    shared_limits: tuple[SharedLimit, ...] = ()
    """The limits of money of the sagas above it, the nearest first."""
    allowed: Allowance | None = None
    """Tokens and turns that limits of the saga above leave to it; None: it has none."""
    source: str = ""
    """The saga from which it was forked."""
    copied: int = 0
    """Entries up to this version are that one's; 0: it has none, or the log goes no further."""
    tag: str = ""
    """The tag that named the version of its workflow at its start; empty: none did."""


class Lineage(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The entries that are its history: the closed segments of earlier branches, then `first` to the newest
    of `branch`.
    """

    branch: int = 0
    first: int = 1
    closed: tuple[Segment, ...] = ()


class Recovery(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Traces of crashes of its invocations."""

    consecutive_crashes: int = 0
    """Revivals in a row without any progress."""
    epoch: int = 0
    """The epoch of the last revival."""
    interruptions: dict[str, int] = {}
    """By slot, the number of interruptions by the end of an invocation since the last progress."""
    possibly_running: tuple[str, ...] = ()
    """Slots that were possibly running when an invocation ended, and have not reported since."""
    deaths: dict[str, int] = {}
    """By slot, the number of workers that died while it was under way without a cost assumed for their
    requests.
    """


class Counts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Numbers of events in all branches.

    Of these, `children` affects decisions (the window to which they report), and so do `steps`, if there are
    none.
    """

    steps: int = 0
    invocations: int = 0
    revivals: int = 0
    interrupted: int = 0
    children: int = 0


class Money(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Spending of a saga, in millionths of a dollar."""

    spent: int = 0
    """Cost that tools and children reported."""
    budget: int = 0
    """Most that it may spend; 0: the default."""
    models: dict[str, tuple[int, int, int]] = {}
    """For models alone, by name: tokens read, tokens written, and cost."""


class Outbox(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Notices to people that are not sent yet, and rows of the inbox."""

    due: tuple[Notice, ...] = ()
    sent: tuple[str, ...] = ()
    """The keys of the last notices that were sent."""
    rows: dict[str, Shown] = {}
    """Questions that the inbox shows, or may show, by id: the open ones, and others until they are
    withdrawn.
    """


class State(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """The part of a saga's history that still matters, by concern.

    Dictionaries without another stated key are by slot.
    """

    version: int = 0
    last_at: int = 0
    epoch: int = 0
    invocation: str = ""
    origin: Origin = Origin()
    lineage: Lineage = Lineage()
    graphs: tuple[EarlierGraph, ...] = ()
    """Graphs that it ran before the present one, the oldest first."""

    # ---- where it is
    tokens: dict[str, dict[str, bool]] = {}
    """Tokens that have arrived: sender to alive."""
    errors: dict[str, dict[str, tuple[Failure, ...]]] = {}
    """Failures that the dead tokens carry, by sender."""
    closed: dict[str, tuple[str, ...]] = {}
    """Of a join that fired early: the senders whose tokens have not arrived yet."""
    admitted: tuple[str, ...] = ()
    """Slots whose `when` is known to be true."""
    begun: dict[str, int] = {}
    """Time at which each slot with a time limit became ready."""
    first_started_at: dict[str, int] = {}
    """The same, kept over a fork."""
    outputs: dict[str, Value] = {}
    """By node, outputs that a later step can still read."""
    previous: dict[str, Value] = {}
    """By LOOP/NODE, outputs that a round reads of the one before."""
    pauses: dict[str, Paused] = {}
    """First nodes of rounds that begin after a pause, until they have ended."""

    # ---- what it has open
    open: dict[str, Open] = {}
    approved: dict[str, tuple[str, ...]] = {}
    """By slot, the digests of the calls that people have approved there."""
    items: dict[str, Value | None] = {}
    """Slots of items whose node is not settled, with their outputs; None: the item is at work."""
    journals: dict[str, Journal] = {}
    """Steps at work whose tools have recorded units of it."""
    made: dict[str, MadeCall] = {}
    """By digest, calls that have succeeded and that a model may plan again, the newest last."""
    orphaned_children: tuple[Child, ...] = ()
    """Children that a fork or a join left behind and that are not cancelled yet."""
    signals: tuple[Signal, ...] = ()
    keys: dict[str, str] = {}
    """Signals and forks that are remembered, by key."""

    # ---- how it ends, and what went wrong
    cancel: CancelRequested | None = None
    failure: Failure | None = None
    result: Value | None = None
    """Output with which it completes, from the moment an end was reached."""
    parked: Parked | None = None
    parked_in: int = 0
    """The version of the entry that parked it, now or last."""
    pinned: str = ""
    """The build of the code that it stays with; empty: it goes on with the newest."""
    stood: int = 0
    """Milliseconds for which its time has stood still, before it last went on."""
    ended: SagaEnded | None = None
    failing: dict[str, Failing] = {}
    held: dict[str, Held] = {}
    """Steps that wait for a circuit breaker."""
    corrections: dict[str, tuple[int, ...]] = {}
    """Times of unusable answers of models (folding/received.py)."""
    recovery: Recovery = Recovery()
    undo: Undoable = Undoable()

    # ---- what it has used, and what people are told
    counts: Counts = Counts()
    used: dict[str, Used] = {}
    """Use by scope with limits that count: nodes by name, the saga as an empty text."""
    money: Money = Money()
    outbox: Outbox = Outbox()

    def items_of(self, slot: str) -> dict[str, Value | None]:
        """Return the items of a node that does several things at once, by name; empty until it has begun."""
        if not self.items or "#" in slot:
            return {}
        first = len(begin := f"{slot}#")
        return {one[first:]: value for one, value in self.items.items() if one.startswith(begin)}

    def has_begun(self, slot: str) -> bool:
        """Return true if the node at `slot` has open work or items, which go on."""
        return slot in self.open or bool(self.items_of(slot))

    @property
    def children(self) -> dict[str, Child]:
        """The open child sagas, by slot."""
        return children_in(self.open)

    def child_at(self, slot: str) -> Child | None:
        """Return the open child saga at a slot; with thousands of them, `children` costs as many looks."""
        return child_in(self.open, slot)

    @property
    def late(self) -> set[str]:
        """The slots of maps that have gone on, and whose other items run beside the nodes after them."""
        return {slot for slot, one in self.open.items() if one.is_late}

    @property
    def in_flight(self) -> int:
        """Number of tokens emitted and not yet consumed: zero, with nothing open, is the end of the saga."""
        return sum(map(len, self.tokens.values()))

    @property
    def will_revert(self) -> bool:
        """True if the saga, once it stops, takes its effects back: its children then do so, even if it has
        none itself.
        """
        if self.result is not None:
            return False
        return self.cancel.undo if self.cancel is not None else not self.undo.stays

    @property
    def reverts_to(self) -> int | None:
        """The version down to which it takes its effects back, or has to; None: it has not to."""
        if self.undo.work is not None:
            return self.undo.work.back_to
        return self.cancel.back_to if self.cancel is not None and self.cancel.undo else None

    def incarnation_of(self, place: Slot) -> int:
        """Return the number of times that the work at a slot was undone; for an inverse, that of its
        subject.
        """
        return self.undo.generation(place.subject.text) if self.undo.incarnation else 0

    @property
    def lists_effects(self) -> bool:
        """True if it has the list of its effects, which begins with the first reversible one."""
        return self.undo.head > 0

    @property
    def given_up(self) -> set[str]:
        """The slots with work that could not be undone."""
        return {one.slot for one in self.undo.failed}

    def with_effects_kept(self) -> State:
        """Return the state of a saga that ends with its failure, and takes no effect back."""
        return replace(self, undo=replace(self.undo, stays=True))

    def in_scope(self, slot: str) -> bool:
        """Return true if the slot is a member of the rollback, which runs in place of the saga's nodes."""
        return self.undo.work is not None and slot in self.undo.work.steps

    @property
    def was_made_cancelled(self) -> bool:
        """True for a child that its parent cancelled before it existed: nothing of it runs."""
        return self.cancel is not None and not (self.tokens or self.counts.steps)

    @property
    def is_stopping(self) -> bool:
        """True if the saga starts nothing any more: it was cancelled, has failed, has its result, or undoes
        its effects.
        """
        is_over = self.cancel is not None or self.failure is not None or self.result is not None
        return is_over or self.undo.work is not None

    def is_over(self, slot: str) -> bool:
        """Return true if the saga stops, and the work at the slot is no part of its rollback."""
        return self.is_stopping and not Slot.parse(slot).scope

    @property
    def stands_still(self) -> bool:
        """True if the saga is parked for a defect, or paused: its timeouts do not run out then, and nothing
        is undone.
        """
        return self.parked is not None and self.parked.at > 0

    @property
    def is_paused(self) -> bool:
        """True if a person holds the saga back: it begins nothing."""
        return self.parked is not None and self.parked.is_pause

    @property
    def kills_workers(self) -> bool:
        """True if the saga is parked because its workers kept dying: nothing at all is done for it then."""
        return self.parked is not None and self.parked.code == "worker_killed"


FINISHED = frozenset({"completed", "failed", "cancelled", "rolled_back", "rollback_failed"})
WAITING = frozenset({"waiting", "suspended", "paused", "parked", "reflecting"})


class Readiness(Protocol):
    """Interface of `Program` for `status_of`: the readiness of nodes."""

    def has_come(self, state: State, slot: str) -> bool:
        """Return true if all that the join at `slot` waits for has arrived."""


def status_of(state: State, readiness: Readiness | None = None) -> str:
    """Return the status that the log implies; any stored status is a cache of this.

    `readiness` tells a join that still waits for an edge from one that is ready to run. Without it such a
    join counts as running.
    """
    if state.ended is not None:
        return state.ended.status
    if state.version == 0:
        return "pending"
    if state.parked is not None:
        if state.parked.is_pause:
            return "paused"
        return "reflecting" if state.stands_still and _does_not_fit(state) else "parked"
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
        if not is_open and (readiness is None or readiness.has_come(state, slot)):
            return "running"
    asks = any(failing.ask is not None for failing in state.failing.values())
    asks = asks or any(work.ask is not None for work in state.open.values())
    return "suspended" if asks else "waiting"


def _does_not_fit(state: State) -> bool:
    """Return true if a step waits for code whose schemas it fits."""
    return any(one.ask is not None and one.failure.code == SCHEMA_CHANGED for one in state.failing.values())


def _all_ask(state: State, slots: Collection[str]) -> bool:
    """Return true if the slots are not empty and each step waits for a person."""
    return bool(slots) and all(
        (slot in state.failing and state.failing[slot].ask is not None)
        or (slot in state.open and state.open[slot].ask is not None)
        for slot in slots
    )


def _is_held(failing: Failing | None) -> bool:
    """Return true if a step waits for an answer, or for its next attempt."""
    return failing is not None and (failing.ask is not None or failing.due_at > 0)


def group_of(status: str) -> str:
    """Return the part of the status index that a status belongs to: `open`, `waiting` or `done`."""
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
            "paused",
            "parked",
            "reflecting",
            "compensating",
            "completed",
            "failed",
            "cancelled",
            "rolled_back",
            "rollback_failed",
        )
    },
}
"""Filters for a list of sagas, each as groups of the status index and, within them, one status.

Only statuses of this release are here; `pending` is left out, because the first entry makes a saga `running`.
"""


def carriers(event: ev.Settles) -> Collection[tuple[str, str]]:
    """Return sender and receiver of the tokens that carry an event's `errors`.

    These are the dead tokens of the node itself. A caught failure goes to its handlers, too, and so it does
    to the unchosen ways out of a loop that ends with it.
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
    """Return the failures on the dead edge from `src` to `name`, without those that were caught and are
    rescued there.

    A failure is rescued by a live edge from its handlers, or from nodes to which a path leads from those.
    A handler rescues any failure that it is there for. An edge that is only taken when `src` fails is not
    lost by another failure.
    """
    is_handler = name in ways.handlers.get(src, ())
    return tuple(
        one for one in carried if not one.handled or not (is_handler or _is_rescued(ways, name, arrived, one))
    )


def _is_rescued(ways: GraphIndex, name: str, arrived: Mapping[str, bool], failure: Failure) -> bool:
    if any(alive and name in ways.handlers.get(src, ()) for src, alive in arrived.items()):
        return True
    found = ways.from_handlers(failure.handled)
    return any(alive and src in found for src, alive in arrived.items())


_NO_CRASHES = Recovery()


def with_progress(recovery: Recovery, gone: Collection[str]) -> Recovery:
    """Return the recovery after a node is settled: the crashes before are forgotten."""
    if recovery == _NO_CRASHES:
        return recovery
    running = tuple(slot for slot in recovery.possibly_running if slot not in gone)
    deaths = {slot: count for slot, count in recovery.deaths.items() if slot not in gone}
    return Recovery(epoch=recovery.epoch, possibly_running=running, deaths=deaths)


def clear_open_work(state: State) -> dict[str, Any]:
    """Return the fields that a saga empties once it goes no further."""
    return {
        "tokens": {},
        "errors": {},
        "closed": {},
        "admitted": (),
        "begun": {},
        "first_started_at": {},
        "failing": {},
        "held": {},
        "corrections": {},
        "outputs": {},
        "previous": {},
        "open": {},
        "approved": {},
        "items": {},
        "journals": {},
        "made": {},
        "signals": (),
        "recovery": replace(state.recovery, interruptions={}, possibly_running=(), deaths={}),
    }
