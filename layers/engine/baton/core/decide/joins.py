"""Which of several open nodes was over first, and what a join says that fails: how many nodes before it have failed, and how many may.

When a join fires or fails is in readiness.py, where the saga goes on in transitions.py.
"""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.decide.context import EvaluationContext
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.answers import is_answer_to
from baton.core.log.folding.callbacks import CALLBACK
from baton.core.log.lost import unrescued
from baton.core.log.records import LONGEST_MESSAGE
from baton.core.log.state import ANSWER, Signal, State
from baton.core.log.work import Callback, Open

ERRORS_KEPT = 20
"""How many errors a join's failure keeps: it is stored in an entry and in the state."""

Moment = tuple[int, int]
"""When, in epoch ms, and which signal of those that wait; -1: none, its time is over."""


def in_order(state: State, now: int) -> list[str]:
    """The slots with tokens: first those whose work is over, the one that was over first before the others.

    Of two signals the earlier one of the log is first, whatever the clocks said that dated them.
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
    """Tell whether the work is over with this signal."""
    if signal.name == ANSWER:
        return work.ask is not None and is_answer_to(signal.key, work.ask.id)
    if signal.name == CALLBACK:
        return isinstance(work, Callback) and signal.key == work.id
    return work.signal == signal.name and signal.is_in_time(work.due)


def join_failure(context: EvaluationContext, node: Node) -> ev.Failure:
    """Why the join at the context's slot fails. What catches it finds the failures in `last_error.errors`."""
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
