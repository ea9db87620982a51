"""A reservation for a request that is billed, which lands when its invocation has long gone on: nothing is spent by it."""

from __future__ import annotations

import pytest

from baton.errors import StoreUnavailable
from baton.ports import Sums
from tests.runtime.desk import NOON, Desk, Failing
from tests.runtime.test_account_queue import ADA, UNTIL, queue

OVER = UNTIL + 3_600_000


@pytest.mark.parametrize("again", [False, True])
async def test_one_whose_request_was_never_made_is_not_spent_when_its_time_is_over(again: bool) -> None:
    budgets = Failing()
    desk = Desk(budgets)
    mine = queue(desk)
    budgets.is_down, budgets.lands_late = True, True
    with pytest.raises(StoreUnavailable):
        await mine.ask(NOON, more=700, billed="a")
    budgets.is_down = False
    if again:
        await mine.ask(NOON, more=600, billed="a")
        await mine.ask(NOON, less=600, spent=20, billed="a")
    else:
        await mine.ask(NOON)
    assert mine.is_settled
    budgets.land()
    budgets.expire(ADA, OVER)
    spent = 20 if again else 0
    assert desk.sums() == Sums(spent, spent, 0)


async def test_the_invocation_goes_on_behind_its_mark() -> None:
    budgets = Failing()
    desk = Desk(budgets)
    mine = queue(desk)
    budgets.is_down, budgets.lands_late = True, True
    with pytest.raises(StoreUnavailable):
        await mine.ask(NOON, more=700, billed="a")
    budgets.is_down = False
    for spent in (1, 2, 3):
        await mine.ask(NOON, more=900, billed="a")
        assert desk.sums().held == 900 + sum(range(spent))
        await mine.ask(NOON, less=900, spent=spent, billed="a")
        assert mine.is_settled
    await mine.ask(NOON, spent=4)
    budgets.land()
    assert desk.sums() == Sums(10, 10, 0)


async def test_it_is_spent_if_its_request_was_made_and_its_invocation_died() -> None:
    desk = Desk(Failing())
    mine = queue(desk)
    await mine.ask(NOON, more=700, billed="a")
    desk.budgets.expire(ADA, OVER)
    assert desk.sums() == Sums(700, 700, 0)


async def test_nor_is_one_that_was_asked_for_over_the_mark() -> None:
    budgets = Failing()
    desk = Desk(budgets)
    mine = queue(desk)
    budgets.lands_late = True
    for _ in range(2):
        budgets.is_down = True
        with pytest.raises(StoreUnavailable):
            await mine.ask(NOON, more=700, billed="a")
        budgets.is_down = False
        await mine.ask(NOON)
        assert mine.is_settled
    budgets.land()
    budgets.expire(ADA, OVER)
    assert desk.sums() == Sums(0, 0, 0)
