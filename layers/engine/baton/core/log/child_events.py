"""What a saga's log says of its children: that they have ended, that their nodes are done, and that they were asked to stop.

How a child is opened is in open_events.py, what undoing one comes to in undo_events.py.
"""

from __future__ import annotations

from baton.core.log.records import About, Failure, Root, Value
from baton.core.log.settling import Gives


class ChildOverdue(About, frozen=True, tag="child_overdue", omit_defaults=True, kw_only=True):
    """The time of a child is over: it is asked to stop and to undo what it has done, and is waited for. `until`: it is not over before then, because the child's time has stood still."""

    at: int
    until: int = 0


class ChildReported(Root, frozen=True, tag="child_reported", omit_defaults=True, kw_only=True):
    """A child ended; its parent's worker puts this, several in one entry. `cost` is all it spent. `undoable`: it has done what can be undone."""

    slot: str
    child: str
    status: str
    output: Value = Value()
    failure: Failure | None = None
    cost: int = 0
    undoable: bool = False


class ChildClosed(Gives, frozen=True, tag="child_closed", omit_defaults=True, kw_only=True):
    """The workflow node whose child reported success is done; or its cancelled child did, and `by` is the signal that called it off. `prior` and `lasting` are as those of a step that has succeeded."""

    child: str
    by: str = ""
    prior: int | None = None
    lasting: bool = False


class ChildrenAbandoned(Root, frozen=True, tag="children_abandoned", omit_defaults=True, kw_only=True):
    """Children that a fork or a join left behind were asked to stop, or some of a saga that is about to end. `undo`: it undoes what it has done, and hears first what they have undone."""

    children: tuple[str, ...]
    undo: bool = False
