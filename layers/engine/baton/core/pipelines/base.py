"""What every primitive is made of: its description, the call that it gets, and the counter that bounds its work."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from baton.core.conditions.values import type_of
from baton.core.expressions.spelling import nearest
from baton.core.pipelines import limits
from baton.core.pipelines.shapes import Field, Told
from baton.errors import Problem

INVALID: Final = "pipeline_invalid"
DATA: Final = "pipeline_data"
TOO_LARGE: Final = "pipeline_too_large"

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Sequence[Row]

_UNIT = 5  # as a shift: 32 characters
_EXACT = 2**53
_INDEX = re.compile("[0-9]{1,9}")


class PipelineFailed(Exception):
    """A pipeline that cannot be run, or broke. `code` is INVALID, DATA or TOO_LARGE; every problem has its place."""

    def __init__(self, code: str, problems: Sequence[Problem]) -> None:
        self.code, self.problems = code, tuple(problems)
        more = len(self.problems) - limits.PROBLEMS
        lines = [_line(problem) for problem in self.problems[: limits.PROBLEMS]]
        super().__init__("\n".join([*lines, *([f"and {more} more"] if more > 0 else [])]))


def _line(problem: Problem) -> str:
    hint = f" ({problem.suggestion})" if problem.suggestion else ""
    return f"{problem.path or '/'}: {problem.message}{hint}"


class Broken(Exception):
    """Raised by a primitive. `at` is the field of the step that it is about."""

    def __init__(self, code: str, message: str, at: str = "", right: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.at, self.right = code, message, at, right


class Work:
    """The units that are left to one run. Every method raises `Broken` when there are none."""

    def __init__(self, units: int = limits.WORK) -> None:
        self._left = units

    def spend(self, units: int) -> None:
        self._left -= units
        if self._left < 0:
            raise Broken(
                TOO_LARGE,
                f"the pipeline needs more than {limits.WORK:,} units of work (a value, or 32 characters of one)",
                right="filter and select first, or split it into several",
            )

    def touch(self, values: Sequence[Any]) -> None:
        """Looks at each value once, at texts by their length."""
        self.spend(len(values) + sum(len(value) >> _UNIT for value in values if type(value) is str))

    def weigh(self, value: Any) -> None:
        """Looks at a value and all that is in it."""
        if isinstance(value, str):
            self.spend(1 + (len(value) >> _UNIT))
            return
        self.spend(1)
        if isinstance(value, dict):
            self.spend(len(value))
            for one in value.values():
                self.weigh(one)
        elif isinstance(value, list):
            for one in value:
                self.weigh(one)

    def make(self, rows: int, columns: int) -> None:
        """Before a table of this size is made."""
        if rows > limits.ROWS:
            what = f"this would make {rows:,} rows, and a table has at most {limits.ROWS:,}"
            raise Broken(TOO_LARGE, what, right="filter first, or aggregate")
        if rows * columns > limits.CELLS:
            what = f"this would make {rows:,} rows of {columns:,} columns, which is more than {limits.CELLS:,} values"
            raise Broken(TOO_LARGE, what, right="filter or select first")
        self.spend(rows * (columns + 1))


@dataclass
class Call:
    """What a primitive is run with. `others` are the values that its fields name as further inputs."""

    value: Any
    fields: Mapping[str, Any]
    work: Work
    others: Mapping[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def rows(self) -> Rows:
        return table(self.value, "its input")

    def other(self, name: str) -> Rows:
        return table(self.others[name], f"`{name}`", name)

    def column(self, path: str, rows: Rows | None = None) -> list[Any]:
        """The value of each row, null for none. A field that no row has is noted."""
        rows = self.rows if rows is None else rows
        get = getter(path)
        found = [get(row) for row in rows]
        self.work.touch(found)
        if rows and not any(one is not None for one in found):
            self._missing(path, rows)
        return found

    def _missing(self, path: str, rows: Rows) -> None:
        """Says so, unless some row has the field with nothing in it."""
        names = dict.fromkeys(name for row in rows[:100] for name in row)
        if path.partition(".")[0] not in names and not any(path in row for row in rows):
            hint = nearest(path, [*names][: limits.FIELDS]) or f"there are {', '.join([*names][:10])}"
            self.notes.append(f"no row has `{path}` ({hint})")


def table(value: Any, what: str, at: str = "") -> Rows:
    """The rows. Raises `Broken` for what is no table."""
    if not isinstance(value, list):
        right = "take the list out of it with `transform` first" if isinstance(value, dict) else ""
        raise Broken(DATA, f"{what} must be a list of objects, not {type_of(value)}", at, right)
    if len(value) > limits.ROWS:
        raise Broken(TOO_LARGE, f"{what} has {len(value):,} rows, and a table at most {limits.ROWS:,}", at)
    for index, row in enumerate(value):
        if not isinstance(row, dict):
            raise Broken(
                DATA, f"{what} must be a list of objects, and row {index} is {type_of(row)}", at,
                "make objects of them with `transform`, such as `[].{value: @}`",
            )  # fmt: skip
    return value


def getter(path: str) -> Callable[[Row], Any]:
    """What reads a field of a row: by its name, or by the way to it (`price.total`, `legs.0.from`); null for none."""
    if "." not in path:
        return lambda row: row.get(path)
    steps = path.split(".")

    def get(row: Row) -> Any:
        if path in row:
            return row[path]
        here: Any = row
        for step in steps:
            if isinstance(here, dict):
                here = here.get(step)
            elif isinstance(here, list) and _INDEX.fullmatch(step) and int(step) < len(here):
                here = here[int(step)]
            else:
                return None
        return here

    return get


class Primitive(NamedTuple):
    """One operation. `further` are the fields that name an input besides the first; `check` finds what is wrong with
    fields together. `run` raises `Broken`; a primitive without it is performed outside, and takes no input."""

    op: str
    says: str
    fields: tuple[Field, ...]
    run: Callable[[Call], Any] | None
    further: tuple[str, ...] = ()
    check: Callable[[Mapping[str, Any], str, Told], None] | None = None


def key_of(value: Any, work: Work) -> Any:
    """What is equal for equal JSON values and can be looked up: 1 is 1.0, and not true."""
    kind = type(value)
    if kind is str or value is None:
        return value
    if kind is int or kind is float:
        # Python's hashes of numbers are known: many large ones could be made to share one, and a table of them hangs.
        return value if -_EXACT < value < _EXACT else (int, str(int(value)))
    if kind is bool:
        return (bool, value)
    work.spend(1 + len(value))
    if kind is dict:
        return (dict, frozenset((name, key_of(one, work)) for name, one in value.items()))
    return (list, tuple(key_of(one, work) for one in value))


def columns(rows: Rows, work: Work) -> dict[str, None]:
    """The names of all fields, in order of their first appearance."""
    work.spend(sum(map(len, rows)))
    found: dict[str, None] = {}
    for row in rows:
        if row.keys() - found.keys():
            found.update(dict.fromkeys(row))
    return found
