"""Contract of `Budgets`: no money is given twice, what is spent counts once, and what the dead held comes free."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from baton.adapters.aws import Aws
from baton.adapters.dynamo.budgets import DynamoBudgets
from baton.ports import Account, Held, Refused, Reservation, Sums
from tests.contract.stores import AwsStores, MemoryStores, Stores
from tests.contract.test_concurrency import at_once
from tests.kit.meter import Meter
from tests.kit.table import create_table

ADA = Account("acme", "auth0|ada", 20_700)
NOW = 20_700 * 86_400_000 + 3_600_000
UNTIL = NOW + 900_000
LIMIT = 5_000_000
CENT = 10_000


def one(id_: str = "a", amount: int = 100 * CENT, until: int = UNTIL) -> Reservation:
    return Reservation(id_, amount, until)


def test_an_account_has_no_spending_at_first(stores: Stores) -> None:
    assert stores.budgets.read(ADA) == Sums(0, 0, 0)


def test_what_is_reserved_is_held_until_what_was_spent_takes_its_place(stores: Stores) -> None:
    budgets = stores.budgets
    assert budgets.reserve(ADA, one(), LIMIT, NOW) == Held(Sums(0, 100 * CENT, 1))
    assert budgets.reserve(ADA, one("b", 5 * CENT), LIMIT, NOW) == Held(Sums(0, 105 * CENT, 2))
    assert budgets.settle(ADA, one(), 30 * CENT) == Sums(30 * CENT, 35 * CENT, 1)
    assert budgets.settle(ADA, one("b", 5 * CENT), 0) == Sums(30 * CENT, 30 * CENT, 0)
    assert budgets.read(ADA) == Sums(30 * CENT, 30 * CENT, 0)


def test_the_limit_can_be_reached_and_not_passed_by_a_millionth(stores: Stores) -> None:
    budgets = stores.budgets
    assert isinstance(budgets.reserve(ADA, one("a", LIMIT - 1), LIMIT, NOW), Held)
    assert budgets.reserve(ADA, one("b", 2), LIMIT, NOW) == Refused(Sums(0, LIMIT - 1, 1), is_busy=True)
    assert isinstance(budgets.reserve(ADA, one("c", 1), LIMIT, NOW), Held)


def test_more_than_the_limit_itself_is_refused_for_good(stores: Stores) -> None:
    assert stores.budgets.reserve(ADA, one("a", LIMIT + 1), LIMIT, NOW) == Refused(Sums(), is_busy=False)


def test_a_refusal_says_whether_others_only_hold_the_money_or_it_is_spent(stores: Stores) -> None:
    budgets = stores.budgets
    budgets.reserve(ADA, one("a", 400 * CENT), LIMIT, NOW)
    refused = budgets.reserve(ADA, one("b", 200 * CENT), LIMIT, NOW)
    assert isinstance(refused, Refused)
    assert refused.is_busy
    budgets.settle(ADA, one("a", 400 * CENT), 400 * CENT)
    refused = budgets.reserve(ADA, one("b", 200 * CENT), LIMIT, NOW)
    assert isinstance(refused, Refused)
    assert not refused.is_busy


def test_accounts_are_apart(stores: Stores) -> None:
    budgets = stores.budgets
    budgets.reserve(ADA, one("a", LIMIT), LIMIT, NOW)
    for other in (Account("globex", ADA.user, ADA.day), Account("acme", "bob", ADA.day)):
        assert isinstance(budgets.reserve(other, one("a", LIMIT), LIMIT, NOW), Held)
    assert budgets.read(Account(ADA.tenant, ADA.user, ADA.day + 1)) == Sums()


# ---- repetitions: an answer was lost, and the call is made again


def test_a_repeated_reserve_holds_nothing_more(stores: Stores) -> None:
    for _ in range(2):
        assert stores.budgets.reserve(ADA, one(), LIMIT, NOW) == Held(Sums(0, 100 * CENT, 1))


def test_a_repeated_reserve_is_no_refusal_where_there_is_no_room_for_a_second(stores: Stores) -> None:
    for _ in range(2):
        assert isinstance(stores.budgets.reserve(ADA, one("a", LIMIT), LIMIT, NOW), Held)


def test_a_repeated_settle_counts_once(stores: Stores) -> None:
    stores.budgets.reserve(ADA, one(), LIMIT, NOW)
    for _ in range(3):
        assert stores.budgets.settle(ADA, one(), 30 * CENT) == Sums(30 * CENT, 30 * CENT, 0)


def test_what_was_never_held_has_nothing_to_settle(stores: Stores) -> None:
    assert stores.budgets.settle(ADA, one(), 30 * CENT) == Sums()
    assert stores.budgets.read(ADA) == Sums()


def test_a_settle_counts_what_is_held_and_not_what_it_believes_is(stores: Stores) -> None:
    stores.budgets.reserve(ADA, one("a", 50), LIMIT, NOW)
    assert stores.budgets.settle(ADA, one("a", 80, UNTIL + 1), 10) == Sums(10, 10, 0)


# ---- more than was held


def test_what_was_spent_beyond_the_reservation_and_the_limit_counts_all_the_same(stores: Stores) -> None:
    budgets = stores.budgets
    budgets.reserve(ADA, one("a", LIMIT), LIMIT, NOW)
    assert budgets.settle(ADA, one("a", LIMIT), LIMIT + 3) == Sums(LIMIT + 3, LIMIT + 3, 0)
    assert isinstance(budgets.reserve(ADA, one("b", 1), LIMIT, NOW), Refused)


# ---- the reservations of the dead


def test_a_refused_reserve_frees_what_is_past_its_time_and_tries_again(stores: Stores) -> None:
    budgets = stores.budgets
    for n in range(5):
        budgets.reserve(ADA, one(f"dead{n}", until=NOW), LIMIT, NOW - 1)
    refused = budgets.reserve(ADA, one("early"), LIMIT, NOW - 1)
    assert refused == Refused(Sums(0, LIMIT, 5), is_busy=True), "not a millisecond early"
    assert budgets.reserve(ADA, one(), LIMIT, NOW) == Held(Sums(0, 100 * CENT, 1))


def test_a_worker_that_finds_a_dead_invocation_can_free_what_it_held(stores: Stores) -> None:
    budgets = stores.budgets
    for n in range(30):
        budgets.reserve(ADA, one(f"dead{n}", CENT, NOW), LIMIT, NOW - 1)
    budgets.reserve(ADA, one("alive"), LIMIT, NOW - 1)
    assert budgets.expire(ADA, NOW) == Sums(0, 100 * CENT, 1)
    assert budgets.expire(ADA, NOW) == Sums(0, 100 * CENT, 1)


def test_what_was_spent_counts_once_even_if_its_reservation_was_freed(stores: Stores) -> None:
    budgets = stores.budgets
    budgets.reserve(ADA, one(until=NOW), LIMIT, NOW - 1)
    budgets.expire(ADA, NOW)
    for _ in range(2):
        assert budgets.settle(ADA, one(until=NOW), 30 * CENT) == Sums(30 * CENT, 30 * CENT, 0)


def test_a_reservation_that_was_freed_can_be_made_again(stores: Stores) -> None:
    budgets = stores.budgets
    budgets.reserve(ADA, one(until=NOW), LIMIT, NOW - 1)
    budgets.expire(ADA, NOW)
    assert budgets.reserve(ADA, one(), LIMIT, NOW) == Held(Sums(0, 100 * CENT, 1))
    assert budgets.settle(ADA, one(), 5) == Sums(5, 5, 0)
    assert budgets.settle(ADA, one(), 5) == Sums(5, 5, 0)


def test_only_so_many_are_open_at_a_time(memory: MemoryStores, moto: AwsStores) -> None:
    for budgets in (memory.a_small_budgets(3), moto.a_small_budgets(3)):
        for n in range(3):
            assert isinstance(budgets.reserve(ADA, one(f"r{n}", 1), LIMIT, NOW), Held)
        full = budgets.reserve(ADA, one("more", 1), LIMIT, NOW)
        assert full == Refused(Sums(0, 3, 3), is_busy=True)
        budgets.settle(ADA, one("r0", 1), 1)
        assert isinstance(budgets.reserve(ADA, one("more", 1), LIMIT, NOW), Held)


# ---- what is spent already, and only has to be counted: a reservation of nothing


def test_a_reservation_of_nothing_is_not_refused_on_a_day_that_is_spent(stores: Stores) -> None:
    budgets = stores.budgets
    budgets.reserve(ADA, one("a", LIMIT), LIMIT, NOW)
    budgets.settle(ADA, one("a", LIMIT), LIMIT + 3)
    for _ in range(2):
        assert budgets.reserve(ADA, one("b", 0), LIMIT, NOW) == Held(Sums(LIMIT + 3, LIMIT + 3, 1))
    for _ in range(2):
        assert budgets.settle(ADA, one("b", 0), 7) == Sums(LIMIT + 10, LIMIT + 10, 0)


def test_a_reservation_of_nothing_is_not_refused_where_as_many_are_open_as_may_be(
    memory: MemoryStores, moto: AwsStores
) -> None:
    for budgets in (memory.a_small_budgets(1), moto.a_small_budgets(1)):
        budgets.reserve(ADA, one("a", 1), LIMIT, NOW)
        for n in (1, 2):
            assert budgets.reserve(ADA, one(f"b{n}", 0), LIMIT, NOW) == Held(Sums(0, 1, n + 1))


def test_a_late_request_counts_nothing_twice_and_what_it_opens_is_freed(stores: Stores) -> None:
    budgets, batch = stores.budgets, one("b", 0, NOW + 1)
    budgets.reserve(ADA, batch, LIMIT, NOW)
    budgets.settle(ADA, batch, 7)
    assert budgets.settle(ADA, batch, 7) == Sums(7, 7, 0)
    assert budgets.reserve(ADA, batch, LIMIT, NOW) == Held(Sums(7, 7, 1))
    assert budgets.expire(ADA, NOW + 1) == Sums(7, 7, 0)


# ---- many at once


def test_of_fifty_invocations_at_once_none_overspends_by_a_millionth(concurrent_stores: Stores) -> None:
    budgets = concurrent_stores.budgets
    tries = [Reservation(f"s{n}", 30 * CENT + n, UNTIL) for n in range(50)]
    answers = at_once([partial(budgets.reserve, ADA, mine, LIMIT, NOW) for mine in tries])
    mine = [one for one, answer in zip(tries, answers, strict=True) if isinstance(answer, Held)]
    assert sum(one.amount for one in mine) <= LIMIT
    assert len(mine) == 16, "and none is refused for whom there is room"
    assert budgets.read(ADA).held == sum(one.amount for one in mine)
    at_once([partial(budgets.settle, ADA, one, one.amount - n) for n, one in enumerate(mine)])
    spent = sum(one.amount - n for n, one in enumerate(mine))
    assert budgets.read(ADA) == Sums(spent, spent, 0)


def test_what_is_counted_by_many_at_once_beyond_the_limit_counts_once(concurrent_stores: Stores) -> None:
    budgets = concurrent_stores.budgets
    batches = [Reservation(f"i{n}", 0, UNTIL) for n in range(12)]
    answers = at_once([partial(budgets.reserve, ADA, mine, 5, NOW) for mine in batches])
    assert all(isinstance(answer, Held) for answer in answers)
    at_once([partial(budgets.settle, ADA, mine, 2) for mine in batches for _ in range(2)])
    assert budgets.read(ADA) == Sums(24, 24, 0)


def test_of_many_that_free_the_same_and_reserve_anew_none_gets_it_twice(concurrent_stores: Stores) -> None:
    budgets = concurrent_stores.budgets
    for n in range(10):
        budgets.reserve(ADA, Reservation(f"dead{n}", 50 * CENT, NOW), LIMIT, NOW - 1)
    tries = [Reservation(f"s{n}", 100 * CENT, UNTIL) for n in range(20)]
    late = [partial(budgets.settle, ADA, Reservation(f"dead{n}", 50 * CENT, NOW), 25 * CENT) for n in (0, 1)]
    calls: list[Any] = [partial(budgets.reserve, ADA, mine, LIMIT, NOW) for mine in tries]
    answers = at_once([*calls, *late])
    held = sum(isinstance(answer, Held) for answer in answers)
    assert 4 <= held <= 5
    assert budgets.read(ADA) == Sums(50 * CENT, held * 100 * CENT + 50 * CENT, held)


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
    budgets.reserve(ADA, one(), LIMIT, NOW)
    budgets.settle(ADA, one(), CENT)
    assert meter.units == [1, 1]
    assert not meter.read
    budgets.read(ADA)
    assert [read.units for read in meter.read] == [0.5]


def test_the_item_of_a_day_expires_a_week_after_it(moto: AwsStores) -> None:
    moto.budgets.reserve(ADA, one(), LIMIT, NOW)
    (item,) = moto.scan()
    assert item == {
        "pk": {"S": "T#acme#BUDGET#auth0|ada"},
        "sk": {"S": "020700"},
        "spent": {"N": "0"},
        "held": {"N": "1000000"},
        "open": {"N": "1"},
        "r#a": {"S": f"1000000 {UNTIL}"},
        "ttl": {"N": str(20_708 * 86_400)},
    }


def test_an_item_does_not_grow_with_what_is_over(moto: AwsStores) -> None:
    budgets = moto.budgets
    for n in range(40):
        budgets.reserve(ADA, one(f"c{n}", 0), LIMIT, NOW)
        budgets.settle(ADA, one(f"c{n}", 0), 2)
    (item,) = moto.scan()
    assert set(item) == {"pk", "sk", "spent", "held", "open", "ttl"}
    assert budgets.read(ADA) == Sums(80, 80, 0)
    for n in range(30):
        budgets.reserve(ADA, one(f"d{n}", 1, NOW + 200), LIMIT, NOW + 100)
    budgets.expire(ADA, NOW + 200)
    budgets.reserve(ADA, one("e", 1, NOW + 300), LIMIT, NOW + 200)
    budgets.expire(ADA, NOW + 3_600_200)
    (item,) = moto.scan()
    freed = [name for name in item if name.startswith(("x#", "r#"))]
    assert len(freed) < 10, "an hour later the freed are forgotten, too"


def test_what_the_dead_opened_to_count_is_freed_by_others_that_count(moto: AwsStores) -> None:
    budgets = moto.budgets
    for n in range(300):
        dead = one(f"d{n}", 0, NOW + 60_000 * n)
        assert isinstance(budgets.reserve(ADA, dead, LIMIT, dead.until), Held)
    (item,) = moto.scan()
    assert budgets.read(ADA).open < 20
    assert sum(name.startswith("x#") for name in item) < 100, "of the last hour"


def test_counting_costs_two_write_units_however_many_invocations_have_counted(
    table_and_meter: tuple[DynamoBudgets, Meter],
) -> None:
    budgets, meter = table_and_meter
    for n in range(60):
        budgets.reserve(ADA, one(f"c{n}", 0, NOW + 60_000), LIMIT, NOW)
        budgets.settle(ADA, one(f"c{n}", 0, NOW + 60_000), 2_500)
    assert set(meter.units) == {1}
    assert len(meter.units) == 120
