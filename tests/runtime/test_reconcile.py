"""One run of the reconciler in virtual time: whatever refuses or hangs, all the rest that is due is woken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import pytest
from msgspec.structs import replace

from baton.adapters.memory.log import MemoryLog
from baton.adapters.memory.queues import MemoryInvoker, MemoryQueue
from baton.core.limits import DAY_MS
from baton.errors import EngineFault, StoreUnavailable, Throttled
from baton.ports import SWEEP, TIMER, WORK, Head, Message, SagaRef
from baton.ports.log import NO_LANE
from baton.runtime.reconcile import LOOKED_AT, LOOKS_EVERY, RUNS, Reconciler, Sweep
from tests.kit.virtual_time import VirtualClock

P = ParamSpec("P")
T = TypeVar("T")
LEFT = 50_000  # ms that the function has
HANGS_S = 5.0  # until its client gives up on a call


class Invoker(MemoryInvoker):
    """Counts its calls; some of them fail."""

    def __init__(self, fails: Callable[[int], bool] = lambda call: False) -> None:
        super().__init__()
        self.calls, self._fails = 0, fails

    def invoke(self, messages: Sequence[Message]) -> None:
        self.calls += 1
        if self._fails(self.calls):
            raise StoreUnavailable("no answer")
        super().invoke(messages)


class Queue(MemoryQueue):
    """Refuses everything, or the messages at some positions of each call."""

    def __init__(self, clock: VirtualClock, refuses: Sequence[int] | None) -> None:
        super().__init__(clock)
        self._refuses = refuses
        self.calls = 0

    def send(self, messages: Sequence[tuple[Message, int]]) -> Sequence[int]:
        self.calls += 1
        if self._refuses is None:
            raise Throttled("slow down")
        super().send([one for at, one in enumerate(messages) if at not in self._refuses])
        return self._refuses


class Shard:
    """A shard of an index with its reconciler. `slow`: seconds that a call takes, by its name."""

    def __init__(
        self, *, invoker: Invoker | None = None, refuses: Sequence[int] | None = (), shards: int = 1
    ) -> None:
        self.clock = VirtualClock()
        self.log = MemoryLog(shards)
        self.invoker = invoker or Invoker()
        self.queue = Queue(self.clock, refuses)
        self.slow: dict[str, Callable[[], float]] = {}
        self.order: list[str] = []
        self.reconciler = Reconciler(self.log, self.queue, self.invoker, self.clock, self._offload, 60_000)

    async def _offload(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        self.order.append(function.__name__)
        await asyncio.sleep(self.slow.get(function.__name__, lambda: 0.01)())
        return function(*args, **kwargs)

    def due(self, count: int, in_ms: int, tenant: str = "acme", lane: str = TIMER) -> set[str]:
        """So many sagas more that are due in `in_ms`; their keys."""
        keys = set()
        for number in range(count):
            ref = SagaRef(tenant, f"{lane}-in-{in_ms}-{number}")
            head = Head(
                ref=ref,
                workflow="w",
                graph="g",
                user="u",
                created=0,
                start_hash="",
                due_at=self.clock.now() + in_ms,
                lane=lane,
            )
            assert self.log.create_head(head) is None
            keys.add(str(ref))
        return keys

    def woken(self) -> set[str]:
        return {message.saga for messages in self.invoker.drain() for message in messages}

    def timed(self) -> set[str]:
        return {message.saga for _, message in self.queue.waiting()}


async def test_while_the_queue_refuses_all_that_is_overdue_is_woken() -> None:
    shard = Shard(refuses=None)
    overdue = shard.due(240, -1)
    shard.due(240, 30_000)
    sweep = await shard.reconciler.sweep(0, LEFT)
    assert shard.woken() == overdue
    assert sweep == Sweep(woken=240, timed=0, failed=24, more=False)


async def test_a_queue_that_hangs_holds_up_nothing_that_is_overdue() -> None:
    shard = Shard()
    shard.slow["send"] = lambda: HANGS_S
    overdue, soon = shard.due(240, -1), shard.due(40, 60_000)
    run = asyncio.create_task(shard.reconciler.sweep(0, LEFT))
    await asyncio.sleep(1)
    assert shard.woken() == overdue
    await run
    assert shard.timed() == soon


@pytest.mark.parametrize("crowded", [WORK, SWEEP])
async def test_neither_live_leases_nor_looks_crowd_out_timers(crowded: str) -> None:
    """Ten thousand of them, more than the whole run has time for, and each due before the timers."""
    shard = Shard()
    shard.slow["invoke"] = lambda: 1.0
    shard.due(10_000, -60_000, lane=crowded)
    overdue, soon = shard.due(30, -1), shard.due(30, 2_000)
    run = asyncio.create_task(shard.reconciler.sweep(0, LEFT))
    await asyncio.sleep(1.9)
    assert overdue <= shard.woken()
    assert shard.timed() == soon
    assert (await run).more


async def test_among_ten_thousand_sagas_at_work_the_one_whose_worker_died_is_woken_in_the_same_run() -> None:
    """Each of them is due since before it was taken, and a worker is invoked for it in vain."""
    shard = Shard()
    shard.slow["invoke"] = lambda: 0.05
    shard.due(10_000, -60_000, lane=WORK)
    (dead,) = shard.due(1, -1, lane=WORK)
    began = shard.clock.now()
    sweep = await shard.reconciler.sweep(0, LEFT)
    assert dead in shard.woken()
    assert (sweep.woken, sweep.more, shard.invoker.calls) == (10_001, False, 1_001)
    assert shard.clock.now() - began < 10_000


async def test_timers_and_the_ends_of_leases_are_timed_ahead_and_no_looks() -> None:
    shard = Shard()
    soon = shard.due(5, 60_000) | shard.due(5, 60_000, lane=WORK)
    shard.due(5, 60_000, lane=SWEEP)
    assert await shard.reconciler.sweep(0, LEFT) == Sweep(woken=0, timed=10, failed=0, more=False)
    assert shard.timed() == soon


@pytest.mark.parametrize("failing", [1, 3, 24])
async def test_one_invocation_that_is_refused_stops_no_other(failing: int) -> None:
    shard = Shard(invoker=Invoker(lambda call: call == failing))
    overdue, soon = shard.due(240, -1), shard.due(5, 60_000)
    sweep = await shard.reconciler.sweep(0, LEFT)
    assert shard.invoker.calls == 24
    left = overdue - shard.woken()
    assert len(left) == 10
    assert shard.timed() == soon | left, "those that no worker could be invoked for go by the queue"
    assert sweep == Sweep(woken=230, timed=5, failed=1, more=False)


async def test_a_call_that_fails_as_no_store_does_stops_no_other_either() -> None:
    class Broken(Invoker):
        def invoke(self, messages: Sequence[Message]) -> None:
            super().invoke(messages)
            if self.calls == 1:
                raise RuntimeError("a defect")

    shard = Shard(invoker=Broken())
    overdue = shard.due(30, -1)
    sweep = await shard.reconciler.sweep(0, LEFT)
    assert shard.woken() == overdue
    assert (sweep.woken, sweep.failed) == (20, 1)


async def test_an_invocation_that_hangs_does_not_stop_the_others() -> None:
    """Each would otherwise take all of the run's time from those behind it."""
    shard = Shard()
    hanging = iter([HANGS_S] * 7)
    shard.slow["invoke"] = lambda: next(hanging, 0.01)
    overdue = shard.due(900, -1)
    began = shard.clock.now()
    sweep = await shard.reconciler.sweep(0, LEFT)
    assert shard.woken() == overdue
    assert not sweep.more
    assert shard.clock.now() - began < 7_000


async def test_no_more_calls_than_eight_are_made_side_by_side() -> None:
    shard = Shard()
    shard.slow["invoke"] = lambda: 1.0
    shard.due(240, -1)
    began = shard.clock.now()
    await shard.reconciler.sweep(0, LEFT)
    assert 3_000 <= shard.clock.now() - began < 3_100


@pytest.mark.parametrize("is_one_moment", [False, True])
async def test_more_than_a_page_is_woken_in_one_run(is_one_moment: bool) -> None:
    shard = Shard()
    overdue = shard.due(2_500, -1) if is_one_moment else set[str]()
    for number in range(0 if is_one_moment else 25):
        overdue |= shard.due(100, -1 - number)
    soon = shard.due(1_200, 60_000)
    sweep = await shard.reconciler.sweep(0, LEFT)
    assert shard.woken() == overdue
    assert shard.timed() == soon
    assert shard.invoker.calls == 250
    assert sweep == Sweep(woken=2_500, timed=1_200, failed=0, more=False)


async def test_when_its_time_is_up_the_rest_is_left_to_the_next_run() -> None:
    shard = Shard()
    shard.slow["invoke"] = lambda: 1.0
    overdue = shard.due(10_000, -1)
    shard.due(5, 60_000)
    began = shard.clock.now()
    sweep = await shard.reconciler.sweep(0, LEFT)
    assert sweep.more
    assert (sweep.failed, sweep.timed) == (0, 5), "timers do not wait for them"
    woken = shard.woken()
    assert 3_000 < sweep.woken == len(woken) < len(overdue)
    assert shard.clock.now() - began <= LEFT - 1_000 * HANGS_S, "a last call that hangs ends in time"


async def test_timers_that_are_left_for_want_of_time_are_said_to_be() -> None:
    shard = Shard()
    shard.slow["send"] = lambda: 45.0
    overdue = shard.due(10, -1)
    shard.due(95, 60_000)
    sweep = await shard.reconciler.sweep(0, LEFT)
    assert shard.woken() == overdue
    assert sweep == Sweep(woken=10, timed=80, failed=0, more=True)


async def test_a_timer_is_exact_however_long_the_run_took_until_it_was_sent() -> None:
    shard = Shard()
    shard.slow["due"] = lambda: 20.0
    shard.due(1, 10_000)
    shard.due(1, 60_000)
    at = {f"T#acme#SAGA#timer-in-{ms}-0": shard.clock.now() + ms for ms in (10_000, 60_000)}
    await shard.reconciler.sweep(0, LEFT)
    late = {message.saga: visible - at[message.saga] for visible, message in shard.queue.waiting()}
    assert 0 <= late["T#acme#SAGA#timer-in-60000-0"] < 1_000
    assert 10_000 <= late["T#acme#SAGA#timer-in-10000-0"] < 11_000, "at once, because its time is over"


async def test_timers_that_the_queue_does_not_accept_are_not_counted_as_sent() -> None:
    shard = Shard(refuses=[0])
    shard.due(20, 60_000)
    assert await shard.reconciler.sweep(0, LEFT) == Sweep(woken=0, timed=18, failed=2, more=False)


async def test_a_page_that_cannot_be_read_leaves_the_rest_and_what_was_woken_counts() -> None:
    shard = Shard()
    shard.due(1_500, -1)
    soon = shard.due(5, 60_000)
    real = shard.log.due
    any_log: Any = shard.log

    def due(*request: Any) -> Any:
        if request[-1] is not None:
            raise Throttled("slow down")
        return real(*request)

    any_log.due = due
    sweep = await shard.reconciler.sweep(0, LEFT)
    assert shard.timed() == soon
    assert sweep == Sweep(woken=1_000, timed=5, failed=1, more=True)


async def test_a_run_that_can_do_nothing_at_all_fails_after_it_has_tried_everything() -> None:
    shard = Shard(invoker=Invoker(lambda call: True), refuses=None)
    shard.due(30, -1)
    shard.due(30, 60_000)
    with pytest.raises(EngineFault):
        await shard.reconciler.sweep(0, LEFT)
    assert (shard.invoker.calls, shard.queue.calls) == (3, 6)


async def test_an_index_that_cannot_be_read_fails_the_run() -> None:
    shard = Shard()
    any_log: Any = shard.log

    def due(*request: Any) -> Any:
        raise Throttled("slow down")

    any_log.due = due
    with pytest.raises(Throttled):
        await shard.reconciler.sweep(0, LEFT)


async def test_a_run_takes_every_thirty_second_shard_side_by_side() -> None:
    shard = Shard(shards=128)
    shard.slow["due"] = lambda: 1.0
    overdue, began = shard.due(2_000, -1), shard.clock.now()
    found = [await shard.reconciler.sweep(first, LEFT) for first in range(RUNS)]
    assert shard.woken() == overdue
    assert sum(sweep.woken for sweep in found) == 2_000
    assert all(sweep.woken > 30 for sweep in found)
    assert shard.clock.now() - began < RUNS * 2_000, "that is a second or two for each"


async def test_a_shard_in_which_nothing_is_due_is_no_failure() -> None:
    assert await Shard().reconciler.sweep(0, LEFT) == Sweep(woken=0, timed=0, failed=0, more=False)


async def test_a_tenants_thousand_overdue_sagas_are_not_woken_before_anothers_one() -> None:
    shard = Shard()
    shard.due(995, -60_000)
    (last,) = shard.due(1, -1_000, tenant="globex")
    await shard.reconciler.sweep(0, 60_000)
    assert last in {message.saga for message in shard.invoker.drain()[0]}


# ---- sagas that no index leads to


@pytest.mark.parametrize(
    ("change", "is_lost"),
    [
        ({"due_at": None}, True),
        ({"due_at": 40 * DAY_MS}, True),
        ({"lane": NO_LANE, "due_at": 5_400_000}, True),
        ({"owner": "w", "until": 40 * DAY_MS, "due_at": 40 * DAY_MS}, True),
        ({"owner": "w", "until": 2 * DAY_MS, "due_at": None}, False),
        ({"group": "done", "due_at": None}, False),
        ({"due_at": 3_600_000}, False),
    ],
)
async def test_a_saga_that_no_index_leads_to_is_found_in_the_lists(
    change: dict[str, Any], is_lost: bool
) -> None:
    shard = Shard()
    shard.due(60, 7_200_000, lane=SWEEP)
    (lost,) = shard.due(1, 7_200_000)
    now, ref = shard.clock.now(), SagaRef.parse(lost)
    times = {name: value + now for name, value in change.items() if name in ("due_at", "until") and value}
    shard.log._update(ref, lambda head: replace(head, **(change | times)))
    shard.reconciler._lists["acme"] = 0, None
    found = 0
    for _ in range(12 * LOOKS_EVERY):
        found += (await shard.reconciler.sweep(0, LEFT)).found
        await asyncio.sleep(60)
    head = shard.log.read_head(ref)
    assert head is not None
    assert found == is_lost
    assert (lost in shard.woken()) == (is_lost or change.get("due_at") == 3_600_000)
    assert not is_lost or head.until <= shard.clock.now()


async def test_a_run_in_ten_looks_at_one_page_of_the_lists() -> None:
    shard = Shard()
    shard.due(60, 3_600_000, lane=SWEEP)
    shard.reconciler._lists["acme"] = 0, None
    for _ in range(LOOKS_EVERY):
        await shard.reconciler.sweep(0, LEFT)
        await asyncio.sleep(60)
    assert (shard.order.count("listed"), shard.order.count("read_head")) == (1, LOOKED_AT)
