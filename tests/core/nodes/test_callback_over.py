"""What ends a callback besides its completion and its time, what is told to work that comes too late, and forks."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.log import events as ev
from baton.core.log.folding.received import callback_of, completed_with, ended_with, why_over
from baton.core.log.state import KEYS_REMEMBERED
from tests.core.build import Saga, ready
from tests.core.nodes.handing import (
    HOUR,
    MINUTE,
    beat,
    beginning,
    hand_over,
    handed,
    handing,
    last,
    say,
    work,
)
from tests.core.told import whole, why
from tests.kit.sentences import Says

# ---- what ends it besides


def _cancelled(saga: Saga) -> None:
    saga.cancel(grace_ms=HOUR)


def _ended(saga: Saga) -> None:
    saga.cancel()
    saga.go()


def _skipped(saga: Saga) -> None:
    saga.put(ev.NodeSkipped(node="a", why="join j"))


def _failed(saga: Saga) -> None:
    saga.put(ev.LimitReached(failure=ev.Failure("limit_cost", "too much")))


def _completed(saga: Saga) -> None:
    say(saga)


def _forked(saga: Saga) -> None:
    saga.put(ev.Forked(cut=1, branch=1, by="ada", at=saga.now), epoch=0)


@pytest.mark.parametrize(
    "end",
    [
        _cancelled,
        _ended,
        _skipped,
        _failed,
        _completed,
        _forked,
    ],
)
def test_who_comes_too_late_is_told_why(end: Any, says: Says) -> None:
    saga = handing()
    assert why_over(saga.state, "0.a.1") == ""
    end(saga)
    says(why_over(saga.state, "0.a.1"))


def test_the_end_of_an_old_callback_is_forgotten_and_it_is_refused_all_the_same(says: Says) -> None:
    saga = handing()
    say(saga, code="server_error")
    saga.go()
    for number in range(KEYS_REMEMBERED):
        saga.put(
            ev.AttemptFailed(
                node="a",
                attempt=number + 2,
                failure=ev.Failure("timeout", "late"),
                started_at=1,
                ended_at=1,
                tool="print",
                tool_version="",
                schema_hash="",
                callback=f"0.a.{number + 2}",
            )
        )
    assert len(saga.state.keys) == KEYS_REMEMBERED
    assert (completed_with(saga.state, "0.a.1"), ended_with(saga.state, "0.a.1")) == ("", "")
    says(why_over(saga.state, "0.a.1"))


def test_a_late_outcome_of_a_step_that_waits_elsewhere_changes_nothing() -> None:
    saga = handing()
    before = saga.state
    saga.go(handed(saga))
    assert saga.state == before


def test_a_handover_of_another_branch_is_none() -> None:
    saga = beginning()
    saga.go(handed(saga, callback="7.a.1"))
    assert (saga.state.open, last(saga, ev.StepSucceeded).output.v) == ({}, None)


def test_an_answer_of_a_person_in_its_place_is_the_output() -> None:
    """Without `handed`, what an attempt gives is the step's own."""
    saga = beginning()
    outcome = handed(saga)
    saga.go(type(outcome)(slot="a", attempt=1, started_at=1, ended_at=1, output=ev.Value(v="by hand")))
    assert last(saga, ev.StepSucceeded).output.v == "by hand"


# ---- forks


def test_a_fork_goes_on_with_what_is_open_on_both_sides_and_keeps_what_was_said() -> None:
    saga = handing()
    cut = saga.state.version
    saga.go(after_ms=MINUTE)
    beat(saga)
    say(saga, output="done")
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0)
    assert (work(saga).id, work(saga).heard_at) == ("0.a.1", saga.now)
    assert completed_with(saga.state, "0.a.1") != ""
    saga.go()
    assert last(saga, ev.StepSucceeded).output.v == "done"


@pytest.mark.parametrize("end", ["done", "cancelled"])
def test_a_fork_to_where_it_was_open_hands_over_anew_when_it_is_over(end: str, says: Says) -> None:
    saga = handing()
    cut = saga.state.version
    if end == "done":
        say(saga)
        saga.go()
    else:
        saga.cancel()
        saga.go()
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0)
    assert ready(saga.go()) == ["a"]
    assert callback_of(saga.state, "a") == "1.a.1"
    says(why_over(saga.state, "0.a.1"))


def test_a_repeated_opening_is_no_second_one() -> None:
    saga = handing()
    before = saga.state
    saga.put(last(saga, ev.CallbackOpened))
    assert (saga.state.open, saga.state.money) == (before.open, before.money)


# ---- explained


def test_what_a_step_waits_for_elsewhere_is_explained_as_long_as_it_waits(says: Says) -> None:
    saga = beginning()
    told = [why(saga, "a")]
    hand_over(saga)
    told.append(why(saga, "a"))
    saga.now += MINUTE
    say(saga, code="server_error")
    saga.go()
    told.append(why(saga, "a"))
    (attempt,) = whole(saga, "a")[0]["attempts"]
    saga.go(after_ms=MINUTE)
    hand_over(saga)
    told.append(why(saga, "a"))
    first, second, third, fourth = told
    assert first.startswith("`a` is ready")
    says(second)
    assert "callback" not in third
    says(fourth)
    assert attempt["lasted_ms"] == MINUTE, "the time elsewhere counts"


def test_after_a_fork_that_hands_over_anew_it_does_not_wait_for_the_old_callback() -> None:
    saga = handing()
    cut = saga.state.version
    say(saga)
    saga.go()
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0)
    assert why(saga, "a").startswith("`a` is ready")
