"""What the calls of one attempt may cost: known before it begins, and held before each of them.

Limits and accounts are in money/ledger.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.core.decide.builder import RunStep
from baton.core.effects.toolspec import ToolSpec
from baton.core.log.state import State
from baton.core.models.tool import MODEL
from baton.ports import Performer, StepContext
from baton.runtime.attempts.attempt import tool_called
from baton.runtime.money.ledger import Ledger

Specs = Mapping[str, ToolSpec]


def has_no_limits(state: State, step: RunStep) -> bool:
    """Whether limits of money do not hold it up: it undoes something, or finds out for a saga that stops whether there is something to undo."""
    return step.undoes or state.is_stopping


def cost_of(step: RunStep, specs: Specs, tool: str) -> int:
    """The most that one call of a tool costs in this step, as far as it is declared."""
    spec = specs.get(tool)
    declared = spec.cost if spec is not None else 0
    # The step's own cost is from when its graph was compiled; the larger of both counts.
    own = step.node.cost
    return own if own > declared and tool == tool_called(step) else declared


def foreseen(step: RunStep, specs: Specs) -> int:
    """The most that the calls of a whole attempt may cost: hooks are of no use without the tool."""
    if step.node.tool == MODEL:
        return 0  # known when the request is made
    tool = tool_called(step)
    if step.way is None and not step.hooks and not step.look:
        return cost_of(step, specs, tool)
    if step.look:
        spec = specs.get(tool)
        return cost_of(step, specs, spec.verify) if spec is not None and spec.verify else 0
    first = (step.way.tool,) if step.way is not None and step.way.first else ()
    return sum(cost_of(step, specs, name) for name in (*step.hooks, *first, tool))


class Paying:
    """A performer that makes no call for which there is no money: then it raises `NoRoom`, or `Halted`."""

    def __init__(
        self, performer: Performer, specs: Specs, ledger: Ledger, state: State, step: RunStep
    ) -> None:
        self._performer = performer
        self._specs = specs
        self._ledger = ledger
        self._state = state
        self._step = step

    async def cover(self, tool: str) -> None:
        """Make sure of the money for the next call."""
        if cost := cost_of(self._step, self._specs, tool):
            await self._ledger.cover(self._state, self._step, tool, cost)

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        if cost := cost_of(self._step, self._specs, tool):
            await self._ledger.cover(self._state, self._step, tool, cost)
        return await self._performer.perform(tool, arguments, context)
