"""The status that a log implies, and the groups in which statuses are listed.

Derived from a state, and never stored in one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from baton.core.log.state import Failing, State

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
    if not state.open and not state.failing and not state.held:
        return "running"
    for slot in state.tokens:
        is_open = state.has_begun(slot) or slot in state.held or _is_held(state.failing.get(slot))
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
