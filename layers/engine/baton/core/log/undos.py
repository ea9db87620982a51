"""Undoing: which steps can be undone, what is under way, and the events of it.

Each step that can be undone names the entry of the one before it, so that a state holds the newest alone. Undoing goes back
along these entries. The folds are in undo_folds.py, what is decided in core/decide/undoing.py.
"""

from __future__ import annotations

import msgspec

from baton.core.log.records import About, Failure, Root

UNDO = "undo"
"""The item of a node whose work is undone; of an item, `undo-ITEM`."""
NAMED = 20
"""The most steps of one fate that the end of an undoing names."""


def undo_item(item: str) -> str:
    """The item at which the work of another is undone."""
    return f"{UNDO}-{item}" if item else UNDO


def undone_item(item: str) -> str:
    """The item whose work is undone at this one; empty: the node's own."""
    return item.removeprefix(UNDO).removeprefix("-")


def is_undo(slot: str) -> bool:
    """Whether a step at a slot undoes another."""
    return f"#{UNDO}" in slot


class NotUndone(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A step that could not be undone: its slot and its place in the log, the tool that was to undo it, and why it failed.

    A `child` that was open when its parent stopped has the place at which it was asked to stop, with the index -1. It has
    no `code` before its undoing has failed.
    """

    slot: str
    version: int
    index: int = 0
    tool: str = ""
    code: str = ""
    message: str = ""
    child: str = ""


class Undone(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What came of an undoing: how many steps are undone, which are not, those that nothing undoes, and those of which it is not known whether
    they have happened.

    `failed`, `lasting` and `doubtful` name the first; `fails` and `lasts` count all. `back_to`: the version that it went back to.
    """

    done: int = 0
    fails: int = 0
    lasts: int = 0
    failed: tuple[NotUndone, ...] = ()
    lasting: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    back_to: int = 0


class UndoStep(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A step that is being undone: its place in the log, the tool that has done it, or the child saga that has. `again`: it had failed before."""

    version: int
    index: int = 0
    tool: str = ""
    child: str = ""
    again: bool = False


class Undoing(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An undoing under way: why, who wants it, how far back, and how far it is. `again`: what has failed before, and comes first.

    `rounds`: by node, the first round of it that is undone. `first`: the version at which it began; `lowest`: that of the
    earliest step that is undone.
    """

    reason: str
    by: str = ""
    at: int = 0
    back_to: int = 0
    together: bool = False
    first: int = 0
    steps: dict[str, UndoStep] = {}
    again: tuple[NotUndone, ...] = ()
    done: int = 0
    lasting: tuple[str, ...] = ()
    lasts: int = 0
    rounds: dict[str, tuple[int, ...]] = {}
    lowest: int = 0


class Undoable(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a saga has done that can be undone."""

    head: int = 0
    """The version of the newest entry with a step that is not undone yet."""
    below: int = -1
    """Of that entry, only the events before this one are left; -1: all."""
    can: int = 0
    """How many steps there are that something undoes."""
    cannot: int = 0
    """How many that nothing undoes."""
    stays: bool = False
    """Whether the saga ends without undoing anything, by the rules for its failure."""
    doubtful: tuple[str, ...] = ()
    """Slots of steps that have failed, and may have happened all the same."""
    work: Undoing | None = None
    failed: tuple[NotUndone, ...] = ()
    """What could not be undone, the newest first."""
    rounds: dict[str, tuple[tuple[int, ...], ...]] = {}
    """By node, for each undoing, the first of its rounds that was undone: they are done anew under other keys."""
    standing: dict[str, int] = {}
    """By slot, how often it was not undone when the rounds of its node were."""
    spans: tuple[tuple[int, int], ...] = ()
    """The versions, first and last, of what was undone and of its undoing: no saga goes on from there."""

    def has(self, one: NotUndone) -> bool:
        """Whether the list from `head` on has this step."""
        if one.version == self.head:
            return self.below < 0 or one.index < self.below
        return one.version < self.head

    def generation(self, node: str, iteration: tuple[int, ...], slot: str) -> int:
        """How often what is done there was undone."""
        undone = sum(first <= iteration for first in self.rounds.get(node, ()))
        return max(undone - self.standing.get(slot, 0), 0) if undone else 0


class UndoBegan(Root, frozen=True, tag="undo_began", omit_defaults=True, kw_only=True):
    """The saga stops, and takes back what it has done since version `back_to`, the last first or `together`.

    `doubtful`: steps that were cut off, and of which it could not be found out whether they have happened.
    """

    reason: str
    at: int
    by: str = ""
    back_to: int = 0
    together: bool = False
    doubtful: tuple[str, ...] = ()


class UndoStepBegan(About, frozen=True, tag="undo_step_began", omit_defaults=True, kw_only=True):
    """A step is undone: what `tool` or `child` has done by event `index` of entry `version`. Then comes entry `next`.

    Of that entry, only the events before `below` are left; -1: all. `again`: its undoing had failed before.
    """

    at: int
    version: int
    index: int = 0
    tool: str = ""
    child: str = ""
    next: int = 0
    below: int = -1
    again: bool = False


class ChildUndone(About, frozen=True, tag="child_undone", omit_defaults=True, kw_only=True):
    """A child saga has undone what it had done, or (`failure`) not all of it. `cost` is what that has cost."""

    child: str
    failure: Failure | None = None
    cost: int = 0


class UndoPassed(About, frozen=True, tag="undo_passed", omit_defaults=True, kw_only=True):
    """Nothing undoes what this step has done, by event `index` of entry `version`: it stays. `next` and `below` are as those of a step that is undone.

    `stands`: other work of its node can be undone, and this keeps its key all the same.
    """

    version: int
    index: int = 0
    tool: str = ""
    next: int = 0
    below: int = -1
    stands: bool = False
