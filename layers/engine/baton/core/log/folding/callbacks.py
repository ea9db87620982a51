"""Callbacks in a state: their ids, what was said of them, and what is left when one is over.

Tokens are in runtime/desks/callbacks.py. What a task does about its callback is in core/nodes/task.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from baton.core.failures.classes import RETRYABLE
from baton.core.failures.codes import PERMANENT, TRANSIENT, class_of
from baton.core.log import events as ev
from baton.core.log.folding.signal_folds import key_in, remember, signal_key
from baton.core.log.state import Signal, State, slot_of, without
from baton.core.log.work import Callback, Open

CALLBACK = ":callback"  # the name of the signal that completes one: none that a workflow can wait for
SUCCESS, FAILURE, HEARTBEAT = "success", "failure", "heartbeat"
"""What work elsewhere can say."""
_OVER = "/"  # before the code with which one ended: no fingerprint begins so


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What work elsewhere says: `status` is SUCCESS, FAILURE or HEARTBEAT. `retryable` None: as its code says."""

    status: str
    output: Any = None
    code: str = ""
    message: str = ""
    retryable: bool | None = None

    def failure(self) -> ev.Failure | None:
        """Of what was said to have failed. Secrets are removed from its message."""
        if self.status != FAILURE:
            return None
        class_ = class_of(self.code)
        if self.retryable is not None and self.retryable != (class_ in RETRYABLE):
            class_ = TRANSIENT if self.retryable else PERMANENT
        return replace(ev.failed_with(self.code, self.message), kind=class_)


def callback_of(state: State, slot: str) -> str:
    """The id of the callback that the step at `slot` waits for, or will: branch, slot, and number of the handover.

    The number goes up when what was handed over has ended without success. So attempts at handing over the same work
    give the same id, and with it the same token.
    """
    work = state.open.get(slot)
    if isinstance(work, Callback):
        return work.id
    failing = state.failing.get(slot)
    return f"{state.lineage.branch}.{slot}.{1 if failing is None else failing.handovers + 1}"


def is_elsewhere(state: State, slot: str) -> bool:
    """Whether the attempt at this slot goes on elsewhere."""
    return isinstance(state.open.get(slot), Callback)


def slot_in(callback: str) -> str:
    """The slot that an id names."""
    return callback.partition(".")[2].rpartition(".")[0]


def said_of(state: State, callback: str) -> Signal | None:
    """The completion that waits to be taken, if one has come."""
    known = (one for one in state.signals if one.name == CALLBACK and one.key == callback)
    return next(known, None) if state.signals else None


def completed_with(state: State, callback: str) -> str:
    """The fingerprint of what completed it; empty where nothing did, or where that is forgotten."""
    known = key_in(state, CALLBACK, callback)
    return "" if known.startswith(_OVER) else known


def ended_with(state: State, callback: str) -> str:
    """The code with which it ended without a completion; empty if it did not, or where that is forgotten."""
    known = key_in(state, CALLBACK, callback)
    return known.removeprefix(_OVER) if known.startswith(_OVER) else ""


def why_over(state: State, callback: str) -> str:
    """Why nothing that is said of it counts any more; empty as long as it counts."""
    slot = slot_in(callback)
    if completed_with(state, callback):
        return "it has been completed"
    is_later = slot in state.tokens and callback_of(state, slot) != callback
    if code := ended_with(state, callback):
        return f"it has ended with `{code}`" + (", and is superseded by another attempt" if is_later else "")
    if state.ended is not None:
        return f"its saga has ended: {state.ended.status}"
    if state.is_stopping:
        return "its saga is being cancelled" if state.cancel is not None else "its saga ends"
    if slot not in state.tokens:
        return "its step is over"
    if not is_later:
        return ""
    is_forked = callback.partition(".")[0] != str(state.lineage.branch)
    return "its saga has gone on in another branch" if is_forked else "it is superseded by another attempt"


def callback_over(state: State, slot: str, callback: str, code: str) -> State:
    """Without the callback of a step, when an attempt ends with it. `code`: of the failure, empty for a success."""
    key = signal_key(CALLBACK, callback)
    return replace(
        state,
        signals=tuple(one for one in state.signals if (one.name, one.key) != (CALLBACK, callback)),
        keys=state.keys if key in state.keys else remember(state, {key: _OVER + code}),
        open=without(state.open, (slot,)),
    )


def completions_of(work: Mapping[str, Open], state: State) -> dict[str, Signal]:
    """The completions in `state` of the callbacks in this work, by their keys."""
    ids = {one.id for one in work.values() if isinstance(one, Callback)}
    return {
        signal_key(CALLBACK, one.key): one for one in state.signals if one.name == CALLBACK and one.key in ids
    }


def heartbeat_heard(state: State, e: ev.CallbackHeartbeat) -> State:
    slot = slot_of(e.node, e.iteration, e.item)
    work = state.open.get(slot)
    if not isinstance(work, Callback) or work.id != e.callback or e.at <= work.heard_at:
        return state
    return replace(state, open={**state.open, slot: replace(work, heard_at=e.at)})
