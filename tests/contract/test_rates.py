"""Contract of `Rates`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.contract.stores import AwsStores, Stores

WINDOW = 1_790_000_000_000


def test_each_call_is_told_what_had_been_spent_before_it(stores: Stores) -> None:
    spent = [stores.rates.spend("acme", WINDOW, count) for count in (1, 2, 25, 1)]
    assert spent == [0, 1, 3, 28]


def test_tenants_and_windows_are_counted_apart(stores: Stores) -> None:
    stores.rates.spend("acme", WINDOW, 7)
    assert stores.rates.spend("globex", WINDOW, 1) == 0
    assert stores.rates.spend("acme", WINDOW + 10_000, 1) == 0
    assert stores.rates.spend("acme", WINDOW + 10_000, 1) == 1


def test_of_callers_at_the_same_time_no_two_are_told_the_same(concurrent_stores: Stores) -> None:
    rates = concurrent_stores.rates
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: rates.spend("acme", WINDOW, 3), range(40)))
    assert sorted(told) == [3 * n for n in range(40)]


def test_a_window_expires_an_hour_later_by_the_tables_time_to_live(moto: AwsStores) -> None:
    moto.rates.spend("acme", WINDOW, 1)
    (item,) = moto.scan()
    assert item == {
        "pk": {"S": "T#acme#RATE"},
        "sk": {"S": f"0{WINDOW}"},
        "spent": {"N": "1"},
        "ttl": {"N": str(WINDOW // 1_000 + 3_600)},
    }
