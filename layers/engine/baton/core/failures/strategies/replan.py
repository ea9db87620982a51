"""replan: an alternative to the tool, as one of the hints says (core/failures/alternatives.py)."""

from __future__ import annotations

from baton.core.failures.alternatives import Alternative, choose
from baton.core.failures.failover import Policy
from baton.core.failures.policy import Change
from baton.core.failures.strategies.base import LadderStep, Situation, Strategy, Told


class Replan(Strategy):
    name = "replan"
    says = "Try it another way: carry out one of the hints."
    most = 3
    takes = ("hint", "tool", "with")
    lacks = "a replan says what is different: `hint`, `tool` or `with`"
    metric = "Replans"

    def choose(self, at: Situation) -> LadderStep | str:
        way = choose(at.entry.hints, at.ways, at.history.ways)
        if way is None:
            return "no other way is known"
        hint = next((hint for hint in at.entry.hints if hint in way.hints), "")
        return LadderStep(strategy=self.name, hint=hint, way=way)

    def by_policy(self, at: Situation, policy: Policy) -> LadderStep | None:
        action, way = policy.then, None
        if action.tool:
            way = Alternative(name=f"policy {policy.name}", tool=action.tool)
        elif action.hint:
            way = choose([action.hint], [way for way in at.ways if way.hints], at.history.ways)
            if way is None and not action.arguments:
                return None
        return LadderStep(strategy=self.name, hint=action.hint, way=way)

    def only_for(self, change: Change) -> tuple[str, ...]:
        return ("hints",) if change.hints else ()

    def told(self, chosen: Told) -> str:
        parts = [f"`{chosen.hint}`"] if chosen.hint else []
        parts += [f"by `{chosen.by}`"] if chosen.by else []
        parts += [f"with other values of {chosen.others}"] if chosen.others else []
        return f"tried another way: {' '.join(parts) or 'with what the policy says'}"
