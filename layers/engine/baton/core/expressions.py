"""Expressions in documents: `${ctx.search.output.tables[0].id}` inside any JSON value.

A string that is one expression keeps the type of its value; inside a longer string the value becomes text.
`$${` is a literal `${`. No operators: a path that does not exist is an error, never null.
This module also has durations, times and suggestions for misspelt names.
It bounds the values that expressions build: a loop that wraps or doubles the output of its last round
would otherwise fill the memory of every worker, or leave an entry that no worker can read.
It needs no other room of the core.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct

ROOTS = ("input", "ctx", "saga", "loop", "join", "last_error", "item", "index", "output")
STEP = "step"
"""A root besides, for `compensate` alone: the step that is undone."""
SCHEDULE = "schedule"
"""A root besides, for the input of a schedule alone: the tick for which a saga is started."""
EVENT = "event"
"""A root besides, for the rules of a document for events from outside alone: the event."""
SAGA_FIELDS = ("id", "user", "tenant", "workflow")
JOIN_FIELDS = ("outputs", "arrived", "errors", "batch")
STEP_FIELDS = ("input", "output", "key")
SCHEDULE_FIELDS = ("time", "name")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SPACE = " \t\r\n"
_OPTIONAL = "?"
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]{1,9})\]|\[\"([^\"\\]*)\"\]|\['([^'\\]*)'\]")


PICK = r"(?:loop\.iteration|(?:input|item|ctx\.[A-Za-z_][A-Za-z0-9_]*\.output)(?:\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]{1,9}\])*)"
"""Regular expression of an expression that can stand for an index, in its plainest spelling."""
_PICK = re.compile(rf"\[({PICK})\]")


class ExpressionError(Exception):
    """Fault of an expression, or of the data that it was applied to."""


class UnknownRoot(ExpressionError):
    """Error for an expression whose root is unknown; `source` is the text between the braces."""

    def __init__(self, source: str, message: str = "") -> None:
        super().__init__(message or f"`{source}` must begin with one of {', '.join(ROOTS)}")
        self.source = source


class Path(Struct, frozen=True, dict=True):
    """A parsed expression: its text, its root and the keys and indexes that follow.

    `optional` (`ctx.<node>.output?`, `input.<name>?`, `event.<name>?`): null when the node has no output, or
    the input is without the part.
    `marks`: numbers of inner steps that lead to the parts that may be missing.
    A step that is a path itself, as in `input.items[loop.iteration]`, stands for its value: index or key.
    Derived facts are computed once, because a step needs them at each turn.
    """

    text: str
    root: str
    steps: tuple[str | int | Path, ...]
    optional: bool = False
    marks: tuple[int, ...] = ()

    @cached_property
    def node(self) -> str:
        """The node whose output this names; empty for other roots."""
        return str(self.steps[0]) if self.root == "ctx" else ""

    @cached_property
    def is_previous(self) -> bool:
        """Return true if the path names the node's output in the round before."""
        return self.root == "ctx" and self.steps[1] == "previous"

    @cached_property
    def inner(self) -> tuple[str | int | Path, ...]:
        """Steps inside the value: after `ctx.<node>.output`, `step.input`, `step.output`, or the root."""
        return self.steps[2:] if self.root == "ctx" else self.steps[1:] if self.root == "step" else self.steps

    @cached_property
    def may_be_null(self) -> bool:
        """Return true if the path's value may be missing; the path then gives null, however far it goes."""
        return self.optional or self.is_previous or self.root == "last_error"

    @cached_property
    def picks(self) -> tuple[Path, ...]:
        """The steps whose index or key is known only when the saga runs."""
        return tuple(step for step in self.steps if isinstance(step, Path))

    def up_to(self, taken: int) -> str:
        """Return the text of the expression with only the first inner steps."""
        position = len(self.root)
        for _ in range(len(self.steps) - len(self.inner) + taken):
            _, position = _step_at(self.text, position)
            position += self.text.startswith(_OPTIONAL, position)
        return self.text[:position]

    def picked(self, lookup: Lookup) -> Path:
        """Return the path with every index and key replaced by its value. Raises `ExpressionError`."""
        if not self.picks:
            return self
        steps = tuple(_picked(self, step, lookup) if isinstance(step, Path) else step for step in self.steps)
        return Path(self.text, self.root, steps, self.optional, self.marks)


def _picked(path: Path, step: Path, lookup: Lookup) -> str | int:
    value: Any = walk(step, lookup(step))
    is_index = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if is_index or isinstance(value, str):
        picked: str | int = value
        return picked
    raise ExpressionError(f"`{path.text}`: `{step.text}` is {_type(value)}{_NO_INDEX}")


_NO_INDEX = ", and no index from 0 and no key"

Lookup = Callable[[Path], Any]
"""Gives the value that a path's root (with its node, if any) stands for."""


def parse(text: str) -> Path:
    """Parse what stands between `${` and `}`. Raises `ExpressionError`."""
    source = text.strip(SPACE)
    first = _NAME.match(source)
    if not first or first.group() not in (*ROOTS, STEP, SCHEDULE, EVENT):
        raise UnknownRoot(source)
    steps: list[str | int | Path] = []
    is_optional, marks = False, []
    position = first.end()
    while position < len(source):
        step, position = _step_at(source, position)
        steps.append(step)
        if source.startswith(_OPTIONAL, position) and _may_be_missing(first.group(), steps):
            is_optional = True
            marks += {"ctx": [], "step": [len(steps) - 1]}.get(first.group(), [len(steps)])
            position += 1
    path = Path(source, first.group(), tuple(steps), is_optional, tuple(marks))
    _check_shape(path)
    return path


def _step_at(source: str, position: int) -> tuple[str | int | Path, int]:
    """Return the step that begins there, and where the next one does. Raises `ExpressionError`."""
    step = _STEP.match(source, position)
    if step is None:
        inner = _PICK.match(source, position)
        if inner is None:
            raise ExpressionError(
                f'`{source}`: cannot read `{source[position:]}`; write .name, [0] or ["name"]'
            )
        return parse(inner[1]), inner.end()
    name, index, double, single = step.groups()
    key = next((text for text in (name, double, single) if text is not None), "")
    return (key if index is None else int(index)), step.end()


def _may_be_missing(root: str, steps: list[str | int | Path]) -> bool:
    """Return true if `?` may follow these steps."""
    if root == "ctx":
        return len(steps) == 2
    return isinstance(steps[-1], str) and (root in {"input", EVENT} or (root == "step" and len(steps) > 1))


def _check_shape(path: Path) -> None:
    if path.root == "step" and (not path.steps or path.steps[0] not in STEP_FIELDS):
        raise UnknownRoot(path.text, f"`{path.text}`: a step that is undone has {', '.join(STEP_FIELDS)}")
    if path.root == "ctx" and (
        len(path.steps) < 2
        or path.steps[1] not in {"output", "previous"}
        or not isinstance(path.steps[0], str)
    ):
        raise ExpressionError(f"`{path.text}`: write ctx.<node>.output")
    if path.root == "loop" and path.steps != ("iteration",):
        raise ExpressionError(f"`{path.text}`: write loop.iteration")
    if path.root == "index" and path.steps:
        raise ExpressionError(f"`{path.text}`: write index, which is a number")
    if path.root == "join" and (not path.steps or path.steps[0] not in JOIN_FIELDS):
        raise ExpressionError(f"`{path.text}`: a join has {', '.join(JOIN_FIELDS)}")
    if path.root == SCHEDULE and (len(path.steps) != 1 or path.steps[0] not in SCHEDULE_FIELDS):
        raise ExpressionError(f"`{path.text}`: a schedule has {', '.join(SCHEDULE_FIELDS)}")
    if path.root == "saga" and (len(path.steps) != 1 or path.steps[0] not in SAGA_FIELDS):
        raise ExpressionError(f"`{path.text}`: a saga has {', '.join(SAGA_FIELDS)}")


_OBJECTS = (dict, Mapping)  # the first is found at once


def walk(path: Path, value: Any) -> Any:
    """Follow `path.inner` into a JSON value. Raises `ExpressionError` that says where it ended."""
    if value is None and path.may_be_null:
        return None
    for taken, step in enumerate(path.inner, 1):
        if isinstance(value, list) and isinstance(step, int):
            if step >= len(value):
                raise ExpressionError(f"`{path.text}`: there is no [{step}], the list has {len(value)} items")
            value = value[step]
        elif isinstance(value, _OBJECTS) and isinstance(step, str):
            if value.get(step) is None and taken in path.marks:
                return None
            if step not in value:
                known = ", ".join(sorted(map(str, value))[:8])[:200] or "nothing"
                is_marked = path.root in {"input", "step", EVENT}
                optional = f"; `{path.up_to(taken)}?` is null without it" if is_marked else ""
                raise ExpressionError(f"`{path.text}`: there is no `{step}`, only {known}{optional}")
            value = value[step]
        else:
            raise ExpressionError(f"`{path.text}`: `{step}` of {_type(value)} cannot be taken")
    return value


def _type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


class Template(Struct, frozen=True):
    """A JSON value with its expressions parsed once. `paths` are all of them, in reading order."""

    value: Any
    paths: tuple[Path, ...]

    @classmethod
    def of(cls, path: Path) -> Template:
        """Return the template that is this expression and nothing else."""
        return cls(_Text((path,)), (path, *path.picks))

    def render(self, lookup: Lookup) -> Any:
        """Return the value with every expression replaced. Raises `ExpressionError`."""
        return _render(self.value, lookup) if self.paths else self.value

    def alone(self) -> Iterator[tuple[tuple[str, ...], Path]]:
        """Yield the fields of an object, at any depth, that are a single expression: their keys,
        and the expression.
        """
        return _alone(self.value, ())

    def without(self, fields: Collection[tuple[str, ...]]) -> Template:
        """Return the template of the object without these fields."""
        if not fields:
            return self
        left = _without(self.value, (), fields)
        return Template(left, tuple(_paths(left)))


class _Text(Struct, frozen=True):
    """A string with expressions in it; a lone one keeps its type."""

    parts: tuple[str | Path, ...]


def compile_template(value: Any) -> Template:
    """Parse all expressions of a JSON value. Raises `ExpressionError` at the first bad one."""
    compiled = _compile(value)
    return Template(compiled, tuple(_paths(compiled)))


def lone_path(value: Any) -> Path | None:
    """Return the path of a text that is a single expression, which keeps the type of its value."""
    try:
        compiled = _compile(value) if isinstance(value, str) else None
    except ExpressionError:
        return None
    parts = compiled.parts if isinstance(compiled, _Text) else ()
    return parts[0] if len(parts) == 1 and isinstance(parts[0], Path) else None


def expressions_in(value: Any, pointer: str = "") -> Iterator[tuple[str, Path | ExpressionError]]:
    """Yield (JSON Pointer, path) of every expression of a JSON value;
    the error for a text that does not parse.
    """
    if isinstance(value, str):
        try:
            for path in _paths(_compile(value)):
                yield pointer, path
        except ExpressionError as error:
            yield pointer, error
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from expressions_in(item, f"{pointer}/{index}")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from expressions_in(item, f"{pointer}/{escape(key)}")


def escape(key: Any) -> str:
    """Return one reference token of a JSON Pointer (RFC 6901)."""
    return str(key).replace("~", "~0").replace("/", "~1")


def _compile(value: Any) -> Any:
    if isinstance(value, str):
        return _compile_text(value) if "${" in value else value
    if isinstance(value, list):
        return [_compile(item) for item in value]
    if isinstance(value, dict):
        return {key: _compile(item) for key, item in value.items()}
    return value


def _compile_text(text: str) -> str | _Text:
    parts: list[str | Path] = []
    literal = ""
    position = 0
    while (found := text.find("${", position)) >= 0:
        literal += text[position:found]
        if found and text[found - 1] == "$":
            literal = literal[:-1] + "${"
            position = found + 2
            continue
        end = text.find("}", found)
        if end < 0:
            raise ExpressionError(f"`{text[found:]}`: the closing `}}` is missing")
        if literal:
            parts.append(literal)
            literal = ""
        parts.append(parse(text[found + 2 : end]))
        position = end + 1
    literal += text[position:]
    if literal:
        parts.append(literal)
    if all(isinstance(part, str) for part in parts):
        return "".join(map(str, parts))
    return _Text(tuple(parts))


def _paths(compiled: Any) -> Iterator[Path]:
    if isinstance(compiled, _Text):
        for part in compiled.parts:
            if isinstance(part, Path):
                yield part
                yield from part.picks
    elif isinstance(compiled, list):
        for item in compiled:
            yield from _paths(item)
    elif isinstance(compiled, dict):
        for item in compiled.values():
            yield from _paths(item)


def _alone(compiled: Any, at: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Path]]:
    if isinstance(compiled, dict):
        for key, item in compiled.items():
            yield from _alone(item, (*at, key))
    elif isinstance(compiled, _Text) and len(compiled.parts) == 1 and isinstance(compiled.parts[0], Path):
        yield at, compiled.parts[0]


def _without(compiled: Any, at: tuple[str, ...], fields: Collection[tuple[str, ...]]) -> Any:
    if not isinstance(compiled, dict):
        return compiled
    return {
        key: _without(item, (*at, key), fields) for key, item in compiled.items() if (*at, key) not in fields
    }


def _render(compiled: Any, lookup: Lookup) -> Any:
    if isinstance(compiled, _Text):
        if len(compiled.parts) == 1:
            return _take(compiled.parts[0], lookup)
        return "".join(as_text(_take(part, lookup)) for part in compiled.parts)
    if isinstance(compiled, list):
        return [_render(item, lookup) for item in compiled]
    if isinstance(compiled, dict):
        return {key: _render(item, lookup) for key, item in compiled.items()}
    return compiled


def _take(part: str | Path, lookup: Lookup) -> Any:
    return part if isinstance(part, str) else walk(part.picked(lookup), lookup(part))


def as_text(value: Any) -> str:
    """Return a value inside of a text: a text as it is, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# Read by Python's `re` and, in the JSON Schema of documents, by others: nothing in it that they see differently.
PATTERN = r"^ *([0-9]+(?:\.[0-9]+)?) *(ms|s|m|h|d) *$"
_PATTERN = re.compile(PATTERN)
LONGEST_MS = 366 * _UNITS["d"]
SHORTEST_S, LONGEST_S = 0.001, LONGEST_MS // 1_000


def parse_duration(value: Any) -> int:
    """Return a duration in milliseconds, rounded.
    Raises `ValueError` that names the right form, whatever the value is.
    """
    milliseconds: float
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # What is out of bounds in seconds must not get into them by being multiplied.
        milliseconds = value * 1_000 if SHORTEST_S <= value <= LONGEST_S else 0
    else:
        match = _PATTERN.fullmatch(value) if isinstance(value, str) else None
        if not match:
            raise ValueError(
                f"`{str(value)[:40]}` is not a duration; write for example 500ms, 5s, 10m, 1h or 2d"
            )
        milliseconds = float(match[1]) * _UNITS[match[2]]
    # Compared before rounding: infinity and NaN cannot be rounded.
    if not 1 <= milliseconds <= LONGEST_MS:
        raise ValueError(f"`{str(value)[:40]}` must be between 1 ms and 366 days")
    return round(milliseconds)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time(value: Any) -> int:
    """Return an ISO 8601 time with its offset as UTC epoch milliseconds.
    Raises `ValueError` that names the right form.
    """
    example = "write for example 2026-12-01T09:00:00Z"
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError) as error:  # the last: it is in no year from 1 to 9999
        raise ValueError(f"`{str(value)[:40]}` is not a time; {example}") from error
    if moment.tzinfo is None:
        raise ValueError(f"`{value}` does not say in which time zone; {example}")
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def duration_text(ms: int) -> str:
    """Return a duration as `340 ms`, `2.5 s`, `3 min 5 s`, `2 h 10 min` or `1 d 3 h`."""
    if ms < 1_000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1_000:.1f}".removesuffix(".0") + " s"
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    seconds = round(ms / 1_000)
    at = next(at for at, (_, unit) in enumerate(units) if seconds >= unit)
    (name, unit), (less, part) = units[at], units[at + 1]
    rest = seconds % unit // part
    return f"{seconds // unit} {name}" + (f" {rest} {less}" if rest else "")


def closest(name: str, known: Iterable[str]) -> str:
    """Return the most similar known name, or an empty string."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)), "")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `did you mean ...?` for the most similar known name, or an empty string."""
    close = closest(name, known)
    return f"did you mean `{close}`?" if close else ""


def with_hint(said: str, hint: str) -> str:
    """Return message and hint as sentences; the hint may be empty."""
    return f"{said}. {hint[:1].upper()}{hint[1:]}".rstrip()


MOST_ITEMS = 1_000_000
MOST_BYTES = 52_428_800
MOST_LEVELS = 200

_encode = msgspec.json.Encoder().encode


def excess_of(value: Any, most_bytes: int) -> str:
    """Return the excess of a JSON value, in words; empty if within bounds. Stops at the first excess.

    `most_bytes` is the limit of its size as JSON.
    """
    items = size = 0
    level: list[Any] = [value]
    for _ in range(MOST_LEVELS):
        inner: list[Any] = []
        for one in level:
            items += 1
            if isinstance(one, str):
                size += len(one)
            elif isinstance(one, dict):
                size += sum(map(len, one))
                inner += one.values()
            elif isinstance(one, list):
                inner += one
            if items + len(inner) > MOST_ITEMS:
                return f"it has more than {MOST_ITEMS:,} parts"
            if size > MOST_BYTES:
                return f"its texts have more than {MOST_BYTES:,} characters"
        if not inner:
            return f"it is larger than {most_bytes} bytes" if len(_encode(value)) > most_bytes else ""
        level = inner
    return f"it is more than {MOST_LEVELS} levels deep"


def iso(milliseconds: int) -> str:
    """Return milliseconds as a time, such as `2026-11-21T10:00:00.123Z`."""
    moment = datetime.fromtimestamp(milliseconds / 1_000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
