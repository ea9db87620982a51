"""The commands of the core to the runtime, as data: one struct each.
The performers are in runtime/engine/run.py and runtime/worker.

Nothing acts before it is written: a command is performed after the entry that holds its reason, and is
idempotent. What a later decision needs to know of it is in `FetchedValues`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, Literal, TypeVar

from msgspec import Struct

from baton.core.conditions import SandboxQuestion
from baton.core.decide.builder import RunStep
from baton.core.log import events as ev
from baton.core.log.folding.received import PendingNotices
from baton.core.log.records import Child
from baton.core.log.state import State

When = Literal["first", "after"]


class Command(Struct, frozen=True):
    """An action of the runtime.

    `first`: no decision is possible without it. `after`: once the events of the decision are appended.
    """

    when: ClassVar[When] = "after"


class FetchValues(Command, frozen=True):
    """Fetch blobs that an expression names, and entries of the log."""

    when: ClassVar[When] = "first"
    refs: frozenset[str]
    entries: frozenset[int] = frozenset()


class JudgeConditions(Command, frozen=True):
    """Judge conditions in Python."""

    when: ClassVar[When] = "first"
    questions: frozenset[SandboxQuestion]


class LookAtStanding(Command, frozen=True):
    """Measure how long the time of these children, by id, has stood still."""

    when: ClassVar[When] = "first"
    children: tuple[str, ...]


class StopSteps(Command, frozen=True):
    """Stop the running steps at these slots, or all of them.

    The rest of the decision is not performed; the saga decides anew.
    """

    slots: tuple[str, ...] = ()


class CancelChildren(Command, frozen=True):
    """Ask children (slot, child) to stop. A later decision records those that were asked.

    `undo`: the children undo their effects before they end; of those that were left behind (without a slot),
    the ones that are in the list of the saga.
    """

    children: tuple[tuple[str, Child], ...]
    undo: bool = False


class StartHandler(Command, frozen=True):
    """Start the failure handler of a saga that is about to end. A later decision records the end, which names
    the handler, or says why there is none: no worker visits a saga that has ended.
    """

    child: Child


class RunSteps(Command, frozen=True):
    """Run the steps that are ready and not running."""

    steps: tuple[RunStep, ...]


class TendChildren(Command, frozen=True):
    """Start children (slot, child) that do not exist, and ask the existing ones if they have ended."""

    children: tuple[tuple[str, Child], ...]


class UndoChildren(Command, frozen=True):
    """Have children (slot, id) undo their effects, and read the results of those that have done so."""

    children: tuple[tuple[str, str], ...]


class SendNotices(Command, frozen=True):
    """Send people outside their notices, and put and withdraw rows in the inbox."""

    pending: PendingNotices


C = TypeVar("C", bound=Command)


class Decision(Struct, frozen=True):
    """The next actions of a saga.

    record: facts to append before anything else happens. commands: actions, at most one of each kind, in the
    order in which they are performed. again: the time at which a step is tried again. due: the time at which
    time alone changes the decision (None: never). behind: more can be decided once the earlier decisions are
    in the log. after: the state after the facts, if known.
    """

    record: tuple[ev.Event, ...] = ()
    commands: tuple[Command, ...] = ()
    again: int | None = None
    due: int | None = None
    has_more: bool = False
    after: State | None = None

    def of(self, kind: type[C]) -> C | None:
        """Return the command of this kind, or None."""
        for command in self.commands:
            if type(command) is kind:
                return command
        return None

    @property
    def is_lacking(self) -> bool:
        """True if a fetch is needed before more can be decided; decide again with its result."""
        return any(command.when == "first" for command in self.commands)


def next_up(run: Collection[RunStep], children: Collection[tuple[str, Child]]) -> tuple[Command, ...]:
    """Return the commands for work that can go on now."""
    steps = (RunSteps(tuple(run)),) if run else ()
    return (*steps, TendChildren(tuple(children))) if children else steps


def missing(
    needs: Collection[str], questions: Collection[SandboxQuestion], entries: Collection[int] = ()
) -> tuple[Command, ...]:
    """Return the commands that fetch the data needed for a decision."""
    fetch = (FetchValues(frozenset(needs), frozenset(entries)),) if needs or entries else ()
    return (*fetch, JudgeConditions(frozenset(questions))) if questions else fetch
