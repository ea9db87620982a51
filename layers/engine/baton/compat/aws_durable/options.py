"""Errors, options and strategies of durable handlers, under the names that AWS's SDK gives them.

The operations raise the classes under `DurableOperationError`.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Generic, NoReturn, TypeVar

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")


class DurableExecutionsError(Exception):
    """Base class of all errors of this package."""


class ValidationError(DurableExecutionsError):
    """Arguments that an operation does not take."""


class InvalidStateError(DurableExecutionsError):
    """An object that cannot do this now."""


class InvocationError(DurableExecutionsError):
    """An attempt that was cut off, and can be made again."""


class ExecutionError(DurableExecutionsError):
    """An error after which the execution cannot go on."""


class StepInterruptedError(InvocationError):
    """An attempt of a step that has begun and may have acted, and has no result."""


class DurableOperationError(DurableExecutionsError):
    """Failure of an operation. `error_type` is the name of the class of what was raised in it."""

    def __init__(
        self,
        message: str | None = None,
        error_type: str | None = None,
        data: str | None = None,
        stack_trace: list[str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.error_type = error_type or type(self).__name__
        self.data = data
        self.stack_trace = stack_trace


class StepError(DurableOperationError):
    """Failure of a step for good."""


class InvokeError(DurableOperationError):
    """Failure of an invoked workflow."""


class ChildContextError(DurableOperationError):
    """Failure of what ran in a child context, or in a branch."""


class WaitForConditionError(DurableOperationError):
    """Failure of a check, or a condition that did not come true in time."""


class CallbackError(DurableOperationError):
    """Failure of a callback."""


class CallbackExternalError(CallbackError):
    """Failure that the outside has reported."""


class CallbackTimeoutError(CallbackError):
    """Callback or heartbeat that did not come in time."""


class CallbackSubmitterError(CallbackError):
    """Failure of the step that hands the callback over."""


class SerDesError(DurableOperationError):
    """Value that cannot be written or read."""


class RetryableSerDesError(InvocationError):
    """Value that could not be written or read this time."""


@dataclass(frozen=True)
class ErrorObject:
    """Failure of a branch of a batch."""

    message: str | None
    type: str | None
    data: str | None = None
    stack_trace: list[str] | None = None

    @classmethod
    def from_exception(cls, error: BaseException) -> ErrorObject:
        """Return the description of an exception."""
        if isinstance(error, DurableOperationError):
            return cls(error.message, error.error_type, error.data, error.stack_trace)
        return cls(str(error), type(error).__name__)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ErrorObject:
        """Return a description that `to_dict` has written."""
        return cls(*(data.get(key) for key in ("ErrorMessage", "ErrorType", "ErrorData", "StackTrace")))

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON, without fields that it does not have."""
        said = {
            "ErrorMessage": self.message,
            "ErrorType": self.type,
            "ErrorData": self.data,
            "StackTrace": self.stack_trace,
        }
        return {key: value for key, value in said.items() if value is not None}

    def raise_as_operation_error(self, kind: Callable[..., DurableOperationError]) -> NoReturn:
        """Raise it as an error of this class."""
        raise kind(self.message, self.type, self.data, self.stack_trace)


# ---- values


@dataclass(frozen=True)
class SerDesContext:
    """The operation whose value is written or read."""

    operation_id: str = ""
    durable_execution_arn: str = ""


class SerDes(ABC, Generic[T]):
    """Writer and reader of values."""

    @abstractmethod
    def serialize(self, value: T, serdes_context: SerDesContext) -> str:
        """Return the text of a value."""

    @abstractmethod
    def deserialize(self, data: str, serdes_context: SerDesContext) -> T:
        """Return the value of a text."""


# ---- options


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
    """Range of a delay: all of it, from 0 to all of it, or from half to all of it."""

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
    """Number of runs of an attempt of a step whose process dies."""

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


# ---- strategies


@dataclass
class RetryDecision:
    """Answer of a strategy."""

    should_retry: bool
    delay: Duration

    @property
    def delay_seconds(self) -> int:
        """Seconds until the next attempt."""
        return self.delay.seconds

    @classmethod
    def retry(cls, delay: Duration) -> RetryDecision:
        """Return the decision to try again after this time."""
        return cls(should_retry=True, delay=delay)

    @classmethod
    def no_retry(cls) -> RetryDecision:
        """Return the decision to give up."""
        return cls(should_retry=False, delay=Duration())


Strategy = Callable[[Exception, int], RetryDecision]


@dataclass
class RetryStrategyConfig:
    """Options of growing delays. Without a filter, every error is tried again."""

    max_attempts: int = 3
    initial_delay: Duration = field(default_factory=lambda: Duration(5))
    max_delay: Duration = field(default_factory=lambda: Duration(300))
    backoff_rate: float = 2.0
    jitter_strategy: JitterStrategy = JitterStrategy.FULL
    retryable_errors: list[str | re.Pattern[str]] | None = None
    retryable_error_types: list[type[Exception]] | None = None


@dataclass
class LinearRetryStrategyConfig:
    """Options of delays that grow by the same amount."""

    max_attempts: int = 6
    initial_delay: Duration = field(default_factory=lambda: Duration(1))
    increment: Duration = field(default_factory=lambda: Duration(1))
    max_delay: Duration = field(default_factory=lambda: Duration(300))
    jitter_strategy: JitterStrategy = JitterStrategy.FULL
    retryable_errors: list[str | re.Pattern[str]] | None = None
    retryable_error_types: list[type[Exception]] | None = None


def create_retry_strategy(config: RetryStrategyConfig | None = None) -> Strategy:
    """Return a strategy of growing delays."""
    of = config or RetryStrategyConfig()
    return _strategy(of, lambda made: of.initial_delay.seconds * of.backoff_rate ** (made - 1))


def create_linear_retry_strategy(config: LinearRetryStrategyConfig | None = None) -> Strategy:
    """Return a strategy of delays that grow by the same amount."""
    of = config or LinearRetryStrategyConfig()
    return _strategy(of, lambda made: of.initial_delay.seconds + of.increment.seconds * (made - 1))


def _strategy(
    config: RetryStrategyConfig | LinearRetryStrategyConfig, delay: Callable[[int], float]
) -> Strategy:
    texts, types = config.retryable_errors, config.retryable_error_types

    def strategy(error: Exception, attempts_made: int) -> RetryDecision:
        is_listed = (texts is None and types is None) or _is_listed(error, texts or (), types or ())
        if attempts_made >= config.max_attempts or not is_listed:
            return RetryDecision.no_retry()
        base = min(delay(attempts_made), config.max_delay.seconds)
        return RetryDecision.retry(Duration(config.jitter_strategy.finalize_delay(base)))

    return strategy


def _is_listed(
    error: Exception, texts: Sequence[str | re.Pattern[str]], types: Sequence[type[Exception]]
) -> bool:
    said = str(error)
    return isinstance(error, tuple(types)) or any(
        one.search(said) if isinstance(one, re.Pattern) else one in said for one in texts
    )


class RetryPresets:
    """Ready strategies, with the figures of AWS's SDK."""

    @classmethod
    def none(cls) -> Strategy:
        """Return the strategy of one attempt."""
        return create_retry_strategy(RetryStrategyConfig(max_attempts=1))

    @classmethod
    def default(cls) -> Strategy:
        """Return the strategy of a step without one."""
        return create_retry_strategy(RetryStrategyConfig(max_attempts=6, max_delay=Duration(60)))

    @classmethod
    def transient(cls) -> Strategy:
        """Return the strategy for what passes soon."""
        return create_retry_strategy(RetryStrategyConfig(jitter_strategy=JitterStrategy.HALF))

    @classmethod
    def resource_availability(cls) -> Strategy:
        """Return the strategy for what passes in minutes."""
        return create_retry_strategy(RetryStrategyConfig(max_attempts=5))

    @classmethod
    def critical(cls) -> Strategy:
        """Return the strategy of many attempts."""
        return create_retry_strategy(
            RetryStrategyConfig(
                max_attempts=10,
                initial_delay=Duration(1),
                max_delay=Duration(60),
                backoff_rate=1.5,
                jitter_strategy=JitterStrategy.NONE,
            )
        )

    @classmethod
    def linear(cls) -> Strategy:
        """Return the strategy of delays of 1, 2, 3, 4 and 5 seconds."""
        return create_linear_retry_strategy(LinearRetryStrategyConfig(jitter_strategy=JitterStrategy.NONE))

    @classmethod
    def fixed(cls, interval: Duration | None = None) -> Strategy:
        """Return the strategy of equal delays, of 5 seconds without an interval."""
        every = interval or Duration(5)
        return create_retry_strategy(
            RetryStrategyConfig(
                max_attempts=5,
                initial_delay=every,
                max_delay=every,
                backoff_rate=1,
                jitter_strategy=JitterStrategy.NONE,
            )
        )


@dataclass(frozen=True)
class WithRetryConfig(Generic[T]):
    """Options of `with_retry`."""

    retry_strategy: Strategy | None = None
    wrap_with_run_in_child_context: bool = True
    child_context_config: ChildConfig[T] | None = None


@dataclass(frozen=True)
class WaitForConditionDecision:
    """Answer of a strategy of polling."""

    should_continue: bool
    delay: Duration

    @property
    def delay_seconds(self) -> int:
        """Seconds until the next check."""
        return self.delay.seconds

    @classmethod
    def continue_waiting(cls, delay: Duration) -> WaitForConditionDecision:
        """Return the decision to check again after this time."""
        return cls(should_continue=True, delay=delay)

    @classmethod
    def stop_polling(cls) -> WaitForConditionDecision:
        """Return the decision that the condition holds."""
        return cls(should_continue=False, delay=Duration())


@dataclass(frozen=True)
class WaitForConditionConfig(Generic[T]):
    """Options of polling. `wait_strategy` gets the newest state and the number of checks."""

    wait_strategy: Callable[[T, int], WaitForConditionDecision]
    initial_state: T
    serdes: SerDes[Any] | None = None


@dataclass
class WaitStrategyConfig(Generic[T]):
    """Options of a ready strategy of polling."""

    should_continue_polling: Callable[[T], bool]
    max_attempts: int = 60
    initial_delay: Duration = field(default_factory=lambda: Duration(5))
    max_delay: Duration = field(default_factory=lambda: Duration(300))
    backoff_rate: float = 1.5
    jitter_strategy: JitterStrategy = JitterStrategy.FULL


def create_wait_strategy(config: WaitStrategyConfig[T]) -> Callable[[T, int], WaitForConditionDecision]:
    """Return a strategy of growing delays. It raises `WaitForConditionError` after the last attempt."""

    def strategy(state: T, attempts_made: int) -> WaitForConditionDecision:
        if not config.should_continue_polling(state):
            return WaitForConditionDecision.stop_polling()
        if attempts_made >= config.max_attempts:
            text = f"the condition does not hold after {config.max_attempts} attempts"
            raise WaitForConditionError(text)
        base = config.initial_delay.seconds * config.backoff_rate ** (attempts_made - 1)
        delay = config.jitter_strategy.finalize_delay(min(base, config.max_delay.seconds))
        return WaitForConditionDecision.continue_waiting(Duration(delay))

    return strategy
