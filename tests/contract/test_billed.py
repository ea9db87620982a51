"""Contract of `Budgets`: what is billed whatever becomes of its caller is spent when the reservation's time is over, and not freed."""

from __future__ import annotations

from baton.ports import BudgetAnswer, Reservation, ReservationChange, Sums
from tests.contract.stores import Stores
from tests.contract.test_budgets import ADA, CENT, LIMIT, NOW, opened, opening


def test_of_what_the_dead_held_that_is_spent_which_is_billed_all_the_same(stores: Stores) -> None:
    budgets = stores.budgets
    billed = {"a-_bcdefgh.1500.300": 30 * CENT, "0123456789": 5 * CENT}
    held = Reservation(1, 50 * CENT, NOW, billed=billed)
    assert budgets.move(ADA, ReservationChange("a", None, held, limit=LIMIT), NOW - 1).there == held
    opened(budgets, "b", CENT, NOW)
    freed = Reservation(1, 0, NOW, is_freed=True, billed=billed)
    assert budgets.expire(ADA, NOW, "a") == BudgetAnswer(True, Sums(35 * CENT, 35 * CENT, 0), freed)
    assert budgets.expire(ADA, NOW, "a") == BudgetAnswer(True, Sums(35 * CENT, 35 * CENT, 0), freed)
    assert budgets.expire(ADA, NOW, "another").there is None
    late = ReservationChange("a", freed, None, 2)
    assert budgets.move(ADA, late, NOW) == BudgetAnswer(True, Sums(35 * CENT + 2, 35 * CENT + 2, 0), None)


def test_what_the_dead_held_is_freed_before_its_end_and_that_of_others_is_not(stores: Stores) -> None:
    budgets = stores.budgets
    held = Reservation(1, 50 * CENT, NOW + 900_000, billed={"a": 30 * CENT})
    assert budgets.move(ADA, ReservationChange("a", None, held, limit=LIMIT), NOW).is_done
    opened(budgets, "b", CENT, NOW + 900_000)
    assert budgets.expire(ADA, NOW, "a").there == held
    freed = BudgetAnswer(True, Sums(30 * CENT, 31 * CENT, 1), held.freed())
    assert budgets.expire(ADA, NOW, "a", is_dead=True) == freed
    assert budgets.expire(ADA, NOW, "a", is_dead=True) == freed
    late = ReservationChange("a", held.freed(), None, 2)
    assert budgets.move(ADA, late, NOW).sums == Sums(30 * CENT + 2, 31 * CENT + 2, 1)


def test_what_is_billed_leaves_no_room_for_who_needs_it(stores: Stores) -> None:
    budgets = stores.budgets
    held = Reservation(1, LIMIT, NOW, billed={"a": LIMIT - 1})
    assert budgets.move(ADA, ReservationChange("a", None, held, limit=LIMIT), NOW - 1).is_done
    assert budgets.move(ADA, opening("b", 2), NOW) == BudgetAnswer(False, Sums(LIMIT - 1, LIMIT - 1, 0), None)
    assert budgets.move(ADA, opening("c", 1), NOW).is_done
