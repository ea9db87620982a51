"""What a strategy is, and the data that it works on and answers with.

What the log, the decision, the views and the documents know of any strategy.
Each strategy has a file; their order is in registry.py, the walk in ladder.py.

A strategy knows no graph, no state and no tools.
What it writes into a log is data that core/decide/failure_handling.py makes events of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from baton.core.failures.alternatives import Alternative
from baton.core.failures.policy import Change, PolicyEntry

if TYPE_CHECKING:
    from baton.core.failures.failover import Policy

STARTER, ON_CALL = "user", "on_call"
"""Whom a question is for: the saga's user, or the people on call."""
ESCALATED = "escalated"
"""The code that a saga is parked with while an incident is open."""
SUGGEST = ":model"
"""The hint that a model carries out, by saying how else the step could be done.
No hint of a document begins so.
"""
MOST_TIMES = 100
"""The largest `at_most` that a document can give."""


class History(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What was done about the failures of one step since it began.

    `since`: the time of the first failure after anything but a retry, 0 for never. `retries`: retries after
    that, whatever
    their failures were.
    `total`: retries since a person last decided.
    `used`: uses of each other strategy.
    `ways`: the names of the alternatives that were tried.
    """

    since: int = 0
    retries: int = 0
    total: int = 0
    used: dict[str, int] = {}
    ways: tuple[str, ...] = ()


class LadderStep(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is done now.

    `strategy`: its name in the log. Where the step is repeated: `delay_ms`, and `hooks` to carry out before
    it. Of another
    way: `way`, and the `hint` that it carries out. `look`: only find out whether the last
    attempt has happened. `why`: why the strategies below it were passed, for people.
    """

    strategy: str
    delay_ms: int = 0
    hooks: tuple[str, ...] = ()
    hint: str = ""
    way: Alternative | None = None
    look: bool = False
    why: tuple[str, ...] = ()


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """A failure, and what can be done about it.

    `ways`: how else the step can be done, the best first; `may_suggest`: a model may say how else.
    `retry_after_ms`: the pause that the service asks for. `draw`: a
    number of [0, 1) for chance.
    """

    entry: PolicyEntry
    history: History
    code: str
    now: int
    retry_after_ms: int | None = None
    draw: float = 0.5
    ways: Sequence[Alternative] = ()
    may_suggest: bool = False

    @property
    def elapsed_ms(self) -> int:
        """Since the first failure that the retries count from."""
        return max(0, self.now - self.history.since) if self.history.since else 0


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What the log says of a strategy that was chosen, in words; a word is
    empty where there is nothing to say.
    """

    pause: str = ""
    hooks: str = ""
    hint: str = ""
    by: str = ""
    others: str = ""
    is_asked: bool = False
    until: str = ""
    severity: str = ""


class Strategy:
    """One way to react to a failure. What a strategy does not say is as it is here.

    Documents and schema: `says` what it does; `most` uses for one step, and the
    largest `at_most` that a document can give (`largest_at_most`); `takes`: fields
    of a failover policy's action that go with it, one of which it `lacks` otherwise.

    Deciding: `repeats` the step after a pause, so that the claim of the attempt before tells what
    became of it; `undoes` what was done; `ends`: it writes nothing, and the step has failed.

    Questions: whom it `asks`, for how long (`lasts_ms`, 0 for ever),
    `suffix` of the question's id, and the code that it
    `parks` the saga with: that is an incident.

    Words: `foretold` before it has happened, `waits_for` while its question is open, `metric` that counts it.
    """

    name = ""
    says = ""
    most = 1
    largest_at_most = MOST_TIMES
    takes: tuple[str, ...] = ()
    lacks = ""
    repeats = False
    undoes = False
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
        """Whether no strategy after it is tried: it ends the step, or waits until a person decides."""
        return self.ends or bool(self.parks)

    def is_wanted(self, entry: PolicyEntry, code: str) -> bool | None:
        """Whether the entry puts it before the others of the ladder, or takes
        it out; None when it does not say.
        """
        return None

    def next(self, at: Situation) -> LadderStep | str:
        """What it does now, or why it does nothing."""
        if at.history.used.get(self.name, 0) >= at.entry.at_most.get(self.name, self.most):
            return "used up"
        return self.choose(at)

    def choose(self, at: Situation) -> LadderStep | str:
        """As `next`, where it is not used up."""
        return LadderStep(strategy=self.name)

    def by_policy(self, at: Situation, policy: Policy) -> LadderStep | None:
        """What it does where a failover policy says so, however often it was used; None when it cannot."""
        found = self.choose(at)
        return found if isinstance(found, LadderStep) else None

    def recorded(self, history: History, step: LadderStep, now: int) -> History:
        """The history with a step of it that is done about a failure at `now`."""
        # A step that takes an alternative, or runs again by a person's decision, has all its retries anew.
        return History(
            total=0 if self.asks else history.total,
            used={**history.used, step.strategy: history.used.get(step.strategy, 0) + 1},
            ways=history.ways if step.way is None else (*history.ways, step.way.name),
        )

    def waits_ms(self, entry: PolicyEntry) -> int:
        """Milliseconds that its question waits; 0: for ever.
        Those to whom an escalation hands it on last have the whole time for it.
        """
        return self.lasts_ms and self.lasts_ms + (entry.escalate[-1]["after_ms"] if entry.escalate else 0)

    def foretell(self, entry: PolicyEntry) -> str:
        """`foretold`, with what the entry changes of it."""
        return self.foretold

    def only_for(self, change: Change) -> tuple[str, ...]:
        """The fields of a rule that do nothing without it."""
        return ()

    def told(self, chosen: Told) -> str:
        """What was done, for people."""
        return self.name
