"""What one attempt of a step is given, and what is to be known of an effect that may happen only once. Attempts are made in steps/steps.py."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeAlias

import msgspec

from baton.core.decide.builder import RunStep
from baton.core.decide.outcomes import Outcome
from baton.core.effects.toolspec import ToolSpec
from baton.core.failures.doubts import leaves_doubt
from baton.core.log.records import Response
from baton.core.log.state import State
from baton.core.log.work import Callback
from baton.core.models.usage import Usage
from baton.core.money import assumed_in, micro_dollars
from baton.ports import Blocked, StepFailure

Bill: TypeAlias = tuple[list[Decimal], list[Usage]]
"""What an attempt has spent, and what models have used for it."""


class Doubt(msgspec.Struct):
    """Whether an effect that may happen only once may have happened. `is_met`: its claim is looked at.

    `acting`: an earlier invocation may have come further with it than this one. `is_recorded`: it had happened
    before.
    """

    before: bool
    acting: bool = False
    is_met: bool = False
    is_recorded: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it may have, if this attempt says nothing about it."""
        return self.is_met or self.before or self.acting

    def after(self, failure: StepFailure) -> bool:
        if not self.is_met:  # what has no key now had none before, either
            return self.before or (self.acting and failure.code != "key_incomplete")
        return failure.code not in _OWN and leaves_doubt(failure.code, failure.kind, failure.happened)


_OWN = frozenset({"in_progress", "unknown_outcome"})
"""Codes that the claim itself raises: another attempt holds it, or a person has to find out the outcome."""


class AttemptInput(msgspec.Struct, eq=False):
    """What one attempt is given: the step, of which saga, since when, and where to note what it spends and what holds it up.

    `doubt` is about an effect that may happen only once: an earlier doubt remains until its claim is looked at.
    `callback` and its `token`: where the tool only hands its work over.
    `response`: what it has handed over to a provider of models;
    `work`: what it has handed over and now looks at. `may_ask`: a person may have to approve a call of it. `given`: the
    arguments that the tool got, where they are not the step's; `key`: that of the call; `done_by`: see `Outcome`. `is_free`: no limit of
    money holds it up. `acted`: it has failed, and the tool says that it has acted, or has done a part of it.
    """

    state: State
    step: RunStep
    spec: ToolSpec | None
    traceparent: str
    spent: list[Decimal]
    started: int
    doubt: Doubt
    may_ask: bool = False
    blocked: list[Blocked] = []
    callback: str = ""
    token: str = ""
    response: Response | None = None
    work: Callback | None = None
    usage: list[Usage] = []
    given: dict[str, Any] = {}
    key: str = ""
    done_by: str = ""
    is_free: bool = False
    acted: bool = False


def over(of: tuple[RunStep, int, int, Bill], **why: Any) -> Outcome:
    """The outcome of an attempt that was stopped before its result: `of` its step, when it began and ended, and what it has spent."""
    step, began, ended, (spent, usage) = of
    return Outcome(
        slot=step.slot,
        attempt=step.attempt,
        started_at=began,
        ended_at=ended,
        cost=micro_dollars(spent),
        assumed=assumed_in(spent),
        usage=tuple(usage),
        **why,
    )
