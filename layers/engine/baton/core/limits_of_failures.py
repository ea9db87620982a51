"""Two sections of the limits: how a step that failed is tried again, and what is done when that does not help.

The others are in limits.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Failing:
    """How a step that failed is tried again."""

    retry_inside_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=60_000,
            description="Longest pause between two attempts that an invocation waits for; for a longer one it lets "
            "the saga go.",
        ),
    ] = 2_000
    breaker_failures: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000,
            description="Failures of a target within a minute at which its circuit breaker opens, if they are at least half of "
            "its calls.",
        ),
    ] = 5
    breaker_pause_ms: Annotated[
        int,
        Meta(
            ge=1_000,
            le=3_600_000,
            description="How long an open circuit breaker lets no call through. The pause doubles with each probe that fails, up to five "
            "minutes, or to this if it is more.",
        ),
    ] = 30_000


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class LastResort:
    """What is done about a step that retries and other ways do not help."""

    on_failure: Annotated[
        str,
        Meta(
            pattern="^(ask|escalate|fail)$",
            description="What is done where the defaults would ask the user about a failed step, and its document says "
            "nothing else: `ask`, `escalate` to on-call, or `fail`. A saga keeps what it was started with.",
        ),
    ] = "ask"
    error_budget_percent: Annotated[
        str,
        Meta(
            pattern=r"^(0|[1-9][0-9]?)(\.[0-9]{1,2})?$",
            description="Percentage of the sagas of a workflow that may fail on a day (UTC). 0: no error budget, and ends are not counted.",
        ),
    ] = "0"
