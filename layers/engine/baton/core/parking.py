"""Sagas that get no further without a person, whatever their steps say: how they are parked, and who is told.

Belongs here: what is recorded of such a parking. Does not belong here: when a saga is parked (decide.py), incidents about
failures of steps (reactions.py), and money (purse.py).
"""

from __future__ import annotations

from baton.core import events as ev
from baton.core.failures.codes import told
from baton.core.state import State


def parking(state: State, parked: ev.Parked, now: int) -> tuple[ev.NoticeDue, ev.Parked]:
    """What to record of a saga that is parked, and that on-call has to know of: the notice first, in the same entry.

    No two parkings of a saga have the same version, so each opens an incident of its own.
    """
    where = f" at `{parked.node}`" if parked.node else ""
    advice = told(parked.code).advice.rstrip(".")
    notice = ev.Notice(
        key=f"{state.saga}/{state.branch}.parked.{state.version + 1}",
        to="on_call",
        code=parked.code,
        message=f"saga `{state.saga}` is parked{where}: {parked.message}. {advice}: `baton resume {state.saga}`",
        severity="high",
        node=parked.node,
        at=now,
        incident=True,
    )
    return ev.NoticeDue(notice=notice), parked
