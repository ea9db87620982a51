"""Contract of `Budgets`: no money is given twice, what is spent counts once, and what the dead held comes free."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from baton.adapters.aws import Aws
from baton.adapters.dynamo.budgets import DynamoBudgets
from baton.adapters.dynamo.items import item_size
from baton.ports import Account, BudgetAnswer, Budgets, Reservation, ReservationChange, Sums
from benchmarks import money
from tests.contract.stores import AwsStores, MemoryStores, Stores
from tests.contract.test_concurrency import at_once
from tests.contract.toy_store import ToyStores
from tests.kit.meter import Meter
from tests.kit.table import create_table

ADA = Account("acme", "auth0|ada", 20_700)
NOW = 20_700 * 86_400_000 + 3_600_000
UNTIL = NOW + 900_000
LIMIT = 5_000_000
CENT = 10_000


def one(amount: int = 100 * CENT, number: int = 1, until: int = UNTIL) -> Reservation:
    return Reservation(number, amount, until)


def opening(holder: str = "a", amount: int = 100 * CENT, until: int = UNTIL) -> ReservationChange:
    return ReservationChange(holder, None, one(amount, until=until), limit=LIMIT)


def closing(opened: ReservationChange, cost: int) -> ReservationChange:
    return ReservationChange(opened.holder, opened.after, None, cost)


def opened(
    budgets: Budgets, holder: str = "a", amount: int = 100 * CENT, until: int = UNTIL
) -> ReservationChange:
    change = opening(holder, amount, until)
    assert budgets.move(ADA, change, min(NOW, until - 1)).is_done
    return change


def test_an_account_has_no_spending_at_first(stores: Stores) -> None:
    assert stores.budgets.read(ADA) == Sums(0, 0, 0)


def test_what_is_reserved_is_held_until_what_was_spent_takes_its_place(stores: Stores) -> None:
    budgets = stores.budgets
    assert budgets.move(ADA, opening(), NOW) == BudgetAnswer(True, Sums(0, 100 * CENT, 1), one())
    other = opening("b", 5 * CENT)
    assert budgets.move(ADA, other, NOW) == BudgetAnswer(True, Sums(0, 105 * CENT, 2), other.after)
    assert budgets.move(ADA, closing(opening(), 30 * CENT), NOW) == BudgetAnswer(
        True, Sums(30 * CENT, 35 * CENT, 1), None
    )
    assert budgets.move(ADA, closing(other, 0), NOW) == BudgetAnswer(
        True, Sums(30 * CENT, 30 * CENT, 0), None
    )
    assert budgets.read(ADA) == Sums(30 * CENT, 30 * CENT, 0)


def test_a_reservation_grows_shrinks_and_counts_in_one_request(stores: Stores) -> None:
    budgets = stores.budgets
    opened(budgets)
    states = [one(), one(150 * CENT, 2), one(20 * CENT, 3), one(0, 4)]
    sums = [
        budgets.move(ADA, ReservationChange("a", before, after, 10 * CENT, LIMIT), NOW)
        for before, after in pairwise(states)
    ]
    assert [(answer.is_done, answer.there) for answer in sums] == [(True, after) for after in states[1:]]
    assert [answer.sums for answer in sums] == [
        Sums(10 * CENT, 160 * CENT, 1),
        Sums(20 * CENT, 40 * CENT, 1),
        Sums(30 * CENT, 30 * CENT, 1),
    ]


def test_the_limit_can_be_reached_and_not_passed_by_a_millionth(stores: Stores) -> None:
    budgets = stores.budgets
    opened(budgets, "a", LIMIT - 1)
    assert budgets.move(ADA, opening("b", 2), NOW) == BudgetAnswer(False, Sums(0, LIMIT - 1, 1), None)
    grown = ReservationChange("a", one(LIMIT - 1), one(LIMIT - 1, 2), 2, LIMIT)
    assert budgets.move(ADA, grown, NOW) == BudgetAnswer(False, Sums(0, LIMIT - 1, 1), one(LIMIT - 1))
    assert budgets.move(ADA, opening("c", 1), NOW).is_done


def test_more_than_the_limit_itself_is_refused_also_on_a_day_without_any_spending(stores: Stores) -> None:
    assert stores.budgets.move(ADA, opening("a", LIMIT + 1), NOW) == BudgetAnswer(False, Sums(), None)


def test_accounts_are_apart(stores: Stores) -> None:
    budgets = stores.budgets
    opened(budgets, "a", LIMIT)
    for other in (Account(ADA.tenant, "eve", ADA.day), Account("other", ADA.user, ADA.day)):
        assert budgets.move(other, opening("a", LIMIT), NOW).is_done
    assert budgets.read(Account(ADA.tenant, ADA.user, ADA.day + 1)) == Sums()


# ---- repetitions: an answer was lost, and the request is made again


def test_a_request_that_is_made_again_changes_nothing_and_finds_what_it_has_made(stores: Stores) -> None:
    budgets = stores.budgets
    states = [None, one(LIMIT), one(30 * CENT, 2), None]
    costs, sums = [0, 70 * CENT, 40 * CENT], [(0, LIMIT), (70 * CENT, 100 * CENT), (110 * CENT, 110 * CENT)]
    for before, after, cost, (spent, held) in zip(states, states[1:], costs, sums, strict=False):
        change = ReservationChange("a", before, after, cost, LIMIT)
        there = BudgetAnswer(True, Sums(spent, held, int(after is not None)), after)
        assert budgets.move(ADA, change, NOW) == there
        if before is not None:  # a late one would open another
            assert budgets.move(ADA, change, NOW) == BudgetAnswer(False, there.sums, after)


def test_what_is_not_exactly_as_it_was_believed_is_not_changed(stores: Stores) -> None:
    budgets = stores.budgets
    opened(budgets, "a", 50)
    for before in (None, one(51), one(50, 2), one(50, 1, UNTIL + 1)):
        change = ReservationChange("a", before, one(70, 3), 5 if before else 0)
        assert budgets.move(ADA, change, NOW) == BudgetAnswer(False, Sums(0, 50, 1), one(50))
    assert budgets.move(ADA, ReservationChange("b", one(50), None, 5), NOW) == BudgetAnswer(
        False, Sums(0, 50, 1), None
    )


def test_requests_that_come_late_count_nothing_and_what_they_open_is_freed(stores: Stores) -> None:
    budgets = stores.budgets
    late = [opening("a", 5, NOW + 1), ReservationChange("a", one(5, 1, NOW + 1), one(5, 2, NOW + 1), 7)]
    opened(budgets, "a", 5, NOW + 1)
    budgets.move(ADA, ReservationChange("a", one(5, 1, NOW + 1), None, 7), NOW)
    assert not budgets.move(ADA, late[1], NOW).is_done
    assert budgets.move(ADA, late[0], NOW) == BudgetAnswer(True, Sums(7, 12, 1), late[0].after)
    assert budgets.expire(ADA, NOW + 1).sums == Sums(7, 7, 0)


# ---- what is spent already counts on any day


def test_what_was_spent_beyond_the_reservation_and_the_limit_counts_all_the_same(stores: Stores) -> None:
    budgets = stores.budgets
    change = opened(budgets, "a", LIMIT)
    assert budgets.move(ADA, closing(change, LIMIT + 3), NOW).sums == Sums(LIMIT + 3, LIMIT + 3, 0)
    assert not budgets.move(ADA, opening("b", 1), NOW).is_done


def test_a_reservation_of_nothing_without_a_limit_is_not_refused_on_a_day_that_is_spent(
    stores: Stores,
) -> None:
    budgets = stores.budgets
    budgets.move(ADA, closing(opened(budgets, "a", LIMIT), LIMIT + 3), NOW)
    reported = ReservationChange("b", None, one(0))
    assert budgets.move(ADA, reported, NOW) == BudgetAnswer(True, Sums(LIMIT + 3, LIMIT + 3, 1), one(0))
    assert budgets.move(ADA, closing(reported, 7), NOW).sums == Sums(LIMIT + 10, LIMIT + 10, 0)


def test_only_so_many_are_open_at_a_time_but_for_those_who_only_count(
    memory: MemoryStores, moto: AwsStores
) -> None:
    for budgets in (memory.a_small_budgets(3), ToyStores().a_small_budgets(3), moto.a_small_budgets(3)):
        changes = [opened(budgets, f"r{n}", 1) for n in range(3)]
        assert budgets.move(ADA, opening("more", 1), NOW) == BudgetAnswer(False, Sums(0, 3, 3), None)
        assert budgets.move(ADA, ReservationChange("r1", one(1), one(9, 2), 0, LIMIT), NOW).is_done, (
            "no one more"
        )
        assert budgets.move(ADA, ReservationChange("only counts", None, one(0)), NOW).is_done
        budgets.move(ADA, closing(changes[0], 1), NOW)
        budgets.move(ADA, ReservationChange("only counts", one(0), None, 1), NOW)
        assert budgets.move(ADA, opening("more", 1), NOW).is_done


# ---- the reservations of the dead


def test_a_refused_reservation_frees_what_is_past_its_time_and_tries_again(stores: Stores) -> None:
    budgets = stores.budgets
    for n in range(5):
        opened(budgets, f"dead{n}", until=NOW)
    early = budgets.move(ADA, opening("early"), NOW - 1)
    assert early == BudgetAnswer(False, Sums(0, LIMIT, 5), None), "not a millisecond early"
    assert budgets.move(ADA, opening(), NOW) == BudgetAnswer(True, Sums(0, 100 * CENT, 1), one())


def test_a_worker_that_finds_a_dead_invocation_can_free_what_it_held(stores: Stores) -> None:
    budgets = stores.budgets
    for n in range(30):
        opened(budgets, f"dead{n}", CENT, NOW)
    opened(budgets, "alive")
    assert budgets.expire(ADA, NOW).sums == Sums(0, 100 * CENT, 1)
    assert budgets.expire(ADA, NOW).sums == Sums(0, 100 * CENT, 1)


def test_what_was_spent_counts_once_even_if_its_reservation_was_freed(stores: Stores) -> None:
    budgets = stores.budgets
    change = opened(budgets, until=NOW)
    budgets.expire(ADA, NOW)
    freed = Reservation(1, 0, NOW, is_freed=True)
    assert budgets.move(ADA, closing(change, 30 * CENT), NOW) == BudgetAnswer(False, Sums(0, 0, 0), freed)
    late = ReservationChange("a", freed, None, 30 * CENT)
    assert budgets.move(ADA, late, NOW) == BudgetAnswer(True, Sums(30 * CENT, 30 * CENT, 0), None)
    assert budgets.move(ADA, late, NOW) == BudgetAnswer(False, Sums(30 * CENT, 30 * CENT, 0), None)


def test_a_holder_whose_reservation_was_freed_can_hold_again(stores: Stores) -> None:
    budgets = stores.budgets
    opened(budgets, until=NOW)
    budgets.expire(ADA, NOW)
    again = ReservationChange("a", Reservation(1, 0, NOW, is_freed=True), one(5, 2), 0, LIMIT)
    assert budgets.move(ADA, again, NOW) == BudgetAnswer(True, Sums(0, 5, 1), one(5, 2))
    assert budgets.move(ADA, closing(again, 5), NOW).sums == Sums(5, 5, 0)


# ---- many at once


def test_of_fifty_invocations_at_once_none_overspends_by_a_millionth(concurrent_stores: Stores) -> None:
    budgets = concurrent_stores.budgets
    tries = [opening(f"s{n}", 30 * CENT + n) for n in range(50)]
    answers = at_once([partial(budgets.move, ADA, change, NOW) for change in tries])
    mine = [change for change, answer in zip(tries, answers, strict=True) if answer.is_done]
    assert sum(change.more for change in mine) <= LIMIT
    assert len(mine) == 16, "and none is refused for whom there is room"
    assert budgets.read(ADA).held == sum(change.more for change in mine)
    at_once([partial(budgets.move, ADA, closing(one, one.more - n), NOW) for n, one in enumerate(mine)])
    spent = sum(change.more - n for n, change in enumerate(mine))
    assert budgets.read(ADA) == Sums(spent, spent, 0)


def test_what_is_counted_by_many_at_once_beyond_the_limit_counts_once(concurrent_stores: Stores) -> None:
    budgets = concurrent_stores.budgets
    reported = [ReservationChange(f"i{n}", None, one(0)) for n in range(12)]
    assert all(
        answer.is_done for answer in at_once([partial(budgets.move, ADA, one, NOW) for one in reported])
    )
    at_once([partial(budgets.move, ADA, closing(one, 2), NOW) for one in reported for _ in range(2)])
    assert budgets.read(ADA) == Sums(24, 24, 0)


def test_of_many_that_free_the_same_and_reserve_anew_none_gets_it_twice(concurrent_stores: Stores) -> None:
    budgets = concurrent_stores.budgets
    dead = [opened(budgets, f"dead{n}", 50 * CENT, NOW) for n in range(10)]
    calls: list[Any] = [partial(budgets.move, ADA, opening(f"s{n}"), NOW) for n in range(20)]

    def late(change: ReservationChange) -> BudgetAnswer:
        """As its holder counts: from whatever it finds."""
        while not (answer := budgets.move(ADA, closing(change, 25 * CENT), NOW)).is_done:
            change = ReservationChange(change.holder, None, answer.there)
        return answer

    answers = at_once([*calls, *(partial(late, change) for change in dead[:2])])
    held = sum(answer.is_done for answer in answers[:20])
    assert 4 <= held <= 5
    assert budgets.read(ADA) == Sums(50 * CENT, held * 100 * CENT + 50 * CENT, held)


MARK = Reservation(-9, 0, NOW, is_freed=True)


def test_a_reservation_that_lands_behind_the_mark_of_its_holder_takes_nothing(stores: Stores) -> None:
    budgets = stores.budgets
    late = opening()
    assert budgets.move(ADA, ReservationChange("a", None, MARK), NOW) == BudgetAnswer(
        True, Sums(0, 0, 0), MARK
    )
    assert budgets.move(ADA, late, NOW) == BudgetAnswer(False, Sums(0, 0, 0), MARK)
    again = ReservationChange("a", MARK, one(5, 3), 0, LIMIT)
    assert budgets.move(ADA, again, NOW) == BudgetAnswer(True, Sums(0, 5, 1), one(5, 3))
    assert budgets.move(ADA, ReservationChange("a", one(5, 3), MARK), NOW) == BudgetAnswer(
        True, Sums(0, 0, 0), MARK
    )
    assert budgets.move(ADA, again, NOW + 1).is_done, "a mark is not too old to be taken up again"


# ---- what it is on a table


@pytest.fixture
def table_and_meter(moto_aws: Aws) -> tuple[DynamoBudgets, Meter]:
    aws = Aws()  # clients of its own: what listens to them goes with the test
    create_table(aws.dynamodb, "sagas")
    return DynamoBudgets(aws.dynamodb, "sagas"), Meter(aws)


def test_a_reservation_and_its_settlement_cost_a_write_unit_each(
    table_and_meter: tuple[DynamoBudgets, Meter],
) -> None:
    budgets, meter = table_and_meter
    budgets.move(ADA, closing(opened(budgets), CENT), NOW)
    assert meter.units == [1, 1]
    assert not meter.read
    budgets.read(ADA)
    assert [read.units for read in meter.read] == [0.5]


def test_the_item_of_a_day_expires_a_week_after_it(moto: AwsStores) -> None:
    opened(moto.budgets, "a", 100)
    (item,) = moto.scan()
    assert item == {
        "pk": {"S": "T#acme#BUDGET#auth0|ada"},
        "sk": {"S": "020700"},
        "spent": {"N": "0"},
        "held": {"N": "100"},
        "open": {"N": "1"},
        "r#a": {"S": f"1 100 {4_500_000}"},
        "ttl": {"N": str(20_708 * 86_400)},
    }


def test_an_item_does_not_grow_with_what_is_over(moto: AwsStores) -> None:
    budgets = moto.budgets
    for n in range(15):
        budgets.move(ADA, closing(opened(budgets, f"c{n}", 3), 2), NOW)
    (item,) = moto.scan()
    assert set(item) == {"pk", "sk", "spent", "held", "open", "ttl"}
    assert budgets.read(ADA) == Sums(30, 30, 0)
    for n in range(30):
        opened(budgets, f"d{n}", 1, NOW + 200)
    budgets.expire(ADA, NOW + 200)
    opened(budgets, "e", 1, NOW + 300)
    budgets.expire(ADA, NOW + 3_600_200)
    (item,) = moto.scan()
    assert sum(name.startswith("r#") for name in item) < 10, "an hour later the freed are forgotten, too"


@pytest.mark.parametrize(("every_s", "kept", "count"), [(60, 15, 40), (1, 100, 120)])
def test_marks_go_after_a_quarter_of_an_hour_and_all_but_the_newest_before(
    moto: AwsStores, every_s: int, kept: int, count: int
) -> None:
    budgets = moto.budgets
    for n in range(count):
        now = NOW + 1_000 * every_s * n
        assert budgets.move(
            ADA, ReservationChange(f"d{n:03}", None, Reservation(-9, 0, now, is_freed=True)), now
        ).is_done
    (item,) = moto.scan()
    left = sorted(name for name in item if name.startswith("r#"))
    assert kept <= len(left) < kept + 16
    assert left == [f"r#d{n:03}" for n in range(count - len(left), count)]


def test_a_mark_that_was_taken_up_again_is_not_tidied_away(
    table_and_meter: tuple[DynamoBudgets, Meter],
) -> None:
    budgets, meter = table_and_meter
    later, again = NOW + 7_200_000, one(7, 3, NOW + 7_200_001)
    raced: list[BudgetAnswer] = []

    class Late(DynamoBudgets):
        """Another takes a mark up between the look at the item and the tidying."""

        def _free(self, account: Account, item: Any, now: int, dead: str = "") -> bool:
            raced.append(budgets.move(ADA, ReservationChange("d3", MARK, again), NOW))
            return super()._free(account, item, now, dead)

    for n in range(20):
        budgets.move(ADA, ReservationChange(f"d{n}", None, MARK), NOW)
    Late(meter.client, "sagas").move(ADA, ReservationChange("e", None, one(1, until=later + 1)), later)
    assert raced[0].is_done
    assert budgets.move(ADA, ReservationChange("d3", again, None), NOW) == BudgetAnswer(
        True, Sums(0, 1, 1), None
    )


@pytest.mark.parametrize("invocations", [1, 20])
def test_an_item_is_as_large_as_the_bench_of_a_users_day_reckons(moto: AwsStores, invocations: int) -> None:
    for n in range(invocations):
        before, after = Reservation(999, 29 * CENT, money.UNTIL), Reservation(1_000, 30 * CENT, money.UNTIL)
        moto.budgets.move(money.ADA, ReservationChange(f"holder{n:04}", None, before), NOW)
        moto.budgets.move(money.ADA, ReservationChange(f"holder{n:04}", before, after, 3 * CENT), NOW)
    (item,) = moto.scan()
    assert item_size(item) == pytest.approx(money.item_bytes(invocations), rel=0.03, abs=10)


def test_what_the_dead_opened_to_count_is_freed_by_others_that_count(moto: AwsStores) -> None:
    budgets = moto.budgets
    for n in range(150):
        dead = ReservationChange(f"d{n}", None, one(0, until=NOW + 60_000 * n))
        assert budgets.move(ADA, dead, NOW + 60_000 * n).is_done
    (item,) = moto.scan()
    assert budgets.read(ADA).open < 20
    assert sum(name.startswith("r#") for name in item) < 100, "of the last hour"


def test_an_attempt_costs_two_write_units_however_many_invocations_have_held_something(
    table_and_meter: tuple[DynamoBudgets, Meter],
) -> None:
    budgets, meter = table_and_meter
    for n in range(25):
        budgets.move(ADA, closing(opened(budgets, f"c{n}", until=NOW + 60_000), 2_500), NOW)
    assert set(meter.units) == {1}
    assert len(meter.units) == 50
