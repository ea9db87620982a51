"""The model of docs/scale.md: each ceiling against a computation by hand, what gives way first, and what the engine counts."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from benchmarks import asking, quotas, scale
from benchmarks.ceilings import SETTING, Load, Setup, ceilings, turns, use_of
from benchmarks.counts import TABLE_ITSELF, Counts, Use, counted
from benchmarks.quotas import ACCOUNT
from benchmarks.scale import Waiting
from docs.settings_table import template
from tests.benchmarks.test_benches import all_there
from tests.docs.test_costs import on_the_page

DUE, STATUS = "DueIndex", "StatusIndex"
OPEN, DONE = (STATUS, "T#acme#open"), (STATUS, "T#acme#done")
# Made up, so that what is computed by hand here does not change with the engine.
COUNTS = Counts(
    saga=Use(
        writes={TABLE_ITSELF: 4, DUE: 4, STATUS: 3},
        rows={(DUE, "DUE#work"): 4, OPEN: 2, DONE: 1},
        reads=3,
        relayed=1,
        messages=1,
        invocations=1,
    ),
    step=Use(writes={TABLE_ITSELF: 1}),
    further=Use(
        writes={TABLE_ITSELF: 2, DUE: 4},
        rows={(DUE, "DUE#work"): 4},
        reads=2,
        relayed=1,
        messages=1,
        invocations=1,
    ),
    look=Use(writes={TABLE_ITSELF: 1, DUE: 2}, rows={(DUE, "DUE#sweep"): 2}, reads=2),
    looks_s=(),
    at_work_bytes=128,
    item_bytes=1_000,
    entry_bytes=600,
    definition_reads=1,
    timed_at_work=1,
)
SETUP = Setup(
    {
        "WorkerConcurrency": 50,
        "TenantRateLimit": 50,
        "TenantSagas": 5_000,
        "ApiRateLimit": 200,
        "Shards": 4,
        "StatusShards": 4,
        "WakeBatch": 10,
        "WarmWrites": 0,
        "WarmReads": 0,
        "WorkerMemory": 1_024,
        "RelayParallelization": 1,
        "WorkerTimeout": 60,
        "TurnMs": 10_000,
        "ReconcileMinutes": 1,
    }
)
LOAD = Load(100)


def per_s(what: str, load: Load = LOAD, setup: Setup = SETUP) -> float:
    return next(one.per_s for one in ceilings(load, setup, COUNTS) if one.what == what)


@pytest.mark.parametrize(
    ("what", "by_hand"),
    [
        ("worker slots", 50 * 10 / 10),
        ("Lambda's invocations at once", 1_000 / (10 / 10 + 0.03)),
        ("the tenant's rate", 50),
        ("the tenant's sagas at work", 500),
        ("the API's rate", 200),
        ("API Gateway", 10_000),
        ("the table's quota", 40_000 / 14),
        ("a cold table, its writes", 4_000 / 14),
        ("a cold table, its reads", 12_000 / 3),
        ("the workers' processors", 50 * 1_024 / 1_769 / (14 * 0.0018)),
        ("DueIndex, its shards", 1_000 * 4 / 4),
        ("StatusIndex, its shards", 1_000 * 4 / 2),
        # Of s starts a second: 0.03 s processes, each of which reads 10 s rows of 128 bytes every ten seconds.
        (
            "StatusIndex, its shards, read for `TenantSagas`",
            math.sqrt(3_000 * 4 / (0.03 / 10 * 10 * 128 / 4_096 / 2)),
        ),
        (
            "StatusIndex, its quota, read for `TenantSagas`",
            math.sqrt(40_000 / (0.03 / 10 * 10 * 128 / 4_096 / 2)),
        ),
        (
            "StatusIndex, cold, read for `TenantSagas`",
            math.sqrt(12_000 / (0.03 / 10 * 10 * 128 / 4_096 / 2)),
        ),
        ("the newest version of one workflow", 3_000 / 0.03),
        ("the queue's messages in flight", 12_000),
    ],
)
def test_a_ceiling_is_what_it_comes_to_by_hand(what: str, by_hand: float) -> None:
    assert per_s(what) == pytest.approx(by_hand)


def test_the_key_of_one_users_day_counts_where_all_sagas_are_that_users_and_spend() -> None:
    spending = replace(LOAD, is_spending=True)
    # 150 invocations: an item of 5 units, which takes 200 requests a second, so that a turn is 0.75 s.
    assert per_s("the key of one user's day", spending) * 10 >= 1_500 / (1 + 3 * 0.75)
    assert per_s("the key of one user's day", replace(spending, step_s=30.0)) < per_s(
        "the key of one user's day", spending
    )
    assert "the key of one user's day" not in {one.what for one in ceilings(LOAD, SETUP, COUNTS)}


def test_a_run_of_the_reconciler_has_time_for_so_many_timers() -> None:
    shards, calls, messages, seconds = 4, 8, 10, 50 - 7
    assert SETUP.times_per_s == pytest.approx(shards * calls * messages / 0.005 * seconds / 60)
    assert per_s("a run of the reconciler") == pytest.approx(SETUP.times_per_s * 60 / 10)


def test_the_relay_has_a_shard_for_each_partition_and_a_batch_takes_as_long_as_its_requests() -> None:
    assert per_s("the relay") == pytest.approx(4 * 100 / (0.015 + 10 * 0.005))


def test_a_key_that_is_shared_by_all_starts_stands_in_no_table_of_what_one_can_raise() -> None:
    (key,) = (
        one for one in ceilings(LOAD, SETUP, COUNTS) if one.what == "the newest version of one workflow"
    )
    assert key.raise_by == ()


def test_values_above_the_inline_bytes_meet_the_bucket() -> None:
    assert per_s("the bucket's PUTs", replace(LOAD, entry_bytes=9_000)) == 350


def test_without_a_limit_of_its_rate_a_tenant_has_no_such_ceiling() -> None:
    assert per_s("the tenant's rate", setup=Setup({"TenantRateLimit": 0})) == math.inf


@pytest.mark.parametrize("starts", scale.LOADS)
def test_with_the_defaults_worker_slots_give_way_first_and_then_the_tenants_rate(starts: int) -> None:
    found = ceilings(Load(starts), Setup(), COUNTS)
    assert [one.what for one in found[:3]] == ["worker slots", "the tenant's rate", "the API's rate"]


@pytest.mark.parametrize("starts", scale.LOADS)
def test_what_is_set_for_a_load_carries_it_or_stands_at_its_maximum(starts: int) -> None:
    load = Load(starts)
    setup = scale.setup_for(load, COUNTS)
    for one in ceilings(load, setup, COUNTS):
        if one.per_s < starts and one.holds_for == SETTING:
            assert all(setup[name] == scale.largest(name) for name in one.raise_by), one
        if one.holds_for == ACCOUNT:
            assert one.per_s >= starts, "a quota is raised"


def test_nothing_is_set_for_a_load_that_the_defaults_carry() -> None:
    assert scale.setup_for(Load(10), COUNTS) == Setup()


def test_raising_a_parameter_lowers_no_ceiling_and_raises_its_own() -> None:
    before = ceilings(LOAD, SETUP, COUNTS)
    for one in before:
        for name in one.raise_by:
            if name in template()["Parameters"]:
                value = scale.next_value(name, max(20_000, 2 * SETUP[name]))
                more = replace(SETUP, given={**SETUP.given, name: value})
                assert per_s(one.what, setup=more) > one.per_s, name
                assert all(per_s(other.what, setup=more) >= other.per_s for other in before), name


@pytest.mark.parametrize("harder", [Load(100, steps=20), Load(100, step_s=2.0), Load(100, entry_bytes=3_000)])
def test_a_harder_load_has_no_higher_ceiling(harder: Load) -> None:
    easier = {one.what: one.per_s for one in ceilings(LOAD, SETUP, COUNTS)}
    of_both = [
        one for one in ceilings(harder, SETUP, COUNTS) if one.what in easier and one.what != "the relay"
    ]
    assert all(one.per_s <= easier[one.what] for one in of_both)
    assert any(one.per_s < easier[one.what] for one in of_both)


def test_an_entry_costs_a_unit_for_each_kilobyte_begun() -> None:
    assert use_of(LOAD, SETUP, COUNTS).units == 21
    assert use_of(replace(LOAD, entry_bytes=1_025), SETUP, COUNTS).units == 31


def test_a_saga_that_lasts_longer_than_a_turn_is_handed_over() -> None:
    assert turns(LOAD, SETUP) == 1
    long = Load(100, steps=25)
    assert turns(long, SETUP) == 3
    assert use_of(long, SETUP, COUNTS).units == 11 + 25 + 2 * 6


def test_a_step_that_is_longer_than_a_turn_has_an_invocation_for_itself() -> None:
    assert turns(Load(100, steps=3, step_s=30.0), SETUP) == 3


# ---- dollars


def test_a_day_costs_what_it_comes_to_by_hand() -> None:
    setup = Setup({"SagaDays": 7, "RetentionDays": 8, "WorkerMemory": 1_024})
    day = scale.a_day(LOAD, setup, COUNTS, sharing=10)
    sagas = 100 * 86_400
    assert day["writes"] == pytest.approx(sagas * 21 * 0.625 / 1e6)
    assert day["API Gateway"] == pytest.approx(sagas / 1e6)
    assert day["storage"] == pytest.approx(sagas * (1_000 + 10 * 1_024) / 1e9 * 15 * (0.25 + 0.20) / 30)
    assert day["Lambda's time"] == pytest.approx(sagas * (10.05 / 10 + 0.03) * 13.3334 / 1e6, rel=0.01)
    alone = scale.a_day(LOAD, setup, COUNTS, sharing=1)
    assert alone["Lambda's time"] / day["Lambda's time"] == pytest.approx(10, rel=0.05)


def test_what_is_kept_longer_costs_more_to_store_and_nothing_else() -> None:
    short, long = (scale.a_day(LOAD, Setup({"RetentionDays": days}), COUNTS) for days in (8, 90))
    assert short.pop("storage") < long.pop("storage")
    assert short == long


# ---- waiting


def test_looks_come_after_the_shortest_time_then_doubling_then_at_the_longest() -> None:
    setup = Setup({"SweepShortestMs": 3_600_000, "SweepLongestMs": 86_400_000})
    assert scale.looks(setup, 1) == 5, "after 1, 2, 4, 8 and 16 h"
    assert scale.looks(setup, 4) == 8, "and after 32, 56 and 80 h"
    assert scale.looks(setup, 1 / 24) == 0


def test_a_million_sagas_that_wait_a_day_each_are_looked_at_so_often() -> None:
    setup = Setup({"SweepShortestMs": 300_000, "SweepLongestMs": 86_400_000})
    assert scale.looks_per_s(Waiting(1e6, 1), setup) == pytest.approx(104.2, abs=0.1)


def test_what_waits_costs_its_looks() -> None:
    setup = Setup({"SweepShortestMs": 86_400_000, "SweepLongestMs": 86_400_000})
    day = scale.waiting_a_day(Waiting(1e6, 30), setup, COUNTS)
    looks = 1e6 * 29 / 30
    assert day["writes"] == pytest.approx(looks * 3 * 0.625 / 1e6)
    assert day["reads"] == pytest.approx(looks * 2 * 0.125 / 1e6)


def test_the_dearest_wait_is_a_little_longer_than_to_the_first_look() -> None:
    setup = Setup({"SweepShortestMs": 172_800_000, "SweepLongestMs": 604_800_000})
    dearest = scale.dearest_wait(1e6, setup, COUNTS)
    costs = [
        sum(scale.waiting_a_day(Waiting(1e6, days / 10), setup, COUNTS).values()) for days in range(1, 900)
    ]
    assert max(costs) <= dearest
    assert dearest == pytest.approx(
        sum(scale.waiting_a_day(Waiting(1e6, 2.0001), setup, COUNTS).values()), rel=0.001
    )


# ---- an outage


def test_an_outage_is_over_with_the_last_run_of_the_reconciler_where_that_can_wake_all() -> None:
    found = scale.outage(LOAD, Setup(raised={quotas.CONCURRENCY.what: 10_000}), COUNTS, 60)
    assert (found.behind, found.over_s, found.late_s) == (0, 105, 75)


def test_what_the_account_cannot_run_is_behind() -> None:
    setup = Setup(raised={quotas.CONCURRENCY.what: 503})
    found = scale.outage(Load(1_000), setup, COUNTS, 60)
    assert found.woken_per_s == pytest.approx((503 - 30) * 10 / 10)
    assert found.behind == pytest.approx((1_000 - 473) * 3_600)
    assert found.over_s == math.inf, "afterwards the queue's own workers take all that there is"


def test_a_backlog_is_worked_off_with_what_the_queue_leaves() -> None:
    setup = Setup(raised={quotas.CONCURRENCY.what: 2_000})
    left = 2_000 - 100 * (0.03 + 10 / 10)
    assert scale.backlog_s(LOAD, setup, 10_000) == pytest.approx(10_000 / left)
    assert scale.backlog_s(LOAD, setup, 0) == 0


# ---- what is counted


def test_the_count_is_what_the_page_of_protocols_says() -> None:
    page, counts = on_the_page(), counted()
    assert counts.saga.units == page["start"] + page["take"] + page["finish"]
    assert counts.step.units == 1
    assert counts.further.units == page["yield"] + page["take"]
    assert counts.definition_reads <= 1


def test_the_engine_looks_at_what_waits_as_often_as_the_model_says() -> None:
    assert len(counted().looks_s) == scale.looks(Setup(), 5 / 24)


def test_what_people_can_be_asked_is_what_it_comes_to_by_hand() -> None:
    of = asking.Question(row=2, busiest=9, place=2)
    assert {one.what: one.per_s for one in asking.ceilings(SETUP, of)} == {
        "one person, the account of places": 500,
        "one person, the partition of the index": 500,
        "one group, role or on-call, its shards": 2_000,
        "a cold InboxIndex": 2_000,
        "a cold table": 4_000 / 9,
        "InboxIndex, its quota": 20_000,
    }
    assert asking.pages_per_s() == 3_000 / (50 * 1_024 / 4_096 / 2)


def test_a_question_writes_its_row_and_its_place_twice() -> None:
    of = asking.counted()
    assert (of.row, of.place) == (2, 2)
    assert of.busiest > of.row


def test_the_bench_has_a_figure_for_each_line() -> None:
    assert all_there(scale.measure(), scale.BENCH)


def test_every_quota_has_a_value_a_unit_and_a_page_of_aws() -> None:
    assert len({(one.what, one.unit) for one in quotas.QUOTAS}) == len(quotas.QUOTAS)
    for one in quotas.QUOTAS:
        assert one.value > 0
        assert one.unit
        assert one.page.startswith(("https://docs.aws.amazon.com/", "https://aws.amazon.com/"))
