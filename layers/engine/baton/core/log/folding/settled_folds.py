"""What is there once a node is settled: its tokens become those that it emits, and what was kept for it is gone."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec.structs import replace

from baton.core.log import events as ev
from baton.core.log.folding.failure_folds import forget_answers
from baton.core.log.folding.recovery_folds import progressed
from baton.core.log.folding.whole_folds import stopped
from baton.core.log.folding.workflow_limits import counted
from baton.core.log.lost import carriers
from baton.core.log.maps import Map, with_late
from baton.core.log.state import State, owner_of, slot_of, without


def emit(
    state: State,
    emits: tuple[ev.Token, ...],
    gone: Collection[str] = (),
    blame: tuple[ev.Failure, ...] = (),
    carried_by: Collection[tuple[str, str]] = (),
) -> dict[str, Any]:
    """The tokens in flight once these are emitted and those at the slots `gone` are removed.

    Those of `carried_by` (sender, receiver) carry `blame`.
    """
    tokens = state.tokens.copy()
    for slot in gone:
        tokens.pop(slot, None)
    errors, closed = without(state.errors, gone), without(state.closed, gone)
    for token in emits:
        slot = slot_of(token.dst, token.iteration)
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
    """Tokens at the event's slot become the ones it emits; all the bookkeeping of a settled node.

    A join that fired early stays closed: what comes late is absorbed, and what would lead to it does not begin. A
    round that is over takes its joins with it. `stays`: what is at the slot, and its items, go on beside what follows.
    """
    slot = slot_of(event.node, event.iteration, event.item)
    if slot not in state.tokens:
        return state
    if event.fault is not None and not event.emits:
        # Its tokens stay, so that a fork from here begins with this node and not behind it.
        return stopped(state, failure=state.failure or event.fault)
    if event.ends:  # as above
        return state if state.is_stopping else stopped(state, result=output)
    still_closed = state.closed.get(slot)
    gone = set(event.drops) if stays else {slot, *event.drops}
    if state.items and (not event.item or event.drops):
        gone |= {one for one in state.items if owner_of(one) in gone}
    if still_closed is not None:
        state = replace(state, closed=without(state.closed, (slot,)))
    news = emit(state, event.emits, gone, event.errors, carriers(event))
    if still_closed is not None and slot not in event.drops:
        news["closed"] = {**news["closed"], slot: still_closed}
    outputs, previous = state.outputs, state.previous
    if output is not None and not event.item:
        outputs = {**outputs, event.node: output}
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
    news |= {"outputs": outputs, "previous": previous, "recovery": progressed(state.recovery, gone)}
    return replace(state, **news, **more)


def _of_item(state: State, event: ev.Settles, slot: str, output: ev.Value | None) -> dict[str, Any]:
    """The items, with what one gave; of one that its map has left running, how many have ended."""
    owner = owner_of(slot)
    work = state.open.get(owner)
    if not isinstance(work, Map) or work.late is None:
        return {"items": {**state.items, slot: output}}
    work = with_late(work, succeeded=not isinstance(event, ev.StepFailed))
    return {"items": without(state.items, (slot,)), "open": {**without(state.open, (slot,)), owner: work}}


def _counted(state: State, event: ev.Settles) -> dict[str, Any]:
    is_run = not isinstance(event, ev.NodeSkipped | ev.MapEnded) and not event.item
    news: dict[str, Any] = {"used": counted(state.used, event, is_run=is_run)} if state.used else {}
    if is_run:
        news["counts"] = replace(state.counts, steps=state.counts.steps + 1)
    return news


def _emptied(state: State, gone: Collection[str], event: ev.Settles) -> dict[str, Any]:
    """The maps by slot without those that are `gone`, and with the pause that begins; of a saga of plain steps there are none."""
    news: dict[str, Any] = {}
    for name in (
        "open",
        "approved",
        "items",
        "begun",
        "first_started_at",
        "failing",
        "held",
        "corrections",
        "pauses",
    ):
        if known := getattr(state, name):
            news[name] = without(known, gone)
    if event.paused is not None:
        (token,) = event.emits
        left = news.get("pauses", state.pauses)
        news["pauses"] = {**left, slot_of(token.dst, token.iteration): event.paused}
    if state.admitted:
        news["admitted"] = tuple(other for other in state.admitted if other not in gone)
    if state.open:
        orphans = tuple(
            work.orphan for key, work in state.open.items() if key in gone and work.orphan is not None
        )
        news["orphaned_children"] = state.orphaned_children + orphans
    return news
