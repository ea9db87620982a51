"""A step that waits for a circuit breaker, or for money, in the saga's view, in its events, and when it is explained."""

from __future__ import annotations

from baton.core.expressions import iso
from baton.core.read.views import saga_view
from tests.core.build import Saga, done, failed, program, task
from tests.core.test_held import MINUTE, PATIENT, held, short
from tests.core.told import of, whole, why
from tests.kit.sentences import Says
from tests.kit.views import as_json


def waiting() -> Saga:
    saga = of("a: {tool: t}\nb: {tool: t, after: a}")
    saga.go(held(saga))
    return saga


def test_a_view_says_for_which_breaker_since_when_and_until_when() -> None:
    saga = waiting()
    (active,) = as_json(saga_view(saga.state, saga.program, {}))["active"]
    assert active == {
        "node": "a",
        "iteration": [],
        "state": "held",
        "breaker": "payments",
        "since": iso(saga.now),
        "until": iso(saga.now + MINUTE),
    }


def test_it_is_explained_in_words(says: Says) -> None:
    saga = waiting()
    says(why(saga, "a"))
    assert whole(saga, "a")[0]["state"] == "held"
    says(why(saga, "b"))


def test_a_saga_that_was_cancelled_was_waiting(says: Says) -> None:
    saga = waiting()
    saga.cancel()
    saga.go()
    says(why(saga, "a"))


def test_it_is_over_with_the_next_attempt(says: Says) -> None:
    saga = Saga(program(task("a"), task("b", "a"), failures={"any": PATIENT}))
    saga.go()
    saga.go(held(saga))
    saga.go(after_ms=MINUTE)
    saga.go(failed("a", "service_unavailable"))
    assert "breaker" not in why(saga, "a")
    (active,) = as_json(saga_view(saga.state, saga.program, {}))["active"]
    assert active["state"] == "retrying"
    saga.now = saga.state.failing["a"].due_at
    saga.go(held(saga, attempt=2))
    (active,) = as_json(saga_view(saga.state, saga.program, {}))["active"]
    assert active["state"] == "held"
    says(why(saga, "a"))
    saga.go(after_ms=MINUTE)
    saga.go(done("a", attempt=2))
    assert "breaker" not in why(saga, "a")


def test_a_wait_for_money_names_the_limit_what_it_needs_and_until_when(says: Says) -> None:
    saga = of("a: {tool: t}\nb: {tool: t, after: a}")
    saga.go(short(saga))
    until = saga.state.held["a"].until
    (active,) = as_json(saga_view(saga.state, saga.program, {}))["active"]
    assert active == {
        "node": "a",
        "iteration": [],
        "state": "held",
        "limit": "budget_saga",
        "needs_usd": 0.03,
        "since": iso(saga.now),
        "until": iso(until),
    }
    says(why(saga, "a"))
    needed = f"`a` waits for 0.03 dollars of the limit `budget_saga`, whose rest others hold; it asks again at {iso(until)}"
    assert needed in why(saga, "b")
    saga.cancel()
    saga.go()
    says(why(saga, "a"))
