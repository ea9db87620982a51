"""What an answer of a model has cost, and the most that a request may cost."""

from __future__ import annotations

import pytest

from baton.core.models.usage import Price, Usage, most_of, usage_cost

PLAIN = Price(input=250_000, output=2_000_000)
CACHED = Price(input=250_000, output=2_000_000, cached=25_000)
WRITTEN = Price(input=1_000_000, output=2_000_000, cached=100_000, written=1_250_000)
LONG = Price(
    input=2_500_000, output=15_000_000, cached=250_000, above=272_000,
    then=Price(input=5_000_000, output=22_500_000, cached=500_000),
)  # fmt: skip


@pytest.mark.parametrize(
    ("price", "usage", "cost"),
    [
        (PLAIN, Usage(), 0),
        (PLAIN, Usage(input=1), 1),
        (PLAIN, Usage(input=1_000, output=100), 450),
        (PLAIN, Usage(input=1_000, cached=600, written=100, output=100), 450),
        (CACHED, Usage(input=1_000, cached=600, output=100), 315),
        (CACHED, Usage(input=10, cached=1_000), 1),
        (WRITTEN, Usage(input=1_000, cached=400, written=500), 765),
        (WRITTEN, Usage(input=1_000, cached=900, written=900), 215),
        (LONG, Usage(input=272_000, output=1_000), 695_000),
        (LONG, Usage(input=272_001, cached=272_000, output=1_000), 158_505),
    ],
)
def test_an_answer_costs_what_its_tokens_do_rounded_up(price: Price, usage: Usage, cost: int) -> None:
    assert usage_cost(usage, price) == cost


@pytest.mark.parametrize(
    ("price", "tokens", "most"),
    [
        (PLAIN, (1_000, 100), 450),
        (CACHED, (1_000, 100), 450),
        (WRITTEN, (1_000, 100), 1_450),
        (LONG, (272_000, 1_000), 695_000),
        (LONG, (272_001, 1_000), 1_382_505),
        (Price(input=3, output=9, above=10, then=Price(input=1, output=1)), (1_000_000, 1_000_000), 12),
    ],
)
def test_the_most_that_a_request_may_cost_counts_the_dearest_kind_of_input(
    price: Price, tokens: tuple[int, int], most: int
) -> None:
    assert most_of(price, *tokens) == most


def test_no_answer_within_the_limits_costs_more_than_the_most() -> None:
    for price in (PLAIN, CACHED, WRITTEN, LONG):
        for read in (1, 999, 272_000, 272_001, 400_000):
            for cached in (0, read // 2, read):
                usage = Usage(input=read, cached=cached, written=read - cached, output=77)
                assert usage_cost(usage, price) <= most_of(price, read, 77) <= most_of(price, 500_000, 77)
