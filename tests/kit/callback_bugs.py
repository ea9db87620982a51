"""Planted bugs of callbacks; how they are searched for is in planted.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from baton.core.log import fold as folding
from baton.core.log.callbacks import CALLBACK, slot_in
from baton.core.log.events import AttemptFailed, SignalReceived
from baton.core.log.state import State, slot_of


@contextmanager
def _folding(kind: type[Any], new: Callable[[State, Any], State]) -> Iterator[None]:
    old = folding._TABLE[kind]
    folding._TABLE[kind] = new
    try:
        yield
    finally:
        folding._TABLE[kind] = old


@contextmanager
def an_old_attempts_token_is_accepted() -> Iterator[None]:
    """Callback row: what was handed over and is over has the id, and so the token, of what is handed over next."""
    real = folding._TABLE[AttemptFailed]

    def attempt_failed(state: State, e: AttemptFailed) -> State:
        after, slot = real(state, e), slot_of(e.node, e.iteration, e.item)
        if not e.callback or slot not in after.failing:
            return after
        keys = {key: value for key, value in after.keys.items() if not key.endswith(f"/{e.callback}")}
        failing = {**after.failing, slot: replace(after.failing[slot], handovers=0)}
        return replace(after, keys=keys, failing=failing)

    with _folding(AttemptFailed, attempt_failed):
        yield


@contextmanager
def a_callback_before_the_return_is_lost() -> Iterator[None]:
    """Callback row: a completion counts only where the log knows already that something was handed over."""
    real = folding._TABLE[SignalReceived]

    def signal_received(state: State, e: SignalReceived) -> State:
        after = real(state, e)
        is_early = e.name == CALLBACK and slot_in(e.key) not in state.open
        return replace(after, signals=state.signals) if is_early else after

    with _folding(SignalReceived, signal_received):
        yield
