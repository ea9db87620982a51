"""Timers in virtual time: to the second at any distance, however unevenly the reconciler runs."""

from __future__ import annotations

import asyncio

import pytest

from baton.adapters.memory.log import MemoryLog
from baton.adapters.memory.queues import MemoryInvoker, MemoryQueue
from baton.core.log.events import WaitClosed, WaitOpened
from baton.ports import TIMER, Head, SagaRef
from baton.runtime.invocation.context import inline
from baton.runtime.reconcile import Reconciler
from tests.kit.corpus import start
from tests.kit.world import World


@pytest.mark.parametrize("minutes", [1, 14, 16, 40])
@pytest.mark.parametrize("first_s", [1, 31, 61, 91])
async def test_a_timer_is_kept_to_the_second_even_if_the_reconciler_runs_only_every_other_minute(
    first_s: int, minutes: int
) -> None:
    """Scheduler starts a run somewhere in its minute, so two can be nearly two minutes apart."""
    world = World.start(reconciler_first_s=first_s, reconciler_gap_s=120)
    saga = await start(world, f"name: w\nnodes: {{a: {{wait: {{for: {minutes}m}}}}}}", {}, "w")
    await asyncio.sleep(60 * minutes + 10)
    (opened,) = [event for event in world.events(saga) if isinstance(event, WaitOpened)]
    (closed,) = [
        entry for entry in world.entries(saga) if any(isinstance(e, WaitClosed) for e in entry.events)
    ]
    assert opened.until is not None
    assert 0 <= closed.at - opened.until <= 1_000


@pytest.mark.parametrize("seconds", [3_595, 3_605, 3_640, 3_700, 7_240, 14_450])
@pytest.mark.parametrize("first_s", [1, 31, 61, 91])
async def test_a_timer_shortly_after_a_look_is_not_late_because_the_look_is(
    first_s: int, seconds: int
) -> None:
    """A saga that waits is looked at after an hour, after two, after four: by a run that comes up to two minutes later."""
    world = World.start(reconciler_first_s=first_s, reconciler_gap_s=120)
    saga = await start(world, f"name: w\nnodes: {{a: {{wait: {{for: {seconds}s}}}}}}", {}, "w")
    await asyncio.sleep(seconds + 10)
    (opened,) = [event for event in world.events(saga) if isinstance(event, WaitOpened)]
    (closed,) = [
        entry for entry in world.entries(saga) if any(isinstance(e, WaitClosed) for e in entry.events)
    ]
    assert opened.until is not None
    assert 0 <= closed.at - opened.until <= 1_000


class HandClock:
    time = 1_000_000

    def now(self) -> int:
        return self.time


@pytest.mark.parametrize(("period_s", "ahead_s"), [(60, 120), (300, 600), (600, 900), (900, 900)])
def test_a_run_looks_two_periods_ahead_but_no_further_than_a_message_can_be_delayed(
    period_s: int, ahead_s: int
) -> None:
    clock = HandClock()
    log, queue, invoker = MemoryLog(1), MemoryQueue(clock), MemoryInvoker()
    for seconds in (-1, 0, 1, ahead_s, ahead_s + 1):
        ref = SagaRef("acme", f"in-{seconds}")
        due_at = clock.time + seconds * 1_000
        head = Head(
            ref=ref,
            workflow="w",
            graph="g",
            user="u",
            created=0,
            start_hash="",
            due_at=due_at,
            lane=TIMER,
        )
        assert log.create_head(head) is None
    reconciler = Reconciler(log, queue, invoker, clock, inline, period_s * 1_000)
    sweep = asyncio.run(reconciler.sweep(0, 50_000))
    assert (sweep.woken, sweep.timed) == (2, 2)
    delays = {(message.saga, (at - clock.time) // 1_000) for at, message in queue.waiting()}
    assert delays == {("T#acme#SAGA#in-1", 1), (f"T#acme#SAGA#in-{ahead_s}", ahead_s)}
