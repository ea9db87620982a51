"""Effects that may happen only once and may have happened: which steps are in doubt, and who is told when no `verify` looks.

Claims are made in runtime/steps/effect_claims.py. Which failures leave a doubt: core/failures/doubts.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.effects.toolspec import ONCE, PURE
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.folding.callbacks import is_elsewhere
from baton.core.log.state import UNKNOWN_OUTCOME, Failing, State, node_of


def is_in_doubt(program: Program, state: State, slot: str, running: Collection[str]) -> bool:
    """Whether its effect may have happened: then the step does not end before `verify` or a person has looked."""
    node, failing = program.node_at(state, slot), state.failing.get(slot)
    # What is called in the tool's place may be such a tool, too.
    by_another = failing is not None and failing.way is not None and bool(failing.way.tool)
    if node.effect != ONCE and not by_another:
        return False
    if slot in running or is_elsewhere(state, slot) or _is_begun(program, state, slot):
        return True
    if failing is None or failing.left:
        return False
    return failing.failure.doubt or failing.look or failing.failure.code == UNKNOWN_OUTCOME


def may_stand(program: Program, state: State, slot: str, running: Collection[str]) -> bool:
    """Whether a step may have happened whose output has not come: what may happen only once, or what something undoes."""
    if is_in_doubt(program, state, slot, running):
        return True
    node, failing = program.node_at(state, slot), state.failing.get(slot)
    if not node.undo:
        return False
    # One that waits for its next attempt, or for an answer, has acted if one of those before has.
    if failing is not None and stands(node, failing):
        return True
    return slot in running or is_elsewhere(state, slot) or _is_begun(program, state, slot)


def _is_begun(program: Program, state: State, slot: str) -> bool:
    return slot in state.recovery.possibly_running and program.has_come(state, slot)


def stands(node: Node, failing: Failing) -> bool:
    """Tell whether an attempt until now may have done something that is undone, and that is not in the list by itself."""
    return not failing.left and (failing.acted or may_have_acted(node, failing.failure))


def leaves_unknown(node: Node, tool: str, failure: ev.Failure) -> bool:
    """Whether what a tool has done for the node, and that is undone or may happen only once, may have happened although it has failed with this."""
    if failure.doubt or failure.code == UNKNOWN_OUTCOME:
        return True
    if tool == node.tool:
        return unanswered(node, failure).doubt
    return tool in node.undo and failure.says_nothing


def may_have_acted(node: Node, failure: ev.Failure) -> bool:
    """Whether a step that has failed with this may have done something that is undone."""
    return bool(node.undo) and (
        failure.doubt or failure.code == UNKNOWN_OUTCOME or unanswered(node, failure).doubt
    )


def has_acted_before(node: Node, state: State, slot: str) -> bool:
    """Tell whether an attempt before this one may have done something that is undone: what this one fails with says nothing of that."""
    if not node.undo or node.effect in {PURE, ONCE}:
        return False  # what may happen only once has its claim
    if slot in state.recovery.possibly_running:
        return True
    failing = state.failing.get(slot)
    return failing is not None and stands(node, failing)


def looks_first(state: State, slot: str, failing: Failing, node: Node) -> bool:
    """Tell whether `verify` looks before anything but a retry is done about an idempotent call that may have acted. It looks once, and
    knows the step's own call alone.
    """
    if not node.verified or failing.way is not None or failing.look or failing.left:
        return False
    return failing.acted or failing.failure.says_nothing


def unanswered(node: Node, failure: ev.Failure) -> ev.Failure:
    """The same failure, of a step that has failed for good; in doubt where something undoes the step, and its last call had no answer or
    one that says nothing, such as a status 5xx.

    Such a step may have acted, and what it gave, which its inverse needs, is unknown: a person is asked when the saga is undone.
    """
    if not node.undo or node.effect in {PURE, ONCE} or failure.refused:
        return failure
    return replace(failure, doubt=True) if failure.says_nothing else failure


def takes_back(state: State) -> bool:
    """Whether a saga that stops would undo what it has done: its children do then, although it has done nothing itself."""
    if state.result is not None:
        return False
    if state.cancel is not None:
        return state.cancel.undo
    return not state.undo.stays


def doubts(program: Program, state: State, now: int) -> Iterator[ev.Notice]:
    """The notices about steps in doubt of a saga that ends now; where it undoes them first, people are asked then."""
    undoes = takes_back(state)
    for slot in state.tokens:
        if is_in_doubt(program, state, slot, ()) and not (undoes and program.node_at(state, slot).undo):
            yield doubt_notice(state, slot, now)


def doubt_notice(state: State, slot: str, now: int) -> ev.Notice:
    """The notice that a step was stopped for good in the middle of an effect that may happen only once: a person looks."""
    return ev.Notice(
        key=f"{state.origin.saga}/{state.lineage.branch}.{slot}.stopped",
        to="on_call",
        code=UNKNOWN_OUTCOME,
        message=f"`{slot}` was stopped while it acted, and its saga goes on or ends without it: it may have happened",
        severity="high",
        node=node_of(slot)[0],
        at=now,
        incident=True,
    )
