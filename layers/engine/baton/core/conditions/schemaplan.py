"""A compiled JSON Schema: the limits it must keep, and the values that each part applies to, for the bound
of work.

All of it is computed without a value. Users write schemas, so each schema is bounded. The cost of a schema
for a value is in matches.py; violations are in schema.py. The library that checks values never releases
Python's lock, so that a check cannot have a time limit. Its cost is bounded before it begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from baton.core.conditions import model, patterns
from baton.core.conditions.values import ResultCache

_PART_BYTES = 32  # memory of a compiled schema for each byte of it, about
_UNITS_OF_WEIGHT = 6  # as patterns.time_of
_AGAIN = 3  # `unevaluated…` looks again at what stands beside it

_HERE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_HERE_BY_NAME = ("dependentSchemas", "dependencies")
_OTHERS = ("additionalProperties", "unevaluatedProperties")
_ONE_OF_ITEMS = ("prefixItems", "items", "additionalItems", "unevaluatedItems")
_LITERAL = ("enum", "const", "required", "type", "dependentRequired", "dependencies")


_NO_PATTERN = 'is not a "regex"'
_REMEDY = "; patterns run in linear time: without look-around and back-references, and of a bounded size"
_ENCODED = re.compile("(?:%[0-9A-Fa-f]{2})+")


class SchemaError(Exception):
    """Error for a schema that is not valid, or exceeds a limit."""


class InvalidSchema(SchemaError):
    """Error for a schema that keeps all limits and is invalid.
    schemafaults.py reports its mistakes one by one.
    """


@dataclass(slots=True, eq=False)
class Subschema:
    """One schema inside another.

    `weight`: cost for one value; `text`: additional cost for each unit of a text. `here`: parts that are
    checked against the same value, `again` times. `names` and `others`: parts for the fields of an object.
    `items`: parts of which one is checked against each item of a list; `every`: parts that are all checked
    against each item. `keys`: parts for the names of the fields.
    """

    weight: int = 1
    text: int = 0
    again: int = 1
    here: list[Subschema] = field(default_factory=list)
    names: dict[str, Subschema] = field(default_factory=dict)
    others: list[Subschema] = field(default_factory=list)
    items: list[Subschema] = field(default_factory=list)
    every: list[Subschema] = field(default_factory=list)
    keys: list[Subschema] = field(default_factory=list)

    def inside(self) -> Iterator[Subschema]:
        """Yield all parts that this part leads to."""
        for parts in (self.here, self.names.values(), self.others, self.items, self.every, self.keys):
            yield from parts


@dataclass(frozen=True)
class SchemaPlan:
    """A compiled schema, with the number of its places when references are expanded.

    `is_endless`: the schema refers to itself, so the number of visits depends on the value. `has_unions`: a
    single violation may contain those of many parts.
    """

    validator: Any
    root: Subschema
    places: int
    is_endless: bool
    has_unions: bool
    bytes: int


def plan_for(schema: Any) -> SchemaPlan:
    """Return the plan of a schema, or of its JSON.

    Raises `SchemaError` for a value that is no schema, refers outside itself, or exceeds a limit.
    """
    if isinstance(schema, bytes):
        return plan_of(schema)
    if not isinstance(schema, (dict, bool)):
        raise SchemaError("a schema is an object")
    try:
        return plan_of(msgspec.json.encode(schema))
    except RecursionError as error:
        raise SchemaError("it is nested too deeply") from error


def is_schema(schema: Any) -> bool:
    """Return true if this is a JSON Schema that refers only into itself."""
    try:
        plan_for(schema)
    except SchemaError:
        return False
    return True


def _compiled(encoded: bytes) -> SchemaPlan:
    if len(encoded) > model.SCHEMA_BYTES:
        raise SchemaError(
            f"it has {len(encoded):,} bytes, at most {model.SCHEMA_BYTES:,}; leave out what you can"
        )
    import jsonschema_rs  # twelve megabytes, which most cold starts do not need

    schema = msgspec.json.decode(encoded)
    weight = _check(schema)
    parts = _Parts(schema)
    root = parts.of(schema)
    places = _Places()
    count = places.of(root)
    try:
        validator = jsonschema_rs.validator_for(
            schema, validate_formats=True, retriever=_refuse, pattern_options=patterns.options()
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        said = shorten_message(getattr(error, "message", None) or str(error))
        is_pattern = said.endswith(_NO_PATTERN)
        raise InvalidSchema(said + _REMEDY if is_pattern else said) from error
    size = _PART_BYTES * len(encoded) + patterns.pattern_bytes(weight)
    return SchemaPlan(validator, root, count, places.is_endless, parts.has_unions, size)


plan_of = ResultCache(_compiled, model.COMPILED_BYTES, lambda plan: plan.bytes)


def shorten_message(message: str) -> str:
    """Shorten a message to readable length. Messages of the library contain whole values."""
    is_long = len(message) > model.PROBLEM_LENGTH
    return f"{message[: model.PROBLEM_LENGTH]}…" if is_long else message


def _refuse(uri: str) -> Any:
    raise ValueError(f"references to other documents are not allowed: {uri}")


def _check(schema: Any) -> int:
    """Return the weight of all patterns. Raises `SchemaError` for parts that cannot be counted, at any
    place.
    """
    total, depth, level = 0, 0, [schema]
    while level:
        if depth > model.SCHEMA_DEPTH:
            raise SchemaError("it is nested too deeply")
        for part in level:
            if isinstance(part, dict):
                total += _patterns(part, is_root=part is schema)
        level = [
            item
            for part in level
            if isinstance(part, (dict, list))
            for item in (part.values() if isinstance(part, dict) else part)
        ]
        depth += 1
    if total > model.SCHEMA_PATTERNS:
        raise SchemaError(
            f"its patterns have a weight of {total:,}, at most {model.SCHEMA_PATTERNS:,}; repeat less: "
            "{1,1000} counts a thousand times"
        )
    return total


def _patterns(part: dict[str, Any], *, is_root: bool) -> int:
    for key in ("$dynamicRef", "$recursiveRef"):
        if isinstance(part.get(key), (str, bool)):
            raise SchemaError(f"`{key}` cannot be used; write `$ref`")
    if isinstance(part.get("$id"), str) and not is_root:
        raise SchemaError("`$id` cannot be used inside a schema; write `$defs` and `$ref`")
    return _weight_of(part)


def _weight_of(part: dict[str, Any]) -> int:
    """Return the weight of the patterns of one part. Raises `SchemaError`."""
    named = part.get("patternProperties")
    found = [*named] if isinstance(named, dict) else []
    if isinstance(part.get("pattern"), str):
        found.append(part["pattern"])
    weights = [patterns.weight(pattern) for pattern in found]
    if max(weights, default=0) > model.PATTERN_WEIGHT:
        raise SchemaError(
            f"a pattern has a weight of {max(weights):,}, at most {model.PATTERN_WEIGHT:,}; repeat less: "
            "{1,1000} counts a thousand times"
        )
    return sum(weights)


class _Parts:
    """The parts of a schema by the values that they apply to. A part with two references is one part."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._known: dict[int, Subschema] = {}
        self._referred: dict[str, Subschema] = {}
        self.has_unions = False

    def of(self, schema: Any) -> Subschema:
        """Return the part of a schema. Raises `SchemaError` for a reference that leads elsewhere or through
        too many references.
        """
        if not isinstance(schema, dict):
            return Subschema()
        known = self._known.get(id(schema))
        if known is not None:
            return known
        part = self._known[id(schema)] = Subschema(weight=1 + len(schema))
        part.weight += sum(_size(schema[key]) for key in _LITERAL if key in schema)
        part.text = -(-_weight_of(schema) // _UNITS_OF_WEIGHT)
        part.again = _AGAIN if "unevaluatedProperties" in schema or "unevaluatedItems" in schema else 1
        self.has_unions |= "anyOf" in schema or "oneOf" in schema
        for key in _HERE:
            part.here += self._all(schema.get(key))
        for key in _HERE_BY_NAME:
            part.here += self._named(schema.get(key)).values()
        if isinstance(schema.get("$ref"), str):
            part.here.append(self._target(schema["$ref"]))
        part.names = self._named(schema.get("properties"))
        part.others = [*self._named(schema.get("patternProperties")).values()]
        for key in _OTHERS:
            part.others += self._all(schema.get(key))
        for key in _ONE_OF_ITEMS:
            part.items += self._all(schema.get(key))
        part.every = self._all(schema.get("contains"))
        if schema.get("uniqueItems") is True:
            part.every.append(_HASHED)
        part.keys = self._all(schema.get("propertyNames"))
        part.weight += len(part.names) + len(part.others) + len(part.here)
        return part

    def _all(self, schema: Any) -> list[Subschema]:
        if isinstance(schema, list):
            return [self.of(one) for one in schema]
        return [self.of(schema)] if isinstance(schema, (dict, bool)) else []

    def _named(self, schemas: Any) -> dict[str, Subschema]:
        if not isinstance(schemas, dict):
            return {}
        return {name: self.of(schema) for name, schema in schemas.items() if isinstance(schema, (dict, bool))}

    def _target(self, reference: str) -> Subschema:
        known = self._referred.get(reference)
        if known is not None:
            return known
        if not reference.startswith("#"):
            raise InvalidSchema(f"references to other documents are not allowed: {reference}")
        found = next(_targets(self._schema, reference), None)
        if found is None:
            raise InvalidSchema(f"there is no `{reference}`")
        part = self._referred[reference] = self.of(found)
        return part


_HASHED = Subschema(weight=4)
_HASHED.others = _HASHED.items = [_HASHED]


class _Places:
    """Counter of places. A part counts once for each reference that leads to it; a recursive part counts
    once.
    """

    def __init__(self) -> None:
        self._known: dict[int, int] = {id(_HASHED): 4}
        self._begun: set[int] = set()
        self.is_endless = False

    def of(self, part: Subschema, depth: int = 0) -> int:
        """Return the number of places of a part. Raises `SchemaError` for too many."""
        known = self._known.get(id(part))
        if known is not None:
            return known
        if depth > model.SCHEMA_DEPTH:
            raise SchemaError("it is nested too deeply")
        if id(part) in self._begun:
            self.is_endless = True
            return 1
        self._begun.add(id(part))
        total = part.weight + part.text
        for inner in part.inside():
            total += part.again * self.of(inner, depth + 1)
        if total > model.SCHEMA_PLACES:
            raise SchemaError(
                f"it has {total:,} places and more, counting each as often as its references lead to it, at most "
                f"{model.SCHEMA_PLACES:,}; refer to the same definition less often"
            )
        self._known[id(part)] = total
        return total


def _size(literal: Any) -> int:
    """Return the number of values in the literal, plus one for each 32 characters of text."""
    if isinstance(literal, str):
        return 1 + (len(literal) >> 5)
    if isinstance(literal, dict):
        return 1 + sum(1 + _size(key) + _size(item) for key, item in literal.items())
    return 1 + sum(map(_size, literal)) if isinstance(literal, list) else 1


def _targets(schema: Any, reference: str) -> Iterator[Any]:
    """Yield the targets of a JSON Pointer or an anchor."""
    if not reference.startswith("#/"):
        if reference == "#":
            yield schema
        else:
            yield from _anchored(schema, reference[1:])
        return
    here = schema
    plain = _ENCODED.sub(
        lambda found: bytes.fromhex(found[0].replace("%", "")).decode(errors="replace"), reference[2:]
    )
    for token in plain.split("/"):
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(here, dict) and key in here:
            here = here[key]
        elif isinstance(here, list) and key.isdecimal() and int(key[:9]) < len(here):
            here = here[int(key[:9])]
        else:
            return
    yield here


def _anchored(schema: Any, name: str) -> Iterator[Any]:
    if isinstance(schema, dict):
        if name in (schema.get("$anchor"), schema.get("$dynamicAnchor")):
            yield schema
        for item in schema.values():
            yield from _anchored(item, name)
    elif isinstance(schema, list):
        for item in schema:
            yield from _anchored(item, name)
