"""The base class of strategies, with its input and output.

The log, the decision, the views and the documents use only this file. Each strategy has a file; their order
is in registry.py, the walk in ladder.py. A strategy knows no graph, no state and no tools. Its additions to a
log are data that core/decide/failure_handling.py makes events of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from baton.core.failures.alternatives import Alternative
from baton.core.failures.policy import PolicyChange, PolicyEntry

if TYPE_CHECKING:
    from baton.core.failures.failover import Policy

STARTER, ON_CALL = "user", "on_call"
"""The audience of a question: the saga's user, or the people on call."""
ESCALATED = "escalated"
"""The code with which a saga is parked while an incident is open."""
SUGGEST = ":model"
"""The hint that a model carries out by suggesting an alternative to the step.

No hint of a document begins so.
"""
MOST_TIMES = 100
"""The largest `at_most` that a document can give."""


class History(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Reactions to the failures of one step since it began.

    `since`: the time of the first failure after any reaction but a retry, 0 for never. `retries`: retries
    after that, for any failure. `total`: retries since a person last decided. `used`: uses of each other
    strategy. `ways`: the names of the alternatives that were tried.
    """

    since: int = 0
    retries: int = 0
    total: int = 0
    used: dict[str, int] = {}
    ways: tuple[str, ...] = ()


class LadderStep(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The reaction to take now.

    `strategy`: its name in the log. `delay_ms` and `hooks`: the pause and the tools to call before the step
    is repeated. `way`: the alternative, and `hint` the hint that it carries out. `look`: only find out if the
    last attempt has happened. `why`: the reasons why the strategies below it were passed over, for people.
    """

    strategy: str
    delay_ms: int = 0
    hooks: tuple[str, ...] = ()
    hint: str = ""
    way: Alternative | None = None
    look: bool = False
    why: tuple[str, ...] = ()


class FailureContext(msgspec.Struct, frozen=True, kw_only=True):
    """A failure, and the possible reactions to it.

    `ways`: the alternatives to the step, the best first; `may_suggest`: a model may suggest others.
    `retry_after_ms`: the pause that the service asks for. `draw`: a number of [0, 1) for chance.
    """

    entry: PolicyEntry
    history: History
    code: str
    now: int
    retry_after_ms: int | None = None
    draw: float = 0.5
    alternatives: Sequence[Alternative] = ()
    may_suggest: bool = False

    @property
    def elapsed_ms(self) -> int:
        """Milliseconds since the first failure that the retries count from."""
        return max(0, self.now - self.history.since) if self.history.since else 0


class StrategyWords(msgspec.Struct, frozen=True, kw_only=True):
    """The log's record of a chosen strategy, in words; a word is empty if it does not apply."""

    pause: str = ""
    hooks: str = ""
    hint: str = ""
    by: str = ""
    others: str = ""
    is_asked: bool = False
    until: str = ""
    severity: str = ""


class Strategy:
    """One way to react to a failure. The defaults of all strategies are here.

    Documents and schema: `says` describes it; `most` uses for one step, and the largest `at_most` that a
    document can give (`largest_at_most`); `takes`: fields of a failover policy's action that go with it, one
    of which it `lacks` otherwise.

    Deciding: `repeats` the step after a pause, so that the claim of the attempt before tells its outcome;
    `reverts` the saga's effects; `ends`: it writes nothing, and the step has failed.

    Questions: `asks` is the audience, `lasts_ms` the time to answer (0 for ever), `suffix` that of the
    question's id, and `parks` the code with which it parks the saga: that is an incident.

    Words: `foretold` before it has happened, `waits_for` while its question is open, `metric` that counts it.
    """

    name = ""
    says = ""
    most = 1
    largest_at_most = MOST_TIMES
    takes: tuple[str, ...] = ()
    lacks = ""
    repeats = False
    reverts = False
    ends = False
    asks = ""
    lasts_ms = 0
    suffix = ""
    parks = ""
    foretold = ""
    waits_for = "a person"
    metric = ""

    @property
    def is_last(self) -> bool:
        """True if no strategy after it is tried: it ends the step, or waits until a person decides."""
        return self.ends or bool(self.parks)

    def is_wanted(self, entry: PolicyEntry, code: str) -> bool | None:
        """Return true if the entry puts it before the others of the ladder, false if the entry takes it out;
        None otherwise.
        """
        return None

    def next(self, at: FailureContext) -> LadderStep | str:
        """Return its step now, or the reason why it has none."""
        if at.history.used.get(self.name, 0) >= at.entry.at_most.get(self.name, self.most):
            return "used up"
        return self.choose(at)

    def choose(self, at: FailureContext) -> LadderStep | str:
        """Return the step of the ladder, as `next` does, for a strategy that is not used up."""
        return LadderStep(strategy=self.name)

    def by_policy(self, at: FailureContext, policy: Policy) -> LadderStep | None:
        """Return its step for a failover policy, whatever its number of uses; None if it cannot be taken."""
        found = self.choose(at)
        return found if isinstance(found, LadderStep) else None

    def recorded(self, history: History, step: LadderStep, now: int) -> History:
        """Return the history with its step for a failure at `now`."""
        # A step that takes an alternative, or runs again by a person's decision, has all its retries anew.
        return History(
            total=0 if self.asks else history.total,
            used={**history.used, step.strategy: history.used.get(step.strategy, 0) + 1},
            ways=history.ways if step.way is None else (*history.ways, step.way.name),
        )

    def waits_ms(self, entry: PolicyEntry) -> int:
        """Return the milliseconds that its question waits; 0: for ever.

        The last audience of an escalation has the whole time.
        """
        lasts = self.lasts_ms and (entry.expires_ms or self.lasts_ms)
        return lasts and lasts + (entry.escalate[-1]["after_ms"] if entry.escalate else 0)

    def foretell(self, entry: PolicyEntry) -> str:
        """Return `foretold`, with the entry's changes."""
        return self.foretold

    def only_for(self, change: PolicyChange) -> tuple[str, ...]:
        """Return the fields of a rule that have no effect without it."""
        return ()

    def in_words(self, chosen: StrategyWords) -> str:
        """Return the reaction in words, for people."""
        return self.name
