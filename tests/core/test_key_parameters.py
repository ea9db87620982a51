"""Which of a step's arguments a key is made of: those that say more than the tool's own defaults, or those it names."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.effects.keys import Key, KeyRule, parameters_of, relevant


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"cents": 5, "account": "default"}, {"cents": 5}),
        ({"cents": 5, "account": " default "}, {"cents": 5}),
        ({"cents": 5, "account": "other"}, {"cents": 5, "account": "other"}),
        ({"cents": 5, "flag": True}, {"cents": 5, "flag": True}),
        ({"cents": 5, "flag": 1.0}, {"cents": 5}),
        ("no object", "no object"),
    ],
)
def test_an_argument_that_says_what_is_so_by_default_makes_no_other_action(given: Any, kept: Any) -> None:
    schema = {"properties": {"cents": {}, "account": {"default": "default"}, "flag": {"default": 1}}}
    assert relevant(given, schema) == kept


@pytest.mark.parametrize(
    ("rule", "given", "found"),
    [
        (KeyRule(), {"a": 1, "b": "x"}, {"a": 1}),
        (Key.user(), {"a": 1, "b": "x"}, {"a": 1}),
        (Key.user("b"), {"a": 1}, {"a": 1, "b": "x"}),
        (Key.business("thing", "b"), {"a": 1, "b": "x"}, {"a": 1, "b": "x"}),
        (Key.request(), {"a": 1, "b": "y"}, {"a": 1, "b": "y"}),
    ],
)
def test_a_parameter_that_a_key_names_counts_with_its_default_said_or_not(
    rule: KeyRule, given: Any, found: Any
) -> None:
    assert parameters_of(rule, given, {"properties": {"a": {}, "b": {"default": "x"}}}) == found
