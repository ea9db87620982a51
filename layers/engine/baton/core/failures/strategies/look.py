"""look: a check of an attempt that may have happened, before any other reaction to it.

No ladder names it. The log calls it a retry whose `look` is true.
"""

from __future__ import annotations

from baton.core.failures.strategies.base import LadderStep, Strategy

_AFTER_MS = 1_000


class Look(Strategy):
    name = "look"
    says = "Find out whether it has happened."

    def before(self, step: LadderStep) -> LadderStep:
        """Return the check in place of a step of another strategy."""
        why = f"{step.strategy}: it may have happened, so a look comes first"
        return LadderStep(strategy="retry", delay_ms=_AFTER_MS, look=True, why=(*step.why, why))
