"""The breaker for corrections: what counts as one, over which time, what closes it, and what a model is told meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.outcomes import Outcome
from baton.core.log import events as ev
from baton.core.log.folding.received import MOST, WINDOW_MS, breaker_of
from baton.core.log.state import ANSWER, State
from tests.core.asked import steps_of
from tests.core.build import T0, Saga, failed, ready, replay
from tests.core.nodes.test_agent import model_saga
from tests.core.nodes.thinking import answered, call, outcome, refused, thinking

INVALID = "answer_invalid"


def wrong(slot: str, attempt: int, at: int, code: str = INVALID, why: str = "no JSON") -> Outcome:
    failure = ev.Failure(code, why, slot)
    return Outcome(slot=slot, attempt=attempt, started_at=at, ended_at=at, failure=failure)


def refusing(times: list[int], slot: str = "a#t1", more: str = ", corrections: 10") -> Saga:
    """A turn whose answer was refused at these times."""
    saga = thinking(more=more)
    for attempt, at in enumerate(times, 1):
        saga.now = T0 + at
        saga.go(wrong(slot, attempt, T0 + at))
    return saga


def counted(saga: Saga) -> int:
    return len(saga.state.corrections["a"])


def is_open(state: State, slot: str = "a") -> bool:
    return bool(breaker_of(state, slot))


OPENING = pytest.mark.parametrize(
    ("times", "opens"),
    [
        ([0, 1, 2], False),
        ([0, 1, 2, 3], True),
        ([0, 1, 2, WINDOW_MS - 1], True),
        ([0, 1, 2, WINDOW_MS], False),
        ([0, WINDOW_MS, WINDOW_MS + 1, WINDOW_MS + 2], False),
        ([0, WINDOW_MS, WINDOW_MS + 1, WINDOW_MS + 2, WINDOW_MS + 3], True),
    ],
)


def test_the_breaker_opens_by_the_count_and_the_window_of_the_page() -> None:
    assert [MOST, WINDOW_MS] == [3, 60_000]


@OPENING
def test_more_than_three_corrections_within_the_window_open_it(times: list[int], opens: bool) -> None:
    saga = refusing(times)
    assert is_open(saga.state) is opens
    assert len(saga.state.corrections["a"]) <= MOST + 1, "the state does not grow"
    assert replay(saga.entries) == saga.state


def test_a_clock_that_goes_back_between_two_workers_opens_it_no_later() -> None:
    assert is_open(refusing([3_000, 0, 1, 2]).state)


def test_answers_whose_calls_cannot_be_made_or_have_all_failed_are_corrected_across_turns() -> None:
    saga = thinking()
    saga.go(answered("a#t1", refused("look")))
    saga.go(answered("a#t2", call("look", n=1), call("look", n=2)))
    saga.go(failed("a#t2-0", "business_rule"), running=["a#t2-1"])
    assert counted(saga) == 1, "the other may still succeed"
    saga.go(failed("a#t2-1", "business_rule"))
    assert counted(saga) == 2
    saga.go(answered("a#t3", call("nothing"), refused("look")))
    assert not is_open(saga.state)
    saga.go(wrong("a#t4", 1, saga.now))
    assert is_open(saga.state)
    assert replay(saga.entries) == saga.state


def test_a_call_that_succeeds_closes_the_count_and_one_beside_it_that_fails_does_not_matter() -> None:
    saga = thinking()
    saga.go(answered("a#t1", refused("look")))
    saga.go(answered("a#t2", call("look", n=1), call("look", n=2), refused("look")))
    saga.go(outcome("a#t2-0", 1), running=["a#t2-1"])
    assert saga.state.corrections == {}
    saga.go(failed("a#t2-1", "business_rule"))
    assert saga.state.corrections == {}


def test_a_call_that_a_person_rejects_is_no_correction() -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1)))
    told = ev.StepFailed(
        node="a", item="t1-0", attempt=1, failure=ev.Failure("rejected", "no", "a"), started_at=T0, ended_at=T0,
        tool="look", tool_version="1", schema_hash="", by="k", is_result=True,
    )  # fmt: skip
    saga.put(told)
    assert saga.state.corrections == {}


def test_the_end_of_the_node_forgets_them() -> None:
    saga = refusing([0, 1])
    saga.go(replace(answered("a#t1", data="done"), attempt=3))
    assert saga.state.corrections == {}


def test_a_model_node_has_one_too() -> None:
    saga = model_saga()
    for attempt in range(1, 5):
        saga.go(wrong("a", attempt, saga.now))
    assert is_open(saga.state)


@pytest.mark.parametrize(("action", "closes"), [("retry", True), ("fail", True)])
def test_what_a_person_says_closes_it(action: str, closes: bool) -> None:
    saga = refusing([0, 1, 2, 3])
    saga.go(wrong("a#t1", 5, T0 + 4, "too_many_corrections"))
    (failing,) = saga.state.failing.values()
    assert failing.strategy == "ask_user", "nothing else is tried first"
    assert failing.ask is not None
    saga.signal(ANSWER, {"ask": failing.ask.id, "action": action}, key=f"{failing.ask.id}/1")
    saga.go()
    assert is_open(saga.state) is not closes
    if action == "retry":
        assert ready(saga.decision) == ["a#t1"]
        assert steps_of(saga.decision)[0].correction == "no JSON"


def test_a_fork_is_what_a_person_says_too() -> None:
    saga = refusing([0, 1, 2, 3])
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now), epoch=0, invocation="api")
    assert saga.state.corrections == {}


@pytest.mark.parametrize("code", ["rate_limited", "timeout"])
def test_what_was_wrong_about_an_answer_is_kept_over_attempts_that_fail_otherwise(code: str) -> None:
    saga = thinking()
    saga.go(wrong("a#t1", 1, saga.now, why="it is no JSON"))
    saga.go(wrong("a#t1", 2, saga.now, code=code, why="slow down"))
    saga.now += 120_000
    saga.go()
    (step,) = steps_of(saga.decision)
    assert step.failure is not None
    assert (step.failure.code, step.correction) == (code, "it is no JSON")
    saga.go(wrong("a#t1", 3, saga.now, why="it is text"))
    assert steps_of(saga.decision)[0].correction == "it is text", "the last answer counts"


def test_the_next_turn_is_told_nothing_of_it() -> None:
    saga = thinking()
    saga.go(wrong("a#t1", 1, saga.now))
    saga.go(replace(answered("a#t1", refused("look")), attempt=2))
    assert [step.correction for step in steps_of(saga.decision)] == [""]


def test_a_saga_without_corrections_keeps_nothing_of_them() -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1)))
    saga.go(outcome("a#t1-0", 1))
    began: Any = [event for one in saga.entries for event in one.events if isinstance(event, ev.CallsBegan)]
    assert saga.state.corrections == {}
    assert [event.at for event in began] == [0]
