"""What the log keeps of a call because its inverse needs it: arguments, and the idempotency key."""

from __future__ import annotations

from typing import Any

from baton.core.decide.unknown_outcomes import has_acted_before, may_have_acted
from baton.core.effects.toolspec import ONCE
from baton.core.log.events import Failure
from baton.runtime.attempts.attempt import key_of_other, tool_called
from baton.runtime.attempts.attempt_input import AttemptInput
from baton.runtime.attempts.values import Values


async def needed(values: Values, one: AttemptInput, failure: Failure | None) -> dict[str, Any]:
    """Fields of its outcome; none where nothing undoes the step, or it has not acted."""
    undo = one.step.node.undo.get(tool_called(one.step))
    if undo is None or (undo.keeps == () and not undo.keyed):
        return {}
    if failure is not None and not _may_have_acted(one, failure):
        return {}
    found: dict[str, Any] = {"key": key} if undo.keyed and (key := _key(one)) else {}
    if undo.keeps != ():
        given = undo.needed(one.given or one.step.arguments)
        found["kept"] = await values.value(one.state.origin, given)
    return found


def _key(one: AttemptInput) -> str:
    """The key of its call; empty where there are several."""
    way, spec = one.step.way, one.spec
    # Other arguments, or another tool, have keys of their own.
    if way is None or (way.first and not way.arguments) or (spec is not None and spec.effect == ONCE):
        return one.key
    return "" if way.shorten or way.chunk else key_of_other(one.key, tool_called(one.step), way.name)


def _may_have_acted(one: AttemptInput, failure: Failure) -> bool:
    node = one.step.node
    return one.acted or may_have_acted(node, failure) or has_acted_before(node, one.state, one.step.slot)
