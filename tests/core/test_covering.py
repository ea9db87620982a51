"""The tests that are measured take every way that any test takes, and are few."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from coverage import Coverage

from tests.core import covered, covering
from tests.core.covering import Way, chosen
from tests.kit.sentences import Says


def ways(*lines: int) -> set[Way]:
    return {("a.py", 0, line) for line in lines}


def test_they_take_every_way() -> None:
    tests = {"a": ways(1, 2), "b": ways(1, 2, 3), "c": ways(4), "d": ways(3, 4), "e": ways()}
    found = chosen(tests, dict.fromkeys(tests, 1))
    assert set[Way]().union(*(tests[name] for name in found)) == ways(1, 2, 3, 4)
    assert len(found) == 2


def test_one_whose_ways_others_take_is_left_out() -> None:
    """The first is chosen for its many ways, and those that are needed for the rest have them, too."""
    tests = {"many": ways(*range(600)), "left": ways(*range(300), 600), "right": ways(*range(300, 600), 601)}
    assert chosen(tests, dict.fromkeys(tests, 1)) == ["left", "right"]


def test_of_two_that_take_the_same_ways_the_shorter_is_taken() -> None:
    tests = {"long": ways(1, 2), "short": ways(1, 2)}
    assert chosen(tests, {"long": 2, "short": 1}) == ["short"]


def test_of_a_file_that_has_other_tests_than_then_all_are_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = [f"tests/core/{name}" for name in ("a.py::x", "a.py::y[1]", "b.py::x", "b.py::z")]
    monkeypatch.setattr(covering, "CHOSEN", tmp_path / "covering.json")
    covering.CHOSEN.write_text(covering.as_file(names, names[1:3]), "utf-8")
    assert covering.covering(names) == {*names[1:3]}
    more = [*names, "tests/core/b.py::new", "tests/core/c.py::new"]
    assert covering.covering(more) == {*names[1:], *more[-2:]}


def measured(ways_of: Mapping[Path, Iterable[tuple[int, int]]], data_file: Path) -> Coverage:
    data_file.unlink(missing_ok=True)
    made = Coverage(data_file=str(data_file), branch=True, config_file=False)
    made.get_data().add_arcs({str(file): {*ways} for file, ways in ways_of.items()})
    return made


def test_a_file_is_analysed_unless_the_same_text_was_covered_in_the_same_ways(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: Says
) -> None:
    monkeypatch.setattr(covered, "CORE", tmp_path)
    monkeypatch.setattr(covered, "COVERED", tmp_path / "covered.json")
    first, second, data = tmp_path / "first.py", tmp_path / "second.py", tmp_path / "data"
    for file in (first, second):
        file.write_text("x = 1\nif x:\n    x = 2\n", "utf-8")
    one, all_ways = {(-1, 1), (1, 2), (2, 3), (3, -1)}, {(-1, 1), (1, 2), (2, 3), (2, -1), (3, -1)}
    with says.raised(SystemExit):
        covered.keep(measured({first: all_ways, second: one}, data))
    covered.keep(measured({first: all_ways, second: all_ways}, data))
    assert covered.unproven(measured({first: all_ways, second: all_ways}, data)) == []
    assert covered.unproven(measured({first: all_ways, second: one}, data)) == [str(second)]
    first.write_text("x = 1\nif x:\n    x = 3\n", "utf-8")
    third = tmp_path / "third.py"
    third.write_text("x = 1\n", "utf-8")
    assert covered.unproven(measured({first: all_ways, second: all_ways, third: {(-1, 1)}}, data)) == [
        str(first),
        str(third),
    ]
