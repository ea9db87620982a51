"""Planted bugs of callbacks; how they are searched for is in planted.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from baton.core.log.events import AttemptFailed, CallbackOpened, SignalReceived
from baton.core.log.folding import failure_folds
from baton.core.log.folding import fold as folding
from baton.core.log.folding.received import CALLBACK, completed_with, slot_in
from baton.core.log.state import State, without
from baton.runtime.requests import callbacks
from tests.kit.bugs import replaced


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
        after, slot = real(state, e), e.slot
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


@contextmanager
def a_callback_outlives_its_time() -> Iterator[None]:
    """Callback row: the attempt that failed for silence leaves its callback open, which is then silent once more."""
    with replaced(failure_folds, "callback_over", lambda state, slot, callback, code: state):
        yield


@contextmanager
def what_comes_after_the_end_is_accepted() -> Iterator[None]:
    """Callback row: the API asks whether the callback is completed, and not whether it is over."""

    def why_over(state: State, callback: str) -> str:
        return "it has been completed" if completed_with(state, callback) else ""

    with replaced(callbacks, "why_over", why_over):
        yield


@contextmanager
def a_heartbeat_is_answered_and_not_recorded() -> Iterator[None]:
    """Callback row: the entry is left out where the work is known, and not where it was heard just now."""
    with replaced(callbacks, "CallbackHeartbeat", lambda **_: None):
        yield


@contextmanager
def a_failure_is_recorded_as_a_success() -> Iterator[None]:
    """Callback row: the completion's entry has the output, and what failed has none."""

    def signal(**said: Any) -> SignalReceived:
        return SignalReceived(**{**said, "failure": None})

    with replaced(callbacks, "SignalReceived", signal):
        yield


@contextmanager
def work_elsewhere_holds_up_no_end() -> Iterator[None]:
    """Callback row: the handover takes the token of its step, so the saga ends when nothing else is in flight."""
    real = folding._TABLE[CallbackOpened]

    def callback_opened(state: State, e: CallbackOpened) -> State:
        after = real(state, e)
        return replace(after, tokens=without(after.tokens, (e.slot,)))

    with _folding(CallbackOpened, callback_opened):
        yield
