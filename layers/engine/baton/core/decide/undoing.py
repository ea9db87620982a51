"""The undoing of a saga that cannot go on: its conditions, its preparation, and its steps.

Loaded with the first saga that undoes its effects. The list of steps that can be undone is in
core/log/undos.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from baton.core.decide import undo_doubts
from baton.core.decide.context import LackingError
from baton.core.decide.decision import (
    Decision,
    DecisionBuilder,
    RunStep,
    StopSteps,
    activation,
    missing,
    next_attempt,
    next_up,
    one_after_a_crash,
)
from baton.core.decide.parking import ask_to_stop, stop_children, tell_of_doubts
from baton.core.decide.program import Program
from baton.core.decide.retries import fail, may_try_again
from baton.core.decide.scheduling import apply_kind_answer
from baton.core.decide.unknown_outcomes import (
    failed_with_unknown_outcome,
    is_in_doubt,
    looks_first,
    may_stand,
    member_notice,
    replaced_arguments,
    stands,
)
from baton.core.effects.toolspec import ONCE, PURE
from baton.core.expressions import ExpressionError, compile_template, lone_path
from baton.core.failures.codes import class_of
from baton.core.failures.policy import ANY
from baton.core.graph.graph import Node, Undo
from baton.core.log import events as ev
from baton.core.log.folding.received import callback_of, is_elsewhere, said_of
from baton.core.log.folding.undo_folds import links_of, undone_by
from baton.core.log.questions import tool_asked_about
from baton.core.log.records import Child
from baton.core.log.slots import Slot
from baton.core.log.state import UNKNOWN_OUTCOME, Failing, State
from baton.core.log.undos import (
    FAILED_UNDOS_PER_ENTRY,
    NAMED_IN_STATE,
    Undoing,
    UndoStep,
    undo_item,
)
from baton.core.nodes.base import Activation, UnfitError
from baton.errors import CorruptLog

MOST_INTERRUPTIONS = 3
"""Most interruptions by the end of an invocation of an inverse, or of a step whose outcome is checked, before
the engine gives it up.
"""
MOST_CRASHES = 2
"""Most deaths in a row without progress before the engine no longer calls such a step: it may be the one that
kills its workers.
"""
_CUT_OFF = ev.Failure(
    UNKNOWN_OUTCOME, "it was cut off, and its output did not come", kind=class_of(UNKNOWN_OUTCOME)
)
_ELSEWHERE = ev.Failure(
    UNKNOWN_OUTCOME, "another system still works at it, or is done by now", kind=class_of(UNKNOWN_OUTCOME)
)
STOPPED = ev.Failure("cancelled", "the saga was stopped while the step ran")


# ---- whether, and when ---------------------------------------------------------------------------------------------------


def begin_rollback(builder: DecisionBuilder) -> Decision | None:
    """Return the decision before the end of a stopping saga that undoes its effects. None: it undoes nothing.

    The saga first finds out the outcomes of its steps, tells people if that is impossible, and stops its
    children.
    """
    state = builder.state
    if not state.will_revert:
        return None
    if (first := _said(builder) or _looks(builder)) is not None:
        return first
    heard = _to_hear_of(builder)
    has_ended = any(child.undoable for _, child in heard)
    if not (state.undo.is_left or has_ended or _may_stand(builder)):
        return None
    if (first := tell_of_doubts(builder)) is not None:
        return first
    if heard:
        first = ask_to_stop(heard, builder.found, revert=True)
        return replace(first, record=tuple(replace(event, undo=True) for event in first.record))
    if (first := stop_children(state, builder.found)) is not None:
        return first
    try:
        return Decision(record=(*_in_doubt(builder), *_set_aside(state), _beginning(builder)))
    except LackingError as error:
        return Decision(commands=missing(error.needs, error.questions))


def _to_hear_of(builder: DecisionBuilder) -> list[tuple[str, Child]]:
    """Return the open children that undo their effects, including those whose reported end has not been
    processed.
    """
    program, state = builder.program, builder.state
    return [
        (slot, child)
        for slot, child in state.children.items()
        if child.may_undo and not program.nodes[Slot.parse(slot).node].stays
    ]


def stop_running(builder: DecisionBuilder) -> Decision:
    """Stop running steps except those with an inverse: they end by themselves, so that their outcome is
    known.
    """
    program, state = builder.program, builder.state
    slots = tuple(slot for slot in builder.running if not ends_by_itself(program, state, slot))
    return Decision(commands=(StopSteps(slots),)) if slots else Decision()


def ends_by_itself(program: Program, state: State, slot: str) -> bool:
    """Return true if a step of a saga that undoes its effects is not stopped."""
    return program.node_at(state, slot).is_reversible or is_in_doubt(program, state, slot, ())


def _may_stand(builder: DecisionBuilder) -> bool:
    """Return true if a step with an inverse was cut off, and its outcome is unknown."""
    program, state = builder.program, builder.state
    return any(program.node_at(state, slot).is_reversible for slot in _cut_off(builder))


def _is_unsettled(program: Program, state: State, slot: str) -> bool:
    """Return true if a step with an inverse may have acted in an invocation that ended before the log
    recorded it.

    Such a step is idempotent: called again with its key, it returns the output that its inverse needs.
    """
    node = program.node_at(state, slot)
    return (
        node.is_reversible
        and node.effect not in {PURE, ONCE}
        and slot in state.recovery.possibly_running
        and program.has_come(state, slot)
        and slot not in state.open
        and state.recovery.consecutive_crashes < MOST_CRASHES
    )


def _is_verified(program: Program, state: State, slot: str) -> bool:
    """Return true if `verify` checks an idempotent step that may have acted.

    The step is not called again then.
    """
    node, failing = program.node_at(state, slot), state.failing.get(slot)
    if failing is not None and node.verified and failing.way is None:
        return failing.look or looks_first(state, slot, failing, node) or _is_unsettled(program, state, slot)
    return failing is None and node.verified and _is_unsettled(program, state, slot)


def _said(builder: DecisionBuilder) -> Decision | None:
    """Return the decision by a report of work elsewhere that came before the saga's end, which ends its step;
    None without one.
    """
    program, state = builder.program, builder.state
    for slot, work in state.open.items():
        if (
            program.node_at(state, slot).is_reversible
            and said_of(state, callback_of(state, slot)) is not None
        ):
            at = activation(program, state, slot)
            try:
                said = program.kinds[at.node.kind].resume(at, work, builder)
                assert said is not None, "it has said something"
                apply_kind_answer(builder, at, said)
            except LackingError as error:
                return Decision(commands=missing(error.needs, error.questions))
    return Decision(record=tuple(builder.record)) if builder.record else None


def _looks(builder: DecisionBuilder) -> Decision | None:
    """Return the decision to find out the outcome of steps; None if all are known.

    Steps that may act only once, or whose tool names a `verify`, are checked; others are called again. After
    a crash, one at a time. A person is asked in their turn about a step for which another system still works,
    and about one that was cut off too often.
    """
    program, state = builder.program, builder.state
    run = []
    for slot in state.tokens:
        at = activation(program, state, slot)
        failing = state.failing.get(slot)
        if not at.node.is_reversible or (failing is not None and failing.ask is not None):
            continue
        if slot in state.undo.unsure and failing is None and slot not in state.recovery.possibly_running:
            continue  # it has failed for good; a fork may have it run again
        if is_elsewhere(state, slot) or state.recovery.interruptions.get(slot, 0) >= MOST_INTERRUPTIONS:
            continue
        is_looked_at = is_in_doubt(program, state, slot, ()) or _is_verified(program, state, slot)
        if not is_looked_at and not _is_unsettled(program, state, slot):
            continue
        try:
            step = next_attempt(builder, at, builder.arguments(at))
        except LackingError as error:
            return Decision(commands=missing(error.needs, error.questions))
        except UnfitError:
            continue
        if is_looked_at:
            step = replace(step, look=True, hooks=(), failure=step.failure or STOPPED)
        run.append(step)
    return Decision(commands=next_up(one_after_a_crash(builder, run), ())) if run else None


def _in_doubt(builder: DecisionBuilder) -> Iterator[ev.StepFailed]:
    """Yield, for each step with an inverse that was cut off, the failure with an unknown outcome.

    Raises `LackingError`.
    A person is asked when the undoing comes to the step.
    """
    program, state = builder.program, builder.state
    for slot in _cut_off(builder):
        at, failing = activation(program, state, slot), state.failing.get(slot)
        if not at.node.is_reversible:
            continue
        if is_elsewhere(state, slot):
            failure = _ELSEWHERE
        elif failing is None or not stands(at.node, failing):
            failure = _CUT_OFF
        else:
            failure = replace(failing.failure, doubt=failing.failure.doubt or failing.acted)
        failed = ev.StepFailed(
            **at.place.fields,
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
        yield failed_with_unknown_outcome(
            program, builder.state, at.node, failed, _kept_of_cut_off(builder, at, failed.tool), key
        )


def _kept_of_cut_off(builder: DecisionBuilder, at: Activation, tool: str) -> ev.Value | None:
    """Return the arguments of the step of `tool` that its inverse needs, if they can be made once more.

    Raises `LackingError`.
    """
    failing = builder.state.failing.get(at.slot)
    if failing is not None and failing.kept is not None:
        return failing.kept
    if not at.node.keeps(tool):
        return None
    try:
        given = {**builder.arguments(at), **({} if failing is None else replaced_arguments(failing))}
    except (UnfitError, CorruptLog):
        return None
    return ev.Value(v=at.node.kept(tool, given))


def _set_aside(state: State) -> tuple[ev.UndoSetAside, ...]:
    """Set aside all steps that could not be undone but the first, if some are in the log already: they come
    in one order.
    """
    rest = state.undo.failed[NAMED_IN_STATE:] if state.undo.aside else ()
    return (ev.UndoSetAside(steps=rest),) if rest else ()


def _beginning(builder: DecisionBuilder) -> ev.UndoBegan:
    """Return the event with which the undoing begins."""
    state, cancel = builder.state, builder.state.cancel
    wanted = cancel if cancel is not None and cancel.undo else None
    failure = state.failure
    program = builder.program
    lost = tuple(slot for slot in _cut_off(builder) if not program.node_at(state, slot).is_reversible)
    reason = wanted.reason if wanted is not None else f"{failure.code}: {failure.message}" if failure else ""
    return ev.UndoBegan(
        reason=reason[:500],
        by="" if wanted is None else wanted.by,
        at=builder.now,
        back_to=0 if wanted is None else wanted.back_to,
        together=builder.program.graph.undo_together or (wanted is not None and wanted.together),
        doubtful=lost[:NAMED_IN_STATE],
        doubts=len(lost),
        kept=tuple(sorted(program.for_handler & state.outputs.keys())),
    )


def _cut_off(builder: DecisionBuilder) -> Iterator[str]:
    """Yield steps that may have happened without an output: their inverse lacks that output."""
    program, state = builder.program, builder.state
    for slot in state.tokens:
        if slot not in state.undo.unsure and may_stand(program, state, slot, ()):
            yield slot


SIDE_BY_SIDE = 10
"""Most steps that are undone at a time if the document allows it."""
LEAST_MS = 1_000
"""Shortest time in milliseconds for an attempt; with less time, none is made."""
LOOK_MS = 60_000
"""Milliseconds before the first poll of a child that undoes its effects, in case its report is lost; later
polls are ever rarer.
"""


def undo(builder: DecisionBuilder) -> Decision:
    """Return the decision for an undoing under way."""
    for slot in _work(builder).steps:
        try:
            _schedule(builder, slot)
        except LackingError as error:
            builder.lacks(error)
    if builder.state.undo.head > builder.state.version:
        return Decision(has_more=True)  # what is to be undone is in the entry that is being made
    if not builder.record and not builder.entries:
        try:
            _move(builder)
        except LackingError as error:
            builder.lacks(error)
    if builder.record:
        return Decision(record=tuple(builder.record))
    run = one_after_a_crash(builder, builder.run)
    commands = (*missing(builder.needs, builder.questions, builder.entries), *next_up(run, builder.children))
    return Decision(commands=commands, again=builder.again, due=builder.due)


def _work(builder: DecisionBuilder) -> Undoing:
    work = builder.state.undo.work
    assert work is not None, "the caller has looked"
    return work


def _move(builder: DecisionBuilder) -> None:
    """Begin the next steps, pass those without an inverse, and end the undoing when none is left.

    Raises `LackingError`.
    """
    while True:
        work, failed = _work(builder), builder.state.undo.failed
        if len(failed) >= NAMED_IN_STATE + FAILED_UNDOS_PER_ENTRY:
            builder.note(
                ev.UndoSetAside(steps=tuple(replace(one, message="") for one in failed[NAMED_IN_STATE:]))
            )
        if work.steps and (not work.together or len(work.steps) >= SIDE_BY_SIDE):
            return
        event = _next(builder, work)
        if event is None:
            if not work.steps:
                builder.note(_end(builder.state, work))
            return
        if isinstance(event, ev.UndoStepBegan) and _is_under_way(builder.program, work, event):
            return
        builder.note(event)


def _is_under_way(program: Program, work: Undoing, event: ev.UndoStepBegan) -> bool:
    """Return true if another effect of the same slot, or of the same poll, is being undone."""
    if event.slot in work.steps:
        return True
    tries = (Slot.parse(slot) for slot in work.steps) if program.at(event.version).is_poll(event.node) else ()
    return any((one.node, one.iteration[:-1]) == (event.node, event.iteration[:-1]) for one in tries)


def _next(
    builder: DecisionBuilder, work: Undoing
) -> ev.UndoStepBegan | ev.UndoPassed | ev.UndoTakenUp | None:
    """Return the next event: first for steps whose inverse failed before, then for the list.

    Raises `LackingError`.
    """
    state = builder.state
    if work.aside and not work.again:
        entry = _entry(builder, work.aside[0])
        held = next(event for event in entry.events if isinstance(event, ev.UndoSetAside))
        return ev.UndoTakenUp(version=entry.version, steps=held.steps)
    if work.again:
        first = work.again[0]
        was = Slot.parse(first.slot)
        child: dict[str, Any] = {"child": first.child}
        done = None if first.child else _event(builder, first.version, first.index)
        by = child if done is None else _done_by(done)
        doubt, way = undo_doubts.why(done), dict[str, Any]()
        if isinstance(done, ev.StepFailed | ev.StepStopped) and doubt:
            way = undo_doubts.way_of(
                builder.program.at(first.version), done, _entry(builder, first.version).at
            )
        return ev.UndoStepBegan(
            **was.child(undo_item(was.item, first.version if first.left else 0)).fields,
            at=builder.now,
            version=first.version,
            index=first.index,
            **by,
            again=not first.child or bool(first.code),
            doubt=doubt,
            **way,
        )
    version, below = state.undo.head, state.undo.below
    if version <= work.back_to:
        return None
    entry = _entry(builder, version)
    links = links_of(entry.events, below)
    index, event = links[-1]
    is_first = len(links) == 1
    place: dict[str, Any] = {
        "node": event.node,
        "iteration": event.iteration,
        "version": version,
        "index": index,
        "next": event.prior if is_first else version,
        "below": -1 if is_first else index,
    }
    by = _done_by(event)
    is_child = "child" in by
    if isinstance(event, ev.StepFailed | ev.StepStopped) and not is_child:
        doubt = undo_doubts.why(event)
        left = bool(event.instead)
        slot = event.slot
        if not left and version != state.undo.unsure.get(slot):
            return ev.UndoPassed(item=event.item, **by, **place, redone=True)
        item = undo_item(event.item, version if left else 0)
        way = undo_doubts.way_of(builder.program.at(version), event, entry.at)
        return ev.UndoStepBegan(item=item, at=builder.now, **by, **place, doubt=doubt, **way)
    program = builder.program.at(version)
    if not undone_by(program.nodes, event):
        node = program.nodes.get(event.node)
        stands = node is not None and node.has_reversible
        return ev.UndoPassed(item=event.item, tool=by.get("tool", ""), **place, stands=stands)
    if program.is_poll(event.node) and not event.item:
        last = work.rounds.get(event.node, ())
        if last and (last[:-1], event.iteration < last) == (event.iteration[:-1], True):
            return ev.UndoPassed(**by, **place, polled=True)
    return ev.UndoStepBegan(item=undo_item(event.item), at=builder.now, **by, **place)


def _done_by(event: ev.Reversible) -> dict[str, Any]:
    if not event.child:
        return {"tool": event.tool}
    return {"child": event.child, **({"stopped": True} if isinstance(event, ev.StepStopped) else {})}


def _entry(builder: DecisionBuilder, version: int) -> ev.Entry:
    entry = builder.found.entries.get(version)
    if entry is None:
        raise LackingError(entries=(version,))
    return entry


def _event(builder: DecisionBuilder, version: int, index: int) -> Any:
    return _entry(builder, version).events[index]


def _schedule(builder: DecisionBuilder, slot: str) -> None:
    """Schedule an inverse: it runs now, waits for its next attempt, or for a person.

    Raises `LackingError`.
    """
    state = builder.state
    if slot in builder.running:
        return
    if _work(builder).steps[slot].doubt:
        undo_doubts.ask_person(builder, _at(builder, slot))
        return
    known = len(builder.record)
    if builder.now < (until := _waits_until(state, slot)):
        builder.again_at(until)
        return
    if slot in state.failing and not may_try_again(builder, _at(builder, slot)):
        undo_doubts.notify_on_call(builder, _at(builder, slot), known)
        return
    state = builder.state
    step = _work(builder).steps[slot]
    if step.child:
        builder.children.append((slot, Child(saga=step.child, workflow="", input=ev.Value())))
        waited = builder.now - max(_work(builder).at, state.last_at)
        builder.due_by(builder.now + max(LOOK_MS, waited))
        return
    at = _at(builder, slot)
    work = state.open.get(slot)
    if work is not None:
        said = builder.program.kinds[at.node.kind].resume(at, work, builder)
        if said is None:
            builder.due_by(builder.now + LOOK_MS if work.due is None else work.due)
        else:
            apply_kind_answer(builder, at, said)
        return
    event = _event(builder, step.version, step.index)
    if (times := state.recovery.interruptions.get(slot, 0)) >= MOST_INTERRUPTIONS:
        text = f"it was cut off {times} times by the end of its invocation: it needs more than a full budget"
        _give_up(builder, at, ev.failed_with("over_budget", text, at.node.name))
        return
    found = builder.program.at(step.version).nodes[at.place.node].inverse(step.tool, at.place.subject.item)
    if found is None:
        text = f"nothing undoes `{step.tool}` any more"
        _give_up(builder, at, ev.failed_with("tool_missing", text, at.node.name))
        return
    failing = state.failing.get(slot)
    left = _left_ms(at.node, failing, builder.now)
    if failing is not None and failing.given is None and left is not None and left < LEAST_MS:
        _give_up(builder, at, failing.failure)
        return
    try:
        arguments = _arguments(builder, slot, found, event, step)
    except (ExpressionError, CorruptLog) as error:
        _give_up(builder, at, ev.failed_with("input_unbound", str(error), at.node.name))
        return
    builder.run.append(_run(builder, at, arguments))


def _give_up(builder: DecisionBuilder, at: Activation, failure: ev.Failure) -> None:
    """Fail an inverse that is not called, or not once more, and notify the people on call as for a final
    failure of its call.
    """
    told = member_notice(builder.state, at.slot, failure, builder.now)
    fail(builder, at, failure)
    if told is not None:
        builder.note(ev.NoticeDue(notice=told))


def _waits_until(state: State, slot: str) -> int:
    """Return the time until which an inverse is not called.

    A circuit breaker is open, which counts no attempt, or a call that it undoes may be under way.
    """
    work, held = state.undo.work, state.held.get(slot)
    not_before = 0 if work is None else work.steps[slot].not_before
    return not_before if held is None else max(held.until, not_before)


def _at(builder: DecisionBuilder, slot: str) -> Activation:
    return activation(builder.program, builder.state, slot)


def _run(builder: DecisionBuilder, at: Activation, arguments: Any) -> RunStep:
    within = _left_ms(at.node, builder.state.failing.get(at.slot), builder.now) or 0
    return replace(next_attempt(builder, at, arguments), within_ms=within)


def _left_ms(node: Node, failing: Failing | None, now: int) -> int | None:
    """Return the milliseconds left for all attempts to undo a step together; None: no such time is set.

    The time of a preset is meant for the pauses between attempts alone.
    """
    change = node.failures.get(ANY)
    retry = None if change is None else change.retry
    if retry is None or retry.preset or not retry.budget_ms:
        return None
    began = now if failing is None or not failing.began else failing.began
    return retry.budget_ms - (now - began)


def _arguments(
    builder: DecisionBuilder, slot: str, found: Undo, event: Any, step: UndoStep
) -> dict[str, Any]:
    """Return the arguments of an inverse. An expression for a missing optional value is left out.

    Raises `ExpressionError`, `LackingError`.
    """
    values: dict[str, ev.Value] = {}
    if step.given is not None:
        values["output"] = step.given
    elif not step.way:
        values["output"] = event.output if event.full is None else event.full
    if event.key:
        values["key"] = ev.Value(v=event.key)
    if event.kept is not None:
        values["input"] = event.kept
    context = replace(builder.context(slot), step=values)
    given: dict[str, Any] = found.step.arguments
    rendered: dict[str, Any] = context.render(compile_template(given))
    return {
        name: value
        for name, value in rendered.items()
        if value is not None or not ((path := lone_path(given[name])) is not None and path.optional)
    }


def inverse_input(builder: DecisionBuilder, slot: str) -> Any:
    """Return the arguments of an inverse, None where no tool undoes the step.

    Raises `ExpressionError`, `CorruptLog`, `LackingError`.
    """
    step, place = _work(builder).steps[slot], Slot.parse(slot)
    found = builder.program.at(step.version).nodes[place.node].inverse(step.tool, place.subject.item)
    if found is None:
        return None
    return _arguments(builder, slot, found, _event(builder, step.version, step.index), step)


def give_up_inverse(builder: DecisionBuilder) -> Decision:
    """Give up an inverse that no deployed code has mended when the saga has no day left, so that the others
    are undone.
    """
    for slot in _work(builder).steps:
        if (failing := builder.state.failing.get(slot)) is not None and failing.ask is not None:
            fail(builder, _at(builder, slot), failing.failure)
    builder.note(ev.Resumed(by="time", at=builder.now))
    return Decision(record=tuple(builder.record))


# ---- how it ends ---------------------------------------------------------------------------------------------------------


def _end(state: State, work: Undoing) -> ev.SagaEnded:
    undo = state.undo
    report = ev.Undone(
        done=work.done,
        fails=undo.fails,
        lasts=work.lasts,
        failed=tuple(one for one in undo.failed if not one.doubt)[:NAMED_IN_STATE],
        lasting=work.lasting,
        doubtful=undo.in_doubt[:NAMED_IN_STATE],
        back_to=work.back_to,
        doubts=undo.unknown,
    )
    is_done = not undo.fails and not undo.unknown
    if is_done and work.empty and not work.done:
        # Only stopped children could have done something, and none of them has.
        if state.cancel is None and state.failure is not None:
            return ev.SagaEnded(status="failed", failure=state.failure)
        if state.cancel is not None and not state.lineage.closed:
            return ev.SagaEnded(status="cancelled", failure=ev.Failure("cancelled", state.cancel.reason))
    why = work.reason or (f"rolled back by {work.by}" if work.by else "")
    failure = state.failure or ev.Failure("cancelled", why)
    return ev.SagaEnded(
        status="rolled_back" if is_done else "rollback_failed", failure=failure, undone=report
    )
