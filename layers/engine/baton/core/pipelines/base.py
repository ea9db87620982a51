"""Parts of every primitive: its description, its call, and the counter that bounds its work."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from baton.core.conditions import model as bounds
from baton.core.conditions.patterns import PROGRAM_BYTES, time_of, weight
from baton.core.conditions.values import type_of, units
from baton.core.expressions import escape, nearest
from baton.errors import Problem

REQUIRED: Final[Any] = object()
"""The default of a field that has none."""


class PipelineProblems(list[Problem]):
    """Faults of a pipeline found so far."""

    def wrong(self, path: str, message: str, right: str = "") -> None:
        """Record a fault at a place, with a suggestion."""
        self.append(Problem(path, message, right))


class Wrong(ValueError):
    """Fault of one value, with a suggestion."""

    def __init__(self, message: str, right: str = "") -> None:
        super().__init__(message)
        self.message, self.right = message, right


@dataclass(frozen=True)
class FieldShape:
    """Shape of a field's value. `says` completes "this must be …".

    `read` returns the value as the primitives take it; after a problem the returned value does not matter.
    """

    says: str
    schema: Mapping[str, Any]
    read: Callable[[Any, str, PipelineProblems], Any]


class PrimitiveField(NamedTuple):
    """A field of a primitive. `default`: the value for a step that omits the field."""

    name: str
    shape: FieldShape
    says: str
    default: Any = REQUIRED


def text_shape(most: int, says: str = "a text") -> FieldShape:
    """Return the shape of a text of at most `most` characters."""

    def read(value: Any, path: str, told: PipelineProblems) -> Any:
        if not isinstance(value, str) or not value:
            told.wrong(path, f"this must be {says}, not {'empty' if value == '' else type_of(value)}")
        elif len(value) > most:
            told.wrong(path, f"this has {len(value)} characters, and at most {most} are allowed")
        return value

    return FieldShape(says, {"type": "string", "minLength": 1, "maxLength": most}, read)


def whole_shape(least: int, most: int) -> FieldShape:
    """Return the shape of a whole number between two bounds."""
    says = f"a whole number from {least} to {most}"

    def read(value: Any, path: str, told: PipelineProblems) -> Any:
        if type(value) is not int or not least <= value <= most:
            what = value if type(value) is int and abs(value) < 1_000_000_000 else type_of(value)
            told.wrong(path, f"this must be {says}, not {what}")
        return value

    return FieldShape(says, {"type": "integer", "minimum": least, "maximum": most}, read)


def one_of_shape(*words: str) -> FieldShape:
    """Return the shape of one of some words."""
    says = f"one of {', '.join(words)}"

    def read(value: Any, path: str, told: PipelineProblems) -> Any:
        if value not in words:
            what = f"`{value[:40]}`" if isinstance(value, str) else type_of(value)
            told.wrong(path, f"{what} is not {says}", nearest(value, words) if isinstance(value, str) else "")
        return value

    return FieldShape(says, {"enum": list(words)}, read)


ANYTHING: Final = FieldShape("any value", {}, lambda value, path, told: value)


def checked_shape(shape: FieldShape, make: Callable[[Any], Any]) -> FieldShape:
    """Return the shape with `make`, which converts a value of it and raises `Wrong`."""

    def read(value: Any, path: str, told: PipelineProblems) -> Any:
        before = len(told)
        found = shape.read(value, path, told)
        if len(told) > before:
            return found
        try:
            return make(found)
        except Wrong as error:
            told.wrong(path, error.message, error.right)
            return found

    return FieldShape(shape.says, shape.schema, read)


def list_of(item: FieldShape, most: int, least: int = 1, says: str = "a list") -> FieldShape:
    """Return the shape of a list with `least` to `most` items."""

    def read(value: Any, path: str, told: PipelineProblems) -> Any:
        if not isinstance(value, list):
            told.wrong(path, f"this must be {says}, not {type_of(value)}")
            return ()
        if not least <= len(value) <= most:
            told.wrong(path, f"this has {len(value)} items; it must have {least} to {most}")
            return ()
        return tuple(item.read(one, f"{path}/{index}", told) for index, one in enumerate(value))

    schema = {"type": "array", "items": item.schema, "minItems": least, "maxItems": most}
    return FieldShape(says, schema, read)


def one_or_list_shape(item: FieldShape, most: int, least: int = 1) -> FieldShape:
    """Return the shape of one item, or of a list of them."""
    several = list_of(item, most, least)
    says = f"{item.says}, or a list of such"

    def read(value: Any, path: str, told: PipelineProblems) -> Any:
        return several.read(value, path, told) if isinstance(value, list) else (item.read(value, path, told),)

    return FieldShape(says, {"anyOf": [item.schema, several.schema]}, read)


def by_type(says: str, **shapes: FieldShape) -> FieldShape:
    """Return another shape for each type of JSON: `str`, `list`, `dict`."""

    def read(value: Any, path: str, told: PipelineProblems) -> Any:
        shape = shapes.get(type(value).__name__)
        if shape is None:
            told.wrong(path, f"this must be {says}, not {type_of(value)}")
            return None
        return shape.read(value, path, told)

    return FieldShape(says, {"anyOf": [shape.schema for shape in shapes.values()]}, read)


FLAG: Final = by_type("true or false", bool=FieldShape("true or false", {"type": "boolean"}, ANYTHING.read))


def object_shape(item: FieldShape, most: int, says: str) -> FieldShape:
    """Return the shape of an object whose keys are the author's own."""

    def read(value: Any, path: str, told: PipelineProblems) -> Any:
        if not isinstance(value, dict):
            told.wrong(path, f"this must be {says}, not {type_of(value)}")
            return {}
        if not 1 <= len(value) <= most:
            told.wrong(path, f"this has {len(value)} entries; it must have 1 to {most}")
            return {}
        return {str(key): item.read(one, f"{path}/{escape(key)}", told) for key, one in value.items()}

    schema = {
        "type": "object",
        "additionalProperties": item.schema,
        "minProperties": 1,
        "maxProperties": most,
    }
    return FieldShape(says, schema, read)


def record(fields: Sequence[PrimitiveField], says: str) -> FieldShape:
    """Return the shape of an object with these fields, and no others."""
    known = {field.name: field for field in fields}
    required = [field.name for field in fields if field.default is REQUIRED]

    def read(value: Any, path: str, told: PipelineProblems) -> Any:
        if not isinstance(value, dict):
            told.wrong(path, f"this must be {says}, not {type_of(value)}")
            return {}
        for key in value:
            if key not in known:
                hint = nearest(str(key), known) or f"there are {', '.join(known)}"
                told.wrong(f"{path}/{escape(key)}", f"there is no field `{str(key)[:40]}` here", hint)
        found = {}
        for name, known_field in known.items():
            if name in value:
                found[name] = known_field.shape.read(value[name], f"{path}/{name}", told)
            elif known_field.default is REQUIRED:
                told.wrong(
                    path, f"`{name}` is missing", f"it is {known_field.shape.says}: {known_field.says}"
                )
            else:
                found[name] = known_field.default
        return found

    schema = {
        "type": "object",
        "properties": {field.name: field_schema(field) for field in fields},
        "required": required,
        "additionalProperties": False,
    }
    return FieldShape(says, schema, read)


def field_schema(field: PrimitiveField) -> dict[str, Any]:
    """Return the schema of a field, with its purpose."""
    default = {} if field.default is REQUIRED or field.default is None else {"default": _plain(field.default)}
    return {**field.shape.schema, "description": field.says, **default}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


STEPS = 32
"""Steps of a pipeline."""

REQUESTS = 8
"""Of them, requests."""

ROWS = 50_000
"""Rows of a table."""

CELLS = 1_000_000
"""Rows times columns of a table that a step makes."""

WORK = 5_000_000
"""Units of all steps together: 1 to 4 seconds of a processor."""

FIELDS = 64
"""Names in one list of a step: columns, keys, aggregates, formats."""

CONDITIONS = 100
"""Conditions inside one condition."""

NESTING = 8
"""Conditions inside each other."""

NAME = 200
"""Characters of the name of a field."""

PATTERN_LENGTH = 1_000
"""Characters of a regular expression."""

EXPRESSION = 2_000
"""Characters of a JMESPath expression."""

FORMAT = 60
"""Characters of a format of dates."""

DATE = 100
"""Characters of a date."""

PREVIEW_ROWS = 50
PREVIEW_ITEMS = 20
PREVIEW_TEXT = 200
PREVIEW_LEVELS = 4
"""Size of a preview: rows, items of lists and objects, characters of texts, levels of nesting."""

PROBLEMS = 20
"""Problems that one failure tells."""


INVALID: Final = "pipeline_invalid"
DATA: Final = "pipeline_data"
TOO_LARGE: Final = "pipeline_too_large"

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Sequence[Row]

_UNIT = 5  # as a shift: 32 characters
_EXACT = 2**53
_INDEX = re.compile("[0-9]{1,9}")


class PipelineFailed(Exception):
    """A pipeline that cannot be run, or broke.
    `code` is INVALID, DATA or TOO_LARGE; every problem has its place.
    """

    def __init__(self, code: str, problems: Sequence[Problem]) -> None:
        self.code, self.problems = code, tuple(problems)
        more = len(self.problems) - PROBLEMS
        lines = [_line(problem) for problem in self.problems[:PROBLEMS]]
        super().__init__("\n".join([*lines, *([f"and {more} more"] if more > 0 else [])]))


def _line(problem: Problem) -> str:
    hint = f" ({problem.suggestion})" if problem.suggestion else ""
    return f"{problem.path or '/'}: {problem.message}{hint}"


class Broken(Exception):
    """Error of a primitive on its data. `at` is the field of the step that it is about."""

    def __init__(self, code: str, message: str, at: str = "", right: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.at, self.right = code, message, at, right


class WorkBudget:
    """The units that are left to one run. Every method raises `Broken` when there are none."""

    def __init__(self, units: int = WORK) -> None:
        self._left = units

    def spend(self, units: int) -> None:
        self._left -= units
        if self._left < 0:
            raise Broken(
                TOO_LARGE,
                f"the pipeline needs more than {WORK:,} units of work (a value, or 32 characters of one)",
                right="filter and select first, or split it into several",
            )

    def touch(self, values: Sequence[Any]) -> None:
        """Charge for each value once, for a text by its length."""
        self.spend(len(values) + sum(len(value) >> _UNIT for value in values if type(value) is str))

    def weigh(self, value: Any) -> None:
        """Charge for a value and all that is in it."""
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
        """Charge for a table of this size before it is made. Raises `Broken` for one that is too large."""
        if rows > ROWS:
            what = f"this would make {rows:,} rows, and a table has at most {ROWS:,}"
            raise Broken(TOO_LARGE, what, right="filter first, or aggregate")
        if rows * columns > CELLS:
            what = (
                f"this would make {rows:,} rows of {columns:,} columns, which is more than {CELLS:,} values"
            )
            raise Broken(TOO_LARGE, what, right="filter or select first")
        self.spend(rows * (columns + 1))


@dataclass
class PrimitiveCall:
    """Call of a primitive. `others` are the values that its fields name as further inputs."""

    value: Any
    fields: Mapping[str, Any]
    work: WorkBudget
    others: Mapping[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def rows(self) -> Rows:
        return table_rows(self.value, "its input")

    def other(self, name: str) -> Rows:
        """Return the rows of a further input of the step."""
        return table_rows(self.others[name], f"`{name}`", name)

    def column(self, path: str, rows: Rows | None = None) -> list[Any]:
        """Return the value of each row, null for none. A field that no row has is noted."""
        rows = self.rows if rows is None else rows
        get = getter(path)
        found = [get(row) for row in rows]
        self.work.touch(found)
        if rows and not any(one is not None for one in found):
            self._missing(path, rows)
        return found

    def _missing(self, path: str, rows: Rows) -> None:
        """Note that no row has the field, unless some row has it with nothing in it."""
        names = dict.fromkeys(name for row in rows[:100] for name in row)
        if path.partition(".")[0] not in names and not any(path in row for row in rows):
            hint = nearest(path, [*names][:FIELDS]) or f"there are {', '.join([*names][:10])}"
            self.notes.append(f"no row has `{path}` ({hint})")


def table_rows(value: Any, what: str, at: str = "") -> Rows:
    """Return the rows of a table. Raises `Broken` for any other value."""
    if not isinstance(value, list):
        right = "take the list out of it with `transform` first" if isinstance(value, dict) else ""
        raise Broken(DATA, f"{what} must be a list of objects, not {type_of(value)}", at, right)
    if len(value) > ROWS:
        raise Broken(TOO_LARGE, f"{what} has {len(value):,} rows, and a table at most {ROWS:,}", at)
    for index, row in enumerate(value):
        if not isinstance(row, dict):
            raise Broken(
                DATA, f"{what} must be a list of objects, and row {index} is {type_of(row)}", at,
                "make objects of them with `transform`, such as `[].{value: @}`",
            )  # fmt: skip
    return value


def getter(path: str) -> Callable[[Row], Any]:
    """Return the function that reads a field of a row by name or by path; null for none.

    Paths are `price.total`, `legs.0.from`.
    """
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
    """One operation.
    `further` are the fields that name an input besides the first; `check` finds what is wrong with fields
    together. `run` raises `Broken`; a primitive without it is performed outside, and takes no input.
    """

    op: str
    says: str
    fields: tuple[PrimitiveField, ...]
    run: Callable[[PrimitiveCall], Any] | None
    further: tuple[str, ...] = ()
    check: Callable[[Mapping[str, Any], str, PipelineProblems], None] | None = None


def key_of(value: Any, work: WorkBudget) -> Any:
    """Return a hashable key that is equal for equal JSON values: 1 equals 1.0, but not true."""
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


def columns(rows: Rows, work: WorkBudget) -> dict[str, None]:
    """Return the names of all fields, in order of their first appearance."""
    work.spend(sum(map(len, rows)))
    found: dict[str, None] = {}
    for row in rows:
        if row.keys() - found.keys():
            found.update(dict.fromkeys(row))
    return found


_CHEAPER = 10  # a unit of a pattern's time is so much less than one of ours

_SHARE = 5  # so many groups take as long again as the pattern without them: each place of the text is kept for each


class Pattern:
    """A compiled RE2 pattern."""

    def __init__(self, source: str) -> None:
        """Compile a pattern. Raises `Wrong`."""
        if weight(source) > bounds.PATTERN_WEIGHT:
            raise Wrong("the pattern is too large", "repeat less: {1,1000} counts a thousand times")
        import re2  # half a megabyte, which most cold starts do not need

        options = re2.Options()
        options.max_mem, options.log_errors = PROGRAM_BYTES, False
        try:
            self._engine: Any = re2.compile(source, options)
        except (re2.error, UnicodeEncodeError) as error:
            raise Wrong(
                f"`{source[:100]}` is not a regular expression: {_said(error)}",
                "the syntax is RE2's, without look-around and back-references",
            ) from error
        self._source = source
        self.names: tuple[str, ...] = tuple(sorted(self._engine.groupindex, key=self._engine.groupindex.get))

    def charge(self, texts: Sequence[str], work: WorkBudget) -> None:
        """Charge for matching these texts before it is done."""
        shares = _SHARE + self._engine.groups
        work.spend(
            sum(1 + time_of(self._source, units(one)) * shares // (_CHEAPER * _SHARE) for one in texts)
        )

    def found(self, text: str) -> dict[str, str | None] | None:
        """Return the named groups; without any, the first group or all of it under the empty name.
        None for no match.
        """
        match = self._engine.search(text)
        if match is None:
            return None
        if self.names:
            return dict(match.groupdict())
        return {"": match.group(1 if self._engine.groups else 0)}


def _said(error: Exception) -> str:
    said = error.args[0]
    return said.decode(errors="replace") if isinstance(said, bytes) else str(error)


PATTERN: FieldShape = checked_shape(text_shape(PATTERN_LENGTH, "a regular expression"), Pattern)
