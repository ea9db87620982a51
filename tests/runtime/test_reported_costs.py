"""What attempts have spent without having reserved it: counted once, in few requests, also by a store that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from baton.ports import Account, SagaRef, Sums
from tests.runtime.desk import DAY, DOLLAR, LIMITS, NOON, Desk, Failing, run, state, step


async def test_what_is_reported_while_a_request_is_under_way_goes_along_with_the_next() -> None:
    desk = Desk()
    ledger = desk.ledger(slowly)
    slots = [f"s{n}" for n in range(100)]
    for slot in slots:
        await ledger.reserve(state(), step(0, slot), [])
    asked = desk.budgets.calls
    await asyncio.gather(*(ledger.settle(state(), step(0, slot), 7) for slot in slots))
    assert desk.budgets.calls == asked + 2
    assert desk.sums() == Sums(700, 700, 0)


async def test_what_is_reported_while_a_batch_is_settled_goes_along_with_the_next() -> None:
    desk = Desk()
    ledger = desk.ledger(slowly)
    slots = [f"s{n}" for n in range(10)]
    for slot in slots:
        await ledger.reserve(state(), step(0, slot), [])
    asked = desk.budgets.calls
    first = asyncio.create_task(ledger.settle(state(), step(0, slots[0]), 7))
    while desk.budgets.calls == asked:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    others = asyncio.gather(*(ledger.settle(state(), step(0, slot), 7) for slot in slots[1:]))
    await first
    assert desk.sums() == Sums(7, 7, 0)
    await others
    assert desk.budgets.calls == asked + 5, "one of them is this test's"
    assert desk.sums() == Sums(70, 70, 0)


def test_an_attempt_that_has_spent_has_sums_in_which_that_is_counted() -> None:
    """Of the hundred that go along with one request each finds that the day is spent, and one tells the user."""
    desk = Desk()
    ledger = desk.ledger(slowly)

    async def main() -> list[str]:
        slots = [f"s{n}" for n in range(10)]
        for slot in slots:
            await ledger.reserve(state(), step(0, slot), [])
        told = await asyncio.gather(*(ledger.settle(state(), step(0, slot), DOLLAR) for slot in slots))
        return [notice.key for notices in told for notice in notices]

    assert run(main()) == [f"budget80/user/ada/{DAY}", f"budget100/user/ada/{DAY}"]


@pytest.mark.parametrize("only", ["open", "close"])
@pytest.mark.parametrize("lands", ["at once", "late"])
def test_a_report_that_was_not_answered_counts_once(lands: str, only: str) -> None:
    budgets = Failing()
    budgets.only = only
    desk = Desk(budgets)
    ledger = desk.ledger()
    run(ledger.reserve(state(), step(0, "a"), [Decimal("0.1")]))
    run(ledger.reserve(state(), step(0, "b"), []))
    budgets.is_down, budgets.lands_late = True, lands == "late"
    assert run(ledger.settle(state(), step(0, "a"), 100_000)) == ()
    budgets.is_down = False
    run(ledger.settle(state(), step(0, "b"), 5))
    assert (desk.sums().spent, desk.sums().held) == (100_005, 100_005), (
        "what could not be counted goes along with the next"
    )
    budgets.land()
    run(ledger.drain(SagaRef("acme", "s1")))
    until = NOON + 2_000 + LIMITS.lease_grace_ms
    assert budgets.expire(Account("acme", "ada", DAY), until).sums == Sums(100_005, 100_005, 0)


def test_requests_that_land_late_one_after_the_other_count_once() -> None:
    """The batch that the first one opens when it lands is not the one that the second one settles."""
    budgets = Failing()
    desk = Desk(budgets)
    ledger = desk.ledger()
    budgets.is_down = budgets.lands_late = True
    for slot, only in (("a", "open"), ("b", "close")):
        run(ledger.reserve(state(), step(0, slot), [Decimal("0.000005")]))
        budgets.only = only
        run(ledger.settle(state(), step(0, slot), 5))
    budgets.is_down = False
    run(ledger.drain(SagaRef("acme", "s1")))
    assert desk.sums() == Sums(10, 10, 0)
    budgets.land()
    assert (desk.sums().spent, desk.sums().held) == (10, 10)


async def test_those_who_wait_for_a_request_that_fails_make_none_of_their_own_and_are_counted_by_the_next() -> (
    None
):
    budgets = Failing()
    desk = Desk(budgets)
    ledger = desk.ledger(slowly)
    slots = [f"s{n}" for n in range(10)]
    for slot in slots:
        await ledger.reserve(state(), step(0, slot), [Decimal("0.000007")])
    budgets.is_down, asked = True, budgets.asked
    await asyncio.gather(*(ledger.settle(state(), step(0, slot), 7) for slot in slots))
    assert budgets.asked == asked + 1
    await ledger.drain(SagaRef("acme", "s1"))
    assert budgets.asked == asked + 2, "nor do those that are left open"
    budgets.is_down = False
    await ledger.reserve(state(), step(), [])
    await ledger.settle(state(), step(), 1)
    assert desk.sums().spent == 71


def test_two_invocations_count_what_each_of_them_has_spent() -> None:
    desk = Desk()
    for cost in (5, 7):
        ledger = desk.ledger()
        run(ledger.reserve(state(), step(), []))
        run(ledger.settle(state(), step(), cost))
    assert desk.sums() == Sums(12, 12, 0)


async def slowly(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """A store to which a call takes a while."""
    for _ in range(5):
        await asyncio.sleep(0)
    return function(*args, **kwargs)
