"""What a join says that fails: how many nodes before it have failed, how many may, and which they were.

When a join fails is in readiness.py, where the saga goes on in transitions.py.
"""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.decide.context import EvaluationContext
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.lost import unrescued
from baton.core.log.records import LONGEST_MESSAGE

ERRORS_KEPT = 20
"""How many errors a join's failure keeps: it is stored in an entry and in the state."""


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
