"""Conditions that hold a value against a JSON Schema: written here, or taken from a blob.

Belongs here: what of JSON Schema a condition may use, and what it may cost. Validation that reports what is wrong,
of inputs and outputs, is core/schema.py's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from baton.core.conditions import caps
from baton.core.conditions.model import Matches
from baton.core.conditions.outcome import INVALID, MISSING, TOO_LARGE, ConditionError, Facts, Fault
from baton.core.conditions.reading import path_of, value_of
from baton.core.conditions.values import measure
from baton.core.expressions import ExpressionError, Path

_PATTERN_BYTES = 1 << 20


class BadSchema(Exception):
    """What is wrong with a schema."""


class _NoSchema(BadSchema):
    """One that the library refuses, of a size that it can look at."""


@dataclass(frozen=True)
class Plan:
    """A compiled schema, and how many places it has once its references stand where they lead."""

    validator: Any
    places: int


def _refuse(uri: str) -> Any:
    raise ValueError(f"references to other documents are not allowed: {uri}")


def plan_for(schema: Any) -> Plan:
    """Raises `BadSchema`."""
    if not isinstance(schema, (dict, bool)):
        raise BadSchema("a schema is an object")
    try:
        encoded = msgspec.json.encode(schema)
    except RecursionError as error:
        raise BadSchema("it is nested too deeply") from error
    return _plan(encoded)


@lru_cache(maxsize=caps.PLANS)
def _plan(encoded: bytes) -> Plan:
    if len(encoded) > caps.SCHEMA_BYTES:
        raise BadSchema(f"it has more than {caps.SCHEMA_BYTES} bytes")
    import jsonschema_rs  # twelve megabytes, which most cold starts do not need

    schema = msgspec.json.decode(encoded)
    places = _Places(schema).count(schema)
    options = jsonschema_rs.RegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES)
    try:
        validator = jsonschema_rs.validator_for(
            schema, validate_formats=True, retriever=_refuse, pattern_options=options
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise _NoSchema(getattr(error, "message", None) or str(error)) from error
    return Plan(validator, places)


class _Places:
    """Counts the places of a schema. The library looks at one as often as a reference leads to it."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._known: dict[str, int] = {}

    def count(self, part: Any, depth: int = 0) -> int:
        """Raises `BadSchema` for a reference that leads elsewhere, and for too many places."""
        if depth > caps.SCHEMA_DEPTH:
            raise BadSchema("it is nested too deeply")
        total = 1
        if isinstance(part, list):
            total += sum(self.count(item, depth + 1) for item in part)
        elif isinstance(part, dict):
            for key, item in part.items():
                if key in {"$dynamicRef", "$recursiveRef"}:
                    raise BadSchema(f"`{key}` cannot be used in a condition; write `$ref`")
                if key == "$ref" and isinstance(item, str):
                    total += self._referred(item, depth)
                else:
                    total += self.count(item, depth + 1)
        if total > caps.SCHEMA_WORK:
            raise BadSchema("its references lead to too many places")
        return total

    def _referred(self, reference: str, depth: int) -> int:
        if not reference.startswith("#"):
            raise BadSchema(f"references to other documents are not allowed: {reference}")
        if reference not in self._known:
            self._known[reference] = 1  # what refers to itself goes on with the data, which have an end
            target = next(_targets(self._schema, reference), None)
            if target is None:
                raise BadSchema(f"there is no `{reference}`")
            self._known[reference] = self.count(target, depth + 1)
        return self._known[reference]


def _targets(schema: Any, reference: str) -> Iterator[Any]:
    """What a JSON Pointer or an anchor leads to."""
    if not reference.startswith("#/"):
        if reference == "#":
            yield schema
        else:
            yield from _anchored(schema, reference[1:])
        return
    here = schema
    for token in reference[2:].split("/"):
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
        if schema.get("$anchor") == name:
            yield schema
        for item in schema.values():
            yield from _anchored(item, name)
    elif isinstance(schema, list):
        for item in schema:
            yield from _anchored(item, name)


def faults(condition: Matches) -> list[Fault]:
    """What is wrong with it as it is written."""
    found = []
    if not condition.ref:
        try:
            plan_for(condition.schema)
        except BadSchema as error:
            told = _told(condition.schema) if isinstance(error, _NoSchema) else []
            found += told or [Fault("schema", f"not a JSON Schema: {error}")]
    try:
        path_of(condition.of)
    except ExpressionError as error:
        found.append(Fault("of", str(error)))
    return found


def _told(schema: Any) -> list[Fault]:
    from baton.core import schemafaults  # only what compiles documents needs it

    return [Fault(f"schema{one.path}", one.message, one.suggestion) for one in schemafaults.faults(schema)]


def names(condition: Matches) -> tuple[Path, ...]:
    """What it reads."""
    return (path_of(condition.of),)


def judge(condition: Matches, facts: Facts) -> bool:
    """Raises `ConditionError`."""
    schema = condition.schema
    if condition.ref:
        if condition.ref not in facts.blobs:
            raise ConditionError(MISSING, f"the schema {condition.ref} is not there")
        schema = facts.blobs[condition.ref]
    try:
        plan = plan_for(schema)
    except BadSchema as error:
        raise ConditionError(
            INVALID, f"{condition.ref or '`schema`'} is not a JSON Schema: {error}"
        ) from error
    value = value_of(condition.of, facts.lookup)
    if measure(value).size * plan.places > caps.SCHEMA_WORK:
        raise ConditionError(
            TOO_LARGE, f"{plan.places} places of a schema are too many for a value of that size; use `of`"
        )
    return bool(plan.validator.is_valid(value)) is not condition.invert
