"""Options of the operations, under the names that AWS's SDK gives them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from baton.compat.aws_durable.exceptions import ValidationError

if TYPE_CHECKING:
    from baton.compat.aws_durable.retries import RetryDecision
    from baton.compat.aws_durable.serdes import SerDes

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

uniform: ContextVar[Callable[[], float]] = ContextVar("uniform")
"""Source of random numbers of the code that runs: one that a replay repeats, or whose result the log has."""


@dataclass(frozen=True)
class Duration:
    """A span of whole seconds."""

    seconds: int = 0

    def __post_init__(self) -> None:
        _check(self.seconds >= 0, "a duration is not negative")

    def to_seconds(self) -> int:
        """Return the seconds."""
        return self.seconds

    @classmethod
    def from_seconds(cls, value: float) -> Duration:
        """Return so many seconds."""
        return cls(int(value))

    @classmethod
    def from_minutes(cls, value: float) -> Duration:
        """Return so many minutes."""
        return cls(int(value * 60))

    @classmethod
    def from_hours(cls, value: float) -> Duration:
        """Return so many hours."""
        return cls(int(value * 3_600))

    @classmethod
    def from_days(cls, value: float) -> Duration:
        """Return so many days."""
        return cls(int(value * 86_400))


def _check(is_right: bool, message: str) -> None:
    if not is_right:
        raise ValidationError(message)


class JitterStrategy(StrEnum):
    """How a delay is spread: not at all, from 0 to all of it, or from half to all of it."""

    NONE = "NONE"
    FULL = "FULL"
    HALF = "HALF"

    def apply_jitter(self, delay: float) -> float:
        """Return a delay of its range."""
        if self is JitterStrategy.NONE:
            return delay
        least = delay / 2 if self is JitterStrategy.HALF else 0
        return least + uniform.get()() * (delay - least)

    def finalize_delay(self, base_delay: float) -> int:
        """Return a delay of its range in whole seconds, at least one."""
        return max(1, math.ceil(self.apply_jitter(base_delay)))


class StepSemantics(Enum):
    """How often an attempt of a step may run when its process dies."""

    AT_MOST_ONCE_PER_RETRY = "AT_MOST_ONCE_PER_RETRY"
    AT_LEAST_ONCE_PER_RETRY = "AT_LEAST_ONCE_PER_RETRY"


class NestingType(Enum):
    """Contexts of branches. Here both are the same: a context writes nothing."""

    NESTED = "NESTED"
    FLAT = "FLAT"


class BatchItemStatus(Enum):
    """State of a branch."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STARTED = "STARTED"


class CompletionOutcome(Enum):
    """Result of a batch that a predicate has ended."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


@dataclass(frozen=True)
class CompletionDecision:
    """Answer of a predicate of completion."""

    complete: bool
    outcome: CompletionOutcome | None = None

    def __post_init__(self) -> None:
        _check(self.complete is (self.outcome is not None), "an outcome goes with `complete=True` only")


def continue_batch() -> CompletionDecision:
    """Return the decision to go on."""
    return CompletionDecision(complete=False)


def complete_batch(outcome: CompletionOutcome = CompletionOutcome.SUCCEEDED) -> CompletionDecision:
    """Return the decision to end with this outcome."""
    return CompletionDecision(complete=True, outcome=outcome)


@dataclass(frozen=True)
class CompletionItemStatus:
    """State of a branch as a predicate sees it; None before its start."""

    index: int
    name: str | None = None
    status: BatchItemStatus | None = None


@dataclass(frozen=True)
class CompletionStatus:
    """State of a batch as a predicate sees it."""

    success_count: int
    failure_count: int
    completed_count: int
    total_count: int
    items: tuple[CompletionItemStatus, ...] = ()


@dataclass(frozen=True)
class CompletionConfig:
    """Conditions of a batch's end. Without any, the first failure ends it."""

    min_successful: int | None = None
    tolerated_failure_count: int | None = None
    tolerated_failure_percentage: float | None = None
    should_complete: Callable[[CompletionStatus], CompletionDecision] | None = None

    def __post_init__(self) -> None:
        least, count, percentage = (
            self.min_successful,
            self.tolerated_failure_count,
            self.tolerated_failure_percentage,
        )
        _check(least is None or least >= 1, f"min_successful is at least 1, not {least}")
        _check(count is None or count >= 0, f"tolerated_failure_count is at least 0, not {count}")
        is_share = percentage is None or 0 <= percentage <= 100
        _check(is_share, f"tolerated_failure_percentage is from 0 to 100, not {percentage}")
        if self.should_complete is not None:
            _check(callable(self.should_complete), "should_complete is a function")
            _check((least, count, percentage) == (None,) * 3, "should_complete goes with no other condition")

    def check_total(self, total: int) -> None:
        """Raise `ValidationError` for more successes than there are branches."""
        least = self.min_successful
        _check(least is None or least <= total, f"min_successful is {least}, and there are {total} items")

    @staticmethod
    def first_successful() -> CompletionConfig:
        """Return the conditions: the first success ends it."""
        return CompletionConfig(min_successful=1)

    @staticmethod
    def all_completed() -> CompletionConfig:
        """Return the conditions: every branch ends, whether it fails or not."""
        return CompletionConfig(tolerated_failure_percentage=100)

    @staticmethod
    def all_successful() -> CompletionConfig:
        """Return the conditions: the first failure ends it."""
        return CompletionConfig(tolerated_failure_count=0, tolerated_failure_percentage=0)


_is_sub_type = re.compile("[A-Za-z0-9_-]{1,32}").fullmatch


class _Labelled:
    sub_type: str | None

    def __post_init__(self) -> None:
        text = f"sub_type has 1 to 32 letters, digits, `-` and `_`, not {self.sub_type!r}"
        _check(not self.sub_type or _is_sub_type(self.sub_type) is not None, text)


@dataclass(frozen=True)
class StepConfig(_Labelled):
    """Options of a step."""

    retry_strategy: Callable[[Exception, int], RetryDecision] | None = None
    step_semantics: StepSemantics = StepSemantics.AT_LEAST_ONCE_PER_RETRY
    serdes: SerDes[Any] | None = None
    sub_type: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class ChildConfig(_Labelled, Generic[T]):
    """Options of a child context. `summary_generator` and `is_virtual` change nothing here."""

    serdes: SerDes[T] | None = None
    sub_type: str | None = None
    summary_generator: Callable[[T], str] | None = None
    is_virtual: bool = False


@dataclass(frozen=True)
class _BatchConfig:
    max_concurrency: int | None = None
    completion_config: CompletionConfig = field(default_factory=CompletionConfig)
    serdes: SerDes[Any] | None = None
    item_serdes: SerDes[Any] | None = None
    summary_generator: Callable[[Any], str] | None = None
    nesting_type: NestingType = NestingType.NESTED

    def __post_init__(self) -> None:
        most = self.max_concurrency
        _check(most is None or most >= 1, f"max_concurrency is at least 1, not {most}")


@dataclass(frozen=True)
class ParallelConfig(_BatchConfig):
    """Options of branches."""


@dataclass(frozen=True)
class MapConfig(_BatchConfig, Generic[T]):
    """Options of a map."""

    item_namer: Callable[[T, int], str] | None = None


@dataclass(frozen=True)
class ParallelBranch(Generic[T]):
    """A branch with a name of its own."""

    func: Callable[..., T]
    name: str | None = None

    def __call__(self, *args: Any, **options: Any) -> T:
        """Run it."""
        return self.func(*args, **options)


@dataclass(frozen=True)
class InvokeConfig(Generic[P, R]):
    """Options of an invocation. A saga of the same tenant is started: `tenant_id` is refused."""

    serdes_payload: SerDes[P] | None = None
    serdes_result: SerDes[R] | None = None
    tenant_id: str | None = None

    def __post_init__(self) -> None:
        _check(self.tenant_id is None, "tenant_id: an invoked workflow runs for the tenant of its caller")


@dataclass(frozen=True)
class CallbackConfig(_Labelled):
    """Options of a callback. A duration of 0 is no limit."""

    timeout: Duration = field(default_factory=Duration)
    heartbeat_timeout: Duration = field(default_factory=Duration)
    serdes: SerDes[Any] | None = None
    sub_type: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class WaitForCallbackConfig(CallbackConfig):
    """Options of a callback with the step that hands it over."""

    retry_strategy: Callable[[Exception, int], RetryDecision] | None = None
