"""The filter of an event source, as far as the template uses filters: fields that a record must have.

A pattern of Lambda's can do more (values, prefixes, numbers). What is not applied here is refused when it is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_MUST_EXIST = '[{"exists": true}]'


class InvalidPattern(ValueError):
    """Not a pattern, or one that is not applied locally; the message names the place."""


class Filters:
    """Filter criteria: a record passes if any of the patterns matches, or if there are none."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [_parse(pattern) for pattern in patterns]

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def match(self, record: Mapping[str, Any]) -> bool:
        return not self._patterns or any(_matches(pattern, record) for pattern in self._patterns)


def _parse(source: str) -> Mapping[str, Any]:
    try:
        pattern: Mapping[str, Any] = json.loads(source)
    except ValueError as error:
        raise InvalidPattern(f"the pattern is not valid JSON: {error}") from error
    _check(pattern, "$")
    return pattern


def _check(pattern: Any, where: str) -> None:
    if not isinstance(pattern, dict) or not pattern:
        said = json.dumps(pattern)
        raise InvalidPattern(f"{where}: {said} is not applied locally (known: fields, and {_MUST_EXIST})")
    for key, node in pattern.items():
        if json.dumps(node) != _MUST_EXIST:
            _check(node, f"{where}.{key}")


def _matches(pattern: Mapping[str, Any], value: Any) -> bool:
    """Only leaves exist: an object does not, as in EventBridge."""
    if not isinstance(value, Mapping):
        return False
    return all(
        _matches(node, value.get(key))
        if isinstance(node, dict)
        else key in value and not isinstance(value[key], Mapping)
        for key, node in pattern.items()
    )
