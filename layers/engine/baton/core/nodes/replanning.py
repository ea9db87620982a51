"""Alternatives to a failed step: a model suggests them, and they are tried one after the other.

The request to the model, the question to a person who chooses, and the calls of an alternative are steps at
slots of items.
The open work and its events are in core/log/scopes.py; the request is made in runtime/models/replanner.py.
Nothing that a model writes is rendered: it can refer to values only by `{"$from": 1, "at": "/id"}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from baton.core.conditions.schema import violations
from baton.core.failures.strategies.base import SUGGEST
from baton.core.graph.graph import Asks, Node, ReplanParts
from baton.core.log import events as ev
from baton.core.log.folding.workflow_limits import ASKED
from baton.core.log.questions import DECISION, visible_arguments
from baton.core.log.scopes import CHOICE, PLAN, Replanning, act_digest, call_place, replan_call_item
from baton.core.log.slots import Slot
from baton.core.log.state import UNKNOWN_OUTCOME, Failing
from baton.core.models.messages import fill_references
from baton.core.nodes.base import (
    Activation,
    Completed,
    Failed,
    Moved,
    Next,
    NodeContext,
    Spread,
    UnfitError,
    Unhelped,
)

NONE = "none"
NOT_ALLOWED = "call_not_allowed"


def part_of(node: Node, parts: ReplanParts, work: Replanning, item: str) -> Node:
    """Return the node for an item."""
    if item == CHOICE:
        return Node(name=node.name, kind="human", asks=_CHOICE)
    if item == PLAN:
        asked = {name: cap for name, cap in node.limits.items() if name in ASKED}
        return replace(parts.plan, limits=asked) if asked else parts.plan
    tool = work.calls.get(item, "")
    # A graph that was edited at a fork may not allow it any more.
    return next((call for call in parts.calls if call.tool == tool), node)


def given(at: Activation, context: NodeContext) -> Mapping[str, Any]:
    """Return the arguments of an item: the request to the model, the question to the person who chooses, or a
    call of an alternative.

    Raises `UnfitError`.
    """
    if at.place.item == PLAN:
        return _about(at, context)
    if at.place.item == CHOICE:
        return _choice(at, context)
    if at.node.replan is not None:
        known = ", ".join(sorted(call.tool for call in at.node.replan.calls))
        why = f"what the model has planned is none of the tools that may be called: {known}"
        raise UnfitError(ev.failed_with(NOT_ALLOWED, why, at.node.name))
    number, step = call_place(at.place.item)
    try:
        return _arguments(at, _alternatives(at, context), number, step, context)
    except ValueError as error:
        raise UnfitError(ev.failed_with("input_unbound", str(error), at.node.name)) from error


def resume_replan(at: Activation, work: Replanning, context: NodeContext) -> Next | None:
    """Return the next action after the items that have ended."""
    parts, items = _parts(at), context.state.items_of(at.slot)
    last = next(reversed(work.calls), "") or (CHOICE if CHOICE in items else PLAN)
    if last not in items:
        return Spread((last,))
    if (given := items[last]) is None:
        return None
    if work.failed is not None:
        return _failed(at, work, work.failed, context)
    alternatives = _alternatives(at, context)
    if last == PLAN:
        return Spread((CHOICE,)) if parts.by_person else _next(at, work, context)
    if last == CHOICE:
        answer = context.content(at, given)["answer"]
        if answer == NONE:
            return _unhelped(at, context, "a person wants none of the alternatives")
        return _begin(at, alternatives, int(answer), 1, context)
    _, step = call_place(last)
    if step < len(alternatives[work.alternative - 1]["steps"]):
        return _begin(at, alternatives, work.alternative, step + 1, context)
    schema = at.node.output_schema
    if schema is not None and any(violations(schema, context.content(at, given))):
        return _next(at, work, context)
    return Completed(output=given, tool=work.calls[last])


# ---- which is next -------------------------------------------------------------------------------------------------


def _failed(at: Activation, work: Replanning, failure: ev.Failure, context: NodeContext) -> Next:
    if failure.code == UNKNOWN_OUTCOME:
        # A person has looked, and could not say that it has not happened: nothing else is done in its place.
        return Failed(failure)
    if not work.calls:
        return _unhelped(at, context, f"{failure.code}: {failure.message}")
    return _next(at, work, context)


def _next(at: Activation, work: Replanning, context: NodeContext) -> Next:
    alternatives, number = _alternatives(at, context), work.alternative + 1
    if _parts(at).by_person or number > len(alternatives):
        return _unhelped(at, context, "no alternative is left")
    if context.now >= work.until:
        return _unhelped(at, context, "no time is left for another alternative")
    return _begin(at, alternatives, number, 1, context)


def _begin(
    at: Activation, alternatives: Sequence[Any], number: int, step: int, context: NodeContext
) -> Moved:
    tool, digest = alternatives[number - 1]["steps"][step - 1]["tool"], ""
    if tool not in _parts(at).repeatable:
        try:
            arguments = _arguments(at, alternatives, number, step, context)
            digest = act_digest(context.state.origin.user, tool, arguments)
        except ValueError:
            digest = ""  # its call says why it cannot be made
    found = context.state.made.get(digest)
    return Moved(
        ev.AlternativeBegan(
            node=at.node.name,
            iteration=at.place.iteration,
            at=context.now,
            number=number,
            call=replan_call_item(number, step),
            tool=tool,
            digest=digest if found is not None else "",
            repeats=found.slot if found is not None else "",
        )
    )


def _unhelped(at: Activation, context: NodeContext, why: str) -> Unhelped:
    return Unhelped(
        ev.ReplanEnded(node=at.node.name, iteration=at.place.iteration, at=context.now, why=why[:500])
    )


# ---- values --------------------------------------------------------------------------------------------------------


def _parts(at: Activation) -> ReplanParts:
    assert at.node.replan is not None, "no other step is done another way by a model"
    return at.node.replan


def _alternatives(at: Activation, context: NodeContext) -> Sequence[Any]:
    given = context.state.items[at.place.child(PLAN).text]
    assert given is not None, "what follows from a plan begins behind it"
    found: Sequence[Any] = context.content(at, given)["alternatives"]
    return found


def _own(at: Activation, context: NodeContext) -> tuple[Failing, dict[str, Any]]:
    """Return the failed step, and its arguments."""
    failing, owner = context.state.failing[at.place.owner], Slot.parse(at.place.owner)
    return failing, {**context.arguments(replace(at, slot=owner.text, place=owner)), **failing.arguments}


def _arguments(
    at: Activation, alternatives: Sequence[Any], number: int, step: int, context: NodeContext
) -> dict[str, Any]:
    """Return the arguments of a call. Raises `ValueError` for a reference to a missing value."""

    def source(other: int) -> Any:
        if other == 0:
            return _own(at, context)[1]
        given = context.state.items.get(at.place.child(replan_call_item(number, other)).text)
        if given is None or other >= step:
            raise ValueError(f"step {other} does not come before")
        return context.content(at, given)

    found: dict[str, Any] = fill_references(alternatives[number - 1]["steps"][step - 1]["arguments"], source)
    return found


def _about(at: Activation, context: NodeContext) -> dict[str, Any]:
    """Return the description of the step for the model.

    Secrets are removed: the log has the model's answer.
    """
    failing, arguments = _own(at, context)
    failure = failing.failure
    return {
        "arguments": visible_arguments(arguments),
        "failure": {"code": failure.code, "class": failure.kind, "message": failure.message},
        "attempts": failing.attempts,
        "tried": [name for name in failing.history.ways if name != SUGGEST],
    }


_CHOICE = Asks(type=DECISION, says=None, expires_ms=0)


def _choice(at: Activation, context: NodeContext) -> dict[str, Any]:
    failure, alternatives = context.state.failing[at.place.owner].failure, _alternatives(at, context)
    options = [
        {
            "id": str(number),
            "label": ", then ".join(step["tool"] for step in one["steps"]),
            "description": " ".join(filter(None, (one["why"], one["trade_offs"]))),
        }
        for number, one in enumerate(alternatives, 1)
    ]
    return {
        "title": f"How else is `{at.node.name}` to be done?",
        "message": f"{failure.code}: {failure.message}",
        "options": [*options, {"id": NONE, "label": "None of these"}],
        "details": {"alternatives": [visible_arguments(one) for one in alternatives]},
    }
