"""Conditions that hold a value against a JSON Schema: written here, or taken from a blob.

What any schema may ask for is in schemaplan.py and schemawork.py. Validation of inputs and outputs, which reports
what is wrong, is in schema.py.
"""

from __future__ import annotations

from typing import Any

from baton.core.conditions.model import Matches
from baton.core.conditions.outcome import INVALID, MISSING, TOO_LARGE, ConditionError, Facts, Fault
from baton.core.conditions.reading import path_of, value_of
from baton.core.conditions.schemaplan import NoSchema, SchemaError, plan_for
from baton.core.conditions.schemawork import TooMuch, check_work
from baton.core.conditions.values import measure
from baton.core.expressions import ExpressionError, Path


def faults(condition: Matches) -> list[Fault]:
    """What is wrong with it as it is written."""
    found = []
    if not condition.ref:
        try:
            plan_for(condition.schema)
        except SchemaError as error:
            told = _told(condition.schema) if isinstance(error, NoSchema) else []
            found += told or [Fault("schema", f"not a JSON Schema: {error}")]
    try:
        path_of(condition.of)
    except ExpressionError as error:
        found.append(Fault("of", str(error)))
    return found


def _told(schema: Any) -> list[Fault]:
    from baton.core.conditions import schemafaults  # only what compiles documents needs it

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
