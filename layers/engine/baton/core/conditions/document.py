"""Read and check a condition of a document, and report all problems at once.

Each kind's own file checks the content of that kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from baton.core.conditions import faults_of, jsonpath, model
from baton.core.conditions.compare import OPERATORS as COMPARE_OPERATORS
from baton.core.conditions.jsonpath import OPERATORS as JSONPATH_OPERATORS
from baton.core.conditions.model import AllOf, AnyOf, Cel, Compare, Condition, JsonPath, Matches, Not, Python
from baton.core.conditions.schema import violations
from baton.core.conditions.schemaplan import is_schema
from baton.core.conditions.values import type_of
from baton.core.expressions import escape, lone_path, nearest, parse_duration
from baton.errors import Problem

FIELDS: dict[str, tuple[str, ...]] = {
    "cel": (),
    "jsonpath": ("operator", "value", "of"),
    "schema": ("invert", "of"),
    "compare": (),
    "all": (),
    "any": (),
    "not": (),
    "python": ("of", "needs", "timeout", "max_memory_mb"),
}
"""The kinds of condition, each with the fields that may stand beside it."""

_KINDS = ", ".join(FIELDS)
_REFERENCE = re.compile(r"cas://sha256/[0-9a-f]{64}")
_BLOB = "cas://"


def read_condition(
    value: Any, pointer: str, schemas: Mapping[str, Any], *, of: str = "output"
) -> tuple[Condition | None, list[Problem]]:
    """Return the condition, or all problems of it.

    `pointer` is the place of the condition in the document, and `schemas` are the document's schemas by
    name. `of` is the default subject of a query, a schema or a function; in a `when` it is `input`.
    """
    reader = _Reader(schemas, of)
    condition = reader.read(value, pointer, 0)
    return (None if reader.problems else condition), reader.problems


@dataclass
class _Reader:
    """One pass over a condition and its inner conditions."""

    schemas: Mapping[str, Any]
    default: str
    problems: list[Problem] = field(default_factory=list)
    count: int = 0

    def say(self, pointer: str, message: str, suggestion: str = "") -> None:
        self.problems.append(Problem(pointer, message, suggestion))

    def read(self, value: Any, pointer: str, depth: int) -> Condition | None:
        self.count += 1
        if self.count == model.CONDITIONS + 1:
            self.say(
                pointer,
                f"there are more than {model.CONDITIONS} conditions in this one",
                "let a tool decide",
            )
        if depth > model.NESTING:
            self.say(pointer, f"conditions are nested deeper than {model.NESTING}", "let a tool decide")
        if self.count > model.CONDITIONS or depth > model.NESTING:
            return None
        if isinstance(value, bool):
            value = str(value).lower()
        if isinstance(value, str):
            return self._checked(Cel(expression=value), pointer, shorthand=True)
        if not isinstance(value, dict):
            message = f"a condition is a text or an object, not {type_of(value)}"
            self.say(pointer, message, 'write a text such as "output.score >= 80"')
            return None
        kinds = [key for key in value if key in FIELDS]
        if len(kinds) != 1:
            self._no_kind(value, kinds, pointer)
            return None
        (kind,) = kinds
        self._unknown(value, (kind, *FIELDS[kind]), pointer)
        return self._read_kind(kind, value, pointer, depth)

    def _no_kind(self, value: dict[str, Any], kinds: list[str], pointer: str) -> None:
        if kinds:
            self.say(
                pointer, f"a condition has one of {' and '.join(kinds)}, not both", "join them with `all`"
            )
            return
        near = next((hint for key in value if (hint := nearest(str(key), FIELDS))), "")
        self.say(pointer, f"a condition has exactly one of {_KINDS}; found none", near)

    def _unknown(self, value: dict[str, Any], known: tuple[str, ...], pointer: str) -> None:
        for key in value:
            if key not in known:
                hint = nearest(str(key), known) or f"there are {', '.join(known)}"
                self.say(f"{pointer}/{escape(key)}", f"`{key}` is not known here", hint)

    def _read_kind(self, kind: str, value: dict[str, Any], pointer: str, depth: int) -> Condition | None:
        if kind in {"all", "any"}:
            return self._read_list(kind, value[kind], f"{pointer}/{kind}", depth)
        if kind == "not":
            inner = self.read(value["not"], f"{pointer}/not", depth + 1)
            return inner and Not(condition=inner)
        before = len(self.problems)
        readers: dict[str, Callable[[dict[str, Any], str], Condition | None]] = {
            "cel": self._cel,
            "jsonpath": self._jsonpath,
            "schema": self._schema,
            "compare": self._compare,
            "python": self._python,
        }
        condition = readers[kind](value, pointer)
        # What is made of wrong fields would only be found wrong once more.
        return self._checked(condition, pointer) if condition and len(self.problems) == before else None

    def _read_list(self, kind: str, items: Any, pointer: str, depth: int) -> Condition | None:
        if not isinstance(items, list) or not items:
            self.say(pointer, f"`{kind}` takes a list of conditions, at least one")
            return None
        found = tuple(self._each(items, pointer, depth))
        return AllOf(conditions=found) if kind == "all" else AnyOf(conditions=found)

    def _each(self, items: list[Any], pointer: str, depth: int) -> Iterator[Condition]:
        for index, item in enumerate(items):
            condition = self.read(item, f"{pointer}/{index}", depth + 1)
            if condition is not None:
                yield condition

    def _checked(self, condition: Condition, pointer: str, *, shorthand: bool = False) -> Condition:
        for fault in faults_of(condition):
            place = pointer if shorthand else f"{pointer}/{fault.field}"
            self.say(place, fault.message, fault.suggestion)
        return condition

    # ---- the kinds --------------------------------------------------------------------------------------------

    def _cel(self, value: dict[str, Any], pointer: str) -> Condition | None:
        text = self._text(value, "cel", "", pointer)
        return None if text is None else Cel(expression=text)

    def _jsonpath(self, value: dict[str, Any], pointer: str) -> Condition | None:
        query = self._text(value, "jsonpath", "", pointer)
        operator = self._text(value, "operator", "exists", pointer)
        of = self._of(value, pointer)
        if operator in jsonpath.UNARY and "value" in value:
            self.say(
                f"{pointer}/value",
                f"`{operator}` takes no value",
                f"leave `value` out, or {_comparing(operator)}",
            )
        takes_value = operator in jsonpath.OPERATORS and operator not in jsonpath.UNARY
        if takes_value and "value" not in value:
            self.say(pointer, f"`{operator}` needs a `value`")
        if query is None or operator is None or of is None:
            return None
        return JsonPath(query=query, operator=operator, value=value.get("value"), of=of)

    def _schema(self, value: dict[str, Any], pointer: str) -> Condition | None:
        of, place = self._of(value, pointer), f"{pointer}/schema"
        invert, schema = value.get("invert", False), value["schema"]
        if not isinstance(invert, bool):
            self.say(f"{pointer}/invert", f"`invert` is true or false, not {type_of(invert)}")
        if isinstance(schema, str) and schema.startswith(_BLOB):
            return self._blob(schema, place) and of and Matches(ref=schema, invert=invert, of=of)  # type: ignore[return-value]  # empty or None, which are both no condition
        if isinstance(schema, str):
            if schema not in self.schemas:
                known = ", ".join(sorted(map(str, self.schemas))[:10]) or "none"
                hint = nearest(schema, self.schemas) or f"there are: {known}"
                self.say(place, f"there is no schema `{schema}` under `schemas`", hint)
                return None
            schema = self.schemas[schema]
            if not is_schema(schema):  # which is told where it stands
                return None
        return None if of is None else Matches(schema=schema, invert=invert, of=of)

    def _compare(self, value: dict[str, Any], pointer: str) -> Condition | None:
        inner, place = value["compare"], f"{pointer}/compare"
        if not isinstance(inner, dict):
            self.say(place, "`compare` is an object with left, operator and right")
            return None
        self._unknown(inner, ("left", "operator", "right"), place)
        for name in ("left", "operator", "right"):
            if name not in inner:
                self.say(place, f"`{name}` is missing")
        operator = self._text(inner, "operator", "==", place)
        if operator is None:
            return None
        return Compare(left=inner.get("left"), operator=operator, right=inner.get("right"))

    def _python(self, value: dict[str, Any], pointer: str) -> Condition | None:
        source, of = self._text(value, "python", "", pointer), self._of(value, pointer)
        is_blob = bool(source and source.startswith(_BLOB))
        if source and is_blob:
            self._blob(source, f"{pointer}/python")
        needs = self._needs(value.get("needs", []), f"{pointer}/needs")
        timeout = self._time(value, f"{pointer}/timeout")
        memory = self._memory(value.get("max_memory_mb", 50), f"{pointer}/max_memory_mb")
        if source is None or of is None:
            return None
        code, ref = ("", source) if is_blob else (source, "")
        return Python(code=code, ref=ref, of=of, needs=needs, timeout_ms=timeout, memory_mb=memory)

    # ---- fields -----------------------------------------------------------------------------------------------

    def _text(self, value: dict[str, Any], name: str, default: str, pointer: str) -> str | None:
        text = value.get(name, default)
        if isinstance(text, str):
            return text
        self.say(f"{pointer}/{name}", f"`{name}` is a text, not {type_of(text)}")
        return None

    def _of(self, value: dict[str, Any], pointer: str) -> str | None:
        text = self._text(value, "of", self.default, pointer)
        return None if text is None else _bare(text)

    def _needs(self, needs: Any, pointer: str) -> tuple[str, ...]:
        if not isinstance(needs, list) or not all(isinstance(need, str) for need in needs):
            self.say(pointer, "`needs` is a list of expressions", "write [ctx.search.output, input]")
            return ()
        return tuple(map(_bare, needs))

    def _time(self, value: dict[str, Any], pointer: str) -> int:
        least, most = model.PYTHON_TIMEOUT_MS
        try:
            time = parse_duration(value.get("timeout", 1))
        except ValueError as error:
            self.say(pointer, str(error))
            return 0
        if not least <= time <= most:
            self.say(
                pointer,
                f"a function gets from {least} ms to {most // 1_000} s",
                "let a tool do what takes longer",
            )
        return time

    def _memory(self, memory: Any, pointer: str) -> int:
        least, most = model.PYTHON_MEMORY_MB
        if type(memory) is int and least <= memory <= most:
            return memory
        self.say(pointer, f"`max_memory_mb` is a whole number from {least} to {most}")
        return 0

    def _blob(self, reference: str, pointer: str) -> bool:
        if _REFERENCE.fullmatch(reference):
            return True
        self.say(
            pointer, f"`{reference[:100]}` names no blob", "write cas://sha256/ and 64 hexadecimal digits"
        )
        return False


def _comparing(operator: str) -> str:
    return "use `contains` or `==`" if operator == "exists" else "use `!=` or `not_in`"


def _bare(text: str) -> str:
    """Return an expression without the `${…}` around it, if it has that."""
    bare = text.strip()
    path = lone_path(bare)
    return path.text if path else bare


_SELF = {"$ref": "#/$defs/condition"}
_OF = {"$ref": "#/$defs/conditionOf"}


def _form(kind: str, description: str, what: Any, **beside: Any) -> dict[str, Any]:
    return {
        "title": kind,
        "description": description,
        "type": "object",
        "required": [kind],
        "additionalProperties": False,
        "properties": {kind: what, **beside},
    }


_CEL = {
    "type": "string",
    "minLength": 1,
    "maxLength": model.CEL_LENGTH,
    "examples": ["output.score >= 80 && ctx.enrich.output.revenue > 100000"],
}
_LIST = {"type": "array", "minItems": 1, "items": _SELF}
_COMPARISON = {
    "type": "object",
    "required": ["left", "operator", "right"],
    "additionalProperties": False,
    "properties": {
        "left": {"$ref": "#/$defs/value"},
        "operator": {"enum": list(COMPARE_OPERATORS)},
        "right": {"$ref": "#/$defs/value"},
    },
}

_CONDITION: dict[str, Any] = {
    "description": "A text is a CEL expression over output, input, ctx, saga, loop, join and last_error. A condition"
    " that breaks fails its node; it never counts as true.",
    "anyOf": [
        {**_CEL, "type": ["string", "boolean"], "title": "CEL"},
        _form("cel", "An expression in CEL that gives true or false.", _CEL),
        _form(
            "jsonpath",
            "Result of a query (RFC 9535), judged by an operator.",
            {"type": "string", "maxLength": model.QUERY_LENGTH + 64, "examples": ["$.items[*].amount"]},
            operator={"enum": list(JSONPATH_OPERATORS), "default": "exists"},
            value={"description": "Value that the operator compares with."},
            of=_OF,
        ),
        _form(
            "schema",
            "Holds when a value is valid by a JSON Schema: written here, named under `schemas`, or in a blob.",
            {"type": ["object", "boolean", "string"], "examples": [{"required": ["data"]}, "done"]},
            invert={"description": "Holds when the value is not valid.", "type": "boolean", "default": False},
            of=_OF,
        ),
        _form("compare", "Two values, compared.", _COMPARISON),
        _form("all", "Holds when all hold; asked in order, as far as needed.", _LIST),
        _form("any", "Holds when one holds; asked in order, as far as needed.", _LIST),
        _form("not", "Holds when the other does not.", _SELF),
        _form(
            "python",
            "`def evaluate(output, context)` in a sandbox, written here or in a blob.",
            {"type": "string", "examples": ["def evaluate(output, context):\n    return output['n'] > 3\n"]},
            of=_OF,
            needs={
                "description": "Expressions of the values in `context`, such as `context['search']['output']`.",
                "type": "array",
                "items": {"type": "string"},
                "examples": [["ctx.search.output", "input.city"]],
            },
            timeout={"$ref": "#/$defs/duration"},
            max_memory_mb={
                "type": "integer",
                "minimum": model.PYTHON_MEMORY_MB[0],
                "maximum": model.PYTHON_MEMORY_MB[1],
                "default": 50,
            },
        ),
    ],
    "examples": ["output.score >= 80", {"all": ["output.ok", {"not": {"jsonpath": "$.errors[0]"}}]}],
}
CONDITIONS: dict[str, dict[str, Any]] = {
    "condition": _CONDITION,
    "conditionOf": {
        "description": "Expression of the value to judge. The default is the output that the node has just given; in a "
        "`when` it is the saga's input.",
        "type": "string",
        "examples": ["${ctx.search.output}"],
    },
}
"""Definitions by the names that schemas refer to."""


_DEEPEST = 20
_TEXTS = {
    "date-time": "2026-12-24T19:30:00Z",
    "date": "2026-12-24",
    "time": "19:30:00Z",
    "duration": "PT1H",
    "email": "ada@example.com",
    "uri": "https://example.com",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
}


def example_of(schema: Any) -> tuple[Any] | None:
    """Return a valid value of the schema, as the only item because it may be null; None if none is found."""
    given = schema.get("examples") if isinstance(schema, Mapping) else None
    for value in (*(given if isinstance(given, list) else ()), {}, _made(schema, schema, _DEEPEST)):
        if not violations(schema, value):
            return (value,)
    return None


def _made(schema: Any, root: Any, deep: int) -> Any:
    if not isinstance(schema, Mapping) or not deep:
        return None
    if isinstance(ref := schema.get("$ref"), str):
        return _made(_found(root, ref), root, deep - 1)
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    for name in ("examples", "enum"):
        if isinstance(schema.get(name), list) and schema[name]:
            return schema[name][0]
    for name in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(name), list) and schema[name]:
            return _made(schema[name][0], root, deep - 1)
    return _of_type(schema, root, deep)


def _of_type(schema: Mapping[str, Any], root: Any, deep: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else None)
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "object":
            properties = schema.get("properties") or {}
            return {
                name: _made(properties.get(name), root, deep - 1) for name in schema.get("required") or ()
            }
        case "array":
            return [_made(schema.get("items"), root, deep - 1)] * int(schema.get("minItems") or 0)
        case "integer" | "number":
            return _number(schema)
        case "string":
            text = _TEXTS.get(schema.get("format", ""), "text")
            return text.ljust(int(schema.get("minLength") or 0), "x")[: int(schema.get("maxLength") or 1_000)]
        case "boolean":
            return True
    return None


def _number(schema: Mapping[str, Any]) -> float:
    if "minimum" in schema:
        return float(schema["minimum"]) if schema["minimum"] % 1 else int(schema["minimum"])
    least = schema.get("exclusiveMinimum", 0)
    return int(min(schema.get("maximum", least + 1), least + 1))


def _found(root: Any, ref: str) -> Any:
    """Return the target of a reference inside the schema; None for any other reference."""
    found = root if ref.startswith("#") else None
    for step in ref.lstrip("#").split("/")[1:]:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found
