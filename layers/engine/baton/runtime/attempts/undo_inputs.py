"""What the log keeps of a call because its inverse needs it: arguments, and the idempotency key."""

from __future__ import annotations

from typing import Any

from baton.core.decide.unknown_outcomes import has_acted_before, may_have_acted
from baton.core.log.events import Failure
from baton.runtime.attempts.attempt import tool_called
from baton.runtime.attempts.attempt_input import AttemptInput
from baton.runtime.attempts.values import Values


async def needed(values: Values, one: AttemptInput, failure: Failure | None) -> dict[str, Any]:
    """Fields of its outcome; none where nothing undoes the step, or it has not acted."""
    undo = one.step.node.undo.get(tool_called(one.step))
    if undo is None or (undo.keeps == () and not undo.keyed):
        return {}
    if failure is not None and not _may_have_acted(one, failure):
        return {}
    way = one.step.way
    # Other arguments, or another tool, have keys of their own.
    is_own = way is None or (way.first and not way.arguments)
    found: dict[str, Any] = {"key": one.key} if undo.keyed and is_own else {}
    if undo.keeps != ():
        given = undo.needed(one.given or one.step.arguments)
        found["kept"] = await values.value(one.state.origin, given)
    return found


def _may_have_acted(one: AttemptInput, failure: Failure) -> bool:
    node = one.step.node
    return may_have_acted(node, failure) or has_acted_before(node, one.state, one.step.slot)
