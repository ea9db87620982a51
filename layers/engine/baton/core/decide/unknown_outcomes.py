"""Effects that may happen only once and may have happened: the steps in doubt, and the notices if no `verify`
checks them.

Claims are made in runtime/steps/effects.py. The failures that leave a doubt are in core/failures/codes.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from baton.core.decide.context import NOTHING, EvaluationContext, FetchedValues
from baton.core.decide.program import Program
from baton.core.decide.transitions import forgotten, settle_failed
from baton.core.effects.toolspec import ONCE, PURE
from baton.core.expressions import ExpressionError
from baton.core.graph.graph import Graph, Node, graph_name
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.folding.received import is_elsewhere
from baton.core.log.questions import tool_asked_about
from baton.core.log.scopes import Map, Replanning, late_end
from baton.core.log.slots import Slot, owner_of
from baton.core.log.state import UNKNOWN_OUTCOME, Failing, State
from baton.core.log.undos import NAMED_IN_STATE


def is_in_doubt(program: Program, state: State, slot: str, running: Collection[str]) -> bool:
    """Return true if the step's effect may have happened: then the step does not end before `verify` or a
    person has checked.
    """
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
    """Return true if a step without an output may have happened: its effect happens only once, or has an
    inverse.
    """
    if is_in_doubt(program, state, slot, running):
        return True
    node, failing = program.node_at(state, slot), state.failing.get(slot)
    if not node.is_reversible:
        return False
    # One that waits for its next attempt, or for an answer, has acted if one of those before has.
    if failing is not None and stands(node, failing):
        return True
    return slot in running or is_elsewhere(state, slot) or _is_begun(program, state, slot)


def _is_begun(program: Program, state: State, slot: str) -> bool:
    return slot in state.recovery.possibly_running and program.has_come(state, slot)


def stands(node: Node, failing: Failing) -> bool:
    """Return true if an attempt until now may have had an effect that is undone, and that has no place of its
    own in the list.
    """
    return not failing.left and (failing.acted or may_have_acted(node, failing.failure))


def leaves_unknown(node: Node, tool: str, failure: ev.Failure) -> bool:
    """Return true if the failed tool may have had its effect, and that effect is undone or may happen only
    once.
    """
    if failure.doubt or failure.code == UNKNOWN_OUTCOME:
        return True
    if tool == node.tool:
        return as_unknown_outcome(node, failure).doubt
    return tool in node.undo and failure.says_nothing


def may_have_acted(node: Node, failure: ev.Failure) -> bool:
    """Return true if a step with this failure may have had an effect that is undone."""
    return bool(node.is_reversible) and (
        failure.doubt or failure.code == UNKNOWN_OUTCOME or as_unknown_outcome(node, failure).doubt
    )


def has_acted_before(node: Node, state: State, slot: str) -> bool:
    """Return true if an earlier attempt may have had an effect that is undone: the present failure gives no
    evidence of that.
    """
    if not node.is_reversible or node.effect in {PURE, ONCE}:
        return False  # what may happen only once has its claim
    if slot in state.recovery.possibly_running:
        return True
    failing = state.failing.get(slot)
    return failing is not None and stands(node, failing)


def looks_first(state: State, slot: str, failing: Failing, node: Node) -> bool:
    """Return true if `verify` checks an idempotent call that may have acted, before any reaction but a retry.

    It checks once, and knows the step's own call alone.
    """
    if not node.verified or failing.way is not None or failing.look or failing.left:
        return False
    return failing.acted or failing.failure.says_nothing


def as_unknown_outcome(node: Node, failure: ev.Failure) -> ev.Failure:
    """Return the final failure of a step, in doubt if the step has an inverse and its last call had no
    conclusive answer.

    A status 5xx is such an answer. The step may have acted, and its output, which its inverse needs, is
    unknown: a person is asked when the saga is undone.
    """
    if not node.is_reversible or node.effect in {PURE, ONCE} or failure.refused:
        return failure
    return replace(failure, doubt=True) if failure.says_nothing else failure


def has_effects(state: State, but: str) -> bool:
    """Return true if a rollback comes to an effect of the saga, or may come to one of a child.

    `but`: the slot of a child that does not count.
    """
    return state.undo.is_left or any(one.may_undo for slot, one in state.children.items() if slot != but)


def may_revert(program: Program, state: State) -> bool:
    """Return true if a stopping saga may have to take an effect back.

    The effect is its own, or that of a child that has reported its end, or, if one of its steps has an
    inverse, that of a step that was cut off.
    """
    if program.has_reversible and (state.recovery.possibly_running or state.open or state.failing):
        return True
    return state.undo.is_left or any(child.undoable for child in state.children.values())


def unknown_outcome_notices(program: Program, state: State, now: int) -> Iterator[ev.Notice]:
    """Yield the notices about steps in doubt of a saga that ends now; if it undoes them first, people are
    asked then.
    """
    undoes = state.will_revert
    for slot in state.tokens:
        if is_in_doubt(program, state, slot, ()) and not (
            undoes and program.node_at(state, slot).is_reversible
        ):
            yield doubt_notice(state, slot, now)


def doubt_notice(state: State, slot: str, now: int) -> ev.Notice:
    """Return the notice that a step was stopped for good during an effect that may happen only once: a person
    must check.
    """
    return ev.Notice(
        key=f"{state.origin.saga}/{state.lineage.branch}.{slot}.stopped",
        to="on_call",
        code=UNKNOWN_OUTCOME,
        message=f"`{slot}` was stopped while it acted, and its saga goes on or ends without it: it may have happened",
        severity="high",
        node=Slot.parse(slot).node,
        at=now,
        incident=True,
    )


def left_call_notice(
    state: State, slot: str, tool: str, failing: Failing, instead: str, now: int
) -> ev.Notice:
    """Return the notice that a step goes on with a call of `instead`, and may have acted by one of `tool`."""
    notice, why = doubt_notice(state, slot, now), failing.failure
    by = f"by `{instead}`" if instead != tool else "with other arguments"
    text = (
        f"`{tool}` at `{slot}` may have happened ({why.code}: {why.message[:500]}), and the step is done {by} now. "
        f"Look, and undo it by hand if it has; a rollback of the saga asks about it"
    )
    return replace(notice, key=f"{notice.key}.{failing.attempts}", message=text)


def member_notice(state: State, slot: str, failure: ev.Failure, now: int) -> ev.Notice | None:
    """Return the notice to the people on call about a member of the rollback that has failed for good.

    The outcome of its call may be unknown. Of those that were refused, the first alone are told.
    """
    undo = state.undo
    subject, notice = Slot.parse(slot).subject.text, doubt_notice(state, slot, now)
    if failure.says_nothing or failure.code == UNKNOWN_OUTCOME:
        what = f"`{failure.tool}`" if failure.tool else "what undoes it"
        text = (
            f"it is not known whether `{subject}` is undone: {what} had no answer that says so ({failure.code}: {failure.message[:500]}). "
            "Look; a rollback calls it once more, with the same key"
        )
        return replace(notice, key=f"{notice.key}.unsure", message=text)
    if len(undo.failed) >= NAMED_IN_STATE:
        return None
    what = f"`{failure.tool}` has failed for good" if failure.tool else "what undoes it cannot be called"
    text = (
        f"`{subject}` is not undone: {what} ({failure.code}: {failure.message[:500]}). Mend what is in the way; "
        "a rollback calls it once more"
    )
    return replace(notice, key=f"{notice.key}.refused", code=failure.code, message=text)


def stopped_notices(context: EvaluationContext, now: int, running: Collection[str]) -> Iterator[ev.Event]:
    """Yield the events before the one that stops the work at the context's slot; none without an effect.

    Raises `LackingError`.
    """
    program, state, slot = context.program, context.state, context.slot
    if is_in_doubt(program, state, slot, running):
        yield ev.NoticeDue(notice=doubt_notice(state, slot, now))
    stopped = child_link(program, state, slot) or step_link(context, running)
    if stopped is not None:
        yield stopped


def child_link(program: Program, state: State, slot: str) -> ev.StepStopped | None:
    """Return the event that the child at a slot is stopped, so that an undoing of its parent comes to it.

    None if that was recorded before, or if the child certainly has nothing to undo.
    """
    child = state.child_at(slot)
    if child is None or child.listed or child.detached or program.node_at(state, slot).stays:
        return None
    if not (child.undoable if child.status else _may_undo(program.graphs, child.workflow)):
        return None
    return ev.StepStopped(**Slot.parse(slot).fields, tool="", child=child.saga, prior=state.undo.head)


def _may_undo(graphs: Mapping[str, Graph], workflow: str, above: tuple[str, ...] = ()) -> bool:
    """Return true if a child may have an inverse.

    A graph of the document is known; a registered workflow is not.
    """
    graph = graphs.get(graph_name(workflow))
    if graph is None:
        return True
    if workflow in above:
        return False
    return any(
        node.has_reversible or any(_may_undo(graphs, inner, (*above, workflow)) for inner in node.starts)
        for node in graph.nodes
    )


def step_link(context: EvaluationContext, running: Collection[str]) -> ev.StepStopped | None:
    """Return the event that the step at the context's slot is stopped, if it may have acted, else None.

    Raises `LackingError`.
    """
    program, state, slot = context.program, context.state, context.slot
    if not program.has_reversible or not may_stand(program, state, slot, running):
        return None
    node, failing = program.node_at(state, slot), state.failing.get(slot)
    return link(context, node.tool if failing is None else tool_asked_about(node, failing), failing)


def link(context: EvaluationContext, tool: str, failing: Failing | None, instead: str = "") -> ev.StepStopped:
    """Return the place in the list of a possible effect of `tool` at the context's slot.

    `instead`: the tool that goes on. Raises `LackingError`.
    """
    program, state, slot = context.program, context.state, context.slot
    node = program.node_at(state, slot)
    is_undone = tool in node.undo
    return ev.StepStopped(
        **Slot.parse(slot).fields,
        tool=tool,
        prior=state.undo.head if is_undone else None,
        kept=_kept_arguments(context, node, tool, failing) if is_undone else None,
        instead=instead,
        key="" if failing is None or not is_undone else failing.key,
    )


def _kept_arguments(
    context: EvaluationContext, node: Node, tool: str, failing: Failing | None
) -> ev.Value | None:
    """Return the arguments of the step that its inverse needs, if they can be made once more.

    Raises `LackingError`.
    """
    program, slot = context.program, context.slot
    if failing is not None and failing.kept is not None:
        return failing.kept
    if not node.keeps(tool) or ("#" in slot and not program.is_one_of_many(slot)):
        return None
    try:
        given: dict[str, Any] = context.render(program.template(slot))
    except ExpressionError:
        return None
    return ev.Value(v=node.kept(tool, {**given, **({} if failing is None else replaced_arguments(failing))}))


def replaced_arguments(failing: Failing) -> dict[str, Any]:
    """Return the arguments that replace those of the step in its next call, as far as they are known."""
    return {**failing.arguments, **({} if failing.way is None else failing.way.arguments)}


def left_by(program: Program, state: State, found: FetchedValues) -> tuple[ev.StepStopped, ...]:
    """Return the events of work that stops with the end of a saga that undoes nothing: a later rollback comes
    to it.

    Raises `LackingError`.
    """
    slots = state.tokens if program.has_reversible else state.open
    stopped = []
    for slot in slots:
        one = child_link(program, state, slot)
        if one is None and slot not in state.undo.unsure:
            one = step_link(EvaluationContext(program, state, found, slot), ())
        if one is not None:
            stopped.append(one)
    return tuple(stopped)


STEP, SAGA = "step", "saga"  # which other one has done what an attempt was given


def enlist(
    state: State,
    node: Node,
    succeeded: ev.StepSucceeded,
    kept: ev.Value | None,
    done_by: str,
    key: str = "",
) -> ev.StepSucceeded:
    """Return the event with its place in the list of what can be undone.

    A model's alternative to the step has its places by its own calls.
    """
    slot, tool = succeeded.slot, succeeded.tool
    if (
        Slot.parse(slot).scope
        or (node.effect == PURE and tool == node.tool)
        or isinstance(state.open.get(slot), Replanning)
    ):
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


def failed_with_unknown_outcome(
    program: Program,
    state: State,
    node: Node,
    failed: ev.StepFailed,
    kept: ev.Value | None,
    key: str = "",
    *,
    acted: bool = False,
) -> ev.StepFailed:
    """Return the final failure, with its place in the list if the step may have acted, now or (`acted`) in an
    earlier attempt.
    """
    failure, slot = as_unknown_outcome(node, failed.failure), failed.slot
    if acted:
        failure = replace(failure, doubt=True)
    failed = replace(failed, failure=failure)
    acting = failure.tool or failed.tool
    if (
        not program.has_reversible
        or Slot.parse(slot).scope
        or acting not in node.undo
        or not may_have_acted(node, failure)
    ):
        return failed
    return replace(failed, tool=acting, prior=state.undo.head, kept=kept, key=key)


def failed_outside(
    context: EvaluationContext, failure: ev.Failure, now: int, tool: str = "", by: str = ""
) -> ev.StepFailed:
    """Return the failure of the step at the context's slot outside of an attempt. Raises `LackingError`.

    The last attempt may have happened, whatever the step fails with now.
    """
    program, state, slot = context.program, context.state, context.slot
    node, failing = program.node_at(state, slot), state.failing.get(slot)
    failed = ev.StepFailed(
        **Slot.parse(slot).fields,
        attempt=1 if failing is None else failing.attempts,
        failure=failure,
        started_at=now,
        ended_at=now,
        tool=tool or node.tool,
        tool_version=node.tool_version,
        schema_hash=node.schema_hash,
        by=by,
    )
    failed = settle_failed(context, failure).on(failed)
    if failing is None or not stands(node, failing):
        return failed
    failed = replace(failed, failure=replace(failure, doubt=True, tool=failing.failure.tool))
    return failed_with_unknown_outcome(program, state, node, failed, failing.kept, failing.key)


ROUND = "the end of its round"


def late_in(context: EvaluationContext, late: tuple[int, int] | None = (0, 0)) -> EvaluationContext:
    """Return the same place with the map gone on (or, with None, over): the inputs of its items are kept
    until they have ended.
    """
    state = context.state
    work = state.open[context.slot]
    assert isinstance(work, Map), "nothing else goes on beside its items"
    return replace(context, state=replace(state, open={**state.open, context.slot: replace(work, late=late)}))


def map_end(program: Program, state: State, event: ev.MapEnded, slot: str) -> ev.MapEnded:
    """Return the end of a map that has gone on, with the outputs that no node reads any more."""
    return replace(event, forget=forgotten(late_in(EvaluationContext(program, state, NOTHING, slot), None)))


def doubts_of(
    program: Program, state: State, slot: str, now: int, running: Collection[str], found: FetchedValues
) -> Iterator[ev.Event]:
    """Yield the events about items of a node that are stopped while they act. Raises `LackingError`."""
    for item in state.items_of(slot):
        one = f"{slot}#{item}"
        if one in state.tokens:
            yield from stopped_notices(EvaluationContext(program, state, found, one), now, running)


def stop_map_items(
    program: Program,
    state: State,
    slot: str,
    now: int,
    running: Collection[str],
    found: FetchedValues,
    why: str,
) -> list[ev.Event]:
    """Return the events that stop the items that a map has left running.

    Nothing follows from that. Raises `LackingError`.
    """
    work = state.open[slot]
    assert isinstance(work, Map), "the caller has looked"
    doubts = doubts_of(program, state, slot, now, running, found)
    end = late_end(Slot.parse(slot), work, len(state.items_of(slot)), why)
    return [*doubts, map_end(program, state, end, slot)]


def ends_first(
    program: Program, state: State, event: ev.Event, now: int, running: Collection[str], found: FetchedValues
) -> list[ev.Event]:
    """Return the event, after the events about the steps that it stops because their round ends with it.

    Raises `LackingError`. The maps that have gone on in that round end first. The join of such a map, if its
    loop begins with it, goes on absorbing tokens from outside of the loop.
    """
    if not isinstance(event, ev.Settles) or not (drops := event.drops):
        return [event]
    gone, own = state.late.intersection(drops), event.slot
    first: list[ev.Event] = []
    for slot in drops:
        if slot in state.tokens and owner_of(slot) not in gone and owner_of(slot) != own:
            first += stopped_notices(EvaluationContext(program, state, found, slot), now, running)
    for slot in sorted(gone):
        its = stop_map_items(program, state, slot, now, running, found, ROUND)
        first += its
        for one in its:
            state = apply(state, one)
    if not gone:
        return [*first, event]
    closed = {
        slot for slot in gone if slot in state.closed and Slot.parse(slot).node not in program.index.tails_of
    }
    left = tuple(slot for slot in drops if owner_of(slot) not in gone or slot in closed)
    return [*first, replace(event, drops=left)]
