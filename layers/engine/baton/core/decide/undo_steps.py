"""The steps of an undoing: in which order, one after the other or side by side, and what comes of it.

Undoing a step is a step at a slot of an item; attempts, pauses, questions and money are those of any other. Whether a saga undoes something is in
undoing.py, what is asked about steps in doubt in undo_doubts.py.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.decide import undo_doubts
from baton.core.decide.builder import DecisionBuilder, RunStep, activation, one_after_a_crash
from baton.core.decide.commands import Decision, UndoChildren, missing, next_up
from baton.core.decide.context import LackingError
from baton.core.decide.ending import fail
from baton.core.decide.retries import may_try_again, next_attempt
from baton.core.decide.scheduling import follow
from baton.core.expressions import ExpressionError, compile_template, lone_path
from baton.core.failures.policy import ANY
from baton.core.graph.graph import Node, Undo
from baton.core.log import events as ev
from baton.core.log.state import Failing, State, item_of, node_of, slot_of
from baton.core.log.undos import LISTED, NAMED, Undoing, UndoStep, undo_item, undone_item
from baton.core.nodes.base import Activation
from baton.errors import CorruptLog

SIDE_BY_SIDE = 10
"""So many steps are undone at a time where the document lets them be."""
MOST_INTERRUPTIONS = 3
"""So often an inverse may be cut off by the end of an invocation; then it is given up, so that the others are undone."""
LEAST_MS = 1_000
"""An attempt that would have less time is not made."""
LOOK_MS = 60_000
"""So often it is looked at first whether a child has undone what it had done, should word of its end be lost; then ever less often."""


def undo(builder: DecisionBuilder) -> Decision:
    """What is to be done for an undoing under way."""
    for slot in _work(builder).steps:
        try:
            _schedule(builder, slot)
        except LackingError as error:
            builder.lacks(error)
    if builder.state.undo.head > builder.state.version:
        return Decision(behind=True)  # what is to be undone is in the entry that is being made
    if not builder.record and not builder.entries:
        try:
            _move(builder)
        except LackingError as error:
            builder.lacks(error)
    if builder.record:
        return Decision(record=tuple(builder.record))
    run = one_after_a_crash(builder, builder.run)
    commands = (*missing(builder.needs, builder.questions, builder.entries), *next_up(run, ()))
    if builder.undoing:
        commands = (*commands, UndoChildren(tuple(builder.undoing)))
    return Decision(commands=commands, again=builder.again, due=builder.due)


def _work(builder: DecisionBuilder) -> Undoing:
    work = builder.state.undo.work
    assert work is not None, "the caller has looked"
    return work


def _move(builder: DecisionBuilder) -> None:
    """The next steps begin, those that nothing undoes are passed, and it ends when none is left. Raises `LackingError`."""
    while True:
        work, failed = _work(builder), builder.state.undo.failed
        if len(failed) >= NAMED + LISTED:
            builder.note(ev.UndoSetAside(steps=tuple(replace(one, message="") for one in failed[NAMED:])))
        if work.steps and (not work.together or len(work.steps) >= SIDE_BY_SIDE):
            return
        event = _next(builder, work)
        if event is None:
            if not work.steps:
                builder.note(_end(builder.state, work))
            return
        if isinstance(event, ev.UndoStepBegan) and _slot(event) in work.steps:
            return
        builder.note(event)


def _slot(event: ev.UndoStepBegan) -> str:
    return slot_of(event.node, event.iteration, event.item)


def _next(
    builder: DecisionBuilder, work: Undoing
) -> ev.UndoStepBegan | ev.UndoPassed | ev.UndoTakenUp | None:
    """What comes next: first what has failed before, then the list. Raises `LackingError`."""
    state = builder.state
    if work.aside and not work.again:
        entry = _entry(builder, work.aside[0])
        held = next(event for event in entry.events if isinstance(event, ev.UndoSetAside))
        return ev.UndoTakenUp(version=entry.version, steps=held.steps)
    if work.again:
        first = work.again[0]
        name, iteration = node_of(first.slot)
        child: dict[str, Any] = {"child": first.child}
        done = None if first.child else _event(builder, first.version, first.index)
        by = child if done is None else _done_by(done)
        doubt = undo_doubts.why(done)
        way = undo_doubts.way_of(builder.program, done, _entry(builder, first.version).at) if doubt else {}
        return ev.UndoStepBegan(
            node=name,
            iteration=iteration,
            item=undo_item(item_of(first.slot), first.version if first.left else 0),
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
    links: list[tuple[int, Any]] = [
        (index, event)
        for index, event in enumerate(entry.events)
        if getattr(event, "prior", None) is not None and (below < 0 or index < below)
    ]
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
        doubt, left = undo_doubts.why(event), bool(getattr(event, "instead", ""))
        slot = slot_of(event.node, event.iteration, event.item)
        if not left and version <= state.undo.redone.get(slot, -1):
            return ev.UndoPassed(item=event.item, **by, **place, redone=True)
        item, way = (
            undo_item(event.item, version if left else 0),
            undo_doubts.way_of(builder.program, event, entry.at),
        )
        return ev.UndoStepBegan(item=item, at=builder.now, **by, **place, doubt=doubt, **way)
    if getattr(event, "lasting", False) or not _can_undo(builder, event):
        node = builder.program.nodes.get(event.node)
        stands = node is not None and node.undoes
        return ev.UndoPassed(item=event.item, tool=by.get("tool", ""), **place, stands=stands)
    return ev.UndoStepBegan(item=undo_item(event.item), at=builder.now, **by, **place)


def _done_by(event: Any) -> dict[str, Any]:
    if not (child := getattr(event, "child", "")):
        return {"tool": event.tool}
    return {"child": child, "stopped": True} if isinstance(event, ev.StepStopped) else {"child": child}


def _can_undo(builder: DecisionBuilder, event: Any) -> bool:
    node = builder.program.nodes.get(event.node)
    is_child = bool(getattr(event, "child", ""))
    return node is not None and (is_child or node.inverse(event.tool, event.item) is not None)


def _entry(builder: DecisionBuilder, version: int) -> ev.Entry:
    entry = builder.found.entries.get(version)
    if entry is None:
        raise LackingError(entries=(version,))
    return entry


def _event(builder: DecisionBuilder, version: int, index: int) -> Any:
    return _entry(builder, version).events[index]


def _schedule(builder: DecisionBuilder, slot: str) -> None:
    """A step that undoes another: it runs now, waits for its next attempt, or for a person. Raises `LackingError`."""
    state = builder.state
    if slot in builder.running:
        return
    if _work(builder).steps[slot].doubt:
        undo_doubts.ask(builder, _at(builder, slot))
        return
    known = len(builder.record)
    if builder.now < (until := _waits_until(state, slot)):
        builder.again_at(until)
        return
    if slot in state.failing and not may_try_again(builder, _at(builder, slot)):
        undo_doubts.tell(builder, _at(builder, slot), known)
        return
    state = builder.state
    step = _work(builder).steps[slot]
    if step.child:
        builder.undoing.append((slot, step.child))
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
            follow(builder, at, said)
        return
    event = _event(builder, step.version, step.index)
    if (times := state.recovery.interruptions.get(slot, 0)) >= MOST_INTERRUPTIONS:
        text = f"it was cut off {times} times by the end of its invocation: it needs more than a full budget"
        _give_up(builder, at, ev.failed_with("over_budget", text, at.node.name))
        return
    found = builder.program.nodes[at.node.name].inverse(step.tool, undone_item(at.item))
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
    """Fail an inverse that is not called, or not once more, and tell the people on call as if its call had failed for good."""
    told = undo_doubts.failure_notice(builder.state, at.slot, failure, builder.now)
    fail(builder, at, failure)
    if told is not None:
        builder.note(ev.NoticeDue(notice=told))


def _waits_until(state: State, slot: str) -> int:
    """Until when it is not called: while a circuit breaker is open, which counts no attempt, or a call that it takes back may be under way."""
    work, held = state.undo.work, state.held.get(slot)
    not_before = 0 if work is None else work.steps[slot].not_before
    return not_before if held is None else max(held.until, not_before)


def _at(builder: DecisionBuilder, slot: str) -> Activation:
    return activation(builder.program, builder.state, slot)


def _run(builder: DecisionBuilder, at: Activation, arguments: Any) -> RunStep:
    was = slot_of(at.node.name, at.iteration, undone_item(at.item))
    state = builder.state
    generation = state.undo.generation(at.node.name, at.iteration, was)
    step = next_attempt(builder, at, arguments)
    within = _left_ms(at.node, state.failing.get(at.slot), builder.now) or 0
    return replace(step, digest="", undoes=True, generation=generation, within_ms=within)


def _left_ms(node: Node, failing: Failing | None, now: int) -> int | None:
    """How much is left of the time for all attempts to undo a step together; None: no such time is named.

    That of a preset is meant for the pauses between attempts alone.
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
    """An argument that is an expression for what may be missing is left out where it is. Raises `ExpressionError`, `LackingError`."""
    values: dict[str, ev.Value] = {}
    if step.given is not None:
        values["output"] = step.given
    elif not step.way:
        values["output"] = event.output if event.full is None else event.full
    if event.key:
        values["key"] = ev.Value(v=event.key)
    if event.kept is not None:
        values["input"] = event.kept
    context = replace(builder.context(slot), undone=values)
    given: dict[str, Any] = found.step.arguments
    rendered: dict[str, Any] = context.render(compile_template(given))
    return {
        name: value
        for name, value in rendered.items()
        if value is not None or not ((path := lone_path(given[name])) is not None and path.optional)
    }


def stands_for(builder: DecisionBuilder) -> Decision:
    """No code has mended what undoes a step, and the saga has no day left: it is given up, so that the others are undone."""
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
        failed=tuple(one for one in undo.failed if not one.doubt)[:NAMED],
        lasting=work.lasting,
        doubtful=undo.in_doubt[:NAMED],
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
