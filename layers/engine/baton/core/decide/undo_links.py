"""The place of a step in the list of what would have to be undone, when it ends. What is made of the list is in undoing.py."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.decide.unknown_outcomes import may_have_acted, unanswered
from baton.core.effects.toolspec import PURE
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.replans import Replanning
from baton.core.log.state import State, slot_of
from baton.core.log.undos import is_undo

STEP, SAGA = "step", "saga"  # which other one has done what an attempt was given


def linked(
    program: Program,
    state: State,
    node: Node,
    succeeded: ev.StepSucceeded,
    kept: ev.Value | None,
    done_by: str,
    key: str = "",
) -> ev.StepSucceeded:
    """With its place in the list. What a model has put in its place is there by its own calls."""
    slot, tool = _slot(succeeded), succeeded.tool
    if not (program.undoes or state.undo.head) or is_undo(slot):
        return succeeded
    if (node.effect == PURE and tool == node.tool) or isinstance(state.open.get(slot), Replanning):
        return succeeded
    if done_by == STEP:
        return succeeded  # it is undone where it was done
    undo = None if done_by == SAGA or node.stays else node.undo.get(tool)
    return replace(
        succeeded,
        prior=state.undo.head,
        lasting=undo is None,
        kept=None if undo is None else kept,
        key=key if undo is not None and undo.keyed else "",
    )


def in_doubt(
    program: Program,
    state: State,
    node: Node,
    failed: ev.StepFailed,
    kept: ev.Value | None,
    key: str = "",
    *,
    acted: bool = False,
) -> ev.StepFailed:
    """A failure for good; with its place in the list where the step may have acted, in this attempt or (`acted`) in one before."""
    failure, slot = unanswered(node, failed.failure), _slot(failed)
    if acted:
        failure = replace(failure, doubt=True)
    failed = replace(failed, failure=failure)
    acting = failure.tool or failed.tool
    if not program.undoes or is_undo(slot) or acting not in node.undo or not may_have_acted(node, failure):
        return failed
    return replace(failed, tool=acting, prior=state.undo.head, kept=kept, key=key)


def _slot(event: ev.Settles) -> str:
    return slot_of(event.node, event.iteration, event.item)
