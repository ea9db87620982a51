"""A saga that cannot go on takes back what it has done: whether, and what comes before.

Loaded with the first saga that undoes something. The steps of it are in undo_steps.py, the list of what can be undone in core/log/undos.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from baton.core.decide.builder import DecisionBuilder, activation, one_after_a_crash
from baton.core.decide.commands import Decision, StopSteps, missing, next_up
from baton.core.decide.context import LackingError
from baton.core.decide.parking import orphans_of
from baton.core.decide.program import Program
from baton.core.decide.retries import next_attempt
from baton.core.decide.scheduling import follow
from baton.core.decide.spending import is_told
from baton.core.decide.stopped_steps import replaced
from baton.core.decide.undo_links import in_doubt
from baton.core.decide.unknown_outcomes import doubts, is_in_doubt, looks_first, may_stand, stands
from baton.core.effects.toolspec import ONCE, PURE
from baton.core.expressions import ExpressionError
from baton.core.failures.codes import class_of
from baton.core.log import events as ev
from baton.core.log.answers import tool_asked_about
from baton.core.log.folding.callbacks import callback_of, is_elsewhere, said_of
from baton.core.log.opened import Child
from baton.core.log.state import UNKNOWN_OUTCOME, State, node_of
from baton.core.log.undos import NAMED
from baton.core.nodes.base import Activation, Run, UnfitError
from baton.errors import CorruptLog

Cancelling = Callable[..., Decision]
"""Has children stop, and undo what they have done."""

MOST_INTERRUPTIONS = 3
"""So often a step that is called again to find out what it has done may be cut off by the end of an invocation."""
MOST_CRASHES = 2
"""After so many deaths in a row without progress such a step is not called again: it may be the one that kills its workers."""
_CUT_OFF = ev.Failure(
    UNKNOWN_OUTCOME, "it was cut off, and its output did not come", kind=class_of(UNKNOWN_OUTCOME)
)
_ELSEWHERE = ev.Failure(
    UNKNOWN_OUTCOME, "another system still works at it, or is done by now", kind=class_of(UNKNOWN_OUTCOME)
)
STOPPED = ev.Failure("cancelled", "the saga was stopped while the step ran")


# ---- whether, and when ---------------------------------------------------------------------------------------------------


def begun(builder: DecisionBuilder, cancelling: Cancelling) -> Decision | None:
    """What comes before the end of a saga that stops: it takes back what it has done. None: it does not.

    First it is found out what has happened, people are told where that cannot be, and its children are stopped.
    """
    state = builder.state
    if not _is_wanted(state):
        return None
    if (first := _said(builder) or _looks(builder)) is not None:
        return first
    heard = _to_hear_of(builder)
    has_ended = any(child.undoable for _, child in heard)
    if not (state.undo.is_left or has_ended or _may_stand(builder)):
        return None
    told = [one for one in doubts(builder.program, state, builder.now) if not is_told(state, one.key)]
    if told:
        return Decision(record=tuple(ev.NoticeDue(notice=notice) for notice in told))
    if heard:
        return cancelling(heard, undo=True, heard=True)
    if orphans := orphans_of(state):
        return cancelling(orphans, undo=True)
    try:
        return Decision(record=(*_in_doubt(builder), *_set_aside(state), _beginning(builder)))
    except LackingError as error:
        return Decision(commands=missing(error.needs, error.questions))


def _to_hear_of(builder: DecisionBuilder) -> list[tuple[str, Child]]:
    """The open children that undo what they have done: also those that have told of their end, which nothing has taken in."""
    program, state = builder.program, builder.state
    return [
        (slot, child)
        for slot, child in state.children.items()
        if (child.undoable or not child.status) and not program.nodes[node_of(slot)[0]].stays
    ]


def stopping(builder: DecisionBuilder) -> Decision:
    """Running steps are stopped, but for those that something undoes: they end by themselves, so that it is known what they have done."""
    program, state = builder.program, builder.state
    slots = tuple(slot for slot in builder.running if not ends_by_itself(program, state, slot))
    return Decision(commands=(StopSteps(slots),)) if slots else Decision()


def ends_by_itself(program: Program, state: State, slot: str) -> bool:
    """Whether a step of a saga that undoes what it has done is not stopped."""
    return bool(program.node_at(state, slot).undo) or is_in_doubt(program, state, slot, ())


def _is_wanted(state: State) -> bool:
    if state.result is not None:
        return False
    if state.cancel is not None and state.cancel.undo:
        return True
    return state.failure is not None and not state.undo.stays


def _may_stand(builder: DecisionBuilder) -> bool:
    """Whether a step was cut off whose work something undoes, and of which it is not known what it has done."""
    program, state = builder.program, builder.state
    return any(program.node_at(state, slot).undo for slot in _cut_off(builder))


def _is_unsettled(program: Program, state: State, slot: str) -> bool:
    """Whether a step that something undoes may have acted in an invocation that ended before the log said so.

    Such a step is idempotent: called again with its key, it says what there is to undo.
    """
    node = program.node_at(state, slot)
    return (
        bool(node.undo)
        and node.effect not in {PURE, ONCE}
        and slot in state.recovery.possibly_running
        and program.has_come(state, slot)
        and slot not in state.open
        and state.recovery.interruptions.get(slot, 0) < MOST_INTERRUPTIONS
        and state.recovery.consecutive_crashes < MOST_CRASHES
    )


def _is_verified(program: Program, state: State, slot: str) -> bool:
    """Tell whether `verify` looks at an idempotent step that may have acted. It is not called again then."""
    node, failing = program.node_at(state, slot), state.failing.get(slot)
    if failing is not None and node.verified and failing.way is None:
        return failing.look or looks_first(state, slot, failing, node) or _is_unsettled(program, state, slot)
    return failing is None and node.verified and _is_unsettled(program, state, slot)


def _said(builder: DecisionBuilder) -> Decision | None:
    """What work elsewhere has said before the saga has come to its end is how its step has ended; None where it has said nothing."""
    program, state = builder.program, builder.state
    for slot, work in state.open.items():
        if program.node_at(state, slot).undo and said_of(state, callback_of(state, slot)) is not None:
            at = activation(program, state, slot)
            try:
                said = program.kinds[at.node.kind].resume(at, work, builder)
                assert said is not None, "it has said something"
                follow(builder, at, said)
            except LackingError as error:
                return Decision(commands=missing(error.needs, error.questions))
    return Decision(record=tuple(builder.record)) if builder.record else None


def _looks(builder: DecisionBuilder) -> Decision | None:
    """The steps of which has to be found out first whether they have happened; None when there are none.

    Those that may act only once, or whose tool names a `verify`, are looked at; others are called again. After a crash, one at a time. While another system still works at one, no look
    says what will have come of it: a person is asked in its turn.
    """
    program, state = builder.program, builder.state
    run = []
    for slot in state.tokens:
        at = activation(program, state, slot)
        failing = state.failing.get(slot)
        if not at.node.undo or (failing is not None and failing.ask is not None) or slot in state.undo.unsure:
            continue
        if is_elsewhere(state, slot):
            continue
        is_looked_at = is_in_doubt(program, state, slot, ()) or _is_verified(program, state, slot)
        if not is_looked_at and not _is_unsettled(program, state, slot):
            continue
        try:
            step = next_attempt(builder, at, _arguments_of(builder, at))
        except LackingError as error:
            return Decision(commands=missing(error.needs, error.questions))
        except ExpressionError:
            continue
        if is_looked_at:
            step = replace(step, look=True, hooks=(), failure=step.failure or STOPPED)
        run.append(step)
    return Decision(commands=next_up(one_after_a_crash(builder, run), ())) if run else None


def _arguments_of(builder: DecisionBuilder, at: Activation) -> Any:
    """Raises `ExpressionError` where there are none, `LackingError`."""
    if not at.item or builder.program.is_one_of_many(at.slot):
        return builder.context(at.slot).render(builder.program.template(at.slot))
    # What undoes something, or finds out whether there is something to undo, is not held up by limits of money.
    desk = DecisionBuilder(builder.program, builder.state, builder.now, builder.running, builder.found)
    try:
        said = builder.program.kinds[at.node.kind].begin(at, desk)
    except UnfitError as error:
        raise ExpressionError(error.failure.message) from error
    if not isinstance(said, Run):
        raise ExpressionError(f"`{at.slot}` cannot be called any more")
    return said.arguments


def _in_doubt(builder: DecisionBuilder) -> Iterator[ev.StepFailed]:
    """Of each step that was cut off, and that something undoes, that it has failed and may have happened: a person is asked when its turn
    comes. Raises `LackingError`.
    """
    program, state = builder.program, builder.state
    for slot in _cut_off(builder):
        at, failing = activation(program, state, slot), state.failing.get(slot)
        if not at.node.undo:
            continue
        if is_elsewhere(state, slot):
            failure = _ELSEWHERE
        elif failing is None or not stands(at.node, failing):
            failure = _CUT_OFF
        else:
            failure = replace(failing.failure, doubt=failing.failure.doubt or failing.acted)
        failed = ev.StepFailed(
            node=at.node.name,
            iteration=at.iteration,
            item=at.item,
            attempt=1 if failing is None else failing.attempts,
            failure=replace(failure, node=at.node.name),
            started_at=builder.now,
            ended_at=builder.now,
            tool=at.node.tool if failing is None else tool_asked_about(at.node, failing),
            tool_version=at.node.tool_version,
            schema_hash=at.node.schema_hash,
            is_result=program.keeps_failure(slot),
        )
        key = "" if failing is None else failing.key
        yield in_doubt(program, builder.state, at.node, failed, kept_of(builder, at, failed.tool), key)


def kept_of(builder: DecisionBuilder, at: Activation, tool: str) -> ev.Value | None:
    """What undoes the step of `tool` needs of its arguments, if they can be made once more. Raises `LackingError`."""
    failing, undo = builder.state.failing.get(at.slot), at.node.undo.get(tool)
    if failing is not None and failing.kept is not None:
        return failing.kept
    if undo is None or undo.keeps == ():
        return None
    try:
        given = {**_arguments_of(builder, at), **({} if failing is None else replaced(failing))}
    except (ExpressionError, CorruptLog):
        return None
    return ev.Value(v=undo.needed(given))


def _set_aside(state: State) -> tuple[ev.UndoSetAside, ...]:
    """Where some of what could not be undone is in the log, all of it but the first is: it is taken up in one order."""
    rest = state.undo.failed[NAMED:] if state.undo.aside else ()
    return (ev.UndoSetAside(steps=rest),) if rest else ()


def _beginning(builder: DecisionBuilder) -> ev.UndoBegan:
    """The event with which it begins."""
    state, cancel = builder.state, builder.state.cancel
    wanted = cancel if cancel is not None and cancel.undo else None
    failure = state.failure
    program = builder.program
    lost = tuple(slot for slot in _cut_off(builder) if not program.node_at(state, slot).undo)
    reason = wanted.reason if wanted is not None else f"{failure.code}: {failure.message}" if failure else ""
    return ev.UndoBegan(
        reason=reason[:500],
        by="" if wanted is None else wanted.by,
        at=builder.now,
        back_to=0 if wanted is None else wanted.back_to,
        together=builder.program.graph.undo_together or (wanted is not None and wanted.together),
        doubtful=lost[:NAMED],
        doubts=len(lost),
        kept=tuple(sorted(program.for_handler & state.outputs.keys())),
    )


def _cut_off(builder: DecisionBuilder) -> Iterator[str]:
    """Steps that may have happened, and whose output did not come: there is nothing to undo them with."""
    program, state = builder.program, builder.state
    for slot in state.tokens:
        if slot not in state.undo.unsure and may_stand(program, state, slot, ()):
            yield slot
