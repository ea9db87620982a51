"""Failure edges: where it goes on from a failed step, and what those that follow know of it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from baton.core.conditions.model import Cel
from baton.core.decide.program import Program
from baton.core.failures.policy import PolicyChange
from baton.core.graph.graph import Catch, Join
from baton.core.log.state import status_of
from tests.core.asked import steps_of
from tests.core.build import Saga, done, program, ready, task
from tests.core.failing import broken, chosen, schedule
from tests.core.strategies import RETRY

# ---- failure edges


def caught_by(*rules: Catch) -> Program:
    node = task("a", catch=rules)
    b, h, k = task("b", "a"), task("h", "a", arguments={"why": "${last_error.code}"}), task("k", "a")
    return program(node, b, h, k)


@pytest.mark.parametrize(
    ("rules", "runs"),
    [
        ([Catch(then=("h",))], ["h"]),
        ([Catch(codes=("other",), then=("k",)), Catch(kinds=("permanent",), then=("h",))], ["h"]),
        (
            [
                Catch(condition=Cel(expression="last_error.nothing.there == 1"), then=("k",)),
                Catch(then=("h", "k")),
            ],
            ["h", "k"],
        ),
        (
            [
                Catch(condition=Cel(expression="last_error.code == 'bad_request'"), then=("h",)),
                Catch(then=("k",)),
            ],
            ["h"],
        ),
    ],
)
def test_the_first_rule_that_fits_says_where_it_goes_on(rules: Iterable[Catch], runs: list[str]) -> None:
    saga = Saga(caught_by(*rules))
    assert ready(saga.go(broken("a", "bad_request"))) == runs
    if "h" in runs:
        assert steps_of(saga.decision)[0].arguments == {"why": "bad_request"}
    assert saga.state.failure is None


def test_a_failure_that_no_rule_fits_ends_the_saga() -> None:
    saga = Saga(caught_by(Catch(codes=("other",), then=("h",))))
    saga.go(broken("a", "bad_request"))
    assert status_of(saga.state) == "failed"


def test_where_the_failure_is_caught_no_person_is_asked_but_it_is_retried() -> None:
    b = program(
        task("a", catch=(Catch(then=("h",)),)),
        task("h", "a"),
        failures={"any": PolicyChange(retry=schedule(0).retry)},
    )
    saga = Saga(b)
    saga.go(broken("a", "timeout"))
    assert ready(saga.go(broken("a", "timeout", attempt=2))) == ["h"]
    assert chosen(saga) == [RETRY]


def test_an_error_in_the_handler_does_not_come_back_to_it() -> None:
    saga = Saga(caught_by(Catch(then=("h",))))
    saga.go(broken("a"))
    saga.go(broken("h"))
    assert status_of(saga.state) == "failed"


def test_what_follows_the_handlers_success_knows_no_last_error() -> None:
    h = task("h", "a")
    after = task("z", "h", when=Cel(expression="last_error == null"))
    saga = Saga(program(task("a", catch=(Catch(then=("h",)),)), h, after))
    saga.go(broken("a"))
    assert ready(saga.go(done("h"))) == ["z"]


def test_a_join_behind_a_caught_failure_hears_of_no_error() -> None:
    saga = Saga(
        program(
            task("a", catch=(Catch(then=("h",)),)),
            task("b", "a"),
            task("h", "a"),
            task("j", "b", "h", join=Join(), arguments={"told": "${join.errors}", "last": "${last_error}"}),
        )
    )
    saga.go(broken("a"))
    assert ready(saga.go(done("h"))) == ["j"]
    assert steps_of(saga.decision)[0].arguments == {"told": [], "last": None}
