"""Undoing: which steps can be undone, and what is under way.

Each step that can be undone names the entry of the one before it, so that a state holds the newest alone.
Undoing goes back along these entries.
The events are in undos.py, their folds in folding/undo_folds.py, what is decided in core/decide/undoing.py.
"""

from __future__ import annotations

import msgspec

from baton.core.log.records import About, Failure, Root, Value

UNDO = "undo"
"""The item of a node whose work is undone; of an item, `undo-ITEM`."""
NAMED = 20
"""The most steps of one fate that the end of an undoing names."""
LISTED = 100
"""So many more that could not be undone are in a state before they are set aside in the log."""
KEYS_KEPT = 500
"""So many slots are known by name that keep their keys although other work of their nodes was undone."""


def undo_item(item: str, left: int = 0) -> str:
    """The item at which the work of another is undone.
    `left`: the version at which a step has left the call that may have done it.
    """
    begin = f"{UNDO}_{left}" if left else UNDO
    return f"{begin}-{item}" if item else begin


def undone_item(item: str) -> str:
    """The item whose work is undone at this one; empty: the node's own."""
    return item.removeprefix(UNDO).partition("-")[2] if item.startswith(UNDO) else item


def is_of_left(item: str) -> bool:
    """Tell whether this item undoes a call that its step has left and that may have acted."""
    return item.startswith(f"{UNDO}_")


def is_undo(slot: str) -> bool:
    """Whether a step at a slot undoes another."""
    return f"#{UNDO}" in slot


class NotUndone(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A step that could not be undone: its slot and its place in the log,
    the tool that was to undo it, and why it failed.

    A `child` that was open when its parent stopped has the place at which it was asked to
    stop, with the index -1. It has no `code` before its undoing has failed. `doubt`: it
    is not known whether it has happened. `left`: the step has gone on with another call.
    `unsure`: it is not known whether it was undone, because the call of what undoes it had no answer that
    says so.
    """

    slot: str
    version: int
    index: int = 0
    tool: str = ""
    code: str = ""
    message: str = ""
    child: str = ""
    doubt: bool = False
    left: bool = False
    unsure: bool = False


class Undone(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What came of an undoing: how many steps are undone, which are not, those that
    nothing undoes, and those of which it is not known whether they have happened.

    `failed`, `lasting` and `doubtful` name the first; `fails`, `lasts` and `doubts` count all. `back_to`: the
    version that it went back to.
    """

    done: int = 0
    fails: int = 0
    lasts: int = 0
    failed: tuple[NotUndone, ...] = ()
    lasting: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    back_to: int = 0
    doubts: int = 0


class UndoStep(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A step that is being undone: its place in the log, the tool that has
    done it, or the child saga that has. `again`: it had failed before.

    `doubt`: a person is asked whether it has happened; `given`: the output that the person has named. `way`:
    what is done in
    place of the question, and `not_before` when. `stopped`: a child that was stopped before
    its end.
    """

    version: int
    index: int = 0
    tool: str = ""
    child: str = ""
    again: bool = False
    doubt: bool = False
    given: Value | None = None
    stopped: bool = False
    way: str = ""
    not_before: int = 0


class Undoing(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An undoing under way: why, who wants it, how far back, and how far it is.
    `again`: what has failed before, and comes first; `aside`: entries with `set_aside` more of these.

    `rounds`: by node, the first round of it that is undone. `first`: the version at which it began; `lowest`:
    that of the
    earliest step that is undone. `empty`: how many stopped children had done nothing.
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
    aside: tuple[int, ...] = ()
    set_aside: int = 0
    empty: int = 0


class Earlier(msgspec.Struct, frozen=True, array_like=True):
    """A saga that was in the place of this one before a fork above them, and the newest branch of it."""

    saga: str
    branch: int = 0


class Keys(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the earlier sagas in a place have undone, and what not: which
    steps act anew, and which keep their keys. As in `Undoable`.
    """

    rounds: dict[str, tuple[tuple[int, ...], ...]] = {}
    standing: dict[str, int] = {}
    alone: dict[str, int] = {}


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
    """Slots of steps that have failed, may have happened all the same, and that nothing undoes: the first."""
    work: Undoing | None = None
    failed: tuple[NotUndone, ...] = ()
    """What could not be undone, the newest first."""
    rounds: dict[str, tuple[tuple[int, ...], ...]] = {}
    """By node, for each undoing, the first of its rounds that was undone:
    they are done anew under other keys.
    """
    standing: dict[str, int] = {}
    """By slot, how often it was not undone when the rounds of its node were."""
    spans: tuple[tuple[int, int], ...] = ()
    """The versions, first and last, of what was undone and of its undoing: no saga goes on from there."""
    more_doubtful: int = 0
    """How many more there are."""
    unsure: tuple[str, ...] = ()
    """Slots of steps in doubt that a person is asked about when the saga is
    undone: the first, and those that still hold their tokens.
    """
    doubts: int = 0
    """How many of these there are."""
    aside: tuple[int, ...] = ()
    """Entries that hold what could not be undone and had no room in `failed`, the newest first."""
    set_aside: int = 0
    """How many steps these entries hold."""
    alone: dict[str, int] = {}
    """By slot of an item, how often it was undone when others of its round
    were not, because they came before the version that was gone back to.
    """
    crowded: bool = False
    """Whether there are more of these slots than `standing` and `alone` have room for."""
    redone: dict[str, int] = {}
    """Slots of steps that were in doubt and are done again since a fork,
    with its cut: what they did before is not asked about.
    """
    ways: tuple[tuple[str, str, int], ...] = ()
    """Slots of steps that go on with another call, the tool of the one that they have left, which
    may have acted, and the version at which they have: the first of those that are not settled.
    """

    @property
    def is_anew(self) -> bool:
        """Whether something is done anew, because it was undone."""
        return bool(self.rounds or self.alone)

    @property
    def fails(self) -> int:
        """How many steps could not be undone, and are not in doubt."""
        return sum(not one.doubt for one in self.failed) + self.set_aside

    @property
    def unknown(self) -> int:
        """Of how many it is not known whether they have happened."""
        unasked = self.doubts + len(self.doubtful) + self.more_doubtful
        return unasked + sum(one.doubt for one in self.failed)

    @property
    def in_doubt(self) -> tuple[str, ...]:
        """The slots of the first of these."""
        named = (
            *self.unsure,
            *(slot for slot, _, _ in self.ways),
            *self.doubtful,
            *(one.slot for one in self.failed if one.doubt),
        )
        return tuple(dict.fromkeys(named)) if self.ways else named

    @property
    def is_crowded(self) -> bool:
        """Whether it is not known of each step that could not be undone that it
        keeps its key: then no saga goes on from an earlier version.
        """
        return self.crowded or bool(self.set_aside)

    @property
    def is_left(self) -> bool:
        """Whether there is something to undo, or a person to be asked about."""
        return bool(self.can or self.doubts or self.failed or self.set_aside)

    def has(self, one: NotUndone) -> bool:
        """Whether the list from `head` on has this step."""
        if one.version == self.head:
            return self.below < 0 or one.index < self.below
        return one.version < self.head

    def generation(self, node: str, iteration: tuple[int, ...], slot: str) -> int:
        """How often what is done there was undone."""
        undone = sum(first <= iteration for first in self.rounds.get(node, ()))
        whole = max(undone - self.standing.get(slot, 0), 0) if undone else 0
        return whole + self.alone.get(slot, 0)


class UndoBegan(Root, frozen=True, tag="undo_began", omit_defaults=True, kw_only=True):
    """The saga stops, and takes back what it has done since version `back_to`, the last first or `together`.

    `doubtful`: the first of the steps that were cut off, that nothing undoes, and of which it is not known
    whether they have happened; `doubts`: how
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
    """A step is undone: what `tool` or `child` has done by event `index` of entry `version`.
    Then comes entry `next`.

    Of that entry, only the events before `below` are left; -1: all.
    `again`: its undoing had failed before.
    `doubt`: why it is not known whether it has happened; a person is asked first,
    or (`way`) what undoes it is called in any case, not before `not_before`.
    `stopped`: the child was stopped before its end, so it may have done nothing.
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
    """A child saga has undone what it had done, or (`failure`) not all of it.
    `cost` is what that has cost.
    `nothing`: there was nothing to undo.
    """

    child: str
    failure: Failure | None = None
    cost: int = 0
    nothing: bool = False


class UndoPassed(About, frozen=True, tag="undo_passed", omit_defaults=True, kw_only=True):
    """Nothing undoes what this step has done, by event `index` of entry `version`: it stays.
    `next` and `below` are as those of a step that is undone.

    `stands`: other work of its node can be undone, and this keeps its key all the same. `redone`: it was in
    doubt, and done again since: there is nothing to
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
    """A step of `tool` was stopped while it acted, because the saga goes on
    or ends without it: whether it has happened is not known. Or a
    `child` was: it is asked to stop, and what it has done stays until it is undone. Or the step goes on with
    a call of the tool `instead`, after failures that do not say whether a
    call of `tool` has done it: of another tool, or with other arguments.

    `prior`, `kept` and `key` are as those of a step that has succeeded: an undoing comes to it, and asks a
    person, or has the child undo what it has
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
