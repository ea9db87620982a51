"""diagnose(head, log, graph, now, limits) -> findings, and repair(findings) -> commands.
Findings are states of a saga that its writers never leave.

The log is the truth and the head a cache of it. A head is set right in place: it is made due, and the worker
that takes it writes what the fold says. Where the log itself cannot be read, the saga goes on in a new branch
from the last entry before that. The shell (runtime/recovery.py) reads strongly consistent, and performs the
commands in their order; each is one conditional write that can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from baton.core.decide.carrying import carry_problems
from baton.core.decide.decide import advance
from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.expressions import iso
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.folding.forks import recovery_cut
from baton.core.log.folding.received import CALLBACK
from baton.core.log.questions import WHOLE
from baton.core.log.records import Child, Shown
from baton.core.log.slots import Slot
from baton.core.log.state import ANSWER, State, group_of, status_of
from baton.core.log.undos import UndoBegan

LONGEST_INVOCATION_MS = 900_000
"""Lambda's limit, in milliseconds."""
NAMED = 50
"""Most steps and signals that a recovery names."""
_UNDOES = UndoBegan | ev.UndoStepBegan | ev.ChildUndone


class CachedHead(Protocol):
    """Head of a saga, as far as a diagnosis needs it (`Head` of ports/log.py)."""

    @property
    def status(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def branch(self) -> int: ...
    @property
    def folded(self) -> int: ...
    @property
    def snapshot(self) -> int: ...
    @property
    def owner(self) -> str: ...
    @property
    def until(self) -> int: ...
    @property
    def pending_wake(self) -> int: ...
    @property
    def inbox(self) -> int: ...
    @property
    def due_at(self) -> int | None: ...
    @property
    def lane(self) -> str: ...
    @property
    def armed(self) -> int: ...
    @property
    def expires(self) -> int: ...


class Damage(Struct, frozen=True, kw_only=True):
    """Entries `first` to `last` of a log, of which at least one cannot be read, and the readable entries
    behind `first`.

    `branch` and `tail`: place of the newest stored entry. `is_newer`: a newer release has written an entry.
    `is_certain`: what cannot be read is missing or is no JSON, which no release has written.
    """

    first: int
    last: int
    branch: int
    tail: int
    why: str
    is_certain: bool = True
    is_newer: bool = False
    later: tuple[ev.Entry, ...] = ()


class ReadLog(Struct, frozen=True, kw_only=True):
    """Log of a saga as it was read: its state, and the damage before which that state ends, if any."""

    state: State
    damage: Damage | None = None


class LostGraph(Struct, frozen=True, kw_only=True):
    """Graph of a saga whose object is gone or damaged.

    `data`: the same graph, compiled again from its document; empty: it cannot be, for the reason `why`.
    `back`: the change to the newest graph that the saga ran before and can go on with, if there is one.
    """

    graph: str
    data: bytes = b""
    why: str = ""
    back: ev.GraphChanged | None = None


def can_go_back(state: State, earlier: Program, since: Iterable[ev.Entry]) -> bool:
    """Return true if a saga can go on with a graph that it ran before: that has all places that something has
    come to, now or in the entries `since`, by the same names, and nothing of it would wait for what does not
    run any more.
    """
    slots = [slot for slot in state.tokens if "#" not in slot]
    names = {Slot.parse(slot).node for slot in (*slots, *state.closed, *state.late)}
    names |= {sender for slot in slots for sender in state.tokens[slot] if sender}
    events = [event for entry in since for event in entry.events]
    if any(isinstance(event, ev.GraphChanged) and event.renamed for event in events):
        return False
    names |= {token.dst for event in events if isinstance(event, ev.Settles) for token in event.emits}
    return names <= earlier.nodes.keys() and not carry_problems(state, earlier, earlier, may_run=False)


class MakeDue(Struct, frozen=True):
    """Make the head due now, unless it has changed: a worker takes it and writes the truth."""


class EndLease(Struct, frozen=True):
    """End the lease in its holder's name, unless the head has changed: the next worker records a death."""


class PutGraph(Struct, frozen=True):
    """Store the bytes of a graph again, under the name that is the hash of these bytes."""

    data: bytes


class GoBack(Struct, frozen=True):
    """Append the change to an earlier graph, unless that version exists."""

    version: int
    branch: int
    change: ev.GraphChanged


class Recover(Struct, frozen=True):
    """Append the entry with which the saga goes on in a new branch, unless that version exists."""

    version: int
    branch: int
    cut: int
    recovery: ev.WorkflowRecovered


Command: TypeAlias = MakeDue | EndLease | PutGraph | GoBack | Recover

NOT_DUE, STALE, NOT_WOKEN, DUE_TOO_LATE = "not_due", "stale_head", "not_woken", "due_too_late"
LEASE_TOO_LONG, STILL_DUE, GRAPH_LOST = "lease_too_long", "still_due", "graph_lost"
UNREADABLE, NOTHING_STABLE, NEWER_RELEASE = "unreadable_entries", "nothing_stable", "newer_release"
UNREADABLE_HEAD = "unreadable_head"
FINDINGS = {
    NOT_DUE: "The saga has not ended and is in no index, so no worker is ever woken for it.",
    DUE_TOO_LATE: "The saga is due later than any sweep lets it wait.",
    NOT_WOKEN: "The log has entries that no worker has taken in for minutes.",
    STALE: "The head says something else of the saga than its log.",
    STILL_DUE: "The saga has ended and is in the due index.",
    LEASE_TOO_LONG: "The lease ends later than any invocation can.",
    GRAPH_LOST: "The object of the saga's graph is gone or damaged.",
    UNREADABLE: "Entries of the log are missing or damaged.",
    NOTHING_STABLE: "No entry before the damage can be read, and no snapshot.",
    UNREADABLE_HEAD: "The head is damaged.",
    NEWER_RELEASE: "A newer release has written an entry that this one does not know.",
}
"""Findings by code, for the pages."""


class Finding(Struct, frozen=True, kw_only=True):
    """State of a saga that its writers never leave.

    `message` says what is wrong and where, `remedy` what sets it right. `commands` do so; without them a
    person has to. `is_automatic`: a worker or the reconciler may perform them without being asked to.
    """

    code: str
    message: str
    remedy: str
    commands: tuple[Command, ...] = ()
    is_automatic: bool = True


def diagnose(
    head: CachedHead,
    log: ReadLog,
    graph: Program | LostGraph | None,
    now: int,
    limits: Limits,
) -> tuple[Finding, ...]:
    """Return what is wrong with a saga, what has to be set right first in front.

    `head` is as it was before and after the log was read. `graph`: its program, or None if it was not looked
    for. Under a lease that holds, only the log and the graph are judged: the head is its holder's.
    """
    found: list[Finding] = []
    if isinstance(graph, LostGraph):
        found.append(_lost(graph, log))
    if head.owner and head.until > now + LONGEST_INVOCATION_MS + limits.lease_grace_ms + limits.clock_skew_ms:
        message = f"the lease of {head.owner} ends at {iso(head.until)}, later than any invocation"
        found.append(
            _finding(
                LEASE_TOO_LONG, message, "the lease is ended, and the next worker counts a death", EndLease()
            )
        )
    is_free = not head.owner or now >= head.until + limits.clock_skew_ms
    if log.damage is not None:
        found.append(_unreadable(log.state, log.damage, head, is_free=is_free))
    elif is_free:
        found += _of_head(head, log.state, graph if isinstance(graph, Program) else None, now, limits)
    return tuple(found)


def repair(findings: Iterable[Finding], *, asked: bool = True) -> tuple[Command, ...]:
    """Return the commands that set right what was found, each once, in the order in which to perform them.
    Not `asked`: only what no person has to decide.
    """
    commands: list[Command] = []
    for finding in findings:
        if asked or finding.is_automatic:
            commands += (one for one in finding.commands if one not in commands)
    return tuple(commands)


def _finding(code: str, message: str, remedy: str, *commands: Command, is_automatic: bool = True) -> Finding:
    return Finding(code=code, message=message, remedy=remedy, commands=commands, is_automatic=is_automatic)


_WAKE = "it is made due now, and the worker that takes it writes the head anew"


def damaged_head(why: str) -> Finding:
    """Return the finding of a head that cannot be read."""
    return _finding(UNREADABLE_HEAD, why, "restore the item from a point in time; its log is not touched")


def _of_head(
    head: CachedHead, state: State, program: Program | None, now: int, limits: Limits
) -> Iterable[Finding]:
    """Yield what is wrong with a head that no worker holds."""
    due, version = head.due_at if head.lane else None, state.version
    if head.owner or (due is not None and due <= now + limits.clock_skew_ms):
        return  # the next worker is about to take it
    if state.ended is None and due is None:
        yield _finding(NOT_DUE, f"the saga is {status_of(state, program)} and in no index", _WAKE, MakeDue())
        return
    latest = now + limits.sweep_longest_ms + limits.timer_by_message_ms + limits.clock_skew_ms
    if due is not None and due > latest:
        yield _finding(DUE_TOO_LATE, f"the saga is due at {iso(due)}, after any sweep", _WAKE, MakeDue())
        return
    if head.folded < version:
        if state.last_at <= now - limits.busy_sweep_ms and state.ended is None:
            missed = f"entries {head.folded + 1} to {version}"
            yield _finding(
                NOT_WOKEN,
                f"no worker has taken in {missed}, the last of {iso(state.last_at)}",
                _WAKE,
                MakeDue(),
            )
        elif state.ended is not None and due is None:
            yield _finding(
                STALE, f"the head ends at version {head.folded}, and the log at {version}", _WAKE, MakeDue()
            )
        return
    if wrong := _wrong_cache(head, state, program):
        yield _finding(STALE, wrong, _WAKE, MakeDue())
    elif state.ended is not None and due is not None and not _has_more_to_do(head, state, now):
        yield _finding(STILL_DUE, f"the saga has ended and is due at {iso(due)}", _WAKE, MakeDue())


def _has_more_to_do(head: CachedHead, state: State, now: int) -> bool:
    """Return true if an ended saga is due for a reason: a fork that may come, or rows of its questions."""
    return head.armed > now or bool(head.inbox or state.outbox.rows)


def _wrong_cache(head: CachedHead, state: State, program: Program | None) -> str:
    """Return in words what a head that has taken in the whole log says wrongly; empty: nothing."""
    status = status_of(state, program)
    if program is not None and head.status != status:
        return f"the head says {head.status}, and the log {status}"
    if head.group != group_of(head.status):
        return f"the head is listed as {head.group}, and is {head.status}"
    if head.branch != state.lineage.branch:
        return f"the head says branch {head.branch}, and the log {state.lineage.branch}"
    return ""


def _lost(graph: LostGraph, log: ReadLog) -> Finding:
    message = f"the object of graph {graph.graph} is gone or damaged"
    if graph.data:
        remedy = "its document compiles to the same graph, which is stored again"
        return _finding(GRAPH_LOST, message, remedy, PutGraph(graph.data), MakeDue())
    if graph.back is not None and log.damage is None:
        state, back = log.state, graph.back
        remedy = f"{graph.why}: the saga goes on with graph {back.graph}, which it ran before"
        return _finding(
            GRAPH_LOST, message, remedy, GoBack(state.version + 1, state.lineage.branch, back), MakeDue()
        )
    remedy = f"{graph.why}: restore the object from its bucket's versions or a backup, then resume the saga"
    return _finding(GRAPH_LOST, message, remedy)


def _unreadable(state: State, damage: Damage, head: CachedHead, *, is_free: bool) -> Finding:
    """Return the finding of a damaged log, and the recovery from it, if there is one."""
    first, last, cut = damage.first, damage.last, _cut(state, damage)
    which = f"entry {first}" if first == last else f"entries {first} to {last}"
    message = f"{which} of the log cannot be read: {damage.why}"
    if damage.is_newer:
        return _finding(NEWER_RELEASE, message, "deploy the release that wrote it, or a later one")
    if cut < 1:
        remedy = "nothing before it can be read: restore the table from a point in time, or start another saga with the same input"
        return _finding(NOTHING_STABLE, message, remedy)
    cuts = (recovery_cut(entry) for entry in damage.later)
    if any(known is not None and known <= state.version for known in cuts):
        remedy = "a recovery is behind it, and no load takes it in: this is a defect of the deployed release"
        return _finding(UNREADABLE, message, remedy)
    has_undone = any(isinstance(event, _UNDOES) for entry in damage.later for event in entry.events)
    if has_undone or (cut < state.version and state.undo.incarnation):
        remedy = (
            "steps were undone behind it, which would count as done: restore the table from a point in time, "
            "or start another saga"
        )
        return _finding(UNREADABLE, message, remedy)
    recovery = _recovery(state, damage, cut)
    remedy = f"the saga goes on from version {cut} in branch {damage.branch + 1}"
    if head.status == "suspended":
        remedy += "; a question that was asked later is asked again with a new id"
    if recovery.ended is not None:
        remedy = (
            f"the saga stays {recovery.ended.status}; it can be forked from version {cut} or an earlier one"
        )
    if not is_free:
        return _finding(UNREADABLE, message, f"{remedy}, once the worker that holds it is done")
    recover = Recover(damage.tail + 1, damage.branch, cut, recovery)
    # Due first: a repair that dies in between leaves a saga that a worker takes, and that is diagnosed again.
    is_automatic = damage.is_certain and recovery.ended is None
    commands = (MakeDue(), recover)
    return _finding(UNREADABLE, message, remedy, *commands, is_automatic=is_automatic)


def _cut(state: State, damage: Damage) -> int:
    """Return the last version of the present history before the damage: a fork behind it may have left the
    newest ones.
    """
    if state.origin.source and not state.origin.copied:
        return 0  # all before it is of another saga, whose children and effects this one must not touch
    forks = (event.cut for entry in damage.later for event in entry.events if isinstance(event, ev.Forked))
    return min([state.version, *forks])


def _recovery(state: State, damage: Damage, cut: int) -> ev.WorkflowRecovered:
    """Return the event of the recovery, with what the readable entries behind the cut say."""
    events = [event for entry in damage.later for event in entry.events]
    children, shown = dict[str, Child](), dict[str, Shown]()
    cancel: ev.CancelRequested | None = None
    ended: ev.SagaEnded | None = None
    spent, pauses = 0, dict[str, ev.Parked]()
    for event in events:
        if isinstance(event, ev.Opening) and (child := event.work().orphan) is not None:
            children[child.saga] = replace(child, input=ev.Value(), passed={})
        elif isinstance(event, ev.ChildReported):
            children.pop(event.child, None)
            spent += event.cost
        elif isinstance(event, ev.NoticesSent):
            shown = {key: row for key, row in {**shown, **event.shown}.items() if key not in event.withdrawn}
        elif isinstance(event, ev.CancelRequested):
            cancel = event if cancel is None else cancel.with_another(event)
        elif isinstance(event, ev.Parked) and event.is_pause:
            pauses[event.code] = event
        elif isinstance(event, ev.Resumed):
            pauses.pop(event.code, None)
        elif isinstance(event, ev.Attempted):
            spent += event.cost
        ended = event if isinstance(event, ev.SagaEnded) else None if isinstance(event, ev.Forked) else ended
        cancel = None if isinstance(event, ev.Forked) else cancel
    return ev.WorkflowRecovered(
        reason=damage.why,
        first=damage.first,
        last=damage.last,
        steps=tuple(dict.fromkeys(e.slot for e in events if isinstance(e, ev.StepSucceeded)))[:NAMED],
        signals=tuple(dict.fromkeys(_names(events)))[:NAMED],
        children=tuple(children.values()),
        shown=shown,
        spent=spent,
        cancel=cancel,
        pauses=tuple(pauses.values()),
        ended=ended,
    )


def _names(events: Sequence[ev.Event]) -> Iterable[str]:
    """Yield the signals that came behind the cut, in words."""
    for event in events:
        if isinstance(event, ev.QuestionClosed):
            yield f"answer of {event.slot or WHOLE}"
        elif isinstance(event, ev.SignalReceived) and event.name == CALLBACK:
            yield f"callback {event.key}"
        elif isinstance(event, ev.SignalReceived) and event.name == ANSWER:
            yield f"answer {event.key}"
        elif isinstance(event, ev.SignalReceived):
            yield event.name


# ---- deciding again

_GIVEN = ev.Attempted | ev.ChildReported | ev.NoticesSent | ev.UnitRecorded
"""Events that say what has happened: an outcome, or what another writer knows."""
_FOLLOWS = (
    ev.Opening | ev.Closing | ev.Moving | ev.NodeSkipped | ev.JoinFired | ev.NodeAdmitted | ev.NodeBegan
    | ev.SagaEnded
)  # fmt: skip
"""Events that a decision records because of them."""
_COMPARED = frozenset({"kind", "node", "iteration", "item", "emits", "status", "signal", "child"})


def decided_again(program: Program, before: State, entry: ev.Entry) -> tuple[list[str], list[str]] | None:
    """Return what an entry of a worker records and what would be decided now, each a line an event, sorted.

    None where that cannot be told: the entry is another writer's, or has a failure, a notice or a report;
    the decision needs a value outside the state, a sandbox or the code of a function; or the saga stops.
    """
    succeeded = [event for event in entry.events if isinstance(event, ev.StepSucceeded)]
    rest = [event for event in entry.events if not isinstance(event, ev.StepSucceeded)]
    is_told = entry.epoch and not before.is_stopping and before.parked is None
    if not is_told or any(isinstance(one, _GIVEN) or not isinstance(one, _FOLLOWS) for one in rest):
        return None
    if any(node.function for node in program.graph.nodes) or any(one.callback for one in succeeded):
        return None
    outcomes = [_outcome(one) for one in succeeded]
    made = advance(program, before, outcomes, entry.at)
    if made.more or made.decision.is_lacking or made.taken < len(outcomes):
        return None
    return _lines(entry.events), _lines(made.events)


def _outcome(event: ev.StepSucceeded) -> Outcome:
    """Return the outcome that an event records."""
    return Outcome(
        slot=event.slot,
        attempt=event.attempt,
        started_at=event.started_at,
        ended_at=event.ended_at,
        output=event.full or event.output,
        cost=event.cost,
        tool=event.tool,
        tool_version=event.tool_version,
        schema_hash=event.schema_hash,
        usage=event.usage,
        assumed=event.assumed,
        digest=event.digest,
        recorded=event.recorded,
    )


def _lines(events: Iterable[ev.Event]) -> list[str]:
    """Return of each event what the same log must lead to: its kind, its place and the tokens it emits."""
    return sorted(
        " ".join(f"{key}={value}" for key, value in to_builtins(event).items() if key in _COMPARED)
        for event in events
    )
