"""Strategies of retries: of a step, and of a block of operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from baton.compat.aws_durable.config import Duration, JitterStrategy

if TYPE_CHECKING:
    from baton.compat.aws_durable.config import ChildConfig
    from baton.compat.aws_durable.context import DurableContext

T = TypeVar("T")


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


def with_retry(
    context: DurableContext,
    func: Callable[[DurableContext, int], T],
    config: WithRetryConfig[T],
    name: str | None = None,
) -> T:
    """Run a block of operations, again from its beginning when it raises and the strategy says so."""
    strategy = config.retry_strategy or create_retry_strategy()

    def attempts(inner: DurableContext) -> T:
        attempt = 0
        while True:
            attempt += 1
            try:
                return func(inner, attempt)
            except Exception as error:
                decision = strategy(error, attempt)
                if not decision.should_retry:
                    raise
                inner.wait(decision.delay, f"{name}-backoff-{attempt}" if name else None)

    if not config.wrap_with_run_in_child_context:
        return attempts(context)
    found: Any = context.run_in_child_context(attempts, name, config.child_context_config)
    return found  # type: ignore[no-any-return]
