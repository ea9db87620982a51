"""Joins: what is stored of them, and those that can never fire."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.graph.graph import Branch, Join, Rule
from tests.core.compiling import node, told
from tests.kit.sentences import Says

THREE = "a: {}, b: {}, c: {}, d: {}, j: {after: [a, b, c, d], join: %s}"


@pytest.mark.parametrize(
    ("join", "stored"),
    [
        ("all", None),
        ("{wait_for: all, rest: cancel}", None),
        ("any", Join(need=1)),
        ("3", Join(need=3)),
        ("{wait_for: 2, rest: run}", Join(need=2, rest="run")),
        ("{tolerated_failures: 1}", Join(tolerated=1)),
        ("{tolerated_failures: 0}", Join(tolerated=0)),
        ("{tolerated_failures: 25%}", Join(tolerated=1)),
        ("{tolerated_failures: 49%}", Join(tolerated=1)),
        ("{wait_for: any, tolerated_failures: 100%}", Join(need=1, tolerated=4)),
    ],
)
def test_a_join_is_stored_as_what_it_means(join: str, stored: Any) -> None:
    assert node("j", THREE % join).join == stored


def test_a_branch_is_stored_with_its_rules_and_its_targets_come_after_it() -> None:
    found = node("a", "a: {branch: {rules: [{if: 'output.score > 1', then: c}], default: [b]}}, b: {}, c: {}")
    assert found.after == ("b", "c")
    assert found.branch is not None
    assert [rule.then for rule in found.branch.rules] == [("c",)]
    assert isinstance(found.branch.rules[0], Rule)
    assert found.branch.default == ("b",)


def test_a_choice_by_a_value_is_stored_without_its_braces() -> None:
    found = node("a", "a: {branch: {choose: '${ output.next }', among: [c, b]}}, b: {}, c: {after: a}")
    assert found.branch == Branch(choose="output.next", among=("c", "b"))


FOUR = (
    "x: {}, a: {branch: {rules: [{if: output.score > 1, then: b}, {if: output.score > 0, then: [b, c]}], default: d}}, "
    "b: {}, b2: {after: b}, c: {}, d: {}, "
)
IF = "a: {branch: {rules: [{if: output.score > 1, then: %s}], default: %s}}, b: {}, c: {}, "
NEVER = [
    "a: {}, j: {after: a, join: 2}",
    "a: {}, b: {}, j: {after: [a, b], join: 3}",
    "j: {join: 1}",
    "a: {branch: {choose: output.next, among: b, default: c}}, b: {}, c: {}, j: {after: [b, c], join: 2}",
    FOUR + "j: {after: [b2, c, d, x], join: 4}",
    "a: {branch: {choose: output.next, among: [b, c], default: d}}, b: {}, c: {}, d: {}, j: {after: [b, c, d], join: 3}",
    "a: {loop: {AGAIN, timeout_path: b}}, b: {}, c: {after: a}, j: {after: [b, c], join: 2}",
]  # fmt: skip


@pytest.mark.parametrize("nodes", NEVER)
def test_a_join_that_can_never_fire_is_told(nodes: str, says: Says) -> None:
    says(told(nodes))


@pytest.mark.parametrize(
    "nodes",
    [
        "a: {branch: {choose: output.next, among: [b, c]}}, b: {}, c: {}, j: {after: [b, c], join: 2}",
        IF % ("[b, c]", "d") + "d: {}, j: {after: [b, c, d], join: 2}",
        IF % ("b", "c") + "j: {after: [b, c], join: all}",
        IF % ("b", "c") + "d: {}, e: {}, j: {after: [d, e], join: 2}",
        "a: {join: any}",
        "a: {}, b: {after: a, join: 1}",
        IF % ("b", "c") + "d: {after: [b, c]}, e: {}, j: {after: [d, e], join: 2}",
    ],
)
def test_a_join_that_may_fire_is_none_of_the_compilers_business(nodes: str) -> None:
    assert told(nodes) == []


def test_in_a_document_with_a_circle_only_numbers_are_compared() -> None:
    nodes = "x: {after: y}, y: {after: x}, a: {}, b: {}, j: {after: [a, b], join: 2}, k: {after: a, join: 2}"
    assert [path for path, _, _ in told(nodes)] == ["/nodes/x/after", "/nodes/k/join"]


def test_a_join_that_counts_is_no_trouble_where_a_branch_names_no_node(says: Says) -> None:
    nodes = "a: {branch: {rules: [{if: 'output.score > 1', then: absent}], default: b}}, b: {}, c: {}, d: {after: [b, c], join: 2}"
    says([message for _, message, _ in told(nodes)])
