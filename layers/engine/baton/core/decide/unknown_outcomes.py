"""Effects that may happen only once and may have happened: which steps are in doubt, and who is told when nobody looks.

Belongs here: what the state says of that. Does not belong here: claims (runtime/effect_claims.py), and which failures leave a doubt
(core/failures/doubts.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from baton.core.decide.program import Program
from baton.core.effects.toolspec import ONCE
from baton.core.log import events as ev
from baton.core.log.state import UNKNOWN_OUTCOME, State, node_of


def is_in_doubt(program: Program, state: State, slot: str, running: Collection[str]) -> bool:
    """Whether it may have happened: then the step is not ended before somebody has looked."""
    node, failing = program.nodes[node_of(slot)[0]], state.failing.get(slot)
    # What is called in the tool's place may be such a tool, too.
    by_another = failing is not None and failing.way is not None and bool(failing.way.tool)
    if node.effect != ONCE and not by_another:
        return False
    if slot in running or (slot in state.recovery.possibly_running and program.has_come(state, slot)):
        return True
    if failing is None:
        return False
    return failing.failure.doubt or failing.look or failing.failure.code == UNKNOWN_OUTCOME


def doubts(program: Program, state: State, now: int) -> Iterator[ev.Notice]:
    """What is to be told of the steps in doubt of a saga that ends now."""
    for slot in state.tokens:
        if is_in_doubt(program, state, slot, ()):
            yield doubt_notice(state, slot, now)


def doubt_notice(state: State, slot: str, now: int) -> ev.Notice:
    """That a step was stopped in the middle of what may happen only once, for good: nobody else will look."""
    return ev.Notice(
        key=f"{state.origin.saga}/{state.lineage.branch}.{slot}.stopped",
        to="on_call",
        code=UNKNOWN_OUTCOME,
        message=f"`{slot}` was stopped while it acted, and its saga goes on or ends without it: it may have happened",
        severity="high",
        node=node_of(slot)[0],
        at=now,
        incident=True,
    )
