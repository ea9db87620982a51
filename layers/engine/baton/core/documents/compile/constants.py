"""Conditions whose answer does not depend on any value."""

from __future__ import annotations

from collections.abc import Iterable

from baton.core.conditions import ConditionError, judge, names_of
from baton.core.conditions.model import AllOf, AnyOf, Condition, Matches, Not, Python
from baton.core.expressions import Path


def always_holds(condition: Condition | None) -> bool:
    """Whether it certainly does, whatever the values are."""
    return condition is not None and _constant(condition) is True


def _constant(condition: Condition) -> bool | None:
    """The answer of a constant condition; None for one that depends on a value, or breaks."""
    if isinstance(condition, AllOf):
        return _of_all(map(_constant, condition.conditions))
    if isinstance(condition, AnyOf):
        return _not(_of_all(map(_not, map(_constant, condition.conditions))))
    if isinstance(condition, Not):
        return _not(_constant(condition.condition))
    if isinstance(condition, Matches) and (isinstance(condition.schema, bool) or condition.schema == {}):
        return (condition.schema is not False) != condition.invert
    if isinstance(condition, Python) or names_of(condition):
        return None
    try:
        return judge(condition, _NO_VALUES.__getitem__, {}, {})
    except ConditionError:
        return None


def _of_all(values: Iterable[bool | None]) -> bool | None:
    found = set(values)
    return False if False in found else None if None in found else True


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


_NO_VALUES: dict[Path, object] = {}
