"""What a join says that fails: how many nodes before it have failed, how many may, and which they were.

When a join fails is in readiness.py, where the saga goes on in transitions.py.
"""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.decide.context import Scope
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.lost import unrescued

ERRORS_KEPT, LONGEST_MESSAGE = 20, 500
"""How many errors a join's failure keeps, and how long each: it is stored in an entry and in the state."""


def join_failure(scope: Scope, node: Node) -> ev.Failure:
    """Why the join at the scope's slot fails. What catches it finds the failures in `last_error.errors`."""
    errors, join, slot = scope.errors(), node.join, scope.slot
    assert join is not None, "one that tolerates nothing does not fail"
    arrived, carried = scope.state.tokens[slot], scope.state.errors.get(slot, {})
    ways, dead = scope.program.ways, ((src, its) for src, its in carried.items() if not arrived[src])
    count = sum(bool(unrescued(ways, src, node.name, arrived, its)) for src, its in dead)
    has = "has" if count == 1 else "have"
    text = f"{count} of {len(node.before)} nodes before it {has} failed, and {join.tolerated or 'none'} may"
    if count <= join.tolerated:
        text += f", but it waits for {join.need}"
    first = "; ".join(f"{error.node}: {error.code}: {error.message}"[:200] for error in errors[:5])
    kept = (
        ev.Blamed(error.code, error.message[:LONGEST_MESSAGE], error.node) for error in errors[:ERRORS_KEPT]
    )
    return replace(ev.failed_with("join_failed", f"{text}: {first}", node.name), errors=tuple(kept))
