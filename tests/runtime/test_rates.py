"""The rate limit of a tenant: how many are let through, by how many processes, at how many writes."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.adapters.memory.store import MemoryRates
from baton.errors import StoreUnavailable, Throttled, TooManyRequests
from baton.runtime.invocation.context import inline
from baton.runtime.requests.rates import RateLimiter
from tests.kit.sentences import Says

NOON = 1_790_000_000_000  # the beginning of a window


class Clock:
    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> int:
        return self.at


class Broken(MemoryRates):
    """A store that cannot be asked."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error: Exception | None = error

    def spend(self, tenant: str, window: int, count: int) -> int:
        if self.error is not None:
            raise self.error
        return super().spend(tenant, window, count)


def limiters(count: int, per_second: int, rates: MemoryRates, clock: Clock) -> list[RateLimiter]:
    """As many processes over one store."""
    return [RateLimiter(rates, clock, inline, per_second) for _ in range(count)]


def asks(limiter: RateLimiter, tenant: str = "acme") -> bool:
    """Whether one request is let through."""
    try:
        asyncio.run(limiter.admit(tenant))
    except TooManyRequests:
        return False
    return True


def test_one_process_lets_through_exactly_the_limit_of_a_window() -> None:
    (limiter,) = limiters(1, 3, MemoryRates(), Clock())
    assert [asks(limiter) for _ in range(40)] == [True] * 30 + [False] * 10


def test_the_next_window_is_a_new_one() -> None:
    clock = Clock()
    (limiter,) = limiters(1, 1, MemoryRates(), clock)
    assert sum(asks(limiter) for _ in range(20)) == 10
    clock.at += 9_999
    assert not asks(limiter)
    clock.at += 1
    assert sum(asks(limiter) for _ in range(20)) == 10


def test_a_refusal_says_how_long_to_wait(says: Says) -> None:
    clock = Clock()
    (limiter,) = limiters(1, 1, MemoryRates(), clock)
    for _ in range(10):
        asks(limiter)
    for passed, wait in ((0, 10), (1, 10), (1_000, 9), (9_001, 1), (9_999, 1)):
        clock.at = NOON + passed
        with says.raised(TooManyRequests) as refused:
            asyncio.run(limiter.admit("acme"))
        assert refused.value.retry_after_s == wait


def test_a_request_of_many_bytes_counts_as_several_and_its_refusal_takes_what_is_left(says: Says) -> None:
    limiter = RateLimiter(MemoryRates(), Clock(), inline, 1, bytes_each=1_000)
    asyncio.run(limiter.admit("acme", 1_000))
    asyncio.run(limiter.admit("acme", 4_001))
    limiter.answered("acme", 999)
    with says.raised(TooManyRequests):
        asyncio.run(limiter.admit("acme", 5_000))
    assert not asks(limiter)


def test_the_bytes_of_an_answer_are_taken_from_the_requests_that_follow() -> None:
    rates = MemoryRates()
    first, second = (RateLimiter(rates, Clock(), inline, 1, bytes_each=1_000) for _ in range(2))
    assert asks(first)
    first.answered("acme", 5_500)
    assert sum(asks(limiter) for limiter in (first, second) for _ in range(10)) == 10 - 6
    first.answered("idle", 5_500)


def test_one_tenant_does_not_spend_anothers() -> None:
    (limiter,) = limiters(1, 1, MemoryRates(), Clock())
    assert [asks(limiter, "acme") for _ in range(11)][-1] is False
    assert asks(limiter, "globex")


def test_a_limit_of_zero_lets_everybody_through_and_writes_nothing() -> None:
    rates = MemoryRates()
    (limiter,) = limiters(1, 0, rates, Clock())
    assert all(asks(limiter) for _ in range(1_000))
    assert rates.calls == 0


def test_a_busy_tenant_costs_a_write_for_each_twentieth_of_its_window() -> None:
    rates = MemoryRates()
    (limiter,) = limiters(1, 50, rates, Clock())
    assert all(asks(limiter) for _ in range(500))
    assert rates.calls <= 20 + 5  # batches of 25, and those by which they grew: 1, 2, 4, 8, 16


def test_a_spent_window_is_refused_without_a_write() -> None:
    rates = MemoryRates()
    (limiter,) = limiters(1, 2, rates, Clock())
    assert all(asks(limiter) for _ in range(20))
    before = rates.calls
    assert not any(asks(limiter) for _ in range(100))
    assert rates.calls == before


def test_many_quiet_processes_do_not_use_up_what_they_do_not_need() -> None:
    """Each of them gets few requests, as after a burst that has left many behind."""
    for limiter in (found := limiters(100, 50, MemoryRates(), Clock())):
        assert asks(limiter)
    assert sum(asks(limiter) for limiter in found for _ in range(2)) == 200


@given(st.integers(1, 60), st.lists(st.integers(0, 4), min_size=1, max_size=1_500))
@settings(max_examples=40, deadline=None)
def test_all_processes_together_never_exceed_the_limit_nor_refuse_before_half_of_it(
    per_second: int, order: list[int]
) -> None:
    found = limiters(5, per_second, MemoryRates(), Clock())
    limit, passed = per_second * 10, 0
    for index in order:
        if asks(found[index]):
            passed += 1
        else:
            assert passed * 2 >= limit - len(found)
    assert passed <= limit


@pytest.mark.parametrize("error", [Throttled("busy"), StoreUnavailable("gone")])
def test_while_the_store_cannot_be_asked_everybody_is_let_through(error: Exception) -> None:
    rates = Broken(error)
    limiter = RateLimiter(rates, Clock(), inline, 1)
    assert all(asks(limiter) for _ in range(50))
    rates.error = None
    assert sum(asks(limiter) for _ in range(50)) == 10


def test_two_kinds_of_requests_of_one_tenant_are_counted_apart() -> None:
    rates, clock = MemoryRates(), Clock()
    callers = RateLimiter(rates, clock, inline, 1)
    callbacks = RateLimiter(rates, clock, inline, 1, what="callbacks")
    assert [asks(callers) for _ in range(11)] == [True] * 10 + [False]
    assert [asks(callbacks) for _ in range(11)] == [True] * 10 + [False]
