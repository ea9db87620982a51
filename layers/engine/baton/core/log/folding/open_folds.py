"""Folds of the events that let a node begin, open work and report on open work; for the table of fold.py."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.log import events as ev
from baton.core.log.folding import received
from baton.core.log.folding.received import with_correction, without_running
from baton.core.log.folding.workflow_limits import count_turns, pay, with_child_use, with_models
from baton.core.log.scopes import (
    Agent,
    Map,
    Replanning,
    awaiting,
    next_turn,
    with_calls,
    with_failure,
    with_made_call,
    with_part,
)
from baton.core.log.slots import Slot, item_slots, owner_of, slot_of
from baton.core.log.state import State, without


def fold_opened(state: State, e: ev.Opens) -> State:
    """Record that a node opened work."""
    slot = e.slot
    if slot not in state.tokens or slot in state.open:
        return state
    work = e.work()
    after = replace(state, open={**state.open, slot: work}, held=without(state.held, (slot,)))
    return after if work.ask is None else received.with_question_row(after, work.ask)


def function_began(state: State, e: ev.FunctionBegan) -> State:
    """Record that a function began, and the code that the saga stays with."""
    after = fold_opened(state, e)
    return replace(after, pinned=e.build) if e.build else after


def wait_opened(state: State, e: ev.WaitOpened) -> State:
    """Record that a wait began."""
    after = fold_opened(state, e)
    if after is state or not e.fresh:
        return after
    return replace(after, signals=tuple(one for one in state.signals if one.name != e.signal))


def child_opened(state: State, e: ev.ChildOpened) -> State:
    """Record the id of a child that is to be started."""
    after = fold_opened(state, e)
    return after if after is state else replace(after, counts=replace(after.counts, children=e.number))


def child_reported(state: State, e: ev.ChildReported) -> State:
    """Record the end of a child. In a saga that stops it is progress: the deaths before it are forgotten."""
    work = state.open.get(e.slot)
    if work is None or not work.hears(e.child):
        return state
    state = with_child_use(pay(state, e.slot, e.cost), e.slot, e.used)
    if state.is_stopping:
        state = replace(state, recovery=replace(state.recovery, consecutive_crashes=0))
    return replace(state, open={**state.open, e.slot: replace(work, **e.end)})


def child_overdue(state: State, e: ev.ChildOverdue) -> State:
    """Record that the time of a child is over."""
    slot = e.slot
    work = state.child_at(slot)
    if work is None or work.status:
        return state
    if e.until:
        after = replace(work, overdue=False, until=e.until, stood=work.stood + e.until - work.until)
        return replace(state, open={**state.open, slot: after})
    return replace(state, open={**state.open, slot: replace(work, overdue=True)})


def callback_opened(state: State, e: ev.CallbackOpened) -> State:
    """End the run of a tool: its cost is counted, and the deaths before it are forgotten."""
    after = fold_opened(state, e)
    if after is state:
        return state
    slot = e.slot
    recovery = without_running(after.recovery, slot)
    recovery = replace(
        recovery,
        consecutive_crashes=0,
        interruptions={key: count for key, count in recovery.interruptions.items() if key != slot},
    )
    after = pay(replace(after, recovery=recovery), slot, e.cost)
    return with_models(after, slot, e.usage, e.assumed, is_answered=True)


def turn_began(state: State, e: ev.TurnBegan) -> State:
    """Begin a turn: the items of the last turn leave the state, because the transcript has their outputs."""
    slot = e.slot
    work = state.open.get(slot)
    if not isinstance(work, Agent):
        return state
    items, taken = state.items_of(slot), set(e.heard)
    left = without(state.items, item_slots(slot, items))
    mine = [one for one in state.signals if one.name == work.listens and one.key in taken]
    heard = tuple(one.payload for one in mine)
    if mine:
        state = replace(state, signals=tuple(one for one in state.signals if one not in mine))
    after = next_turn(work, e, items, heard)
    used = count_turns(state, after.turn - work.turn)
    return replace(state, items=left, open={**state.open, slot: after}, used=used)


def item_failed(state: State, e: ev.StepFailed) -> State:
    """Record a failed item of a node: of a map, of a model's alternative, which ends with it, or of an agent.

    An agent may make an equal call again, and a call that a person rejected is not the model's mistake.
    """
    owner = Slot.parse(e.slot).owner
    work = state.open.get(owner)
    if isinstance(work, Replanning):
        return replace(state, open={**state.open, owner: replace(work, failed=e.failure)})
    if isinstance(work, Map):
        if work.late is not None:
            return state  # it has gone on: nothing follows from the failure
        return replace(state, open={**state.open, owner: with_failure(work, e.item, e.failure)})
    if not isinstance(work, Agent):
        return state
    made = {digest: item for digest, item in work.made.items() if item != e.item}
    failed = work.failed + (not e.by)
    after = replace(state, open={**state.open, owner: replace(work, made=made, failed=failed)})
    return with_correction(after, owner, e.ended_at) if failed == len(work.calls) else after


def calls_began(state: State, e: ev.CallsBegan) -> State:
    """Record the calls of a turn; the result of a call that is not made is known at once."""
    slot = e.slot
    work = state.open.get(slot)
    if not isinstance(work, Agent) or work.calls:
        return state
    slots = item_slots(slot, (one.item for one in e.calls))
    results = zip(slots, (one.result for one in e.calls), strict=True)
    given = {one: result for one, result in results if result is not None}
    after = replace(state, items={**state.items, **given}, open={**state.open, slot: with_calls(work, e)})
    return with_correction(after, slot, e.at) if e.at else after


def message_awaited(state: State, e: ev.MessageAwaited) -> State:
    """Record that a conversation waits for a message."""
    work = state.open.get(e.slot)
    if not isinstance(work, Agent) or work.until:
        return state
    return replace(state, open={**state.open, e.slot: awaiting(work, e)})


def remember_call(state: State, e: ev.StepSucceeded) -> State:
    """Remember a call's output, so that a model's plan with the same call gets it."""
    slot = e.slot
    if slot not in state.tokens:
        return state
    return replace(state, made=with_made_call(state.made, e.digest, slot, e.output))


def alternative_began(state: State, e: ev.AlternativeBegan) -> State:
    """Begin a call of an alternative; outputs of an earlier alternative leave the state.

    A call that repeats another has its output at once.
    """
    owner = e.slot
    work = state.open.get(owner)
    if not isinstance(work, Replanning) or e.call in work.calls or e.number < work.alternative:
        return state
    calls, items = work.calls, state.items
    if e.number != work.alternative:
        items = without(items, item_slots(owner, calls))
        calls = {}
    if e.repeats:
        items = {**items, Slot.parse(owner).child(e.call).text: state.made[e.digest].output}
    work = replace(work, alternative=e.number, calls={**calls, e.call: e.tool}, failed=None)
    return replace(state, items=items, open={**state.open, owner: work})


def replan_ended(state: State, e: ev.ReplanEnded) -> State:
    """End the alternatives, so that another reaction to the step's failure can be chosen."""
    owner = e.slot
    failing = state.failing.get(owner)
    if failing is None or not isinstance(state.open.get(owner), Replanning):
        return state
    return replace(
        state,
        open=without(state.open, (owner,)),
        items=without(state.items, [slot for slot in state.items if owner_of(slot) == owner]),
        failing={**state.failing, owner: replace(failing, strategy="", hint="")},
    )


def items_began(state: State, e: ev.ItemsBegan) -> State:
    """Record that items of a map began."""
    owner = e.slot
    work = state.open.get(owner)
    if not isinstance(work, Map) or e.first != work.begun:
        return state
    slots = item_slots(owner, e.items)
    return replace(
        state,
        tokens={**state.tokens, **{slot: {e.node: True} for slot in slots}},
        items={**state.items, **dict.fromkeys(slots)},
        open={**state.open, owner: replace(work, begun=e.first + e.count)},
    )


def items_gathered(state: State, e: ev.ItemsGathered) -> State:
    """Move the results of ended items out of the state."""
    owner = e.slot
    work, slots = state.open.get(owner), item_slots(owner, map(str, e.items))
    if not isinstance(work, Map) or any(state.items.get(slot) is None for slot in slots):
        return state
    return replace(state, items=without(state.items, slots), open={**state.open, owner: with_part(work, e)})


def map_stopped(state: State, e: ev.MapStopped) -> State:
    """Record that a map failed."""
    owner = e.slot
    work = state.open.get(owner)
    if not isinstance(work, Map):
        return state
    return replace(state, open={**state.open, owner: replace(work, failure=e.failure, batch=e.batch)})


def gone_on(state: State, e: ev.MapClosed) -> State:
    """Let the map go on after its output: only items that have not ended are left."""
    slot = e.slot
    work = state.open[slot]
    assert isinstance(work, Map), "only a map goes on beside its items"
    ended = [one for one, value in state.items.items() if value is not None and owner_of(one) == slot]
    lost = work.lost + len(work.failures)
    left = replace(work, lost=lost, parts=(), failures={}, first=(), late=(0, 0))
    return replace(state, items=without(state.items, ended), open={**state.open, slot: left})


def with_batch(state: State, e: ev.StepFailed) -> ev.StepFailed:
    """Return the failure of a map with the result of each item, which the entry before holds (as a blob if it
    is large).
    """
    work = state.open.get(Slot.parse(e.slot).owner)
    if not isinstance(work, Map) or work.batch is None:
        return e
    errors = tuple(replace(one, batch=work.batch) if one.node == e.node else one for one in e.errors)
    return replace(e, failure=replace(e.failure, batch=work.batch), errors=errors)


def join_fired(state: State, e: ev.JoinFired) -> State:
    """Record that a join fired before every edge had arrived."""
    slot = slot_of(e.node, e.iteration)
    if slot not in state.tokens or slot in state.closed:
        return state
    return replace(state, closed={**state.closed, slot: e.unspoken})


def fold_admitted(state: State, e: ev.NodeAdmitted) -> State:
    """Record that the `when` of a node is true."""
    slot = e.slot
    is_news = slot in state.tokens and slot not in state.admitted
    return replace(state, admitted=(*state.admitted, slot)) if is_news else state
