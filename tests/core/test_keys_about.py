"""Calls that have one key: when they must have the same parameters, too."""

from __future__ import annotations

import pytest

from baton.core.effects.keys import STRATEGIES, Key, KeyRule, about

BILL = {"invoice": "i-7", "cents": 5}
OTHER = {"invoice": "i-7", "cents": 500}


@pytest.mark.parametrize(
    "rule",
    [
        Key.business("invoice", "invoice"),
        Key.given("invoice"),
        Key.event("invoice"),
        Key.schedule("invoice", "cents"),
    ],
)
def test_where_a_key_names_a_thing_the_other_parameters_are_remembered(rule: KeyRule) -> None:
    assert about(rule, BILL)
    assert about(rule, BILL) == about(rule, {"cents": 5.0, "invoice": " i-7 "})
    assert about(rule, BILL) != about(rule, OTHER)


@pytest.mark.parametrize(
    "rule",
    [Key.node(), Key.saga(), Key.user("invoice"), Key.request(), Key.content("invoice"), Key.window("1h")],
)
def test_where_the_key_says_it_all_or_the_others_do_not_matter_they_are_not(rule: KeyRule) -> None:
    assert about(rule, BILL) == ""


def test_all_strategies_are_tried_here() -> None:
    assert len(STRATEGIES) == 4 + 6
