"""The money of users around the attempts of steps: who may begin, what is counted, what the dead leave behind."""

from __future__ import annotations

import asyncio
import logging
from decimal import Decimal

import pytest
from msgspec.structs import replace

from baton.core.decide.spending import day_of
from baton.core.limits import DAY_MS
from baton.core.log import events as ev
from baton.core.log.state import Held, Outbox
from baton.errors import BudgetSpent
from baton.ports import NoRoom, SagaRef, Sums
from baton.runtime.money.accounts import HeldByOthers
from baton.runtime.money.halting import Halted
from tests.kit.sentences import Says
from tests.runtime.desk import DAY, DOLLAR, LIMITS, NOON, Desk, Failing, graph, run, state, step


def test_what_a_step_may_cost_is_held_and_what_it_did_cost_is_counted() -> None:
    desk = Desk()
    ledger = desk.ledger()
    run(ledger.reserve(state(), step(200_000), []))
    assert desk.sums() == Sums(0, 200_000, 1)
    assert run(ledger.settle(state(), step(200_000), 150_000)) == ()
    assert desk.sums() == Sums(150_000, 150_000, 0)


def test_a_step_that_neither_declares_nor_reports_a_cost_causes_no_request() -> None:
    desk = Desk()
    ledger = desk.ledger()
    run(ledger.reserve(state(), step(), []))
    assert run(ledger.settle(state(), step(), 0)) == ()
    run(ledger.drain(SagaRef("acme", "s1")))
    assert run(ledger.blocked(state(), graph())) is None
    run(ledger.revived(state(), graph(), NOON))
    assert desk.budgets.calls == 0


def test_without_a_limit_nothing_is_asked_for_or_counted() -> None:
    desk = Desk(user_day=0)
    ledger = desk.ledger()
    run(ledger.reserve(state(), step(10**12), []))
    assert run(ledger.settle(state(), step(10**12), 10**12)) == ()
    assert run(ledger.blocked(state(), graph(1))) is None
    run(ledger.revived(state(), graph(1), NOON))
    run(desk.cache.refuse_the_blocked(desk.call(), "acme", "ada", NOON))
    assert desk.budgets.calls == 0


def test_an_undeclared_cost_counts_once_it_is_reported() -> None:
    desk = Desk()
    ledger = desk.ledger()
    run(ledger.reserve(state(), step(), []))
    run(ledger.settle(state(), step(), 7))
    assert desk.sums() == Sums(7, 7, 0)


def test_more_than_was_declared_counts_and_is_said(caplog: pytest.LogCaptureFixture, says: Says) -> None:
    desk = Desk()
    ledger = desk.ledger()
    run(ledger.reserve(state(), step(5), []))
    with caplog.at_level(logging.WARNING, "baton.ledger"):
        run(ledger.settle(state(), step(5), 6))
    assert desk.sums() == Sums(6, 6, 0)
    says(caplog.messages)


def test_money_that_is_spent_parks_the_saga_until_the_day_turns() -> None:
    desk = Desk()
    desk.spend(4_990_000)
    with pytest.raises(Halted) as refused:
        run(desk.ledger().reserve(state(), step(50_000), []))
    halt = refused.value.halt
    assert (halt.parked.code, halt.parked.until) == ("budget_user_day", (DAY + 1) * DAY_MS)
    (notice,) = halt.notices
    assert notice.key == f"budget100/user/ada/{DAY}"
    desk.clock.at = halt.parked.until
    run(desk.ledger().reserve(state(), step(50_000), []))
    assert desk.sums(DAY + 1).held == 50_000


def test_money_that_others_only_hold_costs_no_attempt() -> None:
    desk = Desk()
    other, mine = desk.ledger(), desk.ledger()
    run(other.reserve(state("other"), step(4_990_000), []))
    with pytest.raises(HeldByOthers) as refused:
        run(mine.reserve(state(), step(50_000), []))
    assert (refused.value.limit, refused.value.amount) == ("budget_user_day", 50_000)
    run(mine.drain(SagaRef("acme", "s1")))
    run(other.settle(state("other"), step(4_990_000), 10))
    run(mine.reserve(state(), step(50_000), []))


def test_an_attempt_that_waited_begins_with_what_the_one_before_it_lacked() -> None:
    desk = Desk()
    waited = Held(breaker="", at=1, until=2, limit="budget_user_day", amount=70_000, first=True)
    run(desk.ledger().reserve(state(held={"a": waited}), step(50_000), []))
    assert desk.sums().held == 70_000
    for held in (replace(waited, first=False), replace(waited, amount=1)):
        run(desk.ledger().reserve(state("s2", held={"a": held}), step(50_000), []))
    assert desk.sums().held == 170_000


def test_a_saga_whose_own_attempts_hold_some_of_it_waits_in_the_invocation_that_these_keep() -> None:
    desk = Desk()
    other, mine, of = desk.ledger(), desk.ledger(), state(tokens={"a": {}, "b": {}})
    run(other.reserve(state("other"), step(4_900_000), []))
    run(mine.reserve(of, step(80_000), []))
    with pytest.raises(NoRoom) as refused:
        run(mine.reserve(of, step(50_000, "b"), []))
    assert not isinstance(refused.value, HeldByOthers)
    run(mine.settle(of, step(80_000), 80_000))
    with pytest.raises(HeldByOthers):
        run(mine.reserve(of, step(50_000, "b"), []))


def test_what_no_limit_applies_to_is_counted_where_the_day_is_spent_too() -> None:
    desk = Desk()
    ledger, waited = (
        desk.ledger(),
        Held(breaker="", at=1, until=2, limit="budget_user_day", amount=9, first=True),
    )
    desk.spend(5 * DOLLAR)
    with pytest.raises(Halted):
        run(ledger.reserve(state(), step(1), []))
    of = state(spent=1, held={"a": waited})
    run(ledger.reserve(of, step(50_000), [], is_free=True))
    run(ledger.settle(of, step(50_000), 30))
    assert desk.sums() == Sums(5 * DOLLAR + 30, 5 * DOLLAR + 30)


def test_a_step_that_found_no_room_in_its_process_holds_its_money_only_once() -> None:
    desk = Desk()
    ledger = desk.ledger()
    for _ in range(3):
        run(ledger.reserve(state(), step(DOLLAR), []))
    assert desk.sums() == Sums(0, DOLLAR, 1)
    run(ledger.settle(state(), step(DOLLAR), 5))
    assert desk.sums() == Sums(5, 5, 0)


def test_an_invocation_has_one_reservation_however_many_attempts_of_any_saga_are_under_way() -> None:
    desk = Desk()
    ledger, other = desk.ledger(), desk.ledger()
    sagas = [state(f"s{n}") for n in range(10)]
    for of in sagas:
        for slot in "abc":
            run(ledger.reserve(of, step(100, slot), []))
    run(other.reserve(state("other"), step(100), []))
    assert desk.sums() == Sums(0, 3_100, 2)
    for of in sagas:
        for slot in "abc":
            run(ledger.settle(of, step(100, slot), 7))
    assert desk.sums() == Sums(210, 310, 1)


def test_an_attempt_can_need_more_than_its_node_does() -> None:
    desk = Desk()
    run(desk.ledger().reserve(state(), step(5), [], 7))
    assert desk.sums().held == 7


# ---- warnings


def test_the_user_is_warned_once_by_a_process_and_told_when_it_is_over() -> None:
    desk = Desk()
    ledger = desk.ledger()
    told = []
    for cost in (3_900_000, 200_000, 200_000, 800_000, 1):
        run(ledger.reserve(state(), step(), []))
        told.append([notice.key for notice in run(ledger.settle(state(), step(), cost))])
    assert told == [[], [f"budget80/user/ada/{DAY}"], [], [f"budget100/user/ada/{DAY}"], []]


def test_a_saga_that_has_said_so_does_not_say_so_again_in_another_process() -> None:
    first, second = Desk(), Desk()
    second.budgets = second.cache.budgets = first.budgets
    for desk, of in ((first, state()), (second, state(outbox=Outbox(sent=(f"budget80/user/ada/{DAY}",))))):
        ledger = desk.ledger()
        run(ledger.reserve(of, step(), []))
        notices = run(ledger.settle(of, step(), 4_000_000 if desk is first else 1))
        assert len(notices) == (desk is first)


def test_a_new_day_has_warnings_of_its_own() -> None:
    desk = Desk()
    for expected in (DAY, DAY + 1):
        ledger = desk.ledger()
        run(ledger.reserve(state(), step(), []))
        (notice,) = run(ledger.settle(state(), step(), 4_000_000))
        assert notice.key == f"budget80/user/ada/{expected}"
        desk.clock.at += DAY_MS


# ---- what is cut off, and what dies


def test_an_attempt_that_was_cut_off_is_settled_with_what_it_said_by_then() -> None:
    desk = Desk()
    ledger, declared, silent = desk.ledger(), list[Decimal](), list[Decimal]()
    run(ledger.reserve(state(), step(200_000, "a"), declared))
    run(ledger.reserve(state(), step(0, "b"), silent))
    run(ledger.reserve(state("other"), step(100_000, "a"), []))
    declared.append(Decimal("0.15"))
    silent.append(Decimal("0.01"))
    for _ in range(2):
        run(ledger.drain(SagaRef("acme", "s1")))
    assert desk.sums() == Sums(160_000, 260_000, 1), "what another saga holds is its own"


def test_an_attempt_that_takes_the_place_of_one_that_spent_finds_that_counted_and_nothing_held() -> None:
    desk = Desk()
    ledger = desk.ledger()
    run(ledger.reserve(state(), step(100), [Decimal("0.00001")]))
    run(ledger.reserve(state(), step(100), []))
    assert desk.sums() == Sums(10, 110, 1)
    run(ledger.settle(state(), step(100), 50))
    run(ledger.drain(SagaRef("acme", "s1")))
    assert desk.sums() == Sums(60, 60, 0)


async def test_what_a_cancelled_attempt_held_is_free_at_once_for_every_saga() -> None:
    desk = Desk()
    ledger, other = desk.ledger(), desk.ledger()
    spent = [Decimal("0.5")]
    await ledger.reserve(state(), step(3 * DOLLAR), spent)
    ledger.abandon(state(), step(3 * DOLLAR))
    await asyncio.sleep(0)
    assert desk.sums() == Sums(500_000, 500_000, 0)
    await other.reserve(state("other"), step(4 * DOLLAR), [])
    for _ in range(2):
        await ledger.drain(SagaRef("acme", "s1"))
    ledger.abandon(state(), step(3 * DOLLAR))
    assert desk.sums() == Sums(500_000, 4_500_000, 1)


async def test_one_that_waits_for_room_at_a_slot_that_is_gone_holds_nothing_any_more() -> None:
    desk = Desk()
    ledger = desk.ledger()
    for slot in "abc":
        await ledger.reserve(state(), step(DOLLAR, slot), [])
        if slot != "c":
            ledger.rest(state(), step(DOLLAR, slot))
    ledger.rest(state("other"), step())
    ledger.see(state(tokens={"b": {"": True}}), ())
    await asyncio.sleep(0)
    assert desk.sums() == Sums(0, 2 * DOLLAR, 1), "one still runs, and settles itself when it is gone"


# ---- stores that do not answer


def test_a_store_that_does_not_answer_fails_no_step_that_is_done_and_counts_it_once() -> None:
    budgets = Failing()
    desk = Desk(budgets)
    ledger = desk.ledger()
    spent = [Decimal("0.1")]
    run(ledger.reserve(state(), step(200_000), spent))
    budgets.is_down = True
    assert run(ledger.settle(state(), step(200_000), 100_000)) == ()
    run(ledger.drain(SagaRef("acme", "s1")))
    budgets.is_down = False
    assert desk.sums() == Sums(100_000, 100_000, 0)


def test_a_worker_that_revives_a_saga_frees_what_the_dead_invocation_held() -> None:
    desk = Desk()
    desk.clock.at = (DAY + 1) * DAY_MS - 1_000
    run(desk.ledger().reserve(state(), step(DOLLAR), []))
    desk.clock.at += 2_000
    run(desk.ledger().reserve(state("other"), step(DOLLAR), []))
    dead_until = (DAY + 1) * DAY_MS - 1_000 + 2_000 + LIMITS.lease_grace_ms
    assert day_of(dead_until) == DAY + 1
    desk.clock.at = dead_until
    run(desk.ledger().revived(state(), graph(DOLLAR), dead_until))
    assert desk.sums(DAY).held == 0, "of the day on which it was reserved"
    assert desk.sums(DAY + 1).held == DOLLAR, "and nothing of those who live"


@pytest.mark.parametrize("skew", [-3_000, 3_000])
def test_what_is_held_goes_to_no_other_until_its_time_is_over_by_every_clock(skew: int) -> None:
    """Its holder can spend it up to then: what was free before would be spent twice."""
    desk, other = Desk(user_day=DOLLAR // 2), Desk(user_day=DOLLAR // 2)
    other.budgets = other.cache.budgets = desk.budgets
    run(desk.ledger().reserve(state(), step(DOLLAR // 2), []))
    until = NOON + 2_000 + LIMITS.lease_grace_ms
    other.clock.at = until - 1 + skew
    ledger = other.ledger()
    with pytest.raises(NoRoom):
        run(ledger.reserve(state("other"), step(DOLLAR // 2), []))
    run(ledger.revived(state("third"), graph(1), until - 1))
    assert desk.sums().held == DOLLAR // 2
    other.clock.at = until + LIMITS.clock_skew_ms
    run(ledger.reserve(state("other"), step(DOLLAR // 2), []))
    assert desk.sums() == Sums(0, DOLLAR // 2, 1)


# ---- blocked users


def test_of_a_blocked_user_no_saga_runs_in_which_something_costs() -> None:
    desk = Desk()
    desk.spend(5 * DOLLAR)
    asked = desk.budgets.calls
    assert run(desk.ledger().blocked(state(), graph())) is None
    assert desk.budgets.calls == asked, "and no other is asked for"
    for of, costs in ((state(), 1), (state(spent=1), 0)):
        parked = run(desk.ledger().blocked(of, graph(costs)))
        assert parked.code == "budget_user_day"
        assert parked.until == (DAY + 1) * DAY_MS
    over = state(spent=1, parked=ev.Parked(code="x", message=""))
    assert run(desk.ledger().blocked(over, graph(1))) is None, "it is parked already"


def test_a_user_with_money_left_runs() -> None:
    desk = Desk()
    assert run(desk.ledger().blocked(state(spent=1), graph())) is None


def test_a_process_that_knows_a_user_to_be_blocked_begins_nothing_that_costs_and_reads_no_account() -> None:
    desk = Desk()
    ledger = desk.ledger()
    run(ledger.reserve(state(), step(), []))
    run(ledger.settle(state(), step(), 5 * DOLLAR))
    asked = desk.budgets.calls
    for of, costs in ((state("other"), 1), (state("other", spent=1), 0)):
        with pytest.raises(Halted):
            run(ledger.reserve(of, step(costs), []))
    run(ledger.reserve(state("free"), step(), []))
    assert desk.budgets.calls == asked
    desk.clock.at += DAY_MS
    run(desk.ledger().reserve(state("other"), step(1), []))


def test_a_blocked_user_is_refused_with_the_seconds_that_are_left_of_the_day(says: Says) -> None:
    desk = Desk()
    run(desk.cache.refuse_the_blocked(desk.call(), "acme", "ada", NOON))
    desk.spend(5 * DOLLAR)
    with says.raised(BudgetSpent) as refused:
        run(desk.cache.refuse_the_blocked(desk.call(), "acme", "ada", NOON))
    assert refused.value.retry_after_s == 43_200
