"""Which records an event source's filter lets pass, and which patterns are refused. Values in, values out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.local.filter_pattern import Filters, InvalidPattern


def matches(pattern: Any, record: dict[str, Any]) -> bool:
    return Filters([json.dumps(pattern)]).match(record)


@pytest.mark.parametrize(
    ("pattern", "record", "passes"),
    [
        ({"a": ["x", "y"]}, {"a": "y"}, True),
        ({"a": ["x", "y"]}, {"a": "z"}, False),
        ({"a": [1]}, {"a": 1.0}, True),
        ({"a": [1]}, {"a": "1"}, False),
        ({"a": [1]}, {"a": True}, False),
        ({"a": [True]}, {"a": True}, True),
        ({"a": [None]}, {"a": None}, True),
        ({"a": [None]}, {}, False),
        ({"a": ["x"]}, {"a": ["w", "x"]}, True),
        ({"a": {"b": ["x"]}}, {"a": {"b": "x"}}, True),
        ({"a": {"b": ["x"]}}, {"a": "x"}, False),
        ({"a": {"b": ["x"]}}, {"a": [{"b": "w"}, {"b": "x"}]}, True),
        ({"a": ["x"], "b": ["y"]}, {"a": "x", "b": "z"}, False),
        ({"$or": [{"a": ["x"]}, {"b": ["y"]}]}, {"a": "w", "b": "y"}, True),
        ({"$or": [{"a": ["x"]}, {"b": ["y"]}]}, {"a": "w", "b": "w"}, False),
        ({"a": [{"prefix": "du"}]}, {"a": "due"}, True),
        ({"a": [{"prefix": "du"}]}, {"a": 5}, False),
        ({"a": [{"suffix": "ue"}]}, {"a": "due"}, True),
        ({"a": [{"equals-ignore-case": "DUE"}]}, {"a": "due"}, True),
        ({"a": [{"anything-but": ["x"]}]}, {"a": "y"}, True),
        ({"a": [{"anything-but": ["x", 5]}]}, {"a": 5}, False),
        ({"a": [{"anything-but": {"prefix": "x"}}]}, {"a": "xy"}, False),
        ({"a": [{"anything-but": "x"}]}, {}, False),
        ({"a": [{"numeric": [">", 0, "<=", 5]}]}, {"a": 5}, True),
        ({"a": [{"numeric": [">", 0, "<=", 5]}]}, {"a": 0}, False),
        ({"a": [{"numeric": ["=", 5]}]}, {"a": "5"}, False),
        ({"a": [{"exists": True}]}, {"a": None}, True),
        ({"a": [{"exists": True}]}, {}, False),
        ({"a": [{"exists": True}]}, {"a": {"b": 1}}, False),
        ({"a": [{"exists": False}]}, {}, True),
        ({"a": [{"exists": False}]}, {"a": 1}, False),
        ({"a": {"b": [{"exists": False}]}}, {}, True),
    ],
)
def test_a_pattern_lets_pass_what_lambda_would(pattern: Any, record: dict[str, Any], passes: bool) -> None:
    assert matches(pattern, record) is passes


def test_the_outbox_filter_passes_only_items_with_a_wake() -> None:
    pattern = {"dynamodb": {"NewImage": {"wake": {"S": [{"exists": True}]}}}}
    assert matches(pattern, {"dynamodb": {"NewImage": {"pk": {"S": "a"}, "wake": {"S": "{}"}}}})
    assert not matches(pattern, {"dynamodb": {"NewImage": {"pk": {"S": "a"}}}})
    assert not matches(pattern, {"dynamodb": {"Keys": {"pk": {"S": "a"}}}})


def test_one_of_several_patterns_is_enough_and_none_passes_everything() -> None:
    either = Filters(['{"a": ["x"]}', '{"b": ["y"]}'])
    assert either.match({"b": "y"})
    assert not either.match({"a": "y"})
    assert Filters([]).match({})
    assert not Filters([])


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{", "not valid JSON"),
        ("[]", "must be a JSON object"),
        ("{}", "matches nothing"),
        ('{"a": "x"}', "$.a: must be an object or a list"),
        ('{"a": []}', "not empty"),
        ('{"a": [{"b": 1}]}', "unknown operator b"),
        ('{"a": [{"exists": 1}]}', "true or false"),
        ('{"a": [{"prefix": 1}]}', "takes a string"),
        ('{"a": [{"numeric": [">"]}]}', "takes a comparison"),
        ('{"a": [{"numeric": ["~", 5]}]}', "takes a comparison"),
        ('{"a": [[1]]}', "neither a value nor one operator"),
        ('{"$or": {}}', "$.$or: must be a list"),
    ],
)
def test_a_pattern_that_lambda_would_refuse_is_refused(source: str, says: str) -> None:
    with pytest.raises(InvalidPattern) as refusal:
        Filters([source])
    assert says in str(refusal.value)
