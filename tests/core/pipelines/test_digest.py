"""Which pipelines are the same."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.pipelines.pipeline import digest

STEPS = [{"op": "top_k", "k": 2, "by": "price"}]


def test_the_order_of_keys_and_of_names_does_not_matter() -> None:
    assert digest(STEPS, ["b", "a"]) == digest([{"by": "price", "k": 2, "op": "top_k"}], ["a", "b"])
    assert len(digest(STEPS, [])) == 12


@pytest.mark.parametrize(
    ("steps", "names"),
    [
        (STEPS, ["b"]),
        ([*STEPS, *STEPS], ["a"]),
        ([{"op": "top_k", "k": 3, "by": "price"}], ["a"]),
        ("nonsense", ["a"]),
    ],
)
def test_other_steps_or_names_are_another(steps: Any, names: list[str]) -> None:
    assert digest(steps, names) != digest(STEPS, ["a"])
