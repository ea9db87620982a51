"""The engine's numbers: a configuration sets some, and some cannot go together."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from baton.core.limits import DAY_MS, Limits


@dataclass(frozen=True)
class Config:
    max_deaths: int = 7
    concurrent_steps: int = 2
    something_else: str = "x"


def test_a_configuration_sets_what_it_names_and_leaves_the_rest() -> None:
    assert Limits.of(Config()) == Limits(max_deaths=7, concurrent_steps=2)
    assert Limits.of(object()) == Limits()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"sweep_shortest_ms": 3 * 86_400_000, "retention_days": 2},
            "retention_days must be longer than sweep_shortest_ms",
        ),
        (
            {"retention_days": 2, "sweep_longest_ms": 2 * DAY_MS},
            "retention_days must be longer than sweep_longest_ms",
        ),
        ({"store_pause_longest_ms": 1}, "store_pause_first_ms must not be above store_pause_longest_ms"),
    ],
)
def test_what_cannot_go_together_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Limits(**given)


def test_every_default_is_inside_its_own_bounds() -> None:
    hints = get_type_hints(Limits, include_extras=True)
    for field in fields(Limits):
        assert msgspec.convert(field.default, hints[field.name]) == field.default
        if get_args(hints[field.name]):
            with pytest.raises(msgspec.ValidationError):
                msgspec.convert(-1, hints[field.name])


def test_what_is_written_together_fits_a_store_with_small_items() -> None:
    assert Limits().within(400 * 1_024) == Limits()
    assert Limits().within(200_000) == Limits(entry_bytes=100_000)
    assert Limits().within(20_000) == Limits(entry_bytes=10_000, snapshot_blob_bytes=10_000)


def test_a_saga_of_a_function_stays_with_a_build_where_the_deployment_pins_code() -> None:
    assert Limits(build="b1", function_code="pinned").pins == "b1"
    assert Limits(build="b1").pins == ""
