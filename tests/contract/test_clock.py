"""Contract of `Clock` and `Entropy`."""

from __future__ import annotations

import datetime
import re

import pytest

from baton.adapters.clock import SystemClock, SystemEntropy


def test_now_is_utc_epoch_milliseconds() -> None:
    machine = datetime.datetime.now(datetime.UTC).timestamp() * 1000
    assert abs(SystemClock().now() - machine) < 5_000


@pytest.mark.parametrize("bits", [8, 128, 256])
def test_a_token_has_as_many_bits_as_asked_for_in_lower_case_hexadecimal(bits: int) -> None:
    assert re.fullmatch(f"[0-9a-f]{{{bits // 4}}}", SystemEntropy().token(bits))


def test_no_two_tokens_are_the_same() -> None:
    assert len({SystemEntropy().token(128) for _ in range(100)}) == 100


@pytest.mark.parametrize("bits", [0, -8, 12])
def test_a_token_of_no_whole_bytes_is_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="bytes"):
        SystemEntropy().token(bits)


def test_uniform_numbers_are_from_0_up_to_but_not_1() -> None:
    numbers = [SystemEntropy().uniform() for _ in range(1_000)]
    assert all(0 <= number < 1 for number in numbers)
    assert len(set(numbers)) > 900
