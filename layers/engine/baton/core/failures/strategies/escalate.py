"""escalate: an incident for the people on call; the saga is parked until they decide."""

from __future__ import annotations

from baton.core.failures.strategies.base import ESCALATED, ON_CALL, Strategy, StrategyWords


class Escalate(Strategy):
    """Open an incident for the people on call, and wait for their decision."""

    name = "escalate"
    says = "Open an incident, tell the person on call, and wait for a decision."
    most = 3
    asks = ON_CALL
    suffix = ".incident"
    parks = ESCALATED
    foretold = "opens an incident"
    waits_for = "the person on call"
    metric = "Escalations"

    def in_words(self, chosen: StrategyWords) -> str:
        return f"an incident was opened, severity {chosen.severity or 'medium'}"
