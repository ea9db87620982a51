"""How the fields of a step are written: each shape has a JSON Schema, and reads a value with all that is wrong with it.

What the fields mean is in the files of the primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from baton.core.conditions.values import type_of
from baton.core.expressions import escape
from baton.core.expressions.spelling import nearest
from baton.errors import Problem

REQUIRED: Final[Any] = object()
"""The default of a field that has none."""


class Told(list[Problem]):
    """What was found to be wrong so far."""

    def wrong(self, path: str, message: str, right: str = "") -> None:
        self.append(Problem(path, message, right))


class Wrong(ValueError):
    """What is wrong with one value, and what would be right."""

    def __init__(self, message: str, right: str = "") -> None:
        super().__init__(message)
        self.message, self.right = message, right


@dataclass(frozen=True)
class Shape:
    """`says` completes "this must be …". `read` gives the value as the primitives take it; what it is after a problem was
    told does not matter."""

    says: str
    schema: Mapping[str, Any]
    read: Callable[[Any, str, Told], Any]


class Field(NamedTuple):
    """One field: a default that is left out of a step is given to the primitive as it stands here."""

    name: str
    shape: Shape
    says: str
    default: Any = REQUIRED


def text(most: int, says: str = "a text") -> Shape:
    def read(value: Any, path: str, told: Told) -> Any:
        if not isinstance(value, str) or not value:
            told.wrong(path, f"this must be {says}, not {'empty' if value == '' else type_of(value)}")
        elif len(value) > most:
            told.wrong(path, f"this has {len(value)} characters, and at most {most} are allowed")
        return value

    return Shape(says, {"type": "string", "minLength": 1, "maxLength": most}, read)


def whole(least: int, most: int) -> Shape:
    says = f"a whole number from {least} to {most}"

    def read(value: Any, path: str, told: Told) -> Any:
        if type(value) is not int or not least <= value <= most:
            what = value if type(value) is int and abs(value) < 1_000_000_000 else type_of(value)
            told.wrong(path, f"this must be {says}, not {what}")
        return value

    return Shape(says, {"type": "integer", "minimum": least, "maximum": most}, read)


def one_of(*words: str) -> Shape:
    says = f"one of {', '.join(words)}"

    def read(value: Any, path: str, told: Told) -> Any:
        if value not in words:
            what = f"`{value[:40]}`" if isinstance(value, str) else type_of(value)
            told.wrong(path, f"{what} is not {says}", nearest(value, words) if isinstance(value, str) else "")
        return value

    return Shape(says, {"enum": list(words)}, read)


ANYTHING: Final = Shape("any value", {}, lambda value, path, told: value)


def checked(shape: Shape, make: Callable[[Any], Any]) -> Shape:
    """The shape, and what `make` makes of a value of it. `make` raises `Wrong`."""

    def read(value: Any, path: str, told: Told) -> Any:
        before = len(told)
        found = shape.read(value, path, told)
        if len(told) > before:
            return found
        try:
            return make(found)
        except Wrong as error:
            told.wrong(path, error.message, error.right)
            return found

    return Shape(shape.says, shape.schema, read)


def list_of(item: Shape, most: int, least: int = 1, says: str = "a list") -> Shape:
    def read(value: Any, path: str, told: Told) -> Any:
        if not isinstance(value, list):
            told.wrong(path, f"this must be {says}, not {type_of(value)}")
            return ()
        if not least <= len(value) <= most:
            told.wrong(path, f"this has {len(value)} items; it must have {least} to {most}")
            return ()
        return tuple(item.read(one, f"{path}/{index}", told) for index, one in enumerate(value))

    schema = {"type": "array", "items": item.schema, "minItems": least, "maxItems": most}
    return Shape(says, schema, read)


def some(item: Shape, most: int, least: int = 1) -> Shape:
    """One of them, or a list."""
    several = list_of(item, most, least)
    says = f"{item.says}, or a list of such"

    def read(value: Any, path: str, told: Told) -> Any:
        return several.read(value, path, told) if isinstance(value, list) else (item.read(value, path, told),)

    return Shape(says, {"anyOf": [item.schema, several.schema]}, read)


def by_type(says: str, **shapes: Shape) -> Shape:
    """Another shape for each type of JSON: `str`, `list`, `dict`."""

    def read(value: Any, path: str, told: Told) -> Any:
        shape = shapes.get(type(value).__name__)
        if shape is None:
            told.wrong(path, f"this must be {says}, not {type_of(value)}")
            return None
        return shape.read(value, path, told)

    return Shape(says, {"anyOf": [shape.schema for shape in shapes.values()]}, read)


FLAG: Final = by_type("true or false", bool=Shape("true or false", {"type": "boolean"}, ANYTHING.read))


def named(item: Shape, most: int, says: str) -> Shape:
    """An object whose keys are the author's own."""

    def read(value: Any, path: str, told: Told) -> Any:
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
    return Shape(says, schema, read)


def record(fields: Sequence[Field], says: str) -> Shape:
    """An object with these fields, and no others."""
    known = {field.name: field for field in fields}
    required = [field.name for field in fields if field.default is REQUIRED]

    def read(value: Any, path: str, told: Told) -> Any:
        if not isinstance(value, dict):
            told.wrong(path, f"this must be {says}, not {type_of(value)}")
            return {}
        for key in value:
            if key not in known:
                hint = nearest(str(key), known) or f"there are {', '.join(known)}"
                told.wrong(f"{path}/{escape(key)}", f"there is no field `{str(key)[:40]}` here", hint)
        found = {}
        for name, field in known.items():
            if name in value:
                found[name] = field.shape.read(value[name], f"{path}/{name}", told)
            elif field.default is REQUIRED:
                told.wrong(path, f"`{name}` is missing", f"it is {field.shape.says}: {field.says}")
            else:
                found[name] = field.default
        return found

    schema = {
        "type": "object",
        "properties": {field.name: described(field) for field in fields},
        "required": required,
        "additionalProperties": False,
    }
    return Shape(says, schema, read)


def described(field: Field) -> dict[str, Any]:
    """The schema of a field, with what it is for."""
    default = {} if field.default is REQUIRED or field.default is None else {"default": _plain(field.default)}
    return {**field.shape.schema, "description": field.says, **default}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
