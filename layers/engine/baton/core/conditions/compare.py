"""Conditions that compare two values, each JSON with expressions.

Calculations are CEL's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from baton.core.conditions import model
from baton.core.conditions.model import MISSING, Compare, ConditionError, Facts, Fault
from baton.core.conditions.values import (
    COMPARISONS,
    MEMBERSHIPS,
    ORDERINGS,
    compared,
    is_number,
    measure,
    member,
    type_of,
    unknown_operator,
)
from baton.core.expressions import (
    ExpressionError,
    Path,
    Template,
    compile_template,
    expressions_in,
    lone_path,
)

OPERATORS = (*COMPARISONS, *MEMBERSHIPS)
_UNKNOWN = ""


def template_of(value: Any) -> Template:
    """Compiled once. Raises `ExpressionError`."""
    return _template(msgspec.json.encode(value))


@lru_cache(maxsize=2 * model.PLANS)
def _template(encoded: bytes) -> Template:
    return compile_template(msgspec.json.decode(encoded))


def faults(condition: Compare) -> list[Fault]:
    """Return the faults of a comparison that are visible without data."""
    found = []
    for side, value in (("left", condition.left), ("right", condition.right)):
        for pointer, expression in expressions_in(value, f"compare/{side}"):
            if isinstance(expression, ExpressionError):
                found.append(Fault(pointer, str(expression)))
    if condition.operator not in OPERATORS:
        said = unknown_operator(condition.operator, OPERATORS, ", ".join(OPERATORS))
        found.append(Fault("compare/operator", *said))
    elif not found:
        found += _types(condition)
    return found


def _types(condition: Compare) -> list[Fault]:
    """Return the faults of operands whose types can never be compared, whatever the expressions give."""
    left, right = _type(condition.left), _type(condition.right)
    operator = condition.operator
    for side, kind in (("left", left), ("right", right)):
        if operator in ORDERINGS and kind not in {_UNKNOWN, "a number", "a text"}:
            return [Fault(f"compare/{side}", f"`{operator}` compares numbers or texts, not {kind}")]
    if operator in MEMBERSHIPS:
        side, whole = ("left", left) if operator == "contains" else ("right", right)
        if whole not in {_UNKNOWN, "a list", "an object", "a text"}:
            message = f"`{operator}` looks into a list, an object or a text, not {whole}"
            return [Fault(f"compare/{side}", message)]
    elif _UNKNOWN not in {left, right} and left != right:
        message = f"{left} is never compared with {right}"
        return [Fault("compare/right", message, _same_type(condition.left, condition.right))]
    return []


def _same_type(left: Any, right: Any) -> str:
    if is_number(left) or is_number(right):
        return "write numbers without quotation marks"
    return "write two values of one type"


def _type(value: Any) -> str:
    return _UNKNOWN if lone_path(value) else type_of(value)


def names(condition: Compare) -> tuple[Path, ...]:
    """Paths that the condition reads."""
    return template_of(condition.left).paths + template_of(condition.right).paths


def judge(condition: Compare, facts: Facts) -> bool:
    """Return true if the condition holds. Raises `ConditionError`."""
    try:
        left, right = (template_of(value).render(facts.lookup) for value in (condition.left, condition.right))
    except ExpressionError as error:
        raise ConditionError(MISSING, str(error)) from error
    measure([left, right])
    judges = member if condition.operator in MEMBERSHIPS else compared
    return judges(left, condition.operator, right)
