"""Conditions that validate a value against a JSON Schema, written in the document or in a blob.

The limits of a schema are in schemaplan.py and in this file. Validation of inputs and outputs, with its
violations, is in schema.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from baton.core.conditions import model
from baton.core.conditions.model import INVALID, MISSING, TOO_LARGE, ConditionError, Facts, Fault, Matches
from baton.core.conditions.reading import path_of, value_of
from baton.core.conditions.schemaplan import InvalidSchema, SchemaError, SchemaPlan, Subschema, plan_for
from baton.core.conditions.values import measure
from baton.core.expressions import ExpressionError, Path
from baton.core.on_demand import OnDemand

if TYPE_CHECKING:
    from baton.core.conditions import schemafaults
else:
    schemafaults = OnDemand("baton.core.conditions.schemafaults")

_WORK_REMEDY = "give less of it at once, or simplify the schema"
_MESSAGE = 30  # units of a violation, besides the value that it is about
_NAMES = 200  # fields that are told apart at one path
_FEW = 100_000  # bytes of the value times places of the schema: there is less to look at, and little to tell


class TooMuch(Exception):
    """Error for a value that is too large or too deep for its schema, with the remedy."""


@dataclass(slots=True, eq=False)
class _Seen:
    """The values at one path, where all items of a list share a path: their count, and the units of their
    texts and of all content.

    `more`: the fields of an object that has very many.
    """

    count: int = 0
    texts: int = 0
    total: int = 0
    fields: dict[str, _Seen] = field(default_factory=dict)
    more: _Seen | None = None
    items: _Seen | None = None
    keys: _Seen | None = None


def check_work(plan: SchemaPlan, value: Any) -> None:
    """Raise `TooMuch` if a check would exceed the limit of work."""
    if plan.is_endless or _bytes(value) * plan.places > model.SCHEMA_WORK:
        _counted(plan, value)


def can_report_violations(plan: SchemaPlan, value: Any) -> bool:
    """Return true if the library can report all violations within the limit of memory:
    it copies the value's part for each.
    """
    if not plan.is_endless and _bytes(value) * plan.places <= _FEW:
        return True
    try:
        return _counted(plan, value) <= model.SCHEMA_TOLD
    except TooMuch:
        return False


def _bytes(value: Any) -> int:
    return len(msgspec.json.encode(value))


def _counted(plan: SchemaPlan, value: Any) -> int:
    """Return the units that a report of all violations may copy.
    Raises `TooMuch` for more work than the limit.
    """
    seen = _Seen()
    try:
        _look(value, seen, 0)
        looks, told = _Count().of(plan.root, seen)
    except RecursionError as error:
        raise TooMuch(f"the value is nested too deeply for its schema; {_WORK_REMEDY}") from error
    if looks > model.SCHEMA_WORK:
        raise TooMuch(
            f"the value is too large for its schema: {looks:,} places to look at, at most "
            f"{model.SCHEMA_WORK:,}; {_WORK_REMEDY}"
        )
    return told


def _look(value: Any, seen: _Seen, depth: int) -> int:
    """Add a value and return its size in units. Raises `TooMuch` for a value that is nested too deeply."""
    size = 1
    if isinstance(value, str):
        size += len(value) >> 5
        seen.texts += size
    elif isinstance(value, (dict, list)):
        if depth >= model.DATA_DEPTH:
            raise TooMuch(f"the value is nested deeper than {model.DATA_DEPTH} levels; make it flatter")
        below = depth + 1
        size += _fields(value, seen, below) if isinstance(value, dict) else _items(value, seen, below)
    seen.count += 1
    seen.total += size
    return size


def _items(value: list[Any], seen: _Seen, depth: int) -> int:
    inner = seen.items = seen.items or _Seen()
    size = plain = 0
    for item in value:
        kind = type(item)
        if kind is str or kind is dict or kind is list:
            size += _look(item, inner, depth)
        else:
            plain += 1
    inner.count += plain
    inner.total += plain
    return size + plain


def _fields(value: dict[str, Any], seen: _Seen, depth: int) -> int:
    size, keys = 0, seen.keys or _Seen()
    seen.keys = keys
    for key, item in value.items():
        inner = seen.fields.get(key)
        if inner is None:
            if len(seen.fields) < _NAMES:
                inner = seen.fields[key] = _Seen()
            else:
                inner = seen.more = seen.more or _Seen()
        length = 1 + (len(key) >> 5)
        size += length + _look(item, inner, depth)
        keys.count += 1
        keys.texts += length
    keys.total += len(value) * size
    return size


class _Count:
    """Work of pairs of a part of the schema and a path of the value, each computed once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[int, int]] = {}

    def of(self, part: Subschema, seen: _Seen) -> tuple[int, int]:
        """Return the places to check and the units to report. Raises `TooMuch`."""
        pair = (id(part), id(seen))
        known = self._known.get(pair)
        if known is not None:
            return known
        if len(self._known) >= model.SCHEMA_PAIRS:
            raise TooMuch(f"the value is too large for its schema; {_WORK_REMEDY}")
        self._known[pair] = (0, 0)  # what is inside itself for the same value is looked at once
        looks = part.weight * seen.count + part.text * seen.texts
        told = part.weight * (_MESSAGE * seen.count + seen.total)
        below = [self.of(inner, seen) for inner in part.here]
        if seen.keys is not None:
            looks += part.text * seen.keys.texts  # the patterns of `patternProperties` are held against names
            below += [self.of(inner, seen.keys) for inner in part.keys]
            for name, field_seen in seen.fields.items():
                named = [part.names[name]] if name in part.names else []
                below += [self.of(inner, field_seen) for inner in (*named, *part.others)]
        if seen.more is not None:
            below += [self.of(inner, seen.more) for inner in part.others]
            below.append(self._most(part.names.values(), seen.more))
        if seen.items is not None:
            below += [self.of(inner, seen.items) for inner in part.every]
            below.append(self._most(part.items, seen.items))
        looks += part.again * sum(one for one, _ in below)
        told += part.again * sum(one for _, one in below)
        self._known[pair] = (looks, told)
        return looks, told

    def _most(self, parts: Iterable[Subschema], seen: _Seen) -> tuple[int, int]:
        """Return the maximum over parts of which each value is validated against one."""
        each = [(0, 0), *(self.of(part, seen) for part in parts)]
        return max(one for one, _ in each), max(one for _, one in each)


def faults(condition: Matches) -> list[Fault]:
    """Return the faults of the condition."""
    found = []
    if not condition.ref:
        try:
            plan_for(condition.schema)
        except SchemaError as error:
            told = _told(condition.schema) if isinstance(error, InvalidSchema) else []
            found += told or [Fault("schema", f"not a JSON Schema: {error}")]
    try:
        path_of(condition.of)
    except ExpressionError as error:
        found.append(Fault("of", str(error)))
    return found


def _told(schema: Any) -> list[Fault]:
    return [
        Fault(f"schema{one.path}", one.message, one.suggestion) for one in schemafaults.schema_faults(schema)
    ]


def names(condition: Matches) -> tuple[Path, ...]:
    """Return the path that the condition reads."""
    return (path_of(condition.of),)


def judge(condition: Matches, facts: Facts) -> bool:
    """Return true if the condition holds. Raises `ConditionError`."""
    schema = condition.schema
    if condition.ref:
        if condition.ref not in facts.blobs:
            raise ConditionError(MISSING, f"the schema {condition.ref} is not there")
        schema = facts.blobs[condition.ref]
    try:
        plan = plan_for(schema)
    except SchemaError as error:
        raise ConditionError(
            INVALID, f"{condition.ref or '`schema`'} is not a JSON Schema: {error}"
        ) from error
    value = value_of(condition.of, facts.lookup)
    measure(value)
    try:
        check_work(plan, value)
    except TooMuch as error:
        raise ConditionError(TOO_LARGE, f"{error}, or use `of`") from error
    return bool(plan.validator.is_valid(value)) is not condition.invert
