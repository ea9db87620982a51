"""The idempotency key of one attempt of one step: what makes two calls the same. The rules are in core/effects/keys/."""

from __future__ import annotations

import hashlib

from baton.core.decide.builder import RunStep
from baton.core.effects.keys import KeyIncomplete, KeyRule, key_of, parameters_of
from baton.core.effects.toolspec import ONCE, ToolSpec
from baton.core.log.maps import is_index
from baton.core.log.state import State, item_of
from baton.core.models.tool import MODEL
from baton.ports import StepFailure

_PLAIN = KeyRule()


def key_for(state: State, step: RunStep, spec: ToolSpec | None, tool: str) -> str:
    """The key; empty where none is of use. Raises `StepFailure` when it cannot be made."""
    try:
        key = (
            ""
            if _has_no_use_for_a_key(step, spec)
            else key_of(
                spec.key if spec else KeyRule(),
                tenant=state.origin.tenant,
                user=state.origin.user,
                saga=state.origin.scope or state.origin.saga,
                node=step.node.name,
                tool=tool,
                parameters=parameters_of(spec.key, step.arguments, spec.parameters)
                if spec
                else step.arguments,
                occurrence=_occurrence(step, spec),
                # A graph that was compiled before its tool had a window does not say when the step became ready.
                at=step.since or state.origin.started_at,
                generation=step.generation,
            )
        )
    except KeyIncomplete as error:
        raise StepFailure("key_incomplete", str(error)) from error
    failing = state.failing.get(step.slot)
    if spec is not None and spec.effect == ONCE and failing is not None and failing.handovers:
        # What was handed over under the key before has ended without success, and is over.
        return hashlib.sha256(f"{key}/{failing.handovers}".encode()).hexdigest()[:32]
    return key


def _has_no_use_for_a_key(step: RunStep, spec: ToolSpec | None) -> bool:
    """Whether no tool that is called in this attempt can see its key, and nothing is claimed by it."""
    is_alone = step.way is None and not step.hooks and not step.look
    if step.node.tool == MODEL:
        return is_alone  # a request has a key of its own
    return spec is not None and is_alone and not spec.sees_key and spec.effect != ONCE and spec.key == _PLAIN


def _occurrence(step: RunStep, spec: ToolSpec | None) -> tuple[int | str, ...]:
    """Which of all calls with equal arguments it is: the round of the node, and the item of a list; of a repeatable tool, any item."""
    item = item_of(step.slot)
    if not is_index(item) and (spec is None or not spec.repeatable):
        item = ""
    if step.undoes:
        return (*step.iteration, item_of(step.slot))
    return (*step.iteration, item) if item else step.iteration
