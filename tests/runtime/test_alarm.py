"""Many calls share one timer, and each of them ends when its own time is over."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from baton.runtime.invocation.context import Alarm, Overdue
from tests.kit.virtual_time import run_virtual


async def lasting(seconds: float, result: str = "done") -> str:
    await asyncio.sleep(seconds)
    return result


async def when(what: Awaitable[Any]) -> tuple[object, float]:
    """What came of it, and at which second."""
    try:
        found: object = await what
    except (Overdue, asyncio.CancelledError, ValueError) as error:
        found = type(error)
    return found, round(asyncio.get_running_loop().time(), 6)


def test_each_call_ends_at_its_own_time_whichever_began_first() -> None:
    async def main() -> list[tuple[object, float]]:
        alarm = Alarm()
        calls = [alarm.within(limit, lasting(10)) for limit in (5, 2, 8, 2)]
        calls.append(alarm.within(4, lasting(3, "in time")))
        return await asyncio.gather(*map(when, calls))

    assert run_virtual(main()) == [(Overdue, 5), (Overdue, 2), (Overdue, 8), (Overdue, 2), ("in time", 3)]


async def test_calls_that_are_over_at_the_same_moment_end_in_the_order_in_which_they_began() -> None:
    ended = list[int]()
    alarm = Alarm()

    async def overdue(number: int) -> None:
        with contextlib.suppress(Overdue):
            await alarm.within(1, lasting(5))
        ended.append(number)

    await asyncio.gather(*(overdue(number) for number in range(20)))
    assert ended == [*range(20)]


def test_a_call_that_ends_leaves_the_timer_for_those_that_follow() -> None:
    async def main() -> tuple[int, object]:
        alarm, loop = Alarm(), asyncio.get_running_loop()
        timers = 0
        set_at: Callable[..., asyncio.TimerHandle] = loop.call_at

        def call_at(*args: Any, **kwargs: Any) -> asyncio.TimerHandle:
            nonlocal timers
            timers += 1
            return set_at(*args, **kwargs)

        loop.call_at = call_at  # type: ignore[method-assign, assignment]
        for _ in range(100):
            await alarm.within(5, asyncio.sleep(0))
        return timers, await when(alarm.within(7, asyncio.get_running_loop().create_future()))

    assert run_virtual(main()) == (1, (Overdue, 7))


def test_who_is_cancelled_by_another_is_not_overdue() -> None:
    async def main() -> tuple[object, float]:
        task = asyncio.create_task(when(Alarm().within(5, lasting(10))))
        await asyncio.sleep(1)
        task.cancel()
        return await task

    assert run_virtual(main()) == (asyncio.CancelledError, 1)


def test_who_is_cancelled_by_another_in_the_very_moment_is_cancelled() -> None:
    async def main() -> tuple[object, float]:
        task = asyncio.create_task(when(Alarm().within(1, lasting(10))))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_at(1, task.cancel)
        return await task

    assert run_virtual(main()) == (asyncio.CancelledError, 1)


@pytest.mark.parametrize(("after", "found"), [(None, "kept"), (ValueError(), ValueError)])
def test_who_makes_something_else_of_its_end_is_cancelled_no_longer(
    after: Exception | None, found: object
) -> None:
    async def stubborn() -> str:
        try:
            return await lasting(10)
        except asyncio.CancelledError:
            if after is not None:
                raise after from None
            return "kept"

    async def main() -> tuple[object, int]:
        said, _ = await when(Alarm().within(1, stubborn()))
        task = asyncio.current_task()
        assert task is not None
        return said, task.cancelling()

    assert run_virtual(main()) == (found, 0)


def test_within_one_call_another_may_end_sooner_or_later() -> None:
    async def main() -> list[tuple[object, float]]:
        alarm = Alarm()
        inner_first = await when(alarm.within(5, when(alarm.within(1, lasting(10)))))
        outer_first = await when(alarm.within(1, alarm.within(5, lasting(10))))
        return [inner_first, outer_first]

    assert run_virtual(main()) == [((Overdue, 1), 1), (Overdue, 2)]
