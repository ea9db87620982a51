"""What is shown of undoing: what of a saga could be undone, how far an undoing is, and what has come of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from baton.core.decide.program import Program
from baton.core.log.events import NotUndone
from baton.core.log.state import State
from baton.core.times import iso

OF_UNDOING = frozenset(
    {
        *(
            "prior",
            "lasting",
            "kept",
            "key",
            "acted",
            "not_before",
            "stays",
            "undo",
            "back_to",
            "together",
        ),
        *(
            "undoable",
            "undone",
            "again",
            "child",
            "doubtful",
            "stands",
            "doubts",
            "doubt",
            "redone",
            "stopped",
            "nothing",
        ),
    }
)
"""Fields of events that are shown where something is undone, or can be."""


def undo_view(state: State, program: Program) -> dict[str, Any] | None:
    """None for a saga that has done nothing that could be undone."""
    undo, work = state.undo, state.undo.work
    report = None if state.ended is None else state.ended.undone
    if not (program.undoes or undo.head or work is not None or report is not None):
        return None
    failed: Iterable[NotUndone] = (one for one in undo.failed if not one.doubt)
    shown: dict[str, Any] = {
        "undoable": undo.can,
        "lasting": undo.cannot,
        "failed": [_failed(one) for one in failed],
        "doubtful": list(undo.in_doubt),
        "more_failed": undo.set_aside,
        "more_doubtful": undo.unknown - len(undo.in_doubt),
        "under_way": None,
        "done": None,
    }
    if work is not None:
        shown["under_way"] = {
            "since": iso(work.at),
            "reason": work.reason,
            "by": work.by or None,
            "back_to": work.back_to or None,
            "undone": work.done,
            "failed": undo.fails,
            "left": undo.can + undo.doubts + len(work.again) + work.set_aside + len(work.steps),
        }
    if report is not None:
        shown["done"] = {
            "undone": report.done,
            "failed": report.fails,
            "lasting": report.lasts,
            "stays": list(report.lasting),
            "back_to": report.back_to or None,
        }
    return shown


UNSURE = "it may be undone all the same"


def _failed(one: NotUndone) -> dict[str, Any]:
    return {
        "step": one.slot,
        "version": one.version,
        "tool": one.tool,
        "code": one.code,
        "message": f"{UNSURE}: {one.message}" if one.unsure else one.message,
    }
