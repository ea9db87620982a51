"""Every bench still runs, as small as it can be: figures are not measured every day. No figure is judged here.

Those that take seconds run in `make soak`.
"""

from __future__ import annotations

import pytest

from benchmarks import (
    agent,
    growth,
    journal,
    load,
    memory,
    money,
    neighbours,
    overhead,
    recovery,
    schedule,
    shipped,
    start,
    tail,
)
from benchmarks.__main__ import NAMES
from benchmarks.__main__ import load as bench_of
from benchmarks.figures import Bench, Sample
from benchmarks.map import BENCH as OF_MAPS
from benchmarks.map import measure as measure_maps


@pytest.fixture(autouse=True)
def _no_real_account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in shipped.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def all_there(sample: Sample, bench: Bench) -> bool:
    """A figure for each line of the table, and none below zero."""
    asked = {key for key, figure in bench.figures.items() if figure.ratio is None}
    return sample.keys() == asked and min(sample.values()) >= 0


@pytest.mark.parametrize("name", NAMES)
def test_a_bench_is_what_its_file_is_called(name: str) -> None:
    assert bench_of(name).name == name


def test_growth_reads_what_it_wrote() -> None:
    sample = growth.measure((5, 10))
    assert sample["entries10"] > 0
    assert sample["bytes5"] > 0


def test_a_question_finds_the_fact_that_answers_it() -> None:
    sample = memory.measure((60,), 100)
    assert sample["recall"] >= 0.9
    assert sample["lost"] <= 0.02


def test_a_unit_is_one_entry() -> None:
    sample = journal.measure(sagas=2, count=3, long=5)
    assert sample.keys() == journal.BENCH.figures.keys()
    assert sample["entries"] == 1


@pytest.mark.soak
def test_agents_read_what_they_wrote() -> None:
    sample = agent.measure(agents=2, turns=2, lengths=(2, 18), window=2)
    assert all_there(sample, agent.BENCH)
    assert sample["writes"] <= 2
    assert (sample["blobs short"], sample["blobs long"]) == (0, 1)


@pytest.mark.soak
def test_neighbours_has_a_figure_for_each_line() -> None:
    assert all_there(neighbours.measure(flood=40), neighbours.BENCH)


def test_every_tick_of_schedules_is_started_once() -> None:
    sample = schedule.measure(schedules=20)
    assert all_there(sample, schedule.BENCH)
    assert (sample["ticks"], sample["started"], sample["besides"]) == (40, 40, 0)


@pytest.mark.soak
def test_deaths_are_found_within_a_minute_and_nothing_that_was_recorded_is_lost() -> None:
    sample = recovery.measure(sagas=4, until_s=90, on_aws=False)
    assert all_there(sample, recovery.BENCH)
    assert sample["deaths"] >= 10
    assert max(sample[f"{limit} longest"] for limit in recovery.LIMITS_S) <= 61
    assert (sample["lost"], sample["broken"]) == (0, 0)


def test_a_parent_takes_in_many_children_with_an_entry() -> None:
    sample = measure_maps(children=60, items=80)
    assert all_there(sample, OF_MAPS)
    assert (sample["tries"], sample["entries"] < 15, sample["inline"] < 10) == (1, True, True)


@pytest.mark.parametrize(("invocations", "attempt_s"), [(20, 1), (100, 1), (100, 30)])
def test_the_closed_form_of_one_users_attempts_is_what_the_engine_comes_to(
    invocations: int, attempt_s: float
) -> None:
    found, _ = money.on_one_key(attempt_s, max(5, attempt_s), invocations)
    expected = money.attempts_per_second(invocations, attempt_s)
    assert 0.9 * expected < found < 1.4 * expected, (
        "where the key is hot, turns are shorter than the longest wait"
    )
    assert found > 4 * money.attempts_per_second_before(invocations, attempt_s) or invocations < 100


@pytest.mark.soak
@pytest.mark.ministack
def test_money_has_a_figure_for_each_line() -> None:
    assert all_there(money.measure(seconds=1, invocations=2), money.BENCH)


def test_tail_runs() -> None:
    assert all_there(tail.measure(), tail.BENCH)


@pytest.mark.soak
@pytest.mark.ministack
def test_overhead_runs_on_both_kinds_of_adapters() -> None:
    assert all_there(overhead.measure(sagas=1, http_sagas=1, steps=2, calls=1), overhead.BENCH)


@pytest.mark.soak
@pytest.mark.ministack
def test_load_says_where_the_time_goes() -> None:
    sample = load.measure(sagas=2, steps=2)
    assert all_there(sample, load.BENCH)
    assert sum(sample[part] for part in ("answer", "in client", "thread", "engine")) == pytest.approx(100)


@pytest.mark.soak
@pytest.mark.ministack
def test_start_runs_a_saga_in_the_process_that_it_measures() -> None:
    with shipped.folder() as site:
        assert len(start.first_invocations(site)) == start.INVOCATIONS


def test_start_counts_each_module_in_one_group() -> None:
    listing = "\n".join(
        f"import time:  {own} | {all_} | {name}"
        for own, all_, name in [
            (1000, 2000, "  botocore.config"),
            (3000, 3000, "    ssl"),
            (500, 9000, "app"),
        ]
    )
    parts = start.parts_of(listing)
    assert (parts["botocore"], parts[start.REST], parts["clients created"]) == (1.0, 3.0, 0.5)
    assert sum(parts.values()) == 4.5
