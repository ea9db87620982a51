"""The decisions at each slot: its readiness, and the consequences of its kind's answer.

The kinds are in core/nodes/, decisions about the saga as a whole in decide.py, the way on of the saga in
transitions.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from baton.core.conditions import ConditionError
from baton.core.conditions.model import AllOf, AnyOf, Condition, Not, Python
from baton.core.decide.context import EvaluationContext, LackingError
from baton.core.decide.decision import DecisionBuilder, activation, next_attempt
from baton.core.decide.outcomes import Outcome, settle
from baton.core.decide.program import FAILS, PENDING, SKIPPED
from baton.core.decide.retries import fail, go_on, has_paused, is_late, leave, may_try_again, stop_late
from baton.core.decide.transitions import RouteError, catching_rule, check_output, done, settle_skipped
from baton.core.decide.unknown_outcomes import is_in_doubt, late_in, map_end, stopped_notices
from baton.core.failures.codes import DEFECTS
from baton.core.graph.graph import Node
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.folding.received import CALLBACK
from baton.core.log.folding.workflow_limits import COUNTED, SAGA, TERMINATE, THROTTLE, Caps, limit_failure
from baton.core.log.questions import is_answer_to, tool_asked_about
from baton.core.log.records import LONGEST_MESSAGE
from baton.core.log.slots import Slot, check_item, owner_of, slot_of
from baton.core.log.state import ANSWER, Failing, Signal, State, Used, unrescued
from baton.core.log.work import Callback, Open
from baton.core.nodes.base import (
    CHILD,
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
from baton.core.on_demand import OnDemand

if TYPE_CHECKING:
    from baton.core.decide import failure_handling
else:
    failure_handling = OnDemand("baton.core.decide.failure_handling")

PAUSE_MS = Limits().throttle_pause_ms
HELD = "held"
_NONE = Used()
_CHILDREN = "/children"


def overtaken(builder: DecisionBuilder, at: Activation) -> ev.Failure | None:
    """Return the failure of a begun node whose `wall_time` is over; None if it may go on, until a time noted
    as due.
    """
    since = builder.state.begun.get(at.slot)
    if since is None:
        return None
    until = since + at.node.limits["wall_time"].most
    if builder.now >= until:
        return limit_failure("wall_time", at.node.limits["wall_time"], at.node.name, builder.now - since)
    builder.due_by(until)
    return None


def ask_limits(builder: DecisionBuilder, at: Activation) -> ev.Failure | str:
    """Return an empty text if the node may begin or has begun, `HELD` if it has to wait, or a failure if it
    never may begin.
    """
    caps, state = builder.program.caps, builder.state
    assert caps is not None
    kind = builder.program.kinds[at.node.kind]
    if "wall_time" in at.node.limits and kind.lasts and at.slot not in state.begun:
        builder.note(ev.NodeBegan(**at.place.fields, at=builder.now))
        builder.due_by(builder.now + at.node.limits["wall_time"].most)
    if state.has_begun(at.slot):
        return ""
    is_slow = False
    under_way = _under_way(builder, caps)
    for scope, ahead in ((SAGA, under_way), (at.node.name, 0)):
        for name, cap in caps.of.get(scope, {}).items():
            cost = _declared(at) if name == "cost" and cap.then == TERMINATE else 0
            found = _counted(state, at, scope, name, ahead) + cost
            if cost and found <= cap.most < found + _reserved(builder, scope):
                return HELD  # the others may cost less than they have declared
            if found <= cap.most:
                continue
            if cap.then == TERMINATE:
                return _ended(builder, at, scope, limit_failure(name, cap, scope, found), cost)
            if cap.then == THROTTLE:
                is_slow = _is_slow(builder, caps, scope, at.node) or is_slow
    if not kind.load:
        return ""  # a node that does no work takes no place from one that does
    if is_slow or _is_full(builder, caps, at.node):
        return HELD
    _begins(builder, caps, at.node)
    return ""


def _counted(state: State, at: Activation, scope: str, name: str, ahead: int) -> int:
    """Return the use of a limit when the node begins, without the node's declared use; `ahead`: nodes that
    began before.
    """
    found: int = getattr(state.used.get(scope, _NONE), name) if name in COUNTED else 0
    return found + ahead + 1 if name == "hops" and not at.place.item else found


def _ended(
    builder: DecisionBuilder, at: Activation, scope: str, failure: ev.Failure, cost: int
) -> ev.Failure | str:
    """Apply a limit that is exceeded: a declared cost that does not fit, and the node's own limit, fail the
    node; the saga's limit ends the saga.
    """
    if cost:
        text = f"{failure.message} with what `{at.node.tool}` may cost"
        return replace(failure, message=text, node=at.node.name)
    if scope != SAGA:
        return failure
    builder.note(ev.LimitReached(failure=failure))
    return HELD


def _declared(at: Activation) -> int:
    """Return the declared cost of one call of the tool; 0 for a map itself, which calls none."""
    return 0 if at.node.each is not None and not at.place.item else at.node.cost


def _reserved(builder: DecisionBuilder, scope: str) -> int:
    """Return the declared cost of the steps under way, in the saga or of one node."""
    slots = {*builder.running, *(step.slot for step in builder.run)}
    costs = {slot: builder.program.node_at(builder.state, slot).cost for slot in slots}
    return sum(cost for slot, cost in costs.items() if scope in (SAGA, Slot.parse(slot).node))


def _under_way(builder: DecisionBuilder, caps: Caps) -> int:
    """Return the number of nodes that have begun and not ended, one for all items of a node."""
    busy, opened = _busy(builder, caps)[SAGA], builder.state.open
    if not builder.state.items:
        return busy + len(opened)
    return len({owner_of(slot) for slot in (*builder.running, *(step.slot for step in builder.run), *opened)})


def _is_slow(builder: DecisionBuilder, caps: Caps, scope: str, node: Node) -> bool:
    """Return true if a node behind a throttled limit still has to wait: for earlier nodes, then for the end
    of the pause.
    """
    busy = _busy(builder, caps)
    if scope == SAGA and (busy[SAGA] or (_is_child(builder, node) and busy[_CHILDREN])):
        return True
    until = builder.state.used[scope].last + PAUSE_MS
    if until > builder.now:
        builder.due_by(until)
        return True
    return False


def _is_full(builder: DecisionBuilder, caps: Caps, node: Node) -> bool:
    """Return true if a throttled fan-out has no place left, behind one of the node's senders or in
    the saga.
    """
    if not caps.wide:
        return False
    busy = _busy(builder, caps)
    if SAGA in caps.wide and busy[SAGA] + busy[_CHILDREN] >= caps.saga["fan_out"].most:
        return True
    return any(busy[name] >= caps.of[name]["fan_out"].most for name in node.before if name in caps.wide)


def _busy(builder: DecisionBuilder, caps: Caps) -> dict[str, int]:
    """Return the numbers of work under way: steps in the saga, children in the saga, both behind each node
    with a throttled fan-out.
    """
    if builder.busy is None:
        builder.busy = dict.fromkeys((SAGA, _CHILDREN, *caps.wide), 0)
        for slot in builder.state.tokens.keys() & set(builder.running):
            _begins(builder, caps, builder.program.nodes[Slot.parse(slot).node])
        for slot in builder.state.children:  # one that has ended is closed in this very decision
            _begins(builder, caps, builder.program.nodes[Slot.parse(slot).node])
    return builder.busy


def _is_child(builder: DecisionBuilder, node: Node) -> bool:
    return builder.program.kinds[node.kind].load == CHILD


def _begins(builder: DecisionBuilder, caps: Caps, node: Node) -> None:
    busy = _busy(builder, caps)
    busy[_CHILDREN if _is_child(builder, node) else SAGA] += 1
    for name in node.before:
        if name in caps.wide:
            busy[name] += 1


ERRORS_KEPT = 20
"""Most errors in a join's failure, which is stored in an entry and in the state."""

Moment = tuple[int, int]
"""Time in epoch milliseconds, and index of a waiting signal; -1: none, its time is over."""


def in_order(state: State, now: int) -> list[str]:
    """Return the slots with tokens: first those whose work is over, in the order of its end.

    Of two signals the earlier one of the log is first, whatever the clocks of their senders.
    """
    moments: dict[str, Moment] = {}
    latest, times = 0, list[int]()
    for signal in state.signals:
        latest = max(latest, signal.at)
        times.append(latest)
    for slot, work in state.open.items():
        found = [(times[at], at) for at, signal in enumerate(state.signals) if _ends(work, signal)]
        if work.due and work.due <= now:
            found.append((work.due, -1))
        if found:
            moments[slot] = min(found)
    first = sorted((slot for slot in state.tokens if slot in moments), key=moments.__getitem__)
    return [*first, *(slot for slot in state.tokens if slot not in moments)]


def _ends(work: Open, signal: Signal) -> bool:
    """Return true if the signal ends the work."""
    if signal.name == ANSWER:
        return work.ask is not None and is_answer_to(signal.key, work.ask.id)
    if signal.name == CALLBACK:
        return isinstance(work, Callback) and signal.key == work.id
    return work.signal == signal.name and signal.is_in_time(work.due)


def join_failure(context: EvaluationContext, node: Node) -> ev.Failure:
    """Return the failure of the join at the context's slot.

    A `catch` finds the causes in `last_error.errors`.
    """
    errors, join, slot = context.errors(), node.join, context.slot
    assert join is not None, "one that tolerates nothing does not fail"
    arrived, carried = context.state.tokens[slot], context.state.errors.get(slot, {})
    index, dead = context.program.index, ((src, its) for src, its in carried.items() if not arrived[src])
    count = sum(bool(unrescued(index, src, node.name, arrived, its)) for src, its in dead)
    has = "has" if count == 1 else "have"
    text = f"{count} of {len(node.before)} nodes before it {has} failed, and {join.tolerated or 'none'} may"
    if count <= join.tolerated:
        text += f", but it waits for {join.need}"
    first = "; ".join(f"{error.node}: {error.code}: {error.message}"[:200] for error in errors[:5])
    kept = (
        ev.Blamed(error.code, error.message[:LONGEST_MESSAGE], error.node) for error in errors[:ERRORS_KEPT]
    )
    failure = replace(ev.failed_with("join_failed", f"{text}: {first}", node.name), errors=tuple(kept))
    # The outputs are in the state, under their names.
    return replace(failure, batch=ev.Value(v=context.batch({}))) if context.program.tells_batch else failure


def schedule_ready(builder: DecisionBuilder) -> None:
    """Schedule all slots with tokens in the order of arrival; where the order matters, finished work comes
    first.

    If a join may fire early, joins that have fired come first, then slots that are skipped or fail, and only
    then slots that begin; each consequence is applied everywhere before the next slot begins.
    """
    slots = builder.state.tokens
    settles_joins_one_by_one = builder.program.index.settles_joins_one_by_one
    if settles_joins_one_by_one:
        for slot in slots:
            builder.close(slot)
    if builder.program.ends and _is_ending(builder):
        return
    if settles_joins_one_by_one:
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
        if settles_joins_one_by_one and any(event.emits for event in said):
            return
        if said and builder.program.ends and _leads_to_an_end(builder, said):
            return


def _in_order(builder: DecisionBuilder) -> Iterable[str]:
    """Return the slots in the order that matters to a join, to a node that ends the saga or to a map that has
    enough.
    """
    if not (builder.state.signals or builder.program.index.settles_joins_one_by_one or builder.program.ends):
        return builder.state.tokens
    return in_order(builder.state, builder.now)


def _is_ending(builder: DecisionBuilder) -> bool:
    """Return true if a node has ended the saga, or lacks data to do so.

    Such nodes come first: other ready nodes must not begin, because the saga may end.
    """
    for slot in builder.state.tokens:
        if Slot.parse(slot).node in builder.program.ends and not builder.state.is_stopping:
            _try(builder, slot, to_begin=True)
    return builder.state.is_stopping or bool(builder.needs or builder.questions)


def _leads_to_an_end(builder: DecisionBuilder, said: Iterable[ev.Event]) -> bool:
    """Return true if an edge to a node that ends the saga has a token: then the next decision begins with
    that node.

    A dead token counts, too: it may be the last for which such a node has waited.
    """
    tokens = (token for event in said for token in event.emits)
    return any(token.dst in builder.program.ends for token in tokens)


def _try(builder: DecisionBuilder, slot: str, *, to_begin: bool) -> None:
    try:
        _schedule(builder, slot, to_begin=to_begin)
    except LackingError as error:
        builder.lacks(error)


def _schedule(builder: DecisionBuilder, slot: str, *, to_begin: bool) -> None:
    """Decide about one slot; work begins there only with `to_begin`. Raises `LackingError`."""
    program, state = builder.program, builder.state
    if slot not in state.tokens or state.parked is not None:
        return
    readiness = program.readiness(state, slot)
    if readiness == PENDING:
        return
    at = activation(program, state, slot)
    # An item goes with its node.
    for join, depth, begins in () if at.place.item else program.index.stopped_by.get(at.node.name, ()):
        if slot_of(join, at.place.iteration[:depth] + (0,) * begins) in state.closed:
            _skip(builder, at, f"join {join}")
            return
    if readiness == SKIPPED:
        _skip(builder, at)
        return
    if readiness == FAILS:
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
    """Return true if the failure is caught, so that other nodes begin with it."""
    return catching_rule(builder.context(slot), failure) is not None


def _skip(builder: DecisionBuilder, at: Activation, why: str = "") -> None:
    if is_late(builder, at):
        stop_late(builder, at, why)
        return
    for event in list(stopped_notices(builder.context(at.slot), builder.now, builder.running)):
        builder.note(event)
    leave(builder, at)
    settlement = settle_skipped(builder.program, builder.state, at.slot, passes_on=not why)
    builder.note(settlement.on(ev.NodeSkipped(**at.place.fields, why=why)))


def _is_admitted(builder: DecisionBuilder, at: Activation, when: Condition, *, to_begin: bool) -> bool:
    """Return true if `when` lets the node run; evaluated once for work that takes time.

    Raises `LackingError`.
    """
    state = builder.state
    if at.place.item or at.slot in state.admitted or state.has_begun(at.slot):
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
        builder.note(ev.NodeAdmitted(**at.place.fields))
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
    """Return true if the limits let the node begin, or have done so."""
    answer = ask_limits(builder, at)
    if isinstance(answer, ev.Failure):
        fail(builder, at, answer)
    return answer == ""


def _may_ask_again(builder: DecisionBuilder, slot: str) -> bool:
    """Return true if a step that waits for a circuit breaker, or for money, asks again now.

    A wait for money, however short, does not keep the invocation.
    """
    held = builder.state.held[slot]
    if builder.now < held.until:
        (builder.due_by if held.limit else builder.again_at)(held.until)
    return builder.now >= held.until


def _asks_python(condition: Condition) -> bool:
    if isinstance(condition, AllOf | AnyOf):
        return any(map(_asks_python, condition.conditions))
    return _asks_python(condition.condition) if isinstance(condition, Not) else isinstance(condition, Python)


def _ask_its_kind(builder: DecisionBuilder, at: Activation) -> None:
    """Begin or resume a ready node. Raises `LackingError`."""
    kind, work = builder.program.kinds[at.node.kind], builder.state.open.get(at.slot)
    items = (
        builder.state.items_of(at.slot)
        if builder.state.items and work is None and not at.place.item
        else None
    )
    said: Next | None
    try:
        if items:
            said = kind.gather(at, items, builder)
        else:
            said = kind.begin(at, builder) if work is None else kind.resume(at, work, builder)
        if said is not None:
            apply_kind_answer(builder, at, said)
        elif work is not None and work.due is not None:
            builder.due_by(work.due)
    except UnfitError as error:
        apply_kind_answer(builder, at, Failed(error.failure))


def apply_kind_answer(builder: DecisionBuilder, at: Activation, said: Next) -> None:
    """Carry out the answer of a kind."""
    _FOLLOWS[type(said)](builder, at, said)


def _run(builder: DecisionBuilder, at: Activation, said: Run) -> None:
    if at.node.timed and at.slot not in builder.state.begun:
        builder.note(ev.NodeBegan(**at.place.fields, at=builder.now))
    builder.run.append(next_attempt(builder, at, said.arguments))


def _completed(builder: DecisionBuilder, at: Activation, said: Completed) -> None:
    failing, work = builder.state.failing.get(at.slot), builder.state.open.get(at.slot)
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
        kept=_kept(builder, at, failing),
        key=work.key if at.node.is_reversible and isinstance(work, Callback) else "",
    )
    if said.tool and failing is not None:  # what a model has put in its place is done
        for event in list(
            failure_handling.notices_of_left_call(builder.context(at.slot), failing, said.tool, builder.now)
        ):
            builder.note(event)
    for event in list(settle(builder.program, builder.state, outcome, builder.found)):
        builder.note(event)


def _kept(builder: DecisionBuilder, at: Activation, failing: Failing | None) -> ev.Value | None:
    """Return the arguments of a handed-over step that are kept. Raises `LackingError`."""
    if not at.node.keeps(at.node.tool):
        return None
    given = {**builder.arguments(at), **({} if failing is None else failing.arguments)}
    return ev.Value(v=at.node.kept(at.node.tool, given))


def _later(builder: DecisionBuilder, at: Activation, said: Later) -> None:
    builder.due_by(said.at)


def _tend(builder: DecisionBuilder, at: Activation, said: Tend) -> None:
    builder.children.append((at.slot, said.child))
    if said.child.due is not None:
        builder.due_by(said.child.due)


def _spread(builder: DecisionBuilder, at: Activation, said: Spread) -> None:
    slots = [at.place.child(check_item(item)) for item in said.items]
    if not slots or any(one.text in builder.state.items for one in slots):
        raise ValueError(f"a node of kind `{at.node.kind}` began no item, or one that it has begun before")
    for one in slots:
        builder.note(ev.NodeBegan(**one.fields, at=builder.now))


def _opened(builder: DecisionBuilder, at: Activation, said: Opened | Escalated) -> None:
    builder.note(said.event)
    if said.told is not None:
        builder.note(ev.NoticeDue(notice=said.told))


def _done(builder: DecisionBuilder, at: Activation, said: Done) -> None:
    context = builder.context(at.slot, said.event.output)
    if at.place.item and said.has_schema and at.node.output_schema is not None:
        try:
            check_output(context, at.node)
        except RouteError as error:
            fail(builder, at, ev.failed_with(error.code, error.message, at.node.name), said.first, said.by)
            return
    goes_on = said.event.goes_on
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


def _ended_by_stop(builder: DecisionBuilder, at: Activation, said: Ended) -> None:
    try:
        check_output(builder.context(at.slot, said.event.output), at.node)
    except RouteError as error:
        fail(builder, at, ev.failed_with(error.code, error.message, at.node.name))
    else:
        builder.note(said.event)


def _failed(builder: DecisionBuilder, at: Activation, said: Failed) -> None:
    if said.is_attempt and (at.node.failures or said.failure.code in DEFECTS):
        failure_handling.handle(builder, at, said.failure)
        return
    fail(builder, at, said.failure, said.first, by=said.by)


def _granted(builder: DecisionBuilder, at: Activation, said: Granted) -> None:
    failing, work = builder.state.failing.get(at.slot), builder.state.open[at.slot]
    if failing is not None and work.arguments:
        for event in list(
            failure_handling.with_changed_arguments(
                builder.context(at.slot), failing, builder.now, work.arguments
            )
        ):
            builder.note(event)
    builder.note(said.first)  # it begins in the decision that follows from this


def _moved(builder: DecisionBuilder, at: Activation, said: Moved) -> None:
    event = said.event
    if isinstance(event, ev.MapEnded):
        event = map_end(builder.program, builder.state, event, at.slot)
    for item in event.left:
        context = builder.context(at.place.child(item).text)
        for one in list(stopped_notices(context, builder.now, builder.running)):
            builder.note(one)
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
    Ended: _ended_by_stop,
}
