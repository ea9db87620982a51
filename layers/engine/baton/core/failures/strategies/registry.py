"""The strategies in the ladder's order. No other file imports them: others ask here by a strategy's name.

This file is loaded with the first failure, not with the first step.
"""

from __future__ import annotations

from baton.core.failures.strategies.ask_user import AskUser
from baton.core.failures.strategies.base import LadderStep, Situation, Strategy
from baton.core.failures.strategies.escalate import Escalate
from baton.core.failures.strategies.fail import Fail
from baton.core.failures.strategies.look import Look
from baton.core.failures.strategies.replan import Replan
from baton.core.failures.strategies.retry import Retry
from baton.core.failures.strategies.rollback import Rollback

STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy for strategy in (Retry(), Replan(), AskUser(), Rollback(), Escalate())
}
"""Every strategy that a ladder can name, by name."""
END = Fail()
"""The strategy after the last of a ladder."""
LOOK = Look()


class _Unknown(Strategy):
    """A strategy of another version: a log that names it stays true, and it has no effect here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def choose(self, at: Situation) -> LadderStep | str:
        return "not known to this version"


def of(name: str) -> Strategy:
    """Return the strategy of a name in a log or a graph."""
    return END if name == END.name else STRATEGIES.get(name) or _Unknown(name)
