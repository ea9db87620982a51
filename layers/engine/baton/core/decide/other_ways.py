"""A step that is done another way although what it was done by before may have acted: people are told, and an undoing comes to that, too.

Loaded with the first step that is done another way. Which other ways there are is in core/failures/.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from baton.core.decide.context import EvaluationContext
from baton.core.decide.stopped_steps import link
from baton.core.decide.unknown_outcomes import doubt_notice, leaves_unknown
from baton.core.log import events as ev
from baton.core.log.answers import tool_asked_about
from baton.core.log.state import Failing, State
from baton.core.log.undos import is_undo


def left(context: EvaluationContext, failing: Failing, instead: str, now: int) -> Iterator[ev.Event]:
    """The events in front of the one with which the step goes on with the tool `instead`. Raises `LackingError`."""
    program, state, slot = context.program, context.state, context.slot
    node = program.node_at(state, slot)
    tool = failing.failure.tool or tool_asked_about(node, failing)
    if is_undo(slot) or tool == instead or (slot, tool) in state.undo.ways:
        return
    if not failing.acted and not leaves_unknown(node, tool, failing.failure):
        return
    if program.undoes:
        yield link(context, tool, instead)
    yield ev.NoticeDue(notice=_notice(state, slot, tool, failing, instead, now))


def _notice(state: State, slot: str, tool: str, failing: Failing, instead: str, now: int) -> ev.Notice:
    notice, why = doubt_notice(state, slot, now), failing.failure
    text = (
        f"`{tool}` at `{slot}` may have happened ({why.code}: {why.message[:500]}), and the step is done by `{instead}` now. "
        f"Look, and undo it by hand if it has; a rollback of the saga asks about it"
    )
    return replace(notice, key=f"{notice.key}.{failing.attempts}", message=text)
