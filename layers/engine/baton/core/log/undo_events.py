"""Kinds of event about undoing. What a state holds of it is in undos.py, what these events make of one in folding/undo_folds.py."""

from __future__ import annotations

from baton.core.log.records import About, Failure, Root, Value
from baton.core.log.undos import NotUndone


class UndoBegan(Root, frozen=True, tag="undo_began", omit_defaults=True, kw_only=True):
    """The saga stops, and takes back what it has done since version `back_to`, the last first or `together`.

    `doubtful`: the first of the steps that were cut off, that nothing undoes, and of which it is not known whether they have happened; `doubts`: how
    many there are. `kept`: nodes whose outputs the failure handler still reads.
    """

    reason: str
    at: int
    by: str = ""
    back_to: int = 0
    together: bool = False
    doubtful: tuple[str, ...] = ()
    doubts: int = 0
    kept: tuple[str, ...] = ()


class UndoStepBegan(About, frozen=True, tag="undo_step_began", omit_defaults=True, kw_only=True):
    """A step is undone: what `tool` or `child` has done by event `index` of entry `version`. Then comes entry `next`.

    Of that entry, only the events before `below` are left; -1: all. `again`: its undoing had failed before. `doubt`: why it is not known
    whether it has happened; a person is asked first, or (`way`) what undoes it is called in any case, not before `not_before`. `stopped`: the
    child was stopped before its end, so it may have done nothing.
    """

    at: int
    version: int
    index: int = 0
    tool: str = ""
    child: str = ""
    next: int = 0
    below: int = -1
    again: bool = False
    doubt: str = ""
    stopped: bool = False
    way: str = ""
    not_before: int = 0


class ChildUndone(About, frozen=True, tag="child_undone", omit_defaults=True, kw_only=True):
    """A child saga has undone what it had done, or (`failure`) not all of it. `cost` is what that has cost. `nothing`: there was nothing to undo."""

    child: str
    failure: Failure | None = None
    cost: int = 0
    nothing: bool = False


class UndoPassed(About, frozen=True, tag="undo_passed", omit_defaults=True, kw_only=True):
    """Nothing undoes what this step has done, by event `index` of entry `version`: it stays. `next` and `below` are as those of a step that is undone.

    `stands`: other work of its node can be undone, and this keeps its key all the same. `redone`: it was in doubt, and done again since: there is nothing to
    undo.
    """

    version: int
    index: int = 0
    tool: str = ""
    next: int = 0
    below: int = -1
    stands: bool = False
    redone: bool = False


class UndoSetAside(Root, frozen=True, tag="undo_set_aside", omit_defaults=True, kw_only=True):
    """Steps that could not be undone are kept here, because a state has no room for more of them."""

    steps: tuple[NotUndone, ...]


class UndoTakenUp(Root, frozen=True, tag="undo_taken_up", omit_defaults=True, kw_only=True):
    """The steps that entry `version` had set aside come next."""

    version: int
    steps: tuple[NotUndone, ...]


class StepStopped(About, frozen=True, tag="step_stopped", omit_defaults=True, kw_only=True):
    """A step of `tool` was stopped while it acted, because the saga goes on or ends without it: whether it has happened is not known. Or a
    `child` was: it is asked to stop, and what it has done stays until it is undone. Or the step goes on with
    a call of the tool `instead`, after failures that do not say whether a call of `tool` has done it: of another tool, or with other arguments.

    `prior`, `kept` and `key` are as those of a step that has succeeded: an undoing comes to it, and asks a person, or has the child undo what it has
    done. Without `prior`, nothing undoes it.
    """

    made = ("kept",)
    most_inline = 1_000  # a hundred may be stopped by one entry

    tool: str
    prior: int | None = None
    kept: Value | None = None
    child: str = ""
    instead: str = ""
    key: str = ""

    @property
    def leads_on(self) -> bool:
        """Whether what has stopped it may come behind it: both are in the same entry."""
        return True
