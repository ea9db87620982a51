"""A step that held the event loop: its entry says for how long, and so does the explanation of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core.failures.policy import PolicyChange
from baton.core.log import events as ev
from baton.core.log.codec import decode_entry, encode_entry
from tests.core.build import T0, Saga, done, program, task
from tests.core.failing import broken, schedule
from tests.core.strategies import ROLLBACK
from tests.core.told import whole, why
from tests.kit.sentences import Says

DOWN = "service_unavailable: it broke"


def of(any: PolicyChange) -> Saga:
    saga = Saga(program(task("a"), failures={"any": any}))
    saga.go()
    return saga


@pytest.mark.parametrize("is_last", [True, False])
def test_an_attempt_that_failed_says_for_how_long_it_held_the_loop(is_last: bool, says: Says) -> None:
    saga = of(PolicyChange(ladder=(ROLLBACK,)) if is_last else schedule(0))
    saga.go(broken("a", at=T0 + 20_500, blocked_ms=20_000))
    if is_last:
        says(why(saga, "a"))
    else:
        text = whole(saga, "a")[0]["attempts"][0]["text"]
        says(text)
    kept = decode_entry(encode_entry(saga.entries[-1]))
    (failed,) = [event for event in kept.events if isinstance(event, ev.AttemptFailed | ev.StepFailed)]
    assert failed.blocked_ms == 20_000


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_step_that_succeeded_says_it_of_its_last_attempt(attempt: int, says: Says) -> None:
    saga = of(schedule(0))
    if attempt == 2:
        saga.go(broken("a", at=T0))
    saga.go(replace(done("a", attempt=attempt), blocked_ms=2_000))
    says(why(saga, "a"))


def test_the_entry_says_that_a_result_was_a_kept_one() -> None:
    saga = of(schedule(0))
    saga.go(replace(done("a"), cache=ev.HIT))
    (said,) = [one.cache for one in saga.entries[-1].events if isinstance(one, ev.StepSucceeded)]
    assert said == ev.HIT


def test_it_is_said_beside_what_else_there_is_to_say_of_it(says: Says) -> None:
    saga = of(schedule(0))
    saga.go(replace(done("a"), recorded=True, blocked_ms=2_000))
    says(why(saga, "a"))


def test_a_step_that_did_not_says_nothing_and_its_entry_is_no_longer_for_it() -> None:
    saga = of(schedule(0))
    saga.go(done("a"))
    assert "event loop" not in why(saga, "a")
    assert b"blocked" not in encode_entry(saga.entries[-1])
