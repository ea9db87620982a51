"""Planted bugs about undoing, made as those of bugs.py are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from msgspec.structs import replace

from baton.core.decide import failure_handling, outcomes, undoing, unknown_outcomes
from baton.core.log.folding import fold, forks
from baton.core.log.records import Child, Failure
from baton.core.log.state import State
from baton.core.log.undos import Undoable
from baton.runtime.starting import children
from baton.runtime.steps import steps
from baton.runtime.worker import undo_children
from baton.runtime.worker.children import ChildCanceller
from tests.kit.bugs import replaced


@contextmanager
def an_undo_has_another_key_in_each_invocation() -> Iterator[None]:
    """Undo row: a worker that dies behind the call of an inverse has it called again as another call."""

    def key_for(state: State, step: Any, *more: Any) -> str:
        key: str = real(state, step, *more)
        return f"{key}-{state.epoch}" if step.place.scope else key

    real = vars(steps)["key_for"]
    with replaced(steps, "key_for", key_for):
        yield


@contextmanager
def steps_are_undone_side_by_side() -> Iterator[None]:
    """Undo row: what was built on something is taken away before it, or not."""

    def beginning(builder: Any) -> Any:
        return replace(real(builder), together=True)

    real = undoing._beginning
    with replaced(undoing, "_beginning", beginning):
        yield


@contextmanager
def a_revival_forgets_what_is_left() -> Iterator[None]:
    """Undo row: the worker that goes on takes what was begun for all there was."""

    def revived(state: State, event: Any) -> State:
        after = real(state, event)
        return after if state.undo.work is None else replace(after, undo=replace(after.undo, head=0))

    from baton.core.log import events as ev

    real = fold._TABLE[ev.Revived]
    fold._TABLE[ev.Revived] = revived
    try:
        yield
    finally:
        fold._TABLE[ev.Revived] = real


@contextmanager
def a_fork_loses_the_list() -> Iterator[None]:
    """Undo row: what the branch before has done is not undone."""
    with replaced(forks, "_undoable", lambda *_: Undoable()):
        yield


@contextmanager
def the_first_of_an_entry_is_the_only_one() -> Iterator[None]:
    """Undo row: of a step that ended beside another, nothing is undone."""

    def move(builder: Any, work: Any) -> Any:
        event = real(builder, work)
        if not isinstance(event, ev.UndoStepBegan | ev.UndoPassed) or event.below < 0:
            return event
        return replace(event, next=0, below=-1)

    from baton.core.log import events as ev

    real = undoing._next
    with replaced(undoing, "_next", move):
        yield


@contextmanager
def the_step_that_failed_is_undone_too() -> Iterator[None]:
    """Undo row: what never happened is taken back, once the list is at its end."""

    def move(builder: Any, work: Any) -> Any:
        event, state = real(builder, work), builder.state
        node = state.failure.node if state.failure is not None else ""
        if event is not None or node in work.rounds or not node or work.done == 0 or work.steps:
            return event
        tool = builder.program.nodes[node].tool
        return ev.UndoStepBegan(node=node, item="undo", at=builder.now, version=work.lowest, tool=tool)

    from baton.core.log import events as ev

    real = undoing._next
    with replaced(undoing, "_next", move):
        yield


@contextmanager
def children_that_are_asked_are_forgotten() -> Iterator[None]:
    """Undo row: a parent has its open children stop, and does not wait to hear what they have undone."""

    def abandoned(state: State, event: Any) -> State:
        after = real(state, event)
        known = {(one.slot, one.version) for one in state.undo.failed}
        left = tuple(one for one in after.undo.failed if (one.slot, one.version) in known)
        return replace(after, undo=replace(after.undo, failed=left))

    from baton.core.log import events as ev

    real = fold._TABLE[ev.ChildrenAbandoned]
    fold._TABLE[ev.ChildrenAbandoned] = abandoned
    try:
        yield
    finally:
        fold._TABLE[ev.ChildrenAbandoned] = real


@contextmanager
def an_open_child_is_only_stopped() -> Iterator[None]:
    """Undo row: the children that run are cancelled, and what they have done stays."""

    def to_hear_of(builder: Any) -> Any:
        return []

    def taken_back(state: State) -> bool:
        return False

    with (
        replaced(undoing, "_to_hear_of", to_hear_of),
        replaced(State, "will_revert", property(taken_back)),
    ):
        yield


@contextmanager
def a_new_child_is_given_what_was_undone() -> Iterator[None]:
    """Undo row: the child that is started after a fork has the keys of the one before it, whatever that has undone."""

    async def left_to(*_: Any) -> Any:
        return children.EarlierChildren()

    with replaced(children, "left_to", left_to):
        yield


@contextmanager
def a_new_child_does_not_wait() -> Iterator[None]:
    """Undo row: it begins while the one before it is still at undoing."""

    async def left_to(*given: Any) -> Any:
        return replace(await real(*given), unsettled="")

    real = children.left_to
    with replaced(children, "left_to", left_to):
        yield


@contextmanager
def work_elsewhere_is_looked_at() -> Iterator[None]:
    """Undo row: what another system still works at is looked at, and its handover is taken for what it was to do."""
    with replaced(undoing, "is_elsewhere", lambda *_: False):
        yield


@contextmanager
def another_way_forgets_the_first() -> Iterator[None]:
    """Undo row: a step that goes on with another tool is done by that alone, though the one before had no answer."""
    with replaced(failure_handling, "notices_of_left_call", lambda *_: iter(())):
        yield


@contextmanager
def a_child_that_is_stopped_is_not_listed() -> Iterator[None]:
    """Undo row: a saga goes on without a child, and its rollback does not come to what the child has done."""
    with replaced(unknown_outcomes, "child_link", lambda *_: None):
        yield


@contextmanager
def a_child_is_asked_anew_each_time() -> Iterator[None]:
    """Undo row: the key with which a child is asked to undo is another one at each look."""

    async def asked(self: Any, parent: Any, slot: str, child: str, key: str, may_lack: bool) -> Any:
        return await real(self, parent, slot, child, f"{key}.{next(numbers)}", may_lack)

    real, numbers = undo_children.ChildUndoer._ask, count()
    with replaced(undo_children.ChildUndoer, "_ask", asked):
        yield


@contextmanager
def an_unapproved_look_says_nothing() -> Iterator[None]:
    """Undo row: a saga that stops calls a step again, takes in nothing of it, and calls it again."""
    with replaced(outcomes, "_is_look", lambda *_: False):
        yield


@contextmanager
def only_the_last_attempt_counts() -> Iterator[None]:
    """Undo row: a step acts, its answer is lost, and a refusal of its next attempt is taken for all that there was."""
    with replaced(outcomes, "has_acted_before", lambda *_: False):
        yield


@contextmanager
def a_saga_that_goes_on_alone_is_taken_for_a_child() -> Iterator[None]:
    """Undo row: where the log does not have yet that it was started, the rollback comes to it as to an open child."""

    def may_undo(child: Child) -> bool:
        return child.undoable or not child.status

    with replaced(Child, "may_undo", property(may_undo)):
        yield


@contextmanager
def an_open_child_has_spent_nothing() -> Iterator[None]:
    """Undo row: a child that the rollback has cancelled reports the cost of its undoing alone."""

    async def before(_: Any, history: Any) -> int:
        closed = history.state.lineage.closed
        return (await history.state_at(closed[-1].last) if closed else history.state).money.spent  # type: ignore[no-any-return]

    with replaced(undo_children.ChildUndoer, "_before", before):
        yield


@contextmanager
def a_child_that_can_never_start_is_asked_for_ever() -> Iterator[None]:
    """Undo row: a rollback that asks a child to stop drops the refusal of its start, and looks for a saga that never was."""

    async def perform(self: Any, run: Any, command: Any) -> bool:
        async def cancel(*arguments: Any, **more: Any) -> Any:
            asked = await ChildCanceller.cancel(self, *arguments, **more)
            return None if isinstance(asked, Failure) else asked

        self.cancel = cancel
        return await real(self, run, command)

    real = ChildCanceller.perform
    with replaced(ChildCanceller, "perform", perform):
        yield


@contextmanager
def a_look_that_is_cut_off_is_repeated_for_ever() -> Iterator[None]:
    """Undo row: a stopping saga calls a `verify` that hangs in each invocation again, and asks no person."""
    with replaced(undoing, "MOST_INTERRUPTIONS", 1_000_000):
        yield
