"""The tests that are measured take every way that any test takes, and are few."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core import covering
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


def test_of_a_file_that_has_other_tests_than_then_all_are_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = [f"tests/core/{name}" for name in ("a.py::x", "a.py::y[1]", "b.py::x", "b.py::z")]
    monkeypatch.setattr(covering, "CHOSEN", tmp_path / "covering.json")
    covering.CHOSEN.write_text(covering.as_file(names, names[1:3]), "utf-8")
    assert covering.covering(names) == {*names[1:3]}
    more = [*names, "tests/core/b.py::new", "tests/core/c.py::new"]
    assert covering.covering(more) == {*names[1:], *more[-2:]}
