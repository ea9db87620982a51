"""What the log keeps of the arguments of a step, because its inverse needs them."""

from __future__ import annotations

from baton.core.decide.unknown_outcomes import may_have_acted
from baton.core.log.events import Failure, Value
from baton.runtime.attempts.attempt import tool_called
from baton.runtime.attempts.attempt_input import AttemptInput
from baton.runtime.attempts.values import Values


async def kept_of(values: Values, one: AttemptInput, failure: Failure | None) -> Value | None:
    """None where nothing undoes the step, or it has not acted."""
    undo = one.step.node.undo.get(tool_called(one.step))
    if (
        undo is None
        or undo.keeps == ()
        or (failure is not None and not may_have_acted(one.step.node, failure))
    ):
        return None
    return await values.value(one.state.origin, undo.needed(one.given or one.step.arguments))
