"""Retry policies: the back-offs, the presets, budgets, lists and the draw."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.core.failures.names import RETRYABLE
from baton.core.failures.policy import (
    BACKOFFS,
    LONGEST_RETRY_AFTER_MS,
    PRESETS,
    RetryChange,
    RetryPolicy,
    backoff_ms,
    changed_policy,
    draw_jitter,
    pause,
    policy_allows,
)
from tests.core.build import PROPERTY


def next_delay(
    policy: RetryPolicy, attempt: int, *, code: str = "", kind: str = "transient", **more: Any
) -> int | None:
    said = policy_allows(policy, code, kind)
    retried = kind in RETRYABLE if said is None else said
    return pause(policy, attempt, **{"draw": 0.5, **more}) if retried else None


def delays(policy: RetryPolicy, **more: Any) -> list[int | None]:
    return [next_delay(policy, attempt, **more) for attempt in range(1, policy.max_attempts + 1)]


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        ("fixed", [100, 100, 100, 100, 100, 100]),
        ("exponential", [100, 200, 400, 800, 1_000, 1_000]),
        ("exponential_jitter", [100, 200, 400, 800, 1_000, 1_000]),  # half of the draw: in the middle
        ("linear", [100, 200, 300, 400, 500, 600]),
        ("fibonacci", [100, 100, 200, 300, 500, 800]),
        ("custom", [7, 9, 1_000, 1_000, 1_000, 1_000]),
    ],
)
def test_a_backoff_makes_these_pauses_and_none_after_the_last_attempt(
    backoff: str, expected: list[int]
) -> None:
    policy = RetryPolicy(
        max_attempts=7, backoff=backoff, base_ms=100, max_delay_ms=1_000, schedule=(7, 9), multiplier=2
    )
    assert delays(policy) == [*expected, None]


def test_every_backoff_is_tried_above() -> None:
    assert len(BACKOFFS) == 6


@pytest.mark.parametrize(
    ("name", "attempts", "backoff", "base", "longest", "jitter", "budget"),
    [
        ("critical", 10, "exponential_jitter", 100, 30_000, 0.3, 300_000),
        ("standard", 5, "exponential", 1_000, 30_000, None, 120_000),
        ("quick", 3, "fixed", 500, 500, None, 30_000),
        ("rate_limited", 10, "exponential_jitter", 5_000, 120_000, 0.5, 900_000),
        ("immediate", 3, "fixed", 0, 0, None, 10_000),
        ("none", 1, "fixed", 0, 0, None, 0),
    ],
)
def test_the_presets_have_these_numbers(
    name: str, attempts: int, backoff: str, base: int, longest: int, jitter: float | None, budget: int
) -> None:
    policy = PRESETS[name]
    assert (policy.max_attempts, policy.backoff, policy.base_ms) == (attempts, backoff, base)
    assert (policy.max_delay_ms, policy.budget_ms) == (longest, budget)
    if jitter is not None:
        assert (policy.jitter, policy.multiplier) == (jitter, 2)


def test_there_are_no_other_presets() -> None:
    assert list(PRESETS) == ["critical", "standard", "quick", "rate_limited", "immediate", "none"]


@PROPERTY
@given(
    attempt=st.integers(1, 10_000),
    chance=st.floats(0, 1, exclude_max=True),
    backoff=st.sampled_from([*BACKOFFS]),
)
def test_no_pause_is_below_zero_or_above_the_longest(attempt: int, chance: float, backoff: str) -> None:
    policy = RetryPolicy(backoff=backoff, multiplier=100, base_ms=3, max_delay_ms=50_000, schedule=(1,))
    assert 0 <= backoff_ms(policy, attempt, chance) <= 50_000


@PROPERTY
@given(chance=st.floats(0, 1, exclude_max=True), attempt=st.integers(1, 5))
def test_jitter_moves_a_pause_by_no_more_than_its_share(chance: float, attempt: int) -> None:
    policy = RetryPolicy(backoff="exponential_jitter", base_ms=1_000, jitter=0.3, max_delay_ms=10**9)
    middle = 1_000 * 2 ** (attempt - 1)
    assert 0.7 * middle - 1 <= backoff_ms(policy, attempt, chance) <= 1.3 * middle + 1


def test_the_lists_say_what_is_tried_again() -> None:
    only = RetryPolicy(on=("timeout", "permanent"))
    assert next_delay(only, 1, code="timeout", kind="transient") == 1_000
    assert next_delay(only, 1, code="bad_request", kind="permanent") == 1_000
    assert next_delay(only, 1, code="deadlock", kind="transient") is None
    without = RetryPolicy(never=("timeout", "unknown"))
    assert next_delay(without, 1, code="timeout", kind="transient") is None
    assert next_delay(without, 1, code="tool_error", kind="unknown") is None
    assert next_delay(without, 1, code="deadlock", kind="transient") == 1_000


def test_without_lists_the_class_says_it() -> None:
    kinds = ("transient", "unknown", "recoverable", "user_resolvable", "permanent", "catastrophic")
    assert [next_delay(RetryPolicy(), 1, kind=kind) for kind in kinds] == [
        1_000,
        1_000,
        None,
        None,
        None,
        None,
    ]


def test_a_budget_ends_the_retries() -> None:
    policy = RetryPolicy(budget_ms=5_000)
    assert next_delay(policy, 1, elapsed_ms=4_000) == 1_000
    assert next_delay(policy, 1, elapsed_ms=4_001) is None


def test_the_pause_that_a_service_asks_for_takes_the_place_of_the_backoff() -> None:
    policy = RetryPolicy(max_delay_ms=2_000)
    assert next_delay(policy, 1, retry_after_ms=7) == 7
    assert next_delay(policy, 1, retry_after_ms=60_000) == 60_000
    assert next_delay(policy, 1, retry_after_ms=LONGEST_RETRY_AFTER_MS + 1) is None
    assert next_delay(RetryPolicy(budget_ms=50_000), 1, retry_after_ms=60_000) == 60_000
    assert pause(policy, 5, retry_after_ms=7) is None


def test_with_jitter_not_all_come_back_at_the_moment_that_a_service_names_and_none_before() -> None:
    policy = PRESETS["rate_limited"]
    found = {next_delay(policy, 1, retry_after_ms=60_000, draw=step / 10) for step in range(10)}
    assert len(found) == 10
    assert min(one for one in found if one is not None) == 60_000


def test_a_draw_is_the_same_whenever_it_is_made_and_another_for_each_attempt() -> None:
    assert draw_jitter("s1", "book@2.0", 3) == draw_jitter("s1", "book@2.0", 3)
    assert draw_jitter("a", "b", 1) != draw_jitter("ab", "", 1)
    found = [draw_jitter("s1", "book", attempt) for attempt in range(1_000)]
    assert all(0 <= one < 1 for one in found)
    assert 0.45 < sum(found) / 1_000 < 0.55
    assert len(set(found)) == 1_000


def test_a_change_replaces_what_it_says() -> None:
    standard = PRESETS["standard"]
    assert changed_policy(standard, RetryChange()) == standard
    assert changed_policy(standard, RetryChange(preset="quick")) == PRESETS["quick"]
    found = changed_policy(standard, RetryChange(preset="critical", jitter=0.1, never=("timeout",)))
    assert (found.jitter, found.never, found.budget_ms) == (0.1, ("timeout",), 300_000)


def test_a_change_of_pace_lifts_the_budget_that_was_meant_for_another() -> None:
    standard = PRESETS["standard"]
    assert changed_policy(standard, RetryChange(max_attempts=9)).budget_ms == 0
    assert changed_policy(standard, RetryChange(max_attempts=9, budget_ms=7)).budget_ms == 7
    assert changed_policy(standard, RetryChange(base_ms=90_000)).max_delay_ms == 90_000
    assert changed_policy(standard, RetryChange(base_ms=90_000, max_delay_ms=5)).max_delay_ms == 5


def test_a_schedule_says_how_often_too() -> None:
    found = changed_policy(PRESETS["standard"], RetryChange(schedule=(1_000, 3_600_000)))
    assert delays(found) == [1_000, 3_600_000, None]
