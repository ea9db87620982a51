"""Contract of `Budgets`: users draw from their tenant's day, and both accounts agree at every moment."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from baton.errors import Throttled
from baton.ports import Account, Drawn, ReservationChange, Sums
from tests.contract.stores import Stores
from tests.contract.test_budgets import ADA, CENT, LIMIT, NOW, closing, one, opened
from tests.contract.test_concurrency import at_once

TENANT = ADA.of_tenant
GRACE = Account("acme", "auth0|grace", 20_700)


def test_a_user_draws_from_the_day_of_the_tenant_what_the_others_have_left(stores: Stores) -> None:
    budgets = stores.budgets
    drawn = budgets.draw(ADA, Sums(), 300 * CENT, LIMIT)
    assert drawn == Drawn(True, Sums(drawn=300 * CENT), Sums(held=300 * CENT))
    refused = budgets.draw(GRACE, Sums(), 201 * CENT, LIMIT)
    assert refused == Drawn(False, Sums(), Sums(held=300 * CENT))
    assert budgets.draw(GRACE, Sums(), 200 * CENT, LIMIT).tenant == Sums(held=LIMIT)
    assert budgets.read(TENANT).held == LIMIT
    assert budgets.read(ADA).drawn == 300 * CENT


def test_more_than_the_whole_day_is_refused_at_once(stores: Stores) -> None:
    assert stores.budgets.draw(ADA, Sums(), LIMIT + 1, LIMIT) == Drawn(False, Sums(), Sums())


def test_a_draw_that_is_made_again_changes_nothing(stores: Stores) -> None:
    budgets = stores.budgets
    assert budgets.draw(ADA, Sums(), CENT, LIMIT).is_done
    assert budgets.draw(ADA, Sums(), CENT, LIMIT) == Drawn(False, Sums(drawn=CENT), Sums(held=CENT))


def test_what_is_given_back_is_free_for_others_and_what_is_held_is_never_given_back(stores: Stores) -> None:
    budgets = stores.budgets
    budgets.draw(ADA, Sums(), 200 * CENT, LIMIT)
    first = opened(budgets, amount=100 * CENT)
    seen = budgets.read(ADA)
    assert not budgets.draw(ADA, seen, 99 * CENT).is_done
    budgets.move(ADA, closing(first, 30 * CENT), NOW)
    seen = budgets.read(ADA)
    done = budgets.draw(ADA, seen, 30 * CENT)
    assert done.is_done
    assert (done.user.drawn, done.user.told) == (30 * CENT, 30 * CENT)
    assert (done.tenant.held, done.tenant.spent) == (30 * CENT, 30 * CENT)
    assert not budgets.draw(ADA, seen, 30 * CENT).is_done, "it is told once"


def test_what_is_spent_beyond_all_limits_is_told_all_the_same(stores: Stores) -> None:
    budgets = stores.budgets
    assert budgets.draw(ADA, Sums(spent=2 * LIMIT), 2 * LIMIT).tenant == Sums(spent=2 * LIMIT, held=2 * LIMIT)


def test_a_reservation_may_ask_for_what_its_account_has_drawn(stores: Stores) -> None:
    budgets = stores.budgets
    asking = ReservationChange("a", None, one(), limit=100 * CENT, drawn=100 * CENT)
    assert not budgets.move(ADA, asking, NOW).is_done
    budgets.draw(ADA, Sums(), 100 * CENT, LIMIT)
    answer = budgets.move(ADA, asking, NOW)
    assert answer.is_done
    assert answer.sums.drawn == 100 * CENT


def test_of_fifty_draws_at_once_none_takes_the_money_of_another(concurrent_stores: Stores) -> None:
    budgets = concurrent_stores.budgets

    def draw(number: int) -> bool:
        while True:
            with suppress(Throttled):  # of two transactions at once one may have to come again
                return budgets.draw(Account("acme", f"u{number}", ADA.day), Sums(), 30 * CENT, LIMIT).is_done

    done = at_once([partial(draw, number) for number in range(50)])
    assert sum(map(bool, done)) == LIMIT // (30 * CENT)
    assert budgets.read(TENANT).held == 16 * 30 * CENT
