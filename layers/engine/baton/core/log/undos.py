"""Undoing: the steps that can be undone, and the progress of an undoing.

Each step that can be undone names the entry of the one before it, so that a state holds the newest alone.
Undoing goes back along these entries. Its events are here, too; their folds are in folding/undo_folds.py, and
the decisions in core/decide/undoing.py.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from baton.core.log.incarnations import generation_of
from baton.core.log.records import About, Failure, Root, Value
from baton.core.log.scopes import is_index
from baton.core.log.slots import INVERSE, Slot

if TYPE_CHECKING:
    from baton.core.graph.graph import Node

NAMED_IN_STATE = 20
"""Most steps of one fate that the end of an undoing names."""
FAILED_UNDOS_PER_ENTRY = 100
"""Most steps that could not be undone in a state; further ones are set aside in the log."""


def undo_item(item: str, left: int = 0) -> str:
    """Return the item at which the work of another is undone.

    `left`: the version at which a step has left the call that may have acted.
    """
    begin = f"{INVERSE}_{left}" if left else INVERSE
    return f"{begin}-{item}" if item else begin


def undoes_left_call(item: str) -> bool:
    """Return true if this item undoes a call that its step has left and that may have acted."""
    return item.startswith(f"{INVERSE}_")


class NotUndone(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A step that could not be undone: its slot and place in the log, the tool of its inverse, and the
    reason.

    A `child` that was open when its parent stopped has the place at which it was asked to stop, with the
    index -1. It has no `code` before its undoing has failed. `doubt`: the outcome of the step is unknown.
    `left`: the step has gone on with another call. `unsure`: the outcome of its inverse is unknown, because
    the inverse's call had no conclusive answer.
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
    """The result of an undoing: steps undone, steps not undone, steps without an inverse, and steps with an
    unknown outcome.

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
    """A step that is being undone: its place in the log, and the tool or the child saga that did it.

    `again`: an earlier inverse of it failed. `doubt`: a person is asked about its outcome; `given`: the
    output that the person has named.
    `way`: the action in place of the question, and `not_before` its earliest time. `stopped`: the child was
    stopped before its end.
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
    """An undoing under way: its reason, its requester, its target version, and its progress.

    `again`: steps whose inverse failed before, which come first; `aside`: entries with `set_aside` more of
    these.
    `rounds`: by node, the first round of it that is undone. `first`: the version at which it began; `lowest`:
    the version of the earliest step that is undone. `empty`: number of stopped children that had done
    nothing.
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

    def part(self, node: Node, place: Slot) -> Node:
        """Return the node of a member: the inverse, or the step that a person is asked about."""
        step, item = self.steps[place.text], place.subject.item
        if step.doubt:
            acting = node.each.do if node.each is not None and is_index(item) else node
            own = acting.output_schema if acting is not node or not item else None
            return replace(acting, tool=step.tool, output_schema=own)
        inverse = node.inverse(step.tool, item)
        return node if inverse is None else inverse.step


class Undoable(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Effects of a saga that can be undone."""

    head: int = 0
    """The version of the newest entry with a step that is not undone yet."""
    below: int = -1
    """Of that entry, only the events before this one are left; -1: all."""
    can: int = 0
    """Number of steps with an inverse."""
    cannot: int = 0
    """Number of steps without an inverse."""
    stays: bool = False
    """True if the saga ends without undoing anything, by the rules for its failure."""
    doubtful: tuple[str, ...] = ()
    """Slots of the first failed steps that may have happened all the same and have no inverse."""
    work: Undoing | None = None
    failed: tuple[NotUndone, ...] = ()
    """Steps that could not be undone, the newest first."""
    incarnation: dict[str, int] = {}
    """By slot, the number of times that its work was undone; absent: 0.

    The number of `NODE/` or `NODE@ROUND/` is that of all slots in it, and is added to theirs. A slot in it
    that was not undone, and keeps its key, has a number below 0.
    """
    spans: tuple[tuple[int, int], ...] = ()
    """First and last versions of undone work and of its undoing: no saga goes on from there."""
    more_doubtful: int = 0
    """Number of steps beyond those in `doubtful`."""
    unsure: dict[str, int] = {}
    """Slots of steps in doubt that the undoing asks a person about, with the versions of their failures."""
    doubts: int = 0
    """Number of all steps in doubt that the undoing asks a person about."""
    aside: tuple[int, ...] = ()
    """Entries with steps that could not be undone and had no room in `failed`, the newest first."""
    set_aside: int = 0
    """Number of steps in these entries."""
    ways: tuple[tuple[str, str, int], ...] = ()
    """Slots of steps that go on with another call, the tool of the call that they left and that may have
    acted, and the version of that event.

    These are the first of those that are not settled.
    """

    @property
    def fails(self) -> int:
        """Number of steps that could not be undone, and are not in doubt."""
        return sum(not one.doubt for one in self.failed) + self.set_aside

    @property
    def unknown(self) -> int:
        """Number of steps with an unknown outcome."""
        unasked = self.doubts + len(self.doubtful) + self.more_doubtful
        return unasked + sum(one.doubt for one in self.failed)

    @property
    def in_doubt(self) -> tuple[str, ...]:
        """The slots of the first steps with an unknown outcome."""
        named = (
            *islice(self.unsure, NAMED_IN_STATE),
            *(slot for slot, _, _ in self.ways),
            *self.doubtful,
            *(one.slot for one in self.failed if one.doubt),
        )
        return tuple(dict.fromkeys(named)) if self.ways else named

    @property
    def is_left(self) -> bool:
        """True if a step is left to undo, or to ask a person about."""
        return bool(self.can or self.doubts or self.failed or self.set_aside)

    def generation(self, slot: str) -> int:
        """Return the number of times that the work at this slot was undone."""
        return generation_of(self.incarnation, slot)


class UndoBegan(Root, frozen=True, tag="undo_began", omit_defaults=True, kw_only=True):
    """The saga stops, and undoes its effects since version `back_to`, the last first or `together`.

    `doubtful`: the first of the steps that were cut off, have no inverse, and have an unknown outcome;
    `doubts`: their number.
    `kept`: nodes whose outputs the failure handler still reads.
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
    """The undoing of a step began: the effect of `tool` or `child` by event `index` of entry `version`.

    Entry `next` follows.
    Of entry `next`, only the events before `below` are left; -1: all. `again`: an earlier inverse of it
    failed.
    `doubt`: the reason why its outcome is unknown; a person is asked first, or (`way`) its inverse is called
    in any case, not before `not_before`.
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
    """A child saga has undone its effects, or (`failure`) not all of them.

    `cost`: the cost of the undoing, in micro-dollars; of a child that was cancelled for it, all that it has
    spent. `nothing`: the child had nothing to undo.
    """

    child: str
    failure: Failure | None = None
    cost: int = 0
    nothing: bool = False


class UndoPassed(About, frozen=True, tag="undo_passed", omit_defaults=True, kw_only=True):
    """A step has no inverse: its effect, by event `index` of entry `version`, stays.

    `next` and `below` are as those of a step that is undone. `stands`: other work of its node can be undone,
    and this step keeps its key all the same. `redone`: the step was in doubt, and ran again since: nothing is
    left to undo. `polled`: it is a try of a poll whose last try was undone.
    """

    version: int
    index: int = 0
    tool: str = ""
    next: int = 0
    below: int = -1
    stands: bool = False
    redone: bool = False
    polled: bool = False


class UndoSetAside(Root, frozen=True, tag="undo_set_aside", omit_defaults=True, kw_only=True):
    """Steps that could not be undone are kept in this entry, because a state has no room for more of them."""

    steps: tuple[NotUndone, ...]


class UndoTakenUp(Root, frozen=True, tag="undo_taken_up", omit_defaults=True, kw_only=True):
    """The steps that entry `version` had set aside come next."""

    version: int
    steps: tuple[NotUndone, ...]


class StepStopped(About, frozen=True, tag="step_stopped", omit_defaults=True, kw_only=True):
    """A step of `tool` was stopped while it acted, because the saga goes on or ends without it: its outcome
    is unknown.

    With `child`: the child was asked to stop, and its effects stay until they are undone. With `instead`: the
    step goes on with a call of the tool `instead` (another tool, or other arguments), after failures that
    leave the outcome of its call of `tool` unknown.

    `prior`, `kept` and `key` are as those of `StepSucceeded`: an undoing comes to it, and asks a person, or
    has the child undo its effects. Without `prior`, it has no inverse.
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
        """True if the event that stopped the step may follow in the same entry."""
        return True
