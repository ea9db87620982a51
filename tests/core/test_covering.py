"""The tests that are measured take every way that any test takes, and are few."""

from __future__ import annotations

from tests.core.covering import Way, chosen


def ways(*lines: int) -> set[Way]:
    return {("a.py", 0, line) for line in lines}


def test_they_take_every_way() -> None:
    tests = {"a": ways(1, 2), "b": ways(1, 2, 3), "c": ways(4), "d": ways(3, 4), "e": ways()}
    found = chosen(tests)
    assert set[Way]().union(*(tests[name] for name in found)) == ways(1, 2, 3, 4)
    assert len(found) == 2


def test_one_whose_ways_others_take_is_left_out() -> None:
    """The first is chosen for its many ways, and those that are needed for the rest have them, too."""
    assert chosen(
        {"many": ways(*range(600)), "left": ways(*range(300), 600), "right": ways(*range(300, 600), 601)}
    ) == [
        "left",
        "right",
    ]
