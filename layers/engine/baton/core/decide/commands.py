"""The commands of the core to the runtime, as data: one struct each.
What performs them is in runtime/performers/.

`when` says on which side of the append of what was decided a command is performed: some have to come before
it, so that
the log does not say what is not so, and the others come after it, so
that nothing happens that the log does not know.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, Literal, TypeVar

from msgspec import Struct

from baton.core.conditions import Question
from baton.core.decide.builder import RunStep
from baton.core.log import events as ev
from baton.core.log.folding.received import Owed
from baton.core.log.records import Child
from baton.core.log.state import State

When = Literal["first", "before", "after"]


class Command(Struct, frozen=True):
    """One thing to do. `first`: nothing can be decided without it. `before` and `after` the append."""

    when: ClassVar[When] = "after"


class FetchValues(Command, frozen=True):
    """Blobs that an expression names, and entries of the log."""

    when: ClassVar[When] = "first"
    refs: frozenset[str]
    entries: frozenset[int] = frozenset()


class JudgeConditions(Command, frozen=True):
    """Conditions in Python that are to be answered."""

    when: ClassVar[When] = "first"
    questions: frozenset[Question]


class LookAtStanding(Command, frozen=True):
    """Children, by id, of which is to be known for how long their time has stood still."""

    when: ClassVar[When] = "first"
    children: tuple[str, ...]


class StopSteps(Command, frozen=True):
    """Running steps at these slots, or all of them.
    Nothing else of the decision is performed before it is decided anew.
    """

    slots: tuple[str, ...] = ()


class CancelChildren(Command, frozen=True):
    """Children (slot, child) that are asked to stop: a child that ends
    without a reason would fail its parent.

    What is recorded then is the decision's; where there is time for some of them only, `recorded` makes it.
    `undo`: they take back what they have done before they end.
    `heard`: their parent hears of that before it ends.
    """

    when: ClassVar[When] = "before"
    children: tuple[tuple[str, Child], ...]
    undo: bool = False
    heard: bool = False


class StartHandler(Command, frozen=True):
    """The failure handler of a saga that is about to end.
    Its start comes before the end: behind that, no worker looks again.
    """

    when: ClassVar[When] = "before"
    child: Child


class RunSteps(Command, frozen=True):
    """Steps that are ready and not running."""

    steps: tuple[RunStep, ...]


class TendChildren(Command, frozen=True):
    """Children (slot, child) that must exist; those that do are asked whether they have ended."""

    children: tuple[tuple[str, Child], ...]


class UndoChildren(Command, frozen=True):
    """Children (slot, id) that undo what they have done; those that have are heard."""

    children: tuple[tuple[str, str], ...]


class SendNotices(Command, frozen=True):
    """What people outside are to be shown and told."""

    owed: Owed


C = TypeVar("C", bound=Command)

_ACTS_FIRST = frozenset((CancelChildren, StartHandler))


class Decision(Struct, frozen=True):
    """What a saga needs now.

    record: facts to append before anything else happens. commands: what is to be done, at most
    one of each kind, in the order in which they are performed. again: when a step is tried again.
    due: when time alone changes the decision (None: never). behind: more can be said once what
    was decided before it is in the log. after: the state behind the facts, where it is known.
    """

    record: tuple[ev.Event, ...] = ()
    commands: tuple[Command, ...] = ()
    again: int | None = None
    due: int | None = None
    behind: bool = False
    after: State | None = None

    def of(self, kind: type[C]) -> C | None:
        """The command of this kind."""
        for command in self.commands:
            if type(command) is kind:
                return command
        return None

    @property
    def acts_first(self) -> bool:
        """Whether other sagas are asked or started before its facts are appended."""
        return not _ACTS_FIRST.isdisjoint(map(type, self.commands))

    @property
    def is_lacking(self) -> bool:
        """Whether something is to be fetched before more can be said; decide again with it."""
        return any(command.when == "first" for command in self.commands)


def next_up(run: Collection[RunStep], children: Collection[tuple[str, Child]]) -> tuple[Command, ...]:
    """What can go on now."""
    steps = (RunSteps(tuple(run)),) if run else ()
    return (*steps, TendChildren(tuple(children))) if children else steps


def missing(
    needs: Collection[str], questions: Collection[Question], entries: Collection[int] = ()
) -> tuple[Command, ...]:
    """What is to be fetched before more can be said."""
    fetch = (FetchValues(frozenset(needs), frozenset(entries)),) if needs or entries else ()
    return (*fetch, JudgeConditions(frozenset(questions))) if questions else fetch
