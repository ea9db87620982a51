"""Whether the failure of a child saga goes on from somewhere above it, so that the child does not ask a person first.

A parent knows this when it starts a child. For the failure of a saga's own step, transitions.py evaluates the
conditions.
"""

from __future__ import annotations

from baton.core.decide.program import Program
from baton.core.failures.codes import CHILD_FAILED, class_of
from baton.core.graph.graph import Catch
from baton.core.log.state import State, node_of


def takes_failure(program: Program, state: State, slot: str) -> bool:
    """Whether this saga, or one above it, goes on from the failure of the child at `slot`, whatever the failure is.

    A node that says itself what is done about its child goes on, too. A child that was left behind has no slot: it is started only to be cancelled.
    """
    name, _ = node_of(slot)
    node = program.nodes[name] if slot else None
    rules = node.catch if node is not None else ()
    if node is not None and node.work.failures:
        return True
    if node is not None and node.each is not None and node.each.tells_all:
        return True
    return state.origin.handled or name in program.index.can_fail or any(map(_fits, rules))


def _fits(rule: Catch) -> bool:
    """A rule with a condition does not count: what the condition says is known when the child has failed."""
    return rule.fits(CHILD_FAILED, class_of(CHILD_FAILED)) and rule.condition is None
