"""Lambda's filter patterns for event sources: does a record match? Pure; patterns are checked when read.

Covers equality, exists, prefix, suffix, anything-but, numeric, equals-ignore-case and $or.
Source of the semantics: Lambda developer guide, "Control which events Lambda sends to your function".
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OPERATORS = ("exists", "prefix", "suffix", "anything-but", "numeric", "equals-ignore-case")
_ABSENT = object()


class InvalidPattern(ValueError):
    """The pattern is not one that Lambda would accept; the message names the place."""


class Filters:
    """Filter criteria: a record passes if any of the patterns matches, or if there are none."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [_parse(pattern) for pattern in patterns]

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def match(self, record: Mapping[str, Any]) -> bool:
        return not self._patterns or any(_match_object(pattern, record) for pattern in self._patterns)


def _parse(source: str) -> Mapping[str, Any]:
    try:
        pattern = json.loads(source)
    except ValueError as error:
        raise InvalidPattern(f"the pattern is not valid JSON: {error}") from error
    if not isinstance(pattern, dict):
        raise InvalidPattern("the pattern must be a JSON object")
    _check_object(pattern, "$")
    return pattern


def _check_object(pattern: Mapping[str, Any], where: str) -> None:
    if not pattern:
        raise InvalidPattern(f"{where}: an empty object matches nothing")
    for key, node in pattern.items():
        place = f"{where}.{key}"
        if key == "$or":
            if not isinstance(node, list) or not all(isinstance(part, dict) for part in node):
                raise InvalidPattern(f"{place}: must be a list of objects")
            for part in node:
                _check_object(part, place)
        elif isinstance(node, dict):
            _check_object(node, place)
        elif isinstance(node, list) and node:
            for rule in node:
                _check_rule(rule, place)
        else:
            raise InvalidPattern(f"{place}: must be an object or a list of alternatives that is not empty")


def _check_rule(rule: Any, where: str) -> None:
    if rule is None or isinstance(rule, (str, bool, int, float)):
        return
    if not isinstance(rule, dict) or len(rule) != 1:
        raise InvalidPattern(f"{where}: {json.dumps(rule)} is neither a value nor one operator")
    ((name, argument),) = rule.items()
    if name not in _OPERATORS:
        raise InvalidPattern(f"{where}: unknown operator {name} (known: {', '.join(_OPERATORS)})")
    if name == "exists" and not isinstance(argument, bool):
        raise InvalidPattern(f"{where}: exists takes true or false")
    if name in {"prefix", "suffix", "equals-ignore-case"} and not isinstance(argument, str):
        raise InvalidPattern(f"{where}: {name} takes a string")
    if name == "numeric":
        _check_numeric(argument, where)


def _check_numeric(argument: Any, where: str) -> None:
    pairs = isinstance(argument, list) and len(argument) in (2, 4)
    if not pairs or not all(
        (item in _COMPARE if index % 2 == 0 else _is_number(item)) for index, item in enumerate(argument)
    ):
        raise InvalidPattern(f'{where}: numeric takes a comparison such as [">", 0, "<=", 5]')


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _match_object(pattern: Mapping[str, Any], value: Any) -> bool:
    for key, node in pattern.items():
        if key == "$or":
            if not any(_match_object(part, value) for part in node):
                return False
        elif isinstance(node, dict):
            if not _match_nested(node, value.get(key) if isinstance(value, Mapping) else None):
                return False
        else:
            found = value.get(key, _ABSENT) if isinstance(value, Mapping) else _ABSENT
            if not any(_match_rule(rule, found) for rule in node):
                return False
    return True


def _match_nested(pattern: Mapping[str, Any], value: Any) -> bool:
    # A list on the way is looked into: one element that matches is enough.
    if isinstance(value, list):
        return any(_match_object(pattern, item) for item in value)
    return _match_object(pattern, value)


def _match_rule(rule: Any, value: Any) -> bool:
    if isinstance(rule, dict) and "exists" in rule:
        # Only leaves exist: an object at this place does not count, as in EventBridge.
        is_leaf = value is not _ABSENT and not isinstance(value, Mapping)
        return bool(rule["exists"] == is_leaf)
    if isinstance(value, list):
        return any(_match_leaf(rule, item) for item in value)
    return value is not _ABSENT and not isinstance(value, Mapping) and _match_leaf(rule, value)


def _match_leaf(rule: Any, value: Any) -> bool:
    if not isinstance(rule, dict):
        return _equal(rule, value)
    ((name, argument),) = rule.items()
    if name == "anything-but":
        options = argument if isinstance(argument, list) else [argument]
        return not any(_match_leaf(option, value) for option in options)
    if name == "numeric":
        return _is_number(value) and all(
            _COMPARE[argument[index]](value, argument[index + 1]) for index in range(0, len(argument), 2)
        )
    if not isinstance(value, str):
        return False
    if name == "prefix":
        return value.startswith(argument)
    if name == "suffix":
        return value.endswith(argument)
    return value.casefold() == str(argument).casefold()


def _equal(expected: Any, value: Any) -> bool:
    # JSON's types are kept apart: 1 is neither "1" nor true (which are equal in Python).
    if _is_number(expected) and _is_number(value):
        return bool(expected == value)
    return type(expected) is type(value) and bool(expected == value)
