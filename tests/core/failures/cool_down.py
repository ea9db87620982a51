"""cool_down: a strategy that the engine does not have. Hours later, the same again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from baton.core.failures.strategies.base import FailureContext, LadderStep, Strategy, StrategyWords
from baton.core.failures.strategies.registry import STRATEGIES

HOUR_MS = 3_600_000


class CoolDown(Strategy):
    name = "cool_down"
    says = "Leave it alone for an hour, then try again."
    most = 2
    largest_at_most = 5
    repeats = True
    foretold = "leaves it alone for an hour"
    metric = "CoolDowns"

    def choose(self, at: FailureContext) -> LadderStep | str:
        if at.entry.severity == "critical":
            return "an hour is too long"
        return LadderStep(strategy=self.name, delay_ms=HOUR_MS)

    def in_words(self, chosen: StrategyWords) -> str:
        return f"left alone, tried again after {chosen.pause}"


@contextmanager
def extended(strategy: Strategy, before: str = "") -> Iterator[None]:
    """One strategy more, before another one or at the ladder's end, until the context is left."""
    usual = dict(STRATEGIES)
    names = list(usual)
    names.insert(names.index(before) if before else len(names), strategy.name)
    STRATEGIES.clear()
    STRATEGIES.update((name, usual.get(name, strategy)) for name in names)
    try:
        yield
    finally:
        STRATEGIES.clear()
        STRATEGIES.update(usual)
