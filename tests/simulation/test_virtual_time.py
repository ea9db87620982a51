"""What makes the simulation quick changes nothing: sweeps that are not carried out, and a loop that is not asyncio's own."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import Any

import pytest

from tests.kit.faults import Crash
from tests.kit.schedule import Schedule, trial
from tests.kit.virtual_time import Livelock, SimulationLoop, passes, run_virtual
from tests.kit.world import World

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule("long-wait", 3),
        Schedule("resumed", 5, gap_s=3, budget=2),
        Schedule("parent", 0, faults=(("read", 9, "crash before"), ("read", 40, "hang"))),
    ],
    ids=lambda schedule: schedule.scenario,
)
def test_a_sweep_that_finds_nothing_is_as_good_as_none(
    schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = trial(schedule)
    monkeypatch.setattr(World, "_passes_quietly", lambda *_: False)
    assert trial(schedule) == without


@pytest.mark.parametrize(
    "schedule",
    [Schedule("fan", 1), Schedule("mishaps", 4, is_warm=True), Schedule("kids", 2, skew_ms=3_000, budget=3)],
    ids=lambda schedule: schedule.scenario,
)
def test_time_that_passes_at_once_is_as_good_as_a_sleep(
    schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = trial(schedule)
    monkeypatch.setattr(SimulationLoop, "passes", lambda *_: False)
    assert trial(schedule) == at_once


def test_time_passes_at_once_only_where_nothing_would_happen_meanwhile() -> None:
    async def main() -> list[tuple[bool, float]]:
        loop, found = asyncio.get_running_loop(), list[tuple[bool, float]]()

        def tried(seconds: float) -> None:
            found.append((passes(seconds), loop.time()))

        tried(2)
        timer = loop.call_later(3, tried, 1)
        tried(2)
        tried(1)  # which would be the moment of the timer
        timer.cancel()
        tried(1)
        loop.call_soon(int)
        tried(1)
        return found

    assert run_virtual(main()) == [(True, 2), (True, 4), (False, 4), (True, 5), (False, 5)]


def test_what_goes_round_and_sleeps_is_stopped() -> None:
    async def main() -> None:
        while True:
            if not passes(1):
                await asyncio.sleep(1)

    with pytest.raises(Livelock):
        run_virtual(main(), 100)


def test_timers_of_one_moment_ring_in_the_order_in_which_they_were_set() -> None:
    async def main() -> list[int]:
        loop, rung = asyncio.get_running_loop(), list[int]()
        timers = [loop.call_later(1, rung.append, number) for number in range(20)]
        timers[7].cancel()
        await asyncio.sleep(2)
        return rung

    assert run_virtual(main()) == [number for number in range(20) if number != 7]


def test_a_loop_that_has_a_factory_of_tasks_makes_them_by_it() -> None:
    made = list[str]()

    def factory(loop: asyncio.AbstractEventLoop, work: Any, **how: Any) -> asyncio.Task[Any]:
        made.append(work.__name__)
        return asyncio.Task(work, loop=loop, **how)

    async def main() -> str:
        asyncio.get_running_loop().set_task_factory(factory)
        task = asyncio.create_task(asyncio.sleep(1), name="by name")
        await task
        return task.get_name()

    assert run_virtual(main()) == "by name"
    assert made == ["sleep"]


@pytest.mark.parametrize(("error", "said"), [(ValueError("lost"), ["ValueError('lost')"]), (Crash(), [])])
def test_what_no_task_asks_for_is_said_in_one_line(
    error: BaseException, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A traceback is parsed; within pytest's own parse of a failure, that ends the whole run (SystemError of CPython 3.11)."""

    async def fail() -> None:
        raise error

    async def main() -> None:
        task = asyncio.create_task(fail())
        await asyncio.sleep(1)
        assert task.done()

    caplog.set_level(logging.ERROR)
    gc.freeze()  # what tests before have left is not looked at
    run_virtual(main())
    gc.collect()
    found = [record for record in caplog.records if record.name == "virtual time"]
    assert [record.getMessage().rpartition(": ")[2] for record in found] == said
    assert [record.exc_info for record in found] == [None] * len(said)
