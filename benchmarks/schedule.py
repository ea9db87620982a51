"""A thousand schedules with a tick in the same minute, and three reconcilers that race for them; in virtual time."""

from __future__ import annotations

import asyncio

from baton.runtime.requests.schedules import saga_of
from benchmarks.figures import Bench, Figure, Sample
from tests.kit.corpus import patiently
from tests.kit.schedule_runs import registered, sweeps
from tests.kit.toolbox import Books, make_registry
from tests.kit.virtual_time import run_virtual
from tests.kit.world import TENANT, World

SCHEDULES, TICKS, RECONCILERS = 1_000, 2, 3
MINUTES = 5


def measure(schedules: int = SCHEDULES) -> Sample:
    found: dict[str, float] = {}

    async def main() -> None:
        world = World(
            make_registry(Books()),
            reconciler_on=False,
            skew_ms=3_000,
            timeout_s=60,
            batch=10,
            is_warm=True,
            runaway=10_000_000,
        )
        for number in range(schedules):
            document = f"name: s{number}\nnodes: {{a: {{value: 1}}}}\nschedule: '*/{MINUTES} * * * *'"
            await patiently(world, registered(document))
        others = [asyncio.create_task(sweeps(world, number * 0.02)) for number in range(RECONCILERS)]
        records = [world.store.schedules.read_schedule(TENANT, f"s{number}") for number in range(schedules)]
        first = max(record.next for record in records if record is not None)
        # To a moment behind the last tick, and a minute for those that come late.
        left = first + (TICKS - 1) * MINUTES * 60_000 + 60_000 - world.process("onlooker").clock.now()
        await asyncio.sleep(left / 1_000)
        for other in others:
            other.cancel()
        heads = {head.ref.id: head.created for head in world.log.heads()}
        ticks = [first + number * MINUTES * 60_000 for number in range(TICKS)]
        wanted = {saga_of(record, tick, 0): tick for record in records if record for tick in ticks}
        found["ticks"] = len(wanted)
        found["started"] = len(heads.keys() & wanted.keys())
        found["besides"] = len(heads.keys() - wanted.keys())
        found["last"] = max(heads[saga] - tick for saga, tick in wanted.items() if saga in heads) / 1_000
        writes = world.plan.writes.count("write_schedule") - schedules
        found["writes"] = writes / len(wanted)
        found["looks"] = world.plan.reads.count("read_schedule") / len(wanted)

    run_virtual(main())
    return found


BENCH = Bench(
    "schedule",
    "1,000 schedules with a tick in the same minute, twice; three reconcilers race, clocks 3 s apart",
    {
        "ticks": Figure("ticks", "", digits=0),
        "started": Figure("of them started", "", 2_000, at_most=False, digits=0),
        "besides": Figure("sagas besides", "", 0, digits=0),
        "last": Figure("the last after its time", "s", digits=1),
        "writes": Figure("puts of a row per tick, refused ones too", "", digits=2),
        "looks": Figure("reads of a row per tick", "", digits=2),
    },
    measure,
    runs=1,
)
