"""fold(state, entry) -> state: the only place where a log becomes a state.

One small function per kind of event, registered in one table. A fold trusts the log (its writer
decided) but never counts twice: an event whose tokens are gone, whose wait is closed or whose key is
known changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from baton.core import events as ev
from baton.core.state import KEYS_REMEMBERED, Child, Segment, Signal, State, Wait, slot_of
from baton.errors import CorruptLog

FORK_KEY = "/fork/"  # begins as no signal's key can: those begin with the signal's name


def fold(state: State, entry: ev.Entry) -> State:
    """The state after `entry`. Raises `CorruptLog` when the entry is not the next one.

    A fork's entry cannot be folded alone, because it goes back in time: see `fork_to`.
    """
    if entry.version != state.version + 1 or entry.branch != state.branch:
        raise CorruptLog(
            f"entry {entry.branch}/{entry.version} cannot follow {state.branch}/{state.version} of {state.saga}"
        )
    for event in entry.events:
        state = apply(state, event)
    news: dict[str, Any] = {"version": entry.version, "last_at": entry.at}
    if entry.epoch:
        news["epoch"] = entry.epoch
        if any(isinstance(event, ev.Revived) for event in entry.events):
            news["careful"] = entry.epoch
        if entry.invocation != state.invocation:
            news["invocation"] = entry.invocation
            news["invocations"] = state.invocations + 1
    if entry.version == 1:
        news["traceparent"] = entry.traceparent
    return replace(state, **news)


def apply(state: State, event: ev.Event) -> State:
    """The state after one event of an entry, versions aside."""
    return _TABLE[type(event)](state, event)


def fork_to(before: State, at_cut: State, entry: ev.Entry, fork: ev.Forked) -> State:
    """The state with which branch `fork.branch` begins.

    `before` is the state before the fork's entry, `at_cut` the one at version `fork.cut` of the same
    history. Versions never go down: the new branch starts behind the fork's entry. Counters of what
    really happened are kept; the fork gives tries, cancels and parking a fresh start, and forgets the
    signals behind the cut. A child that is open on both sides goes on; any other open one is left
    behind, to be cancelled, and opened anew where the cut needs it.
    """
    if entry.version != before.version + 1 or entry.branch != before.branch:
        raise CorruptLog(
            f"fork {entry.branch}/{entry.version} cannot follow {before.branch}/{before.version}"
        )
    is_ending = bool(before.ended or before.cancel or before.failure)
    kept = {
        slot: child
        for slot, child in at_cut.children.items()
        if child.status or (not is_ending and _is_open(before.children.get(slot), child))
    }
    running = [child for child in before.children.values() if not child.status]
    staying = {child.saga for child in kept.values()}
    forks = {key: value for key, value in before.keys.items() if key.startswith(FORK_KEY)}
    if fork.key:
        forks[FORK_KEY + fork.key] = str(fork.cut)
    return replace(
        at_cut,
        version=entry.version,
        branch=fork.branch,
        branch_first=entry.version + 1,
        lineage=lineage_to(at_cut),
        last_at=entry.at,
        epoch=before.epoch,
        invocation=before.invocation,
        invocations=before.invocations,
        revivals=before.revivals,
        interrupted=before.interrupted,
        keys={**at_cut.keys, **forks},
        children=kept,
        left=(*before.left, *(child for child in running if child.saga not in staying)),
        cancel=None,
        failure=None,
        parked=None,
        ended=None,
        tries=0,
        interruptions={},
    )


def _is_open(known: Child | None, child: Child) -> bool:
    return known is not None and known.saga == child.saga and not known.status


def lineage_to(state: State) -> tuple[Segment, ...]:
    """All segments of the history of `state`, its own open one included."""
    if state.version < state.branch_first:
        return state.lineage
    return (*state.lineage, Segment(state.branch, state.branch_first, state.version))


def _emit(tokens: dict[str, dict[str, bool]], emits: tuple[ev.Token, ...]) -> None:
    for token in emits:
        slot = slot_of(token.dst, token.iteration)
        tokens[slot] = {**tokens.get(slot, {}), token.src: token.alive}


def _consume(state: State, event: ev._Consumes, output: ev.Value | None, **more: Any) -> State:
    """Tokens at the event's slot become the ones it emits; all the bookkeeping of a settled node."""
    slot = slot_of(event.node, event.iteration)
    if slot not in state.tokens:
        return state
    tokens = {key: value for key, value in state.tokens.items() if key != slot}
    _emit(tokens, event.emits)
    outputs = state.outputs
    if output is not None:
        outputs = {**outputs, event.node: output}
    if event.forget:
        outputs = {key: value for key, value in outputs.items() if key not in event.forget}
    return replace(
        state,
        tokens=tokens,
        outputs=outputs,
        interruptions={},  # any progress: the saga as a whole is not stuck
        tries=0,
        steps=state.steps + 1,
        **more,
    )


def signal_key(name: str, key: str) -> str:
    """What a signal is remembered by."""
    return f"{name}/{key}"


def fingerprint(payload: ev.Value) -> str:
    """Tells a repeated signal from another one that came under the same key."""
    return hashlib.sha256(msgspec.json.encode(payload, order="deterministic")).hexdigest()[:12]


def _started(state: State, e: ev.SagaStarted) -> State:
    tokens: dict[str, dict[str, bool]] = {}
    _emit(tokens, e.emits)
    return replace(
        state,
        workflow=e.workflow,
        graph=e.graph,
        tenant=e.tenant,
        user=e.user,
        saga=e.saga,
        parent=e.parent,
        parent_slot=e.slot,
        depth=e.depth,
        input=e.input,
        started_at=e.at,
        tokens=tokens,
    )


def _succeeded(state: State, e: ev.StepSucceeded) -> State:
    return _consume(state, e, e.output if e.keep else None)


def _failed(state: State, e: ev.StepFailed) -> State:
    if slot_of(e.node, e.iteration) not in state.tokens:
        return state
    return replace(state, failure=state.failure or e.failure, tries=0)


def _interrupted(state: State, e: ev.StepInterrupted) -> State:
    slot = slot_of(e.node, e.iteration)
    if slot not in state.tokens:
        return state
    counts = {**state.interruptions, slot: state.interruptions.get(slot, 0) + 1}
    return replace(state, interruptions=counts, interrupted=state.interrupted + 1)


def _skipped(state: State, e: ev.NodeSkipped) -> State:
    return _consume(state, e, None)


def _wait_opened(state: State, e: ev.WaitOpened) -> State:
    slot = slot_of(e.node, e.iteration)
    if slot not in state.tokens or slot in state.waits:
        return state
    return replace(state, waits={**state.waits, slot: Wait(until=e.until, signal=e.signal)})


def _wait_closed(state: State, e: ev.WaitClosed) -> State:
    slot = slot_of(e.node, e.iteration)
    wait = state.waits.get(slot, Wait())
    waits = {key: value for key, value in state.waits.items() if key != slot}
    # By name too: somebody may have called the key of another signal "time".
    signals = tuple(other for other in state.signals if (other.name, other.key) != (wait.signal, e.by))
    return _consume(state, e, e.output if e.keep else None, waits=waits, signals=signals)


def _child_opened(state: State, e: ev.ChildOpened) -> State:
    slot = slot_of(e.node, e.iteration)
    if slot not in state.tokens or slot in state.children:
        return state
    child = Child(saga=e.child, workflow=e.workflow, input=e.input)
    return replace(state, children={**state.children, slot: child})


def _child_reported(state: State, e: ev.ChildReported) -> State:
    child = state.children.get(e.slot)
    if child is None or child.saga != e.child or child.status:
        return state
    told = replace(child, status=e.status, output=e.output, failure=e.failure)
    return replace(state, children={**state.children, e.slot: told})


def _child_closed(state: State, e: ev.ChildClosed) -> State:
    slot = slot_of(e.node, e.iteration)
    children = {key: value for key, value in state.children.items() if key != slot}
    return _consume(state, e, e.output if e.keep else None, children=children)


def _signal(state: State, e: ev.SignalReceived) -> State:
    key = signal_key(e.name, e.key)
    if key in state.keys:
        return state
    signal = Signal(name=e.name, key=e.key, payload=e.payload)
    keys = {**state.keys, key: fingerprint(e.payload)}
    if len(keys) > KEYS_REMEMBERED:
        keys.pop(next(iter(keys)))
    return replace(state, signals=(*state.signals, signal), keys=keys)


def _cancel(state: State, e: ev.CancelRequested) -> State:
    """A second request may only shorten the grace of the first."""
    first = state.cancel
    if first is not None and first.at + first.grace_ms <= e.at + e.grace_ms:
        return state
    return replace(state, cancel=e)


def _revived(state: State, e: ev.Revived) -> State:
    """Deaths in a row: only the death of the last revival itself follows on from it.

    Whatever an invocation settled before it died has set `tries` to zero.
    """
    tries = state.tries + 1 if e.dead_epoch == state.careful else 1
    return replace(state, tries=tries, revivals=state.revivals + 1)


def _abandoned(state: State, e: ev.ChildrenAbandoned) -> State:
    return replace(state, left=tuple(child for child in state.left if child.saga not in e.children))


def _parked(state: State, e: ev.Parked) -> State:
    return replace(state, parked=e)


def _resumed(state: State, e: ev.Resumed) -> State:
    return replace(state, parked=None, tries=0, interruptions={})


def _forked(state: State, e: ev.Forked) -> State:
    raise CorruptLog(f"the fork of {state.saga} to branch {e.branch} was folded as if it went forward")


def _ended(state: State, e: ev.SagaEnded) -> State:
    return replace(
        state, ended=e, tokens={}, outputs={}, waits={}, children={}, left=(), signals=(), interruptions={}
    )


_TABLE: dict[type, Callable[[State, Any], State]] = cast(
    "dict[type, Callable[[State, Any], State]]",
    {
        ev.SagaStarted: _started,
        ev.StepSucceeded: _succeeded,
        ev.StepFailed: _failed,
        ev.StepInterrupted: _interrupted,
        ev.NodeSkipped: _skipped,
        ev.WaitOpened: _wait_opened,
        ev.WaitClosed: _wait_closed,
        ev.ChildOpened: _child_opened,
        ev.ChildReported: _child_reported,
        ev.ChildClosed: _child_closed,
        ev.ChildrenAbandoned: _abandoned,
        ev.SignalReceived: _signal,
        ev.CancelRequested: _cancel,
        ev.Revived: _revived,
        ev.Parked: _parked,
        ev.Resumed: _resumed,
        ev.Forked: _forked,
        ev.SagaEnded: _ended,
    },
)
