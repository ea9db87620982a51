"""A saga that cannot go on takes back what it has done: when, in which order, and what comes of it.

Loaded with the first saga that undoes something. Undoing a step is a step at a slot of an item; attempts, pauses, questions and money are those
of any other. The list of what can be undone is in core/log/undos.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from baton.core.decide.builder import DecisionBuilder, RunStep, activation, one_after_a_crash
from baton.core.decide.commands import Decision, StopSteps, UndoChildren, missing, next_up
from baton.core.decide.context import LackingError
from baton.core.decide.parking import orphans_of
from baton.core.decide.program import Program
from baton.core.decide.retries import may_try_again, next_attempt
from baton.core.decide.scheduling import fail, follow
from baton.core.decide.spending import is_told
from baton.core.decide.unknown_outcomes import doubts, is_in_doubt
from baton.core.effects.toolspec import ONCE, PURE
from baton.core.expressions import ExpressionError, compile_template, lone_path
from baton.core.graph.graph import Undo
from baton.core.log import events as ev
from baton.core.log.callbacks import is_elsewhere
from baton.core.log.state import State, item_of, node_of, slot_of
from baton.core.log.undos import NAMED, Undoing, undo_item, undone_item
from baton.core.log.work import Child
from baton.core.nodes.base import Activation
from baton.errors import CorruptLog

Cancelling = Callable[..., Decision]
"""Has children stop, and undo what they have done."""

SIDE_BY_SIDE = 10
"""So many steps are undone at a time where the document lets them be."""
LOOK_MS = 60_000
"""So often it is looked whether a child has undone what it had done, should word of its end be lost."""
MOST_INTERRUPTIONS = 3
"""So often a step that is called again to find out what it has done may be cut off by the end of an invocation."""
MOST_CRASHES = 2
"""After so many deaths in a row without progress such a step is not called again: it may be the one that kills its workers."""
STOPPED = ev.Failure("cancelled", "the saga was stopped while the step ran")


# ---- whether, and when ---------------------------------------------------------------------------------------------------


def begun(builder: DecisionBuilder, cancelling: Cancelling) -> Decision | None:
    """What comes before the end of a saga that stops: it takes back what it has done. None: it does not.

    First it is found out what has happened, people are told where that cannot be, and its children are stopped.
    """
    state = builder.state
    if not _is_wanted(state):
        return None
    if (looks := _looks(builder)) is not None:
        return looks
    heard = _to_hear_of(builder)
    has_ended = any(child.undoable for _, child in heard)
    if not (state.undo.can or state.undo.failed or has_ended or _may_stand(builder)):
        return None
    told = [one for one in doubts(builder.program, state, builder.now) if not is_told(state, one.key)]
    if told:
        return Decision(record=tuple(ev.NoticeDue(notice=notice) for notice in told))
    if heard:
        return cancelling(heard, undo=True, heard=True)
    if orphans := orphans_of(state):
        return cancelling(orphans, undo=True)
    return Decision(record=(_beginning(builder),))


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
    slots = tuple(slot for slot in builder.running if not _ends_by_itself(program, state, slot))
    return Decision(commands=(StopSteps(slots),)) if slots else Decision()


def _ends_by_itself(program: Program, state: State, slot: str) -> bool:
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


def _looks(builder: DecisionBuilder) -> Decision | None:
    """The steps of which has to be found out first whether they have happened; None when there are none.

    Those that may act only once are looked at; others are called again. After a crash, one at a time.
    """
    program, state = builder.program, builder.state
    run = []
    for slot in state.tokens:
        at = activation(program, state, slot)
        failing = state.failing.get(slot)
        if not at.node.undo or (failing is not None and failing.ask is not None):
            continue
        is_looked_at = is_in_doubt(program, state, slot, ())
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
    return builder.context(at.slot).render(builder.program.template(at.slot))


def _beginning(builder: DecisionBuilder) -> ev.UndoBegan:
    """The event with which it begins."""
    state, cancel = builder.state, builder.state.cancel
    wanted = cancel if cancel is not None and cancel.undo else None
    failure = state.failure
    reason = wanted.reason if wanted is not None else f"{failure.code}: {failure.message}" if failure else ""
    return ev.UndoBegan(
        reason=reason[:500],
        by="" if wanted is None else wanted.by,
        at=builder.now,
        back_to=0 if wanted is None else wanted.back_to,
        together=builder.program.graph.undo_together or (wanted is not None and wanted.together),
        doubtful=tuple(_cut_off(builder))[:NAMED],
    )


def _cut_off(builder: DecisionBuilder) -> Iterator[str]:
    """Steps that may have happened, and whose output did not come: there is nothing to undo them with."""
    program, state = builder.program, builder.state
    for slot in state.tokens:
        is_begun = is_elsewhere(state, slot) or (
            slot in state.recovery.possibly_running and program.has_come(state, slot)
        )
        if is_in_doubt(program, state, slot, ()) or (is_begun and program.node_at(state, slot).undo):
            yield slot


# ---- step by step --------------------------------------------------------------------------------------------------------


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
        work = _work(builder)
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


def _next(builder: DecisionBuilder, work: Undoing) -> ev.UndoStepBegan | ev.UndoPassed | None:
    """What comes next: first what has failed before, then the list. Raises `LackingError`."""
    state = builder.state
    if work.again:
        first = work.again[0]
        name, iteration = node_of(first.slot)
        child = {"child": first.child}
        by = child if first.child else _done_by(_event(builder, first.version, first.index))
        return ev.UndoStepBegan(
            node=name,
            iteration=iteration,
            item=undo_item(item_of(first.slot)),
            at=builder.now,
            version=first.version,
            index=first.index,
            **by,
            again=not first.child or bool(first.code),
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
    if event.lasting or not _can_undo(builder, event):
        node = builder.program.nodes.get(event.node)
        stands = node is not None and node.undoes
        return ev.UndoPassed(item=event.item, tool=by.get("tool", ""), **place, stands=stands)
    return ev.UndoStepBegan(item=undo_item(event.item), at=builder.now, **by, **place)


def _done_by(event: Any) -> dict[str, Any]:
    return {"child": event.child} if hasattr(event, "child") else {"tool": event.tool}


def _can_undo(builder: DecisionBuilder, event: Any) -> bool:
    node = builder.program.nodes.get(event.node)
    return node is not None and (hasattr(event, "child") or node.inverse(event.tool, event.item) is not None)


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
    if slot in builder.running or (slot in state.failing and not may_try_again(builder, _at(builder, slot))):
        return
    step = _work(builder).steps[slot]
    if step.child:
        builder.undoing.append((slot, step.child))
        builder.due_by(builder.now + LOOK_MS)
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
    found = builder.program.nodes[at.node.name].inverse(step.tool, undone_item(at.item))
    if found is None:
        fail(
            builder,
            at,
            ev.failed_with("tool_missing", f"nothing undoes `{step.tool}` any more", at.node.name),
        )
        return
    try:
        arguments = _arguments(builder, slot, found, event)
    except (ExpressionError, CorruptLog) as error:
        fail(builder, at, ev.failed_with("input_unbound", str(error), at.node.name))
        return
    builder.run.append(_run(builder, at, arguments))


def _at(builder: DecisionBuilder, slot: str) -> Activation:
    return activation(builder.program, builder.state, slot)


def _run(builder: DecisionBuilder, at: Activation, arguments: Any) -> RunStep:
    was = slot_of(at.node.name, at.iteration, undone_item(at.item))
    generation = builder.state.undo.generation(at.node.name, at.iteration, was)
    step = next_attempt(builder, at, arguments)
    return replace(step, digest="", undoes=True, generation=generation)


def _arguments(builder: DecisionBuilder, slot: str, found: Undo, event: Any) -> dict[str, Any]:
    """An argument that is an expression for what may be missing is left out where it is. Raises `ExpressionError`, `LackingError`."""
    values = {"output": event.output if event.full is None else event.full}
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


# ---- how it ends ---------------------------------------------------------------------------------------------------------


def _end(state: State, work: Undoing) -> ev.SagaEnded:
    left = state.undo.failed
    report = ev.Undone(
        done=work.done,
        fails=len(left),
        lasts=work.lasts,
        failed=left[:NAMED],
        lasting=work.lasting,
        doubtful=state.undo.doubtful,
        back_to=work.back_to,
    )
    is_done = not left and not state.undo.doubtful
    why = work.reason or (f"rolled back by {work.by}" if work.by else "")
    failure = state.failure or ev.Failure("cancelled", why)
    return ev.SagaEnded(
        status="rolled_back" if is_done else "rollback_failed", failure=failure, undone=report
    )
