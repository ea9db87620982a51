"""Signals in a state: how they are remembered, so that a repetition is known; for the table of fold.py."""

from __future__ import annotations

import hashlib

import msgspec
from msgspec.structs import replace

from baton.core.log import events as ev
from baton.core.log.opened import Child
from baton.core.log.state import FORK_KEY, KEYS_REMEMBERED, Signal, State


def signal_key(name: str, key: str) -> str:
    """The key under which a signal is remembered."""
    return f"{name}/{key}"


def fingerprint(payload: ev.Value, failure: ev.Failure | None = None) -> str:
    """Tells a repeated signal from another one that came under the same key."""
    said = payload if failure is None else failure
    return hashlib.sha256(msgspec.json.encode(said, order="deterministic")).hexdigest()[:12]


def not_taken(state: State, slot: str, key: str) -> tuple[Signal, ...]:
    """The signals that wait, without the one of this key that the open wait at `slot` has taken."""
    work = state.open.get(slot)
    name = "" if work is None else work.signal
    # By name too: a caller may have given another signal the key "time".
    return tuple(other for other in state.signals if (other.name, other.key) != (name, key))


def call_off(state: State, child: Child) -> Signal | None:
    """The signal for which a child is cancelled, if there is one."""
    if not child.listens:
        return None
    return next((one for one in state.signals if one.name == child.listens), None)


def key_in(state: State, name: str, key: str) -> str:
    """What is remembered of a signal; empty for one that is not known."""
    return state.keys.get(signal_key(name, key), "")


def remember(state: State, news: dict[str, str]) -> dict[str, str]:
    """The keys with new ones.

    Only so many are remembered, besides those of forks and of signals that wait: with such a signal, a wait would take
    another one that came under its key.
    """
    keys = {**state.keys, **news}
    if len(keys) > KEYS_REMEMBERED:  # besides those that stay
        waiting = {signal_key(signal.name, signal.key) for signal in state.signals}
        others = [known for known in keys if known not in waiting and not known.startswith(FORK_KEY)]
        for known in others[: max(len(others) - KEYS_REMEMBERED, 0)]:
            del keys[known]
    return keys


def signal_received(state: State, e: ev.SignalReceived) -> State:
    key = signal_key(e.name, e.key)
    if e.lost or key in state.keys:  # keys of lost signals would push out those of signals that were taken
        return state
    state = replace(state, signals=(*state.signals, Signal.of(e)))
    return replace(state, keys=remember(state, {key: fingerprint(e.payload, e.failure)}))
