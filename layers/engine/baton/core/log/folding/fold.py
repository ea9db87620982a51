"""fold(state, entry) -> state: the only place where a log becomes a state.

One small function per kind of event is registered in one table. A fold trusts the log but never counts twice:
an event whose tokens are gone, whose wait is closed or whose key is known changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import reduce
from itertools import compress
from operator import attrgetter
from typing import Any, cast

from msgspec.structs import replace

from baton.core.log import events as ev
from baton.core.log.folding import undo_folds
from baton.core.log.folding.failure_folds import (
    attempt_failed,
    forget_answers,
    notice_due,
    notices_sent,
    question_claimed,
    question_escalated,
    step_held,
    strategy_chosen,
)
from baton.core.log.folding.open_folds import (
    alternative_began,
    callback_opened,
    calls_began,
    child_opened,
    child_overdue,
    child_reported,
    fold_admitted,
    fold_opened,
    function_began,
    gone_on,
    item_failed,
    items_began,
    items_gathered,
    join_fired,
    map_stopped,
    message_awaited,
    remember_call,
    replan_ended,
    turn_began,
    wait_opened,
    with_batch,
)
from baton.core.log.folding.received import (
    callback_over,
    fold_interrupted,
    fold_revived,
    gave_up,
    heartbeat_heard,
    not_taken,
    signal_received,
    unit_recorded,
    useful,
    with_reply,
    without_running,
)
from baton.core.log.folding.undo_folds import after_undoing, doubtful, link_undoable, undone, with_keys
from baton.core.log.folding.whole_folds import (
    fold_cancelled,
    fold_limited,
    fold_parked,
    fold_resumed,
    graph_changed,
    stop_saga,
)
from baton.core.log.folding.workflow_limits import SAGA, count_node, pay, with_models
from baton.core.log.functions import RunningFunction, with_operations
from baton.core.log.incarnations import numbers_with
from baton.core.log.scopes import Map, failure_for_model, is_turn, with_late
from baton.core.log.slots import item_slots, owner_of, slot_of
from baton.core.log.state import (
    UNKNOWN_OUTCOME,
    Origin,
    State,
    Used,
    carriers,
    clear_open_work,
    with_progress,
    without,
)
from baton.errors import CorruptLog


def fold(state: State, entry: ev.Entry) -> State:
    """Return the state after `entry`. Raises `CorruptLog` if the entry is not the next one.

    A fork's entry cannot be folded alone, because it goes back in time: see `fork_to`.
    """
    if entry.version != state.version + 1 or entry.branch != state.lineage.branch:
        raise CorruptLog(
            f"entry {entry.branch}/{entry.version} cannot follow {state.lineage.branch}/{state.version} of {state.origin.saga}"
        )
    return closed(state, entry, reduce(apply, entry.events, state))


def closed(before: State, entry: ev.Entry, after: State) -> State:
    """Return the state after `entry`; `after` is the state after its events."""
    news: dict[str, Any] = {"version": entry.version, "last_at": entry.at}
    if entry.epoch:
        news["epoch"] = entry.epoch
        if ev.Revived in map(type, entry.events):
            news["recovery"] = replace(after.recovery, epoch=entry.epoch)
        if entry.invocation != before.invocation:
            news["invocation"] = entry.invocation
            news["counts"] = replace(after.counts, invocations=before.counts.invocations + 1)
    if entry.version == 1:
        news["origin"] = replace(after.origin, traceparent=entry.traceparent)
    return replace(after, **news)


def apply(state: State, event: ev.Event) -> State:
    """Return the state after one event of an entry, versions aside."""
    return _TABLE[type(event)](state, event)


def emit(
    state: State,
    emits: tuple[ev.Token, ...],
    gone: Collection[str] = (),
    blame: tuple[ev.Failure, ...] = (),
    carried_by: Collection[tuple[str, str]] = (),
) -> dict[str, Any]:
    """Return the tokens in flight once these are emitted and those at the slots `gone` are removed.

    Those of `carried_by` (sender, receiver) carry `blame`.
    """
    tokens = state.tokens.copy()
    for slot in gone:
        tokens.pop(slot, None)
    errors, closed = without(state.errors, gone), without(state.closed, gone)
    for token in emits:
        slot = slot_of(token.dst, token.iteration, "")  # each step comes here: remembered, and no call
        if slot in closed:
            closed = {**closed, slot: tuple(src for src in closed[slot] if src != token.src)}
        elif token.src not in tokens.get(slot, ()):
            tokens[slot] = {**tokens.get(slot, {}), token.src: token.alive}
            if carried_by and (token.src, token.dst) in carried_by:
                errors = {**errors, slot: {**errors.get(slot, {}), token.src: blame}}
    return {"tokens": tokens, "errors": errors, "closed": closed}


def consume(
    state: State, event: ev.Settles, output: ev.Value | None, *, stays: bool = False, **more: Any
) -> State:
    """Replace the tokens at the event's slot by the ones it emits; all the bookkeeping of a settled node.

    A join that fired early stays closed: late tokens are absorbed, and nodes that lead only to it do not
    begin. The end of a round removes its joins. `stays`: the work at the slot and its items go on beside the
    nodes after it.
    """
    slot = slot_of(event.node, event.iteration, event.item)  # as above
    if slot not in state.tokens:
        return state
    if event.fault is not None and not event.emits:
        # Its tokens stay, so that a fork from here begins with this node and not behind it.
        return stop_saga(state, failure=state.failure or event.fault)
    if event.ends:  # as above
        return state if state.is_stopping else stop_saga(state, result=output)
    gone = set(event.drops) if stays else {slot, *event.drops}
    if state.items and (not event.item or event.drops):
        gone |= {one for one in state.items if owner_of(one) in gone}
    if (still_closed := state.closed.get(slot)) is not None:
        state = replace(state, closed=without(state.closed, (slot,)))
    news = emit(state, event.emits, gone, event.errors, carriers(event))
    if still_closed is not None and slot not in event.drops:
        news["closed"] = {**news["closed"], slot: still_closed}
    outputs = state.outputs if output is None or event.item else {**state.outputs, event.node: output}
    previous = state.previous
    if event.carry:
        previous = {**previous, **{key: outputs[key.partition("/")[2]] for key in event.carry}}
    if event.forget:
        outputs, previous = without(outputs, event.forget), without(previous, event.forget)
    news |= _counted(state, event) | _emptied(state, gone, event)
    if event.item:
        news |= _of_item(state, event, slot, output)
    if state.signals:
        state = forget_answers(state, gone)
    # Any progress: the saga as a whole is not stuck.
    news |= {"outputs": outputs, "previous": previous, "recovery": with_progress(state.recovery, gone)}
    return replace(state, **news, **more)


def _of_item(state: State, event: ev.Settles, slot: str, output: ev.Value | None) -> dict[str, Any]:
    """Return the items with the output of this one; for a map that has gone on, the numbers of
    ended items.
    """
    owner = owner_of(slot)
    work = state.open.get(owner)
    if work is not None and (ended := work.with_ended(event)) is not work:
        return {
            "items": {**state.items, slot: output},
            "open": {**without(state.open, (slot,)), owner: ended},
        }
    if not isinstance(work, Map) or work.late is None:
        return {"items": {**state.items, slot: output}}
    work = with_late(work, succeeded=not isinstance(event, ev.StepFailed))
    return {"items": without(state.items, (slot,)), "open": {**without(state.open, (slot,)), owner: work}}


def _counted(state: State, event: ev.Settles) -> dict[str, Any]:
    is_run = not isinstance(event, ev.NodeSkipped | ev.MapEnded) and not event.item
    news: dict[str, Any] = {"used": count_node(state.used, event, is_run=is_run)} if state.used else {}
    if is_run:
        news["counts"] = replace(state.counts, steps=state.counts.steps + 1)
    return news


_BY_SLOT = (
    *("open", "approved", "items", "journals", "begun"),
    *("first_started_at", "failing", "held", "corrections", "pauses"),
)
_by_slot = attrgetter(*_BY_SLOT)


def _emptied(state: State, gone: Collection[str], event: ev.Settles | ev.OperationsBegan) -> dict[str, Any]:
    """Return the maps by slot without those that are `gone`, and with the pause that begins; a saga of plain
    steps has none.
    """
    news, maps = dict[str, Any](), _by_slot(state)
    for name, known in compress(zip(_BY_SLOT, maps, strict=True), maps):
        news[name] = without(known, gone)
    if event.paused is not None:
        (token,) = event.emits
        left = news.get("pauses", state.pauses)
        news["pauses"] = {**left, token.slot: event.paused}
    if state.admitted:
        news["admitted"] = tuple(other for other in state.admitted if other not in gone)
    if state.open:
        orphans = tuple(
            work.orphan for key, work in state.open.items() if key in gone and work.orphan is not None
        )
        news["orphaned_children"] = state.orphaned_children + orphans
    return news


def _started(state: State, e: ev.SagaStarted) -> State:
    origin = Origin(
        tenant=e.tenant,
        saga=e.saga,
        user=e.user,
        workflow=e.workflow,
        graph=e.graph,
        input=e.input,
        last=e.last,
        started_at=e.at,
        ends_by=e.ends_by,
        expires=e.expires,
        labels=e.labels,
    )
    above = e.parent or e.depth or e.scope or e.handled or e.shared_limits or e.allowed
    if above or e.outer or e.passed or e.before or e.source or e.tag:
        origin = _related(origin, e)
    undo = state.undo if e.keys is None else with_keys(e.keys)
    used = dict.fromkeys(e.counts if e.allowed is None else (SAGA, *e.counts), Used())
    return replace(state, **emit(state, e.emits), origin=origin, undo=undo, used=used)


def _related(origin: Origin, e: ev.SagaStarted) -> Origin:
    """Add the facts that few sagas have: those of other sagas, and the tag of the start."""
    return replace(
        origin,
        parent=e.parent,
        parent_slot=e.slot,
        parent_window=e.window,
        depth=e.depth,
        scope=e.scope,
        handled=e.handled,
        outer=e.outer,
        passed=e.passed,
        before=e.before,
        shared_limits=e.shared_limits,
        allowed=e.allowed,
        source=e.source,
        tag=e.tag,
    )


def _succeeded(state: State, e: ev.StepSucceeded) -> State:
    if e.cost:
        state = pay(state, e.slot, e.cost)
    if e.usage or e.assumed:
        slot = e.slot
        state = with_models(state, slot, e.usage, e.assumed, is_answered=True)
    if e.callback:
        state = callback_over(state, e.slot, e.callback, "")
    if e.digest:
        state = remember_call(state, e)
    if state.corrections and e.item and not is_turn(e.item):
        state = useful(state, e.slot)
    if state.undo.work is not None and state.in_scope(e.slot):
        return undone(state, e.slot)
    after = consume(state, e, e.output if e.keep else None)
    return after if e.prior is None or after is state else link_undoable(after, e)


def _failed(state: State, e: ev.StepFailed) -> State:
    slot = e.slot
    if slot not in state.tokens:
        return state
    state = with_models(pay(state, slot, e.cost), slot, e.usage, e.assumed)
    if e.by:
        state = replace(state, signals=not_taken(state, slot, e.by))
    if e.callback:
        state = callback_over(state, slot, e.callback, e.failure.code)
    if state.in_scope(slot):
        return undone(state, slot, e.failure)
    work = state.open.get(slot)
    is_unsure = e.failure.doubt or e.failure.code == UNKNOWN_OUTCOME or e.prior is not None
    if is_unsure and not (work is not None and work.acts_by_items):
        state = doubtful(state, slot, e)
    if e.stays and state.failure is None:
        state = state.with_effects_kept()
    if state.open and not e.item:
        e = with_batch(state, e)
    if e.is_result:
        return item_failed(consume(state, e, failure_for_model(e.failure)), e)
    if e.emits:  # those of its node: what an item fails with is its node's failure
        return consume(state, replace(e, item=""), None)
    # What was cut off when the saga stopped is not what has stopped it.
    is_reason = e.prior is None or not state.is_stopping
    return stop_saga(
        state,
        failure=state.failure or (e.failure if is_reason else None),
        failing=without(state.failing, (slot,)),
        held=without(state.held, (slot,)),
        recovery=without_running(state.recovery, slot),
    )


def _skipped(state: State, e: ev.NodeSkipped) -> State:
    return consume(state, e, None)


def _began(state: State, e: ev.NodeBegan) -> State:
    slot = e.slot
    news: dict[str, Any] = {}
    if e.item and slot not in state.items and owner_of(slot) in state.tokens:
        news = {"tokens": {**state.tokens, slot: {e.node: True}}, "items": {**state.items, slot: None}}
    elif slot not in state.tokens:
        return state
    if slot not in state.begun:
        news["begun"] = {**state.begun, slot: e.at}
        news["first_started_at"] = {slot: e.at, **state.first_started_at}
    return replace(state, **news) if news else state


def _gave(state: State, e: ev.Gives) -> State:
    if state.corrections and e.item and not is_turn(e.item):
        state = useful(state, e.slot)
    return consume(state, e, e.output if e.keep else None)


def _wait_closed(state: State, e: ev.WaitClosed) -> State:
    signals = not_taken(state, e.slot, e.by)
    return consume(state, e, e.output if e.keep else None, signals=signals)


def _agent_closed(state: State, e: ev.AgentClosed) -> State:
    if e.by:
        state = replace(state, signals=not_taken(state, e.slot, e.by))
    return _gave(state, e)


def _child_closed(state: State, e: ev.ChildClosed) -> State:
    if e.by:
        slot = e.slot
        state = replace(state, signals=not_taken(state, slot, e.by))
    after = _gave(state, e)
    return after if e.prior is None or after is state else link_undoable(after, e)


def _map_closed(state: State, e: ev.MapClosed) -> State:
    work = state.open.get(e.slot)
    if not e.goes_on or not isinstance(work, Map) or (e.fault is not None and not e.emits):
        return _gave(state, e)
    if work.late is not None:
        return state  # it has gone on
    return gone_on(consume(state, e, e.output if e.keep else None, stays=True), e)


def _operations_began(state: State, e: ev.OperationsBegan) -> State:
    """Begin the operations that a function asks for, and drop those that it has heard or left."""
    owner, asked = e.slot, e.items
    work = state.open.get(owner)
    if not isinstance(work, RunningFunction) or not work.asked.keys() >= set(e.heard):
        return state
    if not work.asked.keys().isdisjoint(asked):
        return state
    for one in e.operations:
        if one.answers:
            state = with_reply(state, one.answers)
    if e.left:
        gone = item_slots(owner, e.left)
        state = replace(state, tokens=without(state.tokens, gone), **_emptied(state, gone, e))
    items = state.items.copy()  # of what it has heard, only the outputs are left
    outputs = {item: items.pop(f"{owner}#{item}", None) for item in e.heard}
    begun = item_slots(owner, asked)
    return replace(
        state,
        tokens={**state.tokens, **{slot: {e.node: True} for slot in begun}},
        items={**items, **dict.fromkeys(begun)},
        open={**state.open, owner: with_operations(work, e, outputs)},
        failing=without(state.failing, (owner,)),
    )


def _forked(state: State, e: ev.Forked) -> State:
    raise CorruptLog(f"the fork of {state.origin.saga} to branch {e.branch} was folded as if it went forward")


def _value_changed(state: State, e: ev.ValueChanged) -> State:
    if not e.node:
        return replace(state, origin=replace(state.origin, input=e.value))
    return replace(state, outputs={**state.outputs, e.node: e.value})


def _repeats(state: State, e: ev.Repeats) -> State:
    """Give these slots new keys: an item its own, a node those of all that it does."""
    raised = [(slot if "#" in slot else f"{slot}/", 1) for slot in e.slots]
    undo = replace(state.undo, incarnation=numbers_with(state.undo.incarnation, raised))
    return replace(state, undo=undo)


def _recovered(state: State, _: ev.WorkflowRecovered) -> State:
    """Leave the state as it is: the fork in the same entry says where the saga goes on."""
    return state


def _ended(state: State, e: ev.SagaEnded) -> State:
    if state.undo.work is not None:
        state = after_undoing(state)
    return replace(state, **clear_open_work(state), ended=e, result=None, orphaned_children=())


_TABLE: dict[type, Callable[[State, Any], State]] = cast(
    "dict[type, Callable[[State, Any], State]]",
    {
        ev.SagaStarted: _started,
        ev.StepSucceeded: _succeeded,
        ev.StepFailed: _failed,
        ev.AttemptFailed: attempt_failed,
        ev.StrategyChosen: strategy_chosen,
        ev.StepHeld: step_held,
        ev.QuestionEscalated: question_escalated,
        ev.QuestionClaimed: question_claimed,
        ev.NoticeDue: notice_due,
        ev.NoticesSent: notices_sent,
        ev.StepInterrupted: fold_interrupted,
        ev.UnitRecorded: unit_recorded,
        ev.NodeSkipped: _skipped,
        ev.JoinFired: join_fired,
        ev.NodeAdmitted: fold_admitted,
        ev.NodeBegan: _began,
        ev.NodePassed: _gave,
        ev.WaitOpened: wait_opened,
        ev.WaitClosed: _wait_closed,
        ev.QuestionOpened: fold_opened,
        ev.CallbackOpened: callback_opened,
        ev.CallbackHeartbeat: heartbeat_heard,
        ev.AgentBegan: fold_opened,
        ev.TurnBegan: turn_began,
        ev.CallsBegan: calls_began,
        ev.MessageAwaited: message_awaited,
        ev.AgentClosed: _agent_closed,
        ev.MapBegan: fold_opened,
        ev.ItemsBegan: items_began,
        ev.ItemsGathered: items_gathered,
        ev.MapStopped: map_stopped,
        ev.MapClosed: _map_closed,
        ev.MapEnded: _skipped,
        ev.FunctionBegan: function_began,
        ev.OperationsBegan: _operations_began,
        ev.FunctionClosed: _gave,
        ev.ReplanBegan: fold_opened,
        ev.AlternativeBegan: alternative_began,
        ev.ReplanEnded: replan_ended,
        ev.ChildOpened: child_opened,
        ev.ChildOverdue: child_overdue,
        ev.ChildReported: child_reported,
        ev.ChildClosed: _child_closed,
        ev.SignalReceived: signal_received,
        ev.CancelRequested: fold_cancelled,
        ev.Revived: fold_revived,
        ev.GaveUp: gave_up,
        ev.LimitReached: fold_limited,
        ev.Parked: fold_parked,
        ev.Resumed: fold_resumed,
        ev.Forked: _forked,
        ev.ValueChanged: _value_changed,
        ev.Repeats: _repeats,
        ev.GraphChanged: graph_changed,
        ev.WorkflowRecovered: _recovered,
        ev.SagaEnded: _ended,
        **undo_folds.TABLE,
    },
)
