"""What is to be done at each slot: whether it is ready, and what follows from the answer of its kind.

The kinds are in core/nodes/, what concerns the saga as a whole in decide.py, where the saga goes on in transitions.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from baton.core.conditions import ConditionError
from baton.core.conditions.model import AllOf, AnyOf, Condition, Not, Python
from baton.core.decide.admission import ask, overtaken
from baton.core.decide.builder import DecisionBuilder, activation
from baton.core.decide.context import LackingError
from baton.core.decide.ending import fail, is_late, leave, stop_late
from baton.core.decide.joins import in_order, join_failure
from baton.core.decide.late_items import late_in, over
from baton.core.decide.outcomes import Outcome, settle
from baton.core.decide.readiness import FAILS, SKIPPED, WAITS
from baton.core.decide.retries import go_on, has_paused, may_try_again, next_attempt
from baton.core.decide.settlement import RouteError
from baton.core.decide.stopped_steps import told
from baton.core.decide.transitions import caught, check_output, done, skipped
from baton.core.decide.unknown_outcomes import is_in_doubt
from baton.core.log import events as ev
from baton.core.log.answers import tool_asked_about
from baton.core.log.state import Failing, check_item, node_of, slot_of
from baton.core.nodes.base import (
    Activation,
    Completed,
    Done,
    Ended,
    Escalated,
    Failed,
    Granted,
    Later,
    Moved,
    Next,
    Opened,
    Run,
    Spread,
    Tend,
    UnfitError,
    Unhelped,
)


def schedule_ready(builder: DecisionBuilder) -> None:
    """All slots with tokens, in the order in which they got them; where one may be ahead of others, what was over first comes first.

    Where a join may fire early, joins that have fired come first, then what is skipped or fails by what was said, and
    only then what begins; whatever that says at once is heard everywhere before the next begins.
    """
    slots = builder.state.tokens
    hurries = builder.program.index.hurries
    if hurries:
        for slot in slots:
            builder.close(slot)
    if builder.program.ends and _is_ending(builder):
        return
    if hurries:
        known = -1
        while known < len(builder.record) and builder.state.failure is None:
            known = len(builder.record)
            for slot in builder.state.tokens:
                _try(builder, slot, to_begin=False)
        if builder.state.failure is not None:
            return
    for slot in _in_order(builder) if len(builder.state.open) > 1 else builder.state.tokens:
        if builder.state.failure is not None:
            return  # a saga that has failed begins nothing
        known = len(builder.record)
        _try(builder, slot, to_begin=True)
        said = builder.record[known:]
        if hurries and any(getattr(event, "emits", ()) for event in said):
            return
        if said and builder.program.ends and _leads_to_an_end(builder, said):
            return


def _in_order(builder: DecisionBuilder) -> Iterable[str]:
    """The slots in the order in which it matters to a join, to a node that ends the saga or to a map that has enough."""
    if not (builder.state.signals or builder.program.index.hurries or builder.program.ends):
        return builder.state.tokens
    return in_order(builder.state, builder.now)


def _is_ending(builder: DecisionBuilder) -> bool:
    """Whether a node has ended the saga, or lacks something to do so.

    Such nodes come first: what is ready besides, and cannot have what it needs because the saga ends, must not begin.
    """
    for slot in builder.state.tokens:
        if node_of(slot)[0] in builder.program.ends and not builder.state.is_stopping:
            _try(builder, slot, to_begin=True)
    return builder.state.is_stopping or bool(builder.needs or builder.questions)


def _leads_to_an_end(builder: DecisionBuilder, said: Iterable[ev.Event]) -> bool:
    """Tell whether an edge to a node that ends the saga has spoken: then the next decision begins with that.

    One that is not alive, too: it may be the last for which such a node has waited.
    """
    tokens = (token for event in said for token in getattr(event, "emits", ()))
    return any(token.dst in builder.program.ends for token in tokens)


def _try(builder: DecisionBuilder, slot: str, *, to_begin: bool) -> None:
    try:
        _schedule(builder, slot, to_begin=to_begin)
    except LackingError as error:
        builder.lacks(error)


def _schedule(builder: DecisionBuilder, slot: str, *, to_begin: bool) -> None:
    """What is to be done at one slot; what begins there only when it is asked for. Raises `LackingError`."""
    program, state = builder.program, builder.state
    if slot not in state.tokens or state.parked is not None:
        return
    turn = program.turn(state, slot)
    if turn == WAITS:
        return
    at = activation(program, state, slot)
    # An item goes with its node.
    for join, depth, begins in () if at.item else program.index.stopped_by.get(at.node.name, ()):
        if slot_of(join, at.iteration[:depth] + (0,) * begins) in state.closed:
            _skip(builder, at, f"join {join}")
            return
    if turn == SKIPPED:
        _skip(builder, at)
        return
    if turn == FAILS:
        _fail_join(builder, at, to_begin=to_begin)
    elif ("wall_time" in at.node.limits and _is_overtaken(builder, at)) or slot in builder.running:
        return
    elif (
        (not state.pauses or has_paused(builder, slot))
        and (at.node.when is None or _is_admitted(builder, at, at.node.when, to_begin=to_begin))
        and to_begin
        # A step that waits for its next attempt, or for an answer, is not running.
        and (slot not in state.failing or may_try_again(builder, at))
        and (slot not in state.held or _may_ask_again(builder, slot))
        and (program.caps is None or _may_begin(builder, at))
    ):
        _ask_its_kind(builder, at)


def _fail_join(builder: DecisionBuilder, at: Activation, *, to_begin: bool) -> None:
    failure = join_failure(builder.context(at.slot), at.node)
    if to_begin or not _is_a_beginning(builder, at.slot, failure):
        fail(builder, at, failure)


def _is_a_beginning(builder: DecisionBuilder, slot: str, failure: ev.Failure) -> bool:
    """Whether something begins with the failure, because it is caught: then it is no part of what is over."""
    return caught(builder.context(slot), failure) is not None


def _skip(builder: DecisionBuilder, at: Activation, why: str = "") -> None:
    if is_late(builder, at):
        stop_late(builder, at, why)
        return
    for event in list(told(builder.context(at.slot), builder.now, builder.running)):
        builder.note(event)
    leave(builder, at)
    settlement = skipped(builder.program, builder.state, at.slot, passes_on=not why)
    builder.note(
        settlement.on(ev.NodeSkipped(node=at.node.name, iteration=at.iteration, item=at.item, why=why))
    )


def _is_admitted(builder: DecisionBuilder, at: Activation, when: Condition, *, to_begin: bool) -> bool:
    """Whether `when` lets the node run; asked once for what takes its time. Raises `LackingError`."""
    state = builder.state
    if at.item or at.slot in state.admitted or state.has_begun(at.slot):
        return True
    try:
        holds = builder.context(at.slot).holds(when)
    except ConditionError as error:
        failure = ev.failed_with(error.code, f"when: {error.message}", at.node.name)
        if to_begin or not _is_a_beginning(builder, at.slot, failure):
            fail(builder, at, failure)
        return False
    if not holds:
        _skip(builder, at, "when")
    elif _asks_python(when):
        # Its answer belongs into the log before anything happens because of it.
        builder.note(ev.NodeAdmitted(node=at.node.name, iteration=at.iteration, item=at.item))
    return holds


def _is_overtaken(builder: DecisionBuilder, at: Activation) -> bool:
    if is_in_doubt(builder.program, builder.state, at.slot, builder.running):
        return False
    failure = overtaken(builder, at)
    if failure is not None and is_late(builder, at):
        stop_late(builder, at, failure.message)
    elif failure is not None:
        fail(builder, at, failure)
    return failure is not None


def _may_begin(builder: DecisionBuilder, at: Activation) -> bool:
    """Whether the limits let it begin, or have done so."""
    answer = ask(builder, at)
    if isinstance(answer, ev.Failure):
        fail(builder, at, answer)
    return answer == ""


def _may_ask_again(builder: DecisionBuilder, slot: str) -> bool:
    """Whether a step that waits for a circuit breaker asks it again now."""
    until = builder.state.held[slot].until
    if builder.now < until:
        builder.again_at(until)
    return builder.now >= until


def _asks_python(condition: Condition) -> bool:
    if isinstance(condition, AllOf | AnyOf):
        return any(map(_asks_python, condition.conditions))
    return _asks_python(condition.condition) if isinstance(condition, Not) else isinstance(condition, Python)


def _ask_its_kind(builder: DecisionBuilder, at: Activation) -> None:
    """Begin or resume a ready node. Raises `LackingError`."""
    kind, work = builder.program.kinds[at.node.kind], builder.state.open.get(at.slot)
    items = builder.state.items_of(at.slot) if builder.state.items and work is None and not at.item else None
    said: Next | None
    try:
        if items:
            said = kind.gather(at, items, builder)
        else:
            said = kind.begin(at, builder) if work is None else kind.resume(at, work, builder)
    except UnfitError as error:
        said = Failed(error.failure)
    if said is not None:
        follow(builder, at, said)
    elif work is not None and work.due is not None:
        builder.due_by(work.due)


def follow(builder: DecisionBuilder, at: Activation, said: Next) -> None:
    """Carry out what a kind has said."""
    _FOLLOWS[type(said)](builder, at, said)


def _run(builder: DecisionBuilder, at: Activation, said: Run) -> None:
    if at.node.timed and at.slot not in builder.state.begun:
        builder.note(ev.NodeBegan(node=at.node.name, iteration=at.iteration, item=at.item, at=builder.now))
    builder.run.append(next_attempt(builder, at, said.arguments))


def _completed(builder: DecisionBuilder, at: Activation, said: Completed) -> None:
    failing = builder.state.failing.get(at.slot)
    outcome = Outcome(
        slot=at.slot,
        attempt=1 if failing is None else failing.attempts + 1,
        started_at=builder.now,
        ended_at=builder.now,
        tool=said.tool or (at.node.tool if failing is None else tool_asked_about(at.node, failing)),
        tool_version=at.node.tool_version,
        schema_hash=at.node.schema_hash,
        output=said.output,
        failure=None if said.failure is None else replace(said.failure, node=at.node.name),
        callback=said.callback,
        kept=_kept(builder, at, failing) if at.node.undo else None,
        key=getattr(builder.state.open.get(at.slot), "key", "") if at.node.undo else "",
    )
    if said.tool and failing is not None:  # what a model has put in its place is done
        from baton.core.decide.other_ways import left  # few steps have another way

        for event in list(left(builder.context(at.slot), failing, said.tool, builder.now)):
            builder.note(event)
    for event in list(settle(builder.program, builder.state, outcome, builder.found)):
        builder.note(event)


def _kept(builder: DecisionBuilder, at: Activation, failing: Failing | None) -> ev.Value | None:
    """What undoes the step needs of the arguments with which its work was handed over. Raises `LackingError`."""
    undo = at.node.undo.get(at.node.tool)
    if undo is None or undo.keeps == ():
        return None
    given = {**builder.arguments(at), **({} if failing is None else failing.arguments)}
    return ev.Value(v=undo.needed(given))


def _later(builder: DecisionBuilder, at: Activation, said: Later) -> None:
    builder.due_by(said.at)


def _tend(builder: DecisionBuilder, at: Activation, said: Tend) -> None:
    builder.children.append((at.slot, said.child))
    if said.child.due is not None:
        builder.due_by(said.child.due)


def _spread(builder: DecisionBuilder, at: Activation, said: Spread) -> None:
    items, begin = tuple(map(check_item, said.items)), f"{at.slot}#"
    if not items or any(begin + item in builder.state.items for item in items):
        raise ValueError(f"a node of kind `{at.node.kind}` began no item, or one that it has begun before")
    for item in items:
        builder.note(ev.NodeBegan(node=at.node.name, iteration=at.iteration, item=item, at=builder.now))


def _opened(builder: DecisionBuilder, at: Activation, said: Opened | Escalated) -> None:
    builder.note(said.event)
    if said.told is not None:
        builder.note(ev.NoticeDue(notice=said.told))


def _done(builder: DecisionBuilder, at: Activation, said: Done) -> None:
    context = builder.context(at.slot, said.event.output)
    if at.item and said.has_schema and at.node.output_schema is not None:
        try:
            check_output(context, at.node)
        except RouteError as error:
            fail(builder, at, ev.failed_with(error.code, error.message, at.node.name), said.first)
            return
    goes_on = getattr(said.event, "goes_on", False)
    if goes_on:
        context = late_in(context)
    closing = done(context, builder.now, has_schema=said.has_schema).on(said.event)
    if said.first is not None:
        builder.note(said.first)
    if not goes_on and (
        closing.emits or closing.fault is None
    ):  # else the saga stops, and its items end by themselves
        leave(builder, at)
    builder.note(closing)


def _ended(builder: DecisionBuilder, at: Activation, said: Ended) -> None:
    try:
        check_output(builder.context(at.slot, said.event.output), at.node)
    except RouteError as error:
        fail(builder, at, ev.failed_with(error.code, error.message, at.node.name))
    else:
        builder.note(said.event)


def _failed(builder: DecisionBuilder, at: Activation, said: Failed) -> None:
    if said.is_attempt and at.node.failures:
        from baton.core.decide.failing_children import handle  # few children have rules

        handle(builder, at, said.failure)
        return
    fail(builder, at, said.failure, said.first, by=said.by)


def _granted(builder: DecisionBuilder, at: Activation, said: Granted) -> None:
    failing, work = builder.state.failing.get(at.slot), builder.state.open[at.slot]
    if failing is not None and work.arguments:
        from baton.core.decide.other_ways import (
            changed,
        )  # few arguments differ from those of the attempt before

        for event in list(changed(builder.context(at.slot), failing, builder.now, work.arguments)):
            builder.note(event)
    builder.note(said.first)  # it begins in the decision that follows from this


def _moved(builder: DecisionBuilder, at: Activation, said: Moved) -> None:
    event = said.event
    if isinstance(event, ev.MapEnded):
        event = over(builder.program, builder.state, event, at.slot)
    builder.note(event)
    if said.begins:
        _spread(builder, at, Spread(said.begins))


def _unhelped(builder: DecisionBuilder, at: Activation, said: Unhelped) -> None:
    go_on(builder, at, builder.state.failing[at.slot], said.event)


_FOLLOWS: dict[type, Callable[[DecisionBuilder, Activation, Any], None]] = {
    Run: _run,
    Completed: _completed,
    Later: _later,
    Tend: _tend,
    Spread: _spread,
    Opened: _opened,
    Escalated: _opened,
    Done: _done,
    Failed: _failed,
    Granted: _granted,
    Moved: _moved,
    Unhelped: _unhelped,
    Ended: _ended,
}
