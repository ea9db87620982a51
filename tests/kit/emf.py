"""CloudWatch's side of a metric in a log line: the schema of such a line, and what it makes of many of them.

Written from the facts of "Specification: Embedded metric format" (CloudWatch user guide) and from the limits of
CloudWatch's dimensions; no code of the engine in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import jsonschema_rs

_TEXT = {"type": "string", "minLength": 1}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["_aws"],
    "properties": {
        "_aws": {
            "type": "object",
            "required": ["Timestamp", "CloudWatchMetrics"],
            "additionalProperties": False,
            "properties": {
                "Timestamp": {"type": "integer", "minimum": 1_000_000_000_000},
                "CloudWatchMetrics": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["Namespace", "Dimensions", "Metrics"],
                        "additionalProperties": False,
                        "properties": {
                            "Namespace": {**_TEXT, "maxLength": 1_024, "pattern": "^(?!AWS/)"},
                            "Dimensions": {
                                "type": "array",
                                "minItems": 1,
                                "items": {
                                    "type": "array",
                                    "maxItems": 30,
                                    "uniqueItems": True,
                                    "items": {**_TEXT, "maxLength": 250},
                                },
                            },
                            "Metrics": {
                                "type": "array",
                                "minItems": 1,
                                "maxItems": 100,
                                "items": {
                                    "type": "object",
                                    "required": ["Name"],
                                    "additionalProperties": False,
                                    "properties": {
                                        "Name": {**_TEXT, "maxLength": 1_024},
                                        "Unit": {"enum": ["Count", "Milliseconds", "Seconds", "Percent", "None"]},
                                        "StorageResolution": {"enum": [1, 60]},
                                    },
                                },
                            },
                        },
                    },
                },
            },
        }
    },
}  # fmt: skip
_VALIDATOR = jsonschema_rs.validator_for(SCHEMA)
MOST_BYTES = 262_144  # the smaller of the two limits that are told of a log event

Sums = dict[tuple[str, tuple[tuple[str, str], ...]], list[float]]


def read(lines: Iterable[str]) -> Sums:
    """The values that CloudWatch gets: by metric, and by dimensions with their values. Fails for what it would not take."""
    found: Sums = {}
    for line in lines:
        assert "\n" not in line
        assert len(line.encode()) <= MOST_BYTES
        document = json.loads(line)
        _VALIDATOR.validate(document)
        for directive in document["_aws"]["CloudWatchMetrics"]:
            for names in directive["Dimensions"]:
                where = tuple((name, _dimension(document[name])) for name in names)
                for metric in directive["Metrics"]:
                    found.setdefault((metric["Name"], where), []).extend(_values(document[metric["Name"]]))
    return found


def total(found: Sums, metric: str, **where: str) -> float:
    """The sum of a metric over one set of dimensions."""
    return sum(found.get((metric, tuple(where.items())), ()))


def _dimension(value: object) -> str:
    assert isinstance(value, str)
    assert 0 < len(value) <= 1_024
    assert value.isascii()
    assert value.strip()
    return value


def _values(value: Any) -> list[float]:
    values = value if isinstance(value, list) else [value]
    assert 0 < len(values) <= 100
    assert all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)
    return values
