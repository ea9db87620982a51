"""Forms from a JSON Schema, and the data of a submitted form. Pure functions.

A field's name is the JSON Pointer of its value, so that a fault appears beside its field. Values that fields
cannot represent (alternatives, endless references) are written as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from baton.errors import Problem

MOST_FIELDS: Final = 300
MOST_ROWS: Final = 100
_DEEPEST: Final = 8
_LONG: Final = 200  # characters for which one line is too little
_INPUTS: Final = {"date": "date", "time": "time", "email": "email", "uri": "url"}
_WHOLE = re.compile(r"[+-]?[0-9]{1,300}")
_NUMBER = re.compile(r"[+-]?([0-9]{1,300}(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
Form = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Field:
    """A field. kind: text, long, number, check, choice, json, group or rows. `input`: of the element for a
    text.

    value: its content. options: of a choice, each with its text. of: the fields of a group, or the rows of a
    list. `more`: true if another row may be added.
    """

    name: str
    kind: str
    label: str
    about: str = ""
    value: str = ""
    input: str = "text"
    required: bool = False
    options: tuple[tuple[str, str], ...] = ()
    of: tuple[Field, ...] = ()
    more: bool = False
    problems: tuple[str, ...] = ()


@dataclass
class _Reader:
    """Reader of a schema and a form in parallel."""

    root: Mapping[str, Any]
    form: Form | None
    problems: list[Problem] = field(default_factory=list)
    left: int = MOST_FIELDS

    def schema(self, given: Any) -> Mapping[str, Any]:
        """Return the schema itself, or the target of its reference inside of the document."""
        for _ in range(_DEEPEST):
            if not isinstance(given, Mapping):
                return {}
            reference = given.get("$ref")
            if not isinstance(reference, str) or not reference.startswith("#/"):
                return given
            found: Any = self.root
            for step in reference[2:].split("/"):
                step = step.replace("~1", "/").replace("~0", "~")
                found = found.get(step) if isinstance(found, Mapping) else None
            given = found
        return {}

    def said(self, name: str) -> str | None:
        """Return the content of a field of the form, or None if the form has no such field."""
        values = (self.form or {}).get(name)
        return values[0] if values else None


def data_of(
    schema: Any, form: Form, root: str = "/data", *, required: bool = True
) -> tuple[Any, list[Problem]]:
    """Return the data of the form, and its invalid values. Fields that were left empty are omitted."""
    reader = _Reader(schema if isinstance(schema, Mapping) else {}, form)
    value = _read(reader, schema, root, required=required, depth=0)
    return (None if value is _NOTHING else value), reader.problems


def fields_of(
    schema: Any,
    form: Form | None,
    problems: Sequence[Problem] = (),
    root: str = "/data",
    label: str = "",
    *,
    example: tuple[Any] | None = None,
    required: bool = True,
) -> Field:
    """Return the form of a schema with its content: of `form`, or initially the example or the defaults."""
    reader = _Reader(schema if isinstance(schema, Mapping) else {}, form)
    said: dict[str, list[str]] = {}
    for one in problems:
        said.setdefault(one.path, []).append(one.message)
    default = example[0] if example else reader.schema(schema).get("default", _NOTHING)
    return _field(reader, schema, root, label or "Data", default, said, required=required, depth=0)


def standing(fields: Field) -> dict[str, list[str]]:
    """Return the form that a browser sends if these fields are not changed."""
    if fields.kind not in ("group", "rows"):
        return {fields.name: [fields.value]}
    found = {f"rows:{fields.name}": [fields.value]} if fields.kind == "rows" else {}
    for one in fields.of:
        found |= standing(one)
    return found


_NOTHING: Final = object()


def _type(reader: _Reader, given: Any, depth: int) -> tuple[str, Mapping[str, Any]]:
    """Return the kind of field for a value of this schema, and the schema."""
    schema = reader.schema(given)
    kind = schema.get("type")
    if isinstance(schema.get("enum"), list) and 0 < len(schema["enum"]) <= MOST_ROWS:
        return "choice", schema
    if (
        depth >= _DEEPEST
        or reader.left <= 0
        or any(word in schema for word in ("oneOf", "anyOf", "allOf", "not", "if", "const"))
    ):
        return "json", schema
    if kind == "object" and isinstance(schema.get("properties"), Mapping) and schema["properties"]:
        return "group", schema
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return "rows", schema
    if kind == "string":
        return "text", schema
    if kind in ("integer", "number"):
        return "number", schema
    return ("check" if kind == "boolean" else "json"), schema


def _below(name: str, step: object) -> str:
    return f"{name}/{str(step).replace('~', '~0').replace('/', '~1')}"


def _required(schema: Mapping[str, Any]) -> frozenset[str]:
    required = schema.get("required")
    return (
        frozenset(one for one in required if isinstance(one, str))
        if isinstance(required, list)
        else frozenset()
    )


# ---- reading


def _read(reader: _Reader, given: Any, name: str, *, required: bool, depth: int) -> Any:
    reader.left -= 1
    kind, schema = _type(reader, given, depth)
    if kind == "group":
        return _read_group(reader, schema, name, required=required, depth=depth)
    if kind == "rows":
        rows = [
            _read(reader, schema["items"], _below(name, index), required=False, depth=depth + 1)
            for index in range(_rows(reader, name))
        ]
        # A row that was left empty is none.
        rows = [row for row in rows if row is not _NOTHING]
        return rows if rows or required else _NOTHING
    text = (reader.said(name) or "").replace("\r\n", "\n")
    if kind != "long" and not text.strip():
        if required and kind == "check":
            return False
        if required:
            reader.problems.append(Problem(name, "is needed"))
        return _NOTHING
    return _value(reader, kind, schema, name, text)


def _read_group(reader: _Reader, schema: Mapping[str, Any], name: str, *, required: bool, depth: int) -> Any:
    before, needed, found = len(reader.problems), _required(schema), {}
    for key, inner in schema["properties"].items():
        value = _read(reader, inner, _below(name, key), required=key in needed, depth=depth + 1)
        if value is not _NOTHING:
            found[key] = value
    if required or any(value is not False for value in found.values()):
        return found
    # Nothing of an optional group was filled in: what it would need is not missed.
    del reader.problems[before:]
    return _NOTHING


def _value(reader: _Reader, kind: str, schema: Mapping[str, Any], name: str, text: str) -> Any:
    if kind == "text":
        return text
    if kind == "check":
        return text == "true"
    if kind == "number":
        whole = schema.get("type") == "integer"
        if not (_WHOLE if whole else _NUMBER).fullmatch(text.strip()):
            reader.problems.append(Problem(name, "must be a whole number" if whole else "must be a number"))
            return _NOTHING
        return int(text) if _WHOLE.fullmatch(text.strip()) else float(text)
    try:
        if kind == "choice":
            return schema["enum"][int(text) if text.isdecimal() else MOST_ROWS]
        return json.loads(text)
    except (ValueError, IndexError, RecursionError) as error:
        why = "is none of the choices" if kind == "choice" else _no_json(error)
        reader.problems.append(Problem(name, why))
        return _NOTHING


def _rows(reader: _Reader, name: str) -> int:
    """Return the number of rows in the form, which a field of its own contains."""
    said = reader.said(f"rows:{name}") or "0"
    return min(int(said), MOST_ROWS) if said.isascii() and said.isdigit() and len(said) < 6 else 0


# ---- showing


def _field(
    reader: _Reader,
    given: Any,
    name: str,
    label: str,
    default: Any,
    problems: Mapping[str, Sequence[str]],
    *,
    required: bool,
    depth: int,
) -> Field:
    reader.left -= 1
    kind, schema = _type(reader, given, depth)
    title = schema.get("title")
    if isinstance(title, str) and title:
        label = title
    about = schema["description"] if isinstance(schema.get("description"), str) else ""
    said, own = reader.said(name), tuple(problems.get(name, ()))
    if default is _NOTHING and "default" in schema:
        default = schema["default"]
    if kind == "group":
        needed, known = _required(schema), default if isinstance(default, Mapping) else {}
        of = tuple(
            _field(
                reader,
                inner,
                _below(name, key),
                str(key),
                known.get(key, _NOTHING),
                problems,
                required=required and key in needed,
                depth=depth + 1,
            )
            for key, inner in schema["properties"].items()
        )
        return Field(name, kind, label, about, required=required, of=of, problems=own)
    if kind == "rows":
        return _list(reader, schema, name, label, about, default, problems, required=required, depth=depth)
    value = said if said is not None else "" if default is _NOTHING else _shown(kind, schema, default)
    if kind == "choice":
        options = tuple((str(index), _word(one)) for index, one in enumerate(schema["enum"]))
        return Field(name, kind, label, about, value, required=required, options=options, problems=own)
    longest = schema.get("maxLength")
    if kind == "text" and isinstance(longest, int) and longest > _LONG:
        kind = "long"
    typed = _INPUTS.get(str(schema.get("format")), "text") if kind == "text" else "text"
    return Field(name, kind, label, about, value, typed, required, problems=own)


def _list(
    reader: _Reader,
    schema: Mapping[str, Any],
    name: str,
    label: str,
    about: str,
    default: Any,
    problems: Mapping[str, Sequence[str]],
    *,
    required: bool,
    depth: int,
) -> Field:
    known = default if isinstance(default, list) else []
    least = schema.get("minItems")
    fewest = max(least, 1) if isinstance(least, int) else 1
    count = _rows(reader, name) if reader.form is not None else max(len(known), min(fewest, 5))
    more = (reader.form or {}).get("more", ())
    count = min(count + (name in more), MOST_ROWS)
    of = tuple(
        _field(
            reader,
            schema["items"],
            _below(name, index),
            f"{label} {index + 1}",
            known[index] if index < len(known) else _NOTHING,
            problems,
            required=False,
            depth=depth + 1,
        )
        for index in range(count)
        if reader.left > 0
    )
    own = tuple(problems.get(name, ()))
    return Field(
        name,
        "rows",
        label,
        about,
        str(len(of)),
        required=required,
        of=of,
        more=count < MOST_ROWS,
        problems=own,
    )


def _shown(kind: str, schema: Mapping[str, Any], value: Any) -> str:
    if kind == "choice":
        return str(schema["enum"].index(value)) if value in schema["enum"] else ""
    if kind == "check":
        return "true" if value is True else "false"
    if kind == "json":
        return json.dumps(value, ensure_ascii=False, indent=2)
    return value if isinstance(value, str) else json.dumps(value)


def _no_json(error: Exception) -> str:
    return f'is no JSON: {error}. Texts and names stand in double quotes, as in {{"city": "Vienna"}}'


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def places(fields: Field) -> frozenset[str]:
    """Return the places at which a fault can be shown beside a field."""
    return frozenset([fields.name]).union(*(places(one) for one in fields.of))
