"""Failover policies: the first that fits is taken, and fits means everything that it says."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.conditions import Unanswered, judge
from baton.core.conditions.model import Cel, Condition
from baton.core.expressions import Path
from baton.core.failures.failover import Action, Context, Match, Policy, Window, first_match, fits

NOON = 1_790_000_000_000 // 86_400_000 * 86_400_000 + 12 * 3_600_000  # a Monday, UTC
HOUR = 3_600_000
CONTEXT = Context(
    node="book_table",
    tool="table.hold",
    domain="external_api",
    code="timeout",
    kind="transient",
    attempt=3,
    at=NOON,
    parameters={"party": 4, "table": {"kind": "window"}, "guests": ["ann", {"name": "bob"}], "vip": True},
    message="no answer",
)


def ask(condition: Condition) -> bool:
    value = CONTEXT.as_value(is_retryable=True)

    def lookup(path: Path) -> Any:
        assert path.root == "last_error"
        return value

    return judge(condition, lookup, {}, {})


@pytest.mark.parametrize(
    "match",
    [
        Match(),
        Match(nodes=("book_*",)),
        Match(nodes=("other", "*_table")),
        Match(nodes=("b*k*t*le",)),
        Match(tools=("table.hold",)),
        Match(tools=("*",)),
        Match(domains=("external_api", "database")),
        Match(codes=("timeout",), kinds=("transient",)),
        Match(attempt=(3, 3)),
        Match(attempt=(2, 0)),
        Match(parameters={"party": (4.0,)}),
        Match(parameters={"table.kind": ("terrace", "window"), "vip": (True,)}),
        Match(parameters={"guests.1.name": ("bob",), "guests.0": ("ann",)}),
        Match(times=(Window(begins=0, ends=60), Window(begins=12 * 60, ends=13 * 60))),
    ],
)
def test_a_failure_fits(match: Match) -> None:
    assert fits(match, CONTEXT)


@pytest.mark.parametrize(
    "match",
    [
        Match(nodes=("book",)),
        Match(nodes=("*hold",)),
        Match(nodes=("book_table*e",)),
        Match(nodes=("b*x*e",)),
        Match(tools=("other.*",)),
        Match(domains=("database",)),
        Match(codes=("timeout",), kinds=("permanent",)),
        Match(attempt=(4, 0)),
        Match(attempt=(1, 2)),
        Match(parameters={"party": (5,)}),
        Match(parameters={"vip": (1,)}),
        Match(parameters={"table.size": (1,)}),
        Match(parameters={"party.size": (1,)}),
        Match(parameters={"guests.2": ("ann",)}),
        Match(parameters={"guests.first": ("ann",)}),
        Match(times=(Window(begins=13 * 60, ends=14 * 60),)),
    ],
)
def test_a_failure_does_not_fit(match: Match) -> None:
    assert not fits(match, CONTEXT)


@pytest.mark.parametrize(
    ("window", "hours"),
    [
        (Window(begins=720, ends=840), [12, 13]),
        (Window(begins=1_320, ends=120), [0, 1, 22, 23]),
        (Window(), list(range(24))),
        (Window(begins=720, ends=840, offset=120), [10, 11]),
        (Window(begins=720, ends=840, offset=-60), [13, 14]),
        (Window(begins=720, ends=840, days=(0,)), [12, 13]),
        (Window(begins=720, ends=840, days=(1,)), []),
        (Window(begins=1_320, ends=120, days=(0,)), [22, 23]),
        (Window(begins=1_320, ends=120, days=(6,)), [0, 1]),
    ],
)
def test_a_part_of_the_day_has_these_hours_of_a_monday(window: Window, hours: list[int]) -> None:
    midnight = NOON - 12 * HOUR
    assert [hour for hour in range(24) if window.has(midnight + hour * HOUR)] == hours


def test_the_first_that_fits_is_taken_and_no_more_often_than_it_may() -> None:
    first = Policy(name="first", when=Match(codes=("timeout",)), then=Action(strategy="escalate"))
    second = Policy(name="second", at_most=2)
    policies = (Policy(name="none", when=Match(codes=("other",))), first, second)
    used: dict[str, int] = {}
    taken = []
    while (found := first_match(policies, CONTEXT, used=used, judge=ask).policy) is not None:
        taken.append(found.name)
        used[found.name] = used.get(found.name, 0) + 1
    assert taken == ["first", "second", "second"]


def test_a_condition_is_asked_about_the_failure() -> None:
    holds = Cel(
        expression="last_error.attempt >= 3 && last_error.parameters.party < 6 && last_error.retryable"
    )
    fails = Cel(expression="last_error.attempt > 3")
    policies = (
        Policy(name="no", when=Match(condition=fails)),
        Policy(name="yes", when=Match(condition=holds)),
    )
    found = first_match(policies, CONTEXT, used={}, judge=ask)
    assert (found.policy, found.broken) == (policies[1], {})


def test_a_condition_that_breaks_does_not_hold_and_is_told() -> None:
    broken = Policy(name="broken", when=Match(condition=Cel(expression="last_error.nothing > 3")))
    last = Policy(name="last")
    found = first_match((broken, last), CONTEXT, used={}, judge=ask)
    assert found.policy == last
    assert found.broken["broken"].startswith("condition_missing: ")
    assert first_match((broken,), CONTEXT, used={}, judge=ask).policy is None


def test_a_condition_that_cannot_be_asked_yet_passes_through() -> None:
    def unanswered(_: Condition) -> bool:
        raise Unanswered(frozenset())

    policy = Policy(name="later", when=Match(condition=Cel(expression="true")))
    with pytest.raises(Unanswered):
        first_match((policy,), CONTEXT, used={}, judge=unanswered)


def test_the_context_of_a_failure_as_a_value() -> None:
    value = CONTEXT.as_value(is_retryable=True)
    assert value | {"parameters": None} == {
        "code": "timeout",
        "class": "transient",
        "message": "no answer",
        "retryable": True,
        "node": "book_table",
        "action": "table.hold",
        "domain": "external_api",
        "status": 0,
        "attempt": 3,
        "at": "2026-09-21T12:00:00.000Z",
        "parameters": None,
    }
