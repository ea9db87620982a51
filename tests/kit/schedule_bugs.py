"""Planted bugs about schedules, made as those of bugs.py are; with the oracle of schedule_runs.py that finds each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from msgspec.structs import replace

from baton.adapters.memory.store import MemorySchedules
from baton.core.schedules import ScheduleRecord, tick_started
from baton.ports import SagaRef
from baton.runtime.requests import schedules
from baton.runtime.requests.schedules import Ticker
from tests.kit.bugs import replaced
from tests.kit.schedule_runs import COUNTS, EVERY, ONCE, OVERLAP, TIME


@contextmanager
def the_put_has_no_condition() -> Iterator[None]:
    """Tick row: of two workers each decides what becomes of a tick."""
    real = MemorySchedules.write_schedule

    def write_schedule(self: MemorySchedules, record: ScheduleRecord) -> bool:
        there = self.read_schedule(record.tenant, record.workflow)
        number = (0 if there is None else there.number) + 1
        return real(self, replace(record, number=number))

    with replaced(MemorySchedules, "write_schedule", write_schedule):
        yield


@contextmanager
def a_tick_is_written_off_before_it_is_started() -> Iterator[None]:
    """Tick row: a worker that dies in between leaves a tick that no worker starts."""
    real = Ticker._started

    async def started(self: Ticker, there: ScheduleRecord) -> ScheduleRecord:
        assert there.opening is not None
        after = tick_started(there, schedules.saga_of(there, there.opening.tick, 0))
        if await self._p.call(self._schedules.write_schedule, after):
            await real(self, there)
        return after

    with replaced(Ticker, "_started", started):
        yield


@contextmanager
def a_start_has_an_id_of_its_own() -> Iterator[None]:
    """Tick row: who finds a tick in `opening` starts another saga."""
    numbers = iter(range(1_000_000))
    real = vars(schedules)["saga_of"]

    def saga_of(there: ScheduleRecord, tick: int, cell: int) -> str:
        return f"{real(there, tick, cell)}-{next(numbers)}"

    with replaced(schedules, "saga_of", saga_of):
        yield


@contextmanager
def the_start_comes_before_the_put() -> Iterator[None]:
    """Tick row: what was skipped is started by a worker that has judged otherwise."""
    real = Ticker._next

    async def next_(self: Ticker, there: ScheduleRecord) -> ScheduleRecord:
        after = await real(self, there)
        if there.opening is None and after.opening is not None:
            await self._started(after)
        return after

    with replaced(Ticker, "_next", next_):
        yield


@contextmanager
def a_wake_is_believed() -> Iterator[None]:
    """Tick row: a wake that comes twice finds the next tick, which is not there yet by any clock."""
    real = Ticker.run

    async def run(self: Ticker, ref: SagaRef) -> str:
        self._p.clock = _Ahead(self._p.clock)
        return await real(self, ref)

    # The end of the invocation is as far away as it is by the true clock.
    with replaced(Ticker, "run", run), replaced(schedules, "_A_LOOK_MS", -60_000):
        yield


class _Ahead:
    def __init__(self, clock: Any) -> None:
        self._clock = clock

    def now(self) -> int:
        return int(self._clock.now()) + 60_000


@contextmanager
def what_is_at_work_is_not_asked() -> Iterator[None]:
    """Tick row: a saga of the schedule may be at work."""

    async def is_at_work(self: Ticker, tenant: str, saga: str) -> bool:
        return False

    with replaced(Ticker, "_is_at_work", is_at_work):
        yield


SCHEDULE_BUGS: dict[Callable[[], AbstractContextManager[None]], str] = {
    the_put_has_no_condition: COUNTS,
    a_tick_is_written_off_before_it_is_started: EVERY,
    a_start_has_an_id_of_its_own: ONCE,
    the_start_comes_before_the_put: ONCE,
    a_wake_is_believed: TIME,
    what_is_at_work_is_not_asked: OVERLAP,
}
