"""Which records an event source's filter lets pass, and which patterns are refused. Values in, values out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.local.stack import Filters, InvalidPattern
from tests.kit.sentences import Says


def matches(pattern: Any, record: dict[str, Any]) -> bool:
    return Filters([json.dumps(pattern)]).match(record)


@pytest.mark.parametrize(
    ("pattern", "record", "passes"),
    [
        ({"a": [{"exists": True}]}, {"a": 1}, True),
        ({"a": [{"exists": True}]}, {"a": None}, True),
        ({"a": [{"exists": True}]}, {}, False),
        ({"a": [{"exists": True}]}, {"a": {"b": 1}}, False),
        ({"a": {"b": [{"exists": True}]}}, {"a": {"b": "x"}}, True),
        ({"a": {"b": [{"exists": True}]}}, {"a": {"c": "x"}}, False),
        ({"a": {"b": [{"exists": True}]}}, {"a": "x"}, False),
        ({"a": [{"exists": True}], "b": [{"exists": True}]}, {"a": 1}, False),
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
    either = Filters(['{"a": [{"exists": true}]}', '{"b": [{"exists": true}]}'])
    assert either.match({"b": "y"})
    assert not either.match({"c": "y"})
    assert Filters([]).match({})
    assert not Filters([])


@pytest.mark.parametrize(
    "source",
    [
        "{",
        "[]",
        "{}",
        '{"a": "x"}',
        '{"a": {"b": ["x"]}}',
        '{"a": [{"exists": false}]}',
        '{"a": [{"exists": 1}]}',
        '{"$or": [{"a": [{"exists": true}]}]}',
    ],
)
def test_a_pattern_that_is_not_applied_is_refused_with_its_place(source: str, says: Says) -> None:
    with pytest.raises(InvalidPattern) as refusal:
        Filters([source])
    says(str(refusal.value))
