"""The last look before a call: whether a person has approved exactly this, where that is needed.

Which calls need it is in core/effects/approvals.py, how the question is asked in core/decide/approvals.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from baton.core.decide.builder import RunStep
from baton.core.effects.approvals import Request, request_for
from baton.core.effects.toolspec import ToolSpec
from baton.ports import NoRoom, Performer, StepContext
from baton.runtime.attempts.attempt import tool_called

Specs = Mapping[str, ToolSpec]


class Unapproved(NoRoom):
    """A call that a person has to approve first: it was not made."""

    def __init__(self, request: Request) -> None:
        super().__init__(f"`{request.tool}` waits for an approval")
        self.request = request


class Approved:
    """A performer that makes no call which has to be approved and is not: then it raises `Unapproved`."""

    def __init__(self, performer: Performer, specs: Specs, step: RunStep) -> None:
        self._performer = performer
        self._specs = specs
        self._step = step

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        check(self._step, self._specs, tool, arguments)
        return await self._performer.perform(tool, arguments, context)


def may_ask(step: RunStep, spec: ToolSpec | None) -> bool:
    """Whether a call of this attempt, by the tool of `spec`, may have to be approved. False for most, which pay nothing more."""
    if step.node.approval is not None or step.way is not None or step.hooks or step.look:
        return True
    return spec is not None and spec.may_ask


def check_first(step: RunStep, specs: Specs) -> None:
    """The same before money is reserved, where nothing else is called before the tool. Raises `Unapproved`."""
    if step.way is None and not step.hooks and not step.look:
        check(step, specs, step.node.tool, step.arguments)


def check(step: RunStep, specs: Specs, tool: str, arguments: Mapping[str, Any]) -> None:
    """Raises `Unapproved` for a call that no person has approved and that needs it."""
    approval, called = step.node.approval, tool_called(step)
    own = specs.get(step.node.tool)
    # What a model has put in the place of a step does its work, too.
    replaced = specs.get(approval.work_of) if approval is not None else None
    # A tool that stands in does the same work: it is as risky as the step, whatever it says of itself.
    is_work = tool in {called, step.node.tool}
    request = request_for(
        tool,
        arguments,
        specs.get(tool),
        always=is_work and approval is not None and approval.always,
        by_tool=is_work
        and (
            (approval is not None and approval.by_tool)
            or any(one is not None and one.requires_approval for one in (own, replaced))
        ),
        risks=[one.risk for one in (approval, own, replaced) if one is not None] if is_work else (),
        rules=step.risk,
        # A tool that is called before it acts anew for each attempt; the step's own call is the same act in all of them.
        again=0 if is_work else step.attempt,
    )
    if request is not None and request.digest not in step.approved:
        raise Unapproved(replace(request, is_changed=tool == called and _is_made_anew(step)))


def _is_made_anew(step: RunStep) -> bool:
    """Whether what is called before the tool, or how it is called, makes its arguments."""
    way = step.way
    if way is not None and way.chunk:
        return False  # of a part: in its place, the step would end with that one and lose the others
    return bool(step.hooks) or (way is not None and bool(way.first or way.shorten))
