"""The answers of the API about circuit breakers and error budgets, as models."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from baton.web.bodies.models import Answer, Cursor, Time

State = Literal["closed", "open", "half_open"]


class BreakerFailure(Answer):
    """Failures of a target that one worker has reported together."""

    code: str
    count: int = Field(ge=1)
    calls: int = Field(ge=1, description="Of how many calls.")
    at: Time


class BreakerTransition(Answer):
    """A change of a breaker's state, and what caused it."""

    to: State
    at: Time
    why: str
    by: str = Field(description="The operator, or a worker.")


class Breaker(Answer):
    """The circuit breaker of a target."""

    name: str
    state: State
    since: Time | None = Field(description="Null: it was never open.")
    next_probe_at: Time | None = Field(
        description="Of an open one: when a call is let through. Null: when an operator has reset it."
    )
    opened: int = Field(ge=0, description="How often it has opened since it was last closed.")
    probes: int = Field(ge=0, description="Calls that are let through just now.")
    failures: list[BreakerFailure] = Field(description="The last ones, the newest first.")
    transitions: list[BreakerTransition] = Field(description="The last ones, the newest first.")


class BreakerPage(Answer):
    """Breakers of which something is known, by their names."""

    breakers: list[Breaker]
    next: Cursor


class ErrorBudget(Answer):
    """The sagas of a workflow that have come to an end. Those that were cancelled are not counted."""

    key: str = Field(description="The name of the workflow.")
    completed: int = Field(ge=0)
    failed: int = Field(ge=0)
    allowed: int | None = Field(description="So many of them may fail. Null: there is no error budget.")
    left: int | None = Field(description="So many more may fail; below 0, so many more have than may.")


class ErrorBudgetPage(Answer):
    """A part of a day's sagas. A workflow is on several pages: its sums add up."""

    day: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    percent: float | None = Field(description="Percentage that may fail. Null: there is no error budget.")
    workflows: list[ErrorBudget]
    looked_at: int = Field(ge=0, description="So many sagas this page was made of.")
    next: str | None
