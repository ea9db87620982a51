"""Money: read exactly, added up without losing any, shown as people write it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from baton.core.money import amount_of, dollars, micro_dollars, usd


@pytest.mark.parametrize(
    ("said", "micro"),
    [(0, 0), (1, 1_000_000), (0.1, 100_000), ("0.25", 250_000), (Decimal("1e-6"), 1), (1_000_000, 10**12)],
)
def test_an_amount_is_what_was_written(said: Any, micro: int) -> None:
    assert micro_dollars([amount_of(said)]) == micro


def test_what_is_finer_than_a_millionth_is_rounded_up_once() -> None:
    assert micro_dollars([amount_of("0.0000003")] * 10) == 3
    assert micro_dollars([amount_of("0.0000003")]) == 1
    assert micro_dollars([]) == 0


@pytest.mark.parametrize(
    "said", [-1, "-0.1", float("nan"), float("inf"), Decimal("NaN"), 1_000_001, True, None, "a dollar", [1]]
)
def test_what_is_no_amount_is_refused(said: Any) -> None:
    with pytest.raises(ValueError, match="dollars"):
        amount_of(said)


@pytest.mark.parametrize(("micro", "text"), [(1_500_000, "1.5"), (1, "0.000001"), (2_000_000, "2"), (0, "0")])
def test_money_is_shown_as_it_is_written(micro: int, text: str) -> None:
    assert dollars(micro) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0.00"),
        (3e-05, "$0.00003"),
        (0.000894, "$0.000894"),
        (0.0000005, "$0.0000005"),
        (0.05, "$0.05"),
        (0.5, "$0.50"),
        (0.0123456, "$0.0123456"),
        (1, "$1.00"),
        (1234.5, "$1,234.50"),
        (-0.25, "-$0.25"),
        (-1234.5, "-$1,234.50"),
    ],
)
def test_an_amount_has_two_decimals_and_below_a_dollar_as_many_as_it_has(amount: float, text: str) -> None:
    assert usd(amount) == text
