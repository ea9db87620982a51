"""Strategies of polling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from baton.compat.aws_durable.config import Duration, JitterStrategy
from baton.compat.aws_durable.exceptions import WaitForConditionError
from baton.compat.aws_durable.serdes import SerDes

T = TypeVar("T")


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
