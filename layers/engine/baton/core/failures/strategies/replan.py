"""replan: an alternative to the tool, chosen by a hint (core/failures/alternatives.py) or suggested by a
model.

A model is asked once for a step, when its registered alternatives are used up; its suggestion is carried out
in core/nodes/replanning.py.
"""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.failures.alternatives import Alternative, choose
from baton.core.failures.failover import Policy
from baton.core.failures.policy import PolicyChange
from baton.core.failures.strategies.base import (
    SUGGEST,
    FailureContext,
    History,
    LadderStep,
    Strategy,
    StrategyWords,
)


class Replan(Strategy):
    """Repeat the step in another way: another tool, other arguments, or a smaller context."""

    name = "replan"
    says = "Try it another way: carry out one of the hints."
    most = 3
    takes = ("hint", "tool", "with")
    lacks = "a replan says what is different: `hint`, `tool` or `with`"
    metric = "Replans"

    def next(self, at: FailureContext) -> LadderStep | str:
        found = super().next(at)
        is_left = at.may_suggest and SUGGEST not in at.history.ways and at.entry.at_most.get(self.name) != 0
        return found if isinstance(found, LadderStep) or not is_left else _SUGGESTED

    def choose(self, at: FailureContext) -> LadderStep | str:
        way = choose(at.entry.hints, at.alternatives, at.history.ways)
        if way is None:
            return "no other way is known"
        hint = next((hint for hint in at.entry.hints if hint in way.hints), "")
        return LadderStep(strategy=self.name, hint=hint, way=way)

    def by_policy(self, at: FailureContext, policy: Policy) -> LadderStep | None:
        action, way = policy.then, None
        if action.tool:
            way = Alternative(name=f"policy {policy.name}", tool=action.tool)
        elif action.hint:
            way = choose([action.hint], [way for way in at.alternatives if way.hints], at.history.ways)
            if way is None and not action.arguments:
                return None
        return LadderStep(strategy=self.name, hint=action.hint, way=way)

    def recorded(self, history: History, step: LadderStep, now: int) -> History:
        after = super().recorded(history, step, now)
        return replace(after, ways=(*after.ways, SUGGEST)) if step.hint == SUGGEST else after

    def only_for(self, change: PolicyChange) -> tuple[str, ...]:
        return ("hints",) if change.hints else ()

    def in_words(self, chosen: StrategyWords) -> str:
        if chosen.hint == SUGGEST:
            return "tried another way: what a model suggests"
        parts = [f"`{chosen.hint}`"] if chosen.hint else []
        parts += [f"by `{chosen.by}`"] if chosen.by else []
        parts += [f"with other values of {chosen.others}"] if chosen.others else []
        return f"tried another way: {' '.join(parts) or 'with what the policy says'}"


_SUGGESTED = LadderStep(strategy=Replan.name, hint=SUGGEST)
