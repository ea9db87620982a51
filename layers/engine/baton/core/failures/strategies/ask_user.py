"""ask_user: a question to the saga's user, who has a day to answer; with an escalation, the last of its
audience has.
"""

from __future__ import annotations

from baton.core.failures.policy import PolicyChange, PolicyEntry
from baton.core.failures.strategies.base import STARTER, Strategy, StrategyWords

_HOUR_MS = 3_600_000


class AskUser(Strategy):
    """Ask the saga's user about the failed step."""

    name = "ask_user"
    says = "Ask a person, and wait for the answer."
    most = 3
    asks = STARTER
    lasts_ms = 24 * _HOUR_MS
    foretold = f"asks the starter for {lasts_ms // _HOUR_MS}h"
    metric = "Questions"

    def foretell(self, entry: PolicyEntry) -> str:
        if not entry.escalate and not entry.expires_ms:
            return self.foretold
        last = entry.escalate[-1] if entry.escalate else {}
        whole = last["after_ms"] if "decide" in last else self.waits_ms(entry)
        return f"asks the starter for {whole / _HOUR_MS:.3g}h"

    def only_for(self, change: PolicyChange) -> tuple[str, ...]:
        return tuple(
            name for name, value in (("escalate", change.escalate), ("expires", change.expires_ms)) if value
        )

    def in_words(self, chosen: StrategyWords) -> str:
        if not chosen.is_asked:
            return self.name
        return f"a person was asked{f', until {chosen.until} at most' if chosen.until else ''}"
