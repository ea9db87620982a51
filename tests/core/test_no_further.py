"""Attempts that come no further because of money, or because the saga no longer needs them: what they spent counts, and no more."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core.decide.outcomes import MONEY, STOPPED, Outcome
from baton.core.decide.spending import DEFAULT
from baton.core.graph.graph import Join
from baton.core.log import events as ev
from baton.core.log.state import FAULT
from tests.core.asked import steps_of
from tests.core.build import Saga, chain, done, failed, interrupted, program, ready, task

PARKED = ev.Parked(code="budget_saga", message="all is spent", node="n0")
NOTICE = ev.Notice(key="k", to="user", code="budget_saga", message="all is spent", node="n0", at=1)


def no_further(slot: str, cost: int = 5, why: str = MONEY, halt: ev.Parked | None = None) -> Outcome:
    return replace(interrupted(slot), cost=cost, why=why, halt=halt, notices=(NOTICE,))


def test_a_halted_attempt_parks_its_saga_and_loses_no_attempt() -> None:
    saga = Saga(chain(1))
    saga.go(no_further("n0", halt=PARKED))
    assert saga.kinds == ["step_interrupted", "notice_due", "parked"]
    assert (saga.state.money.spent, saga.state.parked, saga.state.failing) == (5, PARKED, {})
    saga.put(ev.Resumed(by="u", at=1))
    assert [(run.slot, run.attempt) for run in steps_of(saga.go())] == [("n0", 1)]


def test_of_two_that_are_halted_at_once_one_parks_it_and_both_are_paid() -> None:
    saga = Saga(program(task("n0"), task("n1")))
    saga.go(
        no_further("n0", halt=PARKED), no_further("n1", cost=0, halt=PARKED), no_further("n1", halt=PARKED)
    )
    assert saga.kinds.count("parked") == 1
    assert saga.state.money.spent == 10


def test_an_attempt_that_waits_for_money_is_not_counted_as_cut_off() -> None:
    saga = Saga(chain(1))
    for _ in range(DEFAULT.deaths + 1):
        assert ready(saga.go(no_further("n0"))) == ["n0"]
    assert (saga.state.recovery.interruptions, saga.state.counts.interrupted, saga.state.parked) == (
        {},
        0,
        None,
    )
    assert saga.state.money.spent == 5 * (DEFAULT.deaths + 1)


def test_what_was_spent_at_a_slot_that_is_gone_counts_and_does_nothing_else() -> None:
    saga = Saga(chain(2))
    saga.go(done("n0"))
    before = saga.state
    saga.go(no_further("n0", why=STOPPED))
    assert saga.kinds == ["step_interrupted", "notice_due"]
    assert saga.state.money.spent == 5
    assert (saga.state.tokens, saga.state.failing) == (before.tokens, before.failing)
    assert not saga.go(no_further("n0", cost=0, halt=PARKED)).record
    assert saga.state.parked is None, "the saga no longer needs it"


def test_a_saga_that_has_ended_hears_of_nothing() -> None:
    saga = Saga(chain(1))
    saga.go(done("n0"))
    entries = len(saga.entries)
    saga.go(no_further("n0"))
    assert (len(saga.entries), saga.state.money.spent) == (entries, 0)


@pytest.mark.parametrize("late", [done("b"), failed("b")], ids=["succeeds", "fails"])
def test_a_step_that_is_done_just_when_its_join_goes_on_without_it_has_spent_what_it_has(
    late: Outcome,
) -> None:
    nodes = (task("a"), task("b"), task("j", "a", "b", join=Join(need=1)), task("z", "j"))
    saga = Saga(program(*nodes))
    saga.go(replace(done("a"), cost=3), replace(late, cost=4), running=())
    (event,) = (event for event in saga.entries[-1].events if isinstance(event, ev.StepInterrupted))
    assert (event.node, event.cost, event.why) == ("b", 4, STOPPED)
    assert saga.state.money.spent == 7
    assert saga.go(replace(late, cost=4)).record == ()
    assert saga.state.money.spent == 7, "it is in the log"


def test_an_attempt_that_a_fault_has_stopped_may_have_acted_and_is_not_counted_as_cut_off() -> None:
    saga = Saga(program(task("n0"), task("n1", "n0")))
    for _ in range(DEFAULT.deaths + 1):
        assert ready(saga.go(no_further("n0", why=FAULT))) == ["n0"]
    assert (saga.state.recovery.interruptions, saga.state.counts.interrupted, saga.state.parked) == (
        {},
        0,
        None,
    )
    assert (saga.state.money.spent, saga.state.recovery.possibly_running) == (
        5 * (DEFAULT.deaths + 1),
        ("n0",),
    )
    saga.go(done("n0"))
    assert saga.state.recovery.possibly_running == ()


def test_a_fault_is_written_down_of_what_cost_nothing_too_if_it_is_still_needed() -> None:
    saga = Saga(program(task("n0"), task("n1", "n0")))
    saga.go(replace(interrupted("n0"), why=FAULT))
    assert (saga.kinds, saga.state.recovery.possibly_running) == (["step_interrupted"], ("n0",))
    saga.go(done("n0"))
    version = saga.state.version
    saga.go(replace(interrupted("n0"), why=FAULT))
    assert saga.state.version == version
    saga.go(no_further("n0", why=FAULT))
    assert (saga.state.money.spent, saga.state.recovery.possibly_running) == (5, ())
