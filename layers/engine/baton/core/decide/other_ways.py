"""A step that goes on with another call although the one before may have acted: people are told, and an undoing comes to that, too.

Another call has an idempotency key of its own: it is one of another tool, or with other arguments. Loaded with the first step that goes on so. Which
other ways there are is in core/failures/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from baton.core.decide.context import EvaluationContext
from baton.core.decide.stopped_steps import link
from baton.core.decide.unknown_outcomes import doubt_notice, leaves_unknown
from baton.core.failures.alternatives import Alternative
from baton.core.log import events as ev
from baton.core.log.answers import tool_asked_about
from baton.core.log.state import UNKNOWN_OUTCOME, Failing, State
from baton.core.log.undos import is_undo


def changed(
    context: EvaluationContext,
    failing: Failing,
    now: int,
    arguments: Mapping[str, Any],
    way: Alternative | None = None,
) -> Iterator[ev.Event]:
    """As `left`, for what comes in place of arguments, and another way; nothing where the next call is the same. Raises `LackingError`."""
    node = context.program.node_at(context.state, context.slot)
    after = replace(failing, way=way or failing.way, arguments={**failing.arguments, **arguments})
    instead = tool_asked_about(node, after)
    is_same = instead == tool_asked_about(node, failing) and _named(failing.way) == _named(after.way)
    if not is_same or failing.arguments != after.arguments:
        yield from left(context, failing, instead, now)


def answered(
    context: EvaluationContext, failing: Failing, now: int, arguments: Mapping[str, Any]
) -> Iterator[ev.Event]:
    """As `changed`, for what a person puts in place of arguments. Raises `LackingError`."""
    # A person who has an unknown outcome tried again says that it has not happened.
    if failing.failure.code != UNKNOWN_OUTCOME:
        yield from changed(context, failing, now, arguments)


def left(context: EvaluationContext, failing: Failing, instead: str, now: int) -> Iterator[ev.Event]:
    """The events in front of the one with which the step goes on with another call, of the tool `instead`. Raises `LackingError`."""
    program, state, slot = context.program, context.state, context.slot
    node = program.node_at(state, slot)
    tool = failing.failure.tool or tool_asked_about(node, failing)
    if is_undo(slot) or failing.left:
        return
    if not failing.acted and not leaves_unknown(node, tool, failing.failure):
        return
    if program.undoes:
        yield link(context, tool, failing, instead)
    yield ev.NoticeDue(notice=_notice(state, slot, tool, failing, instead, now))


def _named(way: Alternative | None) -> str:
    """The parts of a way by which a call of the same tool becomes another call."""
    return way.name if way is not None and (not way.first or way.arguments) else ""


def _notice(state: State, slot: str, tool: str, failing: Failing, instead: str, now: int) -> ev.Notice:
    notice, why = doubt_notice(state, slot, now), failing.failure
    by = f"by `{instead}`" if instead != tool else "with other arguments"
    text = (
        f"`{tool}` at `{slot}` may have happened ({why.code}: {why.message[:500]}), and the step is done {by} now. "
        f"Look, and undo it by hand if it has; a rollback of the saga asks about it"
    )
    return replace(notice, key=f"{notice.key}.{failing.attempts}", message=text)
