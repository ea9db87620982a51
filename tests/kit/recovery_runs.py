"""Damaged sagas and doctors that die, wait or come twice: what becomes of effects, of the log and of the saga."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from baton.core.limits import DAY_MS
from baton.core.log.codec import decode_entry
from baton.core.log.events import Entry, Forked, SagaEnded, WorkflowRecovered
from baton.errors import EngineFault, Unreadable, UserError
from tests.kit.corpus import patiently, start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, FINE, LATE, NO_ANSWER, Crash, Plan
from tests.kit.found_at import first
from tests.kit.tampering import GARBAGE, head_of, lose, lose_graph, rewrite_head, spoil
from tests.kit.verdict import MOST_ROUNDS
from tests.kit.virtual_time import Livelock, run_virtual
from tests.kit.world import World

RECOVERY = "recovery"
"""The oracle of these runs."""
TRIP = """
name: trip
nodes:
  flight: {tool: rent, with: {stall: a}}
  hotel: {tool: rent, with: {stall: b}, after: flight}
  car: {tool: rent, with: {stall: c}, after: hotel}
  yes: {wait: {signal: go}, after: car}
  mail: {tool: work, with: {n: 1}, after: yes}
output: '${ctx.mail.output}'
"""
FATES = (CRASH_BEFORE, CRASH_AFTER, NO_ANSWER, LATE)


def _far(world: World) -> int:
    return world.process("clock").clock.now() + 40 * DAY_MS


def _held(world: World, saga: str) -> None:
    rewrite_head(world, saga, owner="w", until=_far(world), due_at=_far(world))


def _not_due_and_spoilt(world: World, saga: str) -> None:
    rewrite_head(world, saga, due_at=None)
    spoil(world, saga, 3)


DAMAGE: dict[str, Callable[[World, str], object]] = {
    "in no index": partial(rewrite_head, due_at=None),
    "held for ever": _held,
    "another status": partial(rewrite_head, status="suspended"),
    "no graph": lose_graph,
    "a damaged entry": partial(spoil, version=3),
    "a missing entry": partial(lose, version=2),
    "no last entry": partial(lose, version=4),
    "a damaged entry in no index": _not_due_and_spoilt,
}


@dataclass
class Treated:
    """A run. `writes`: those of the doctor."""

    broken: list[str]
    writes: list[str]


def treated(
    damage: str, fate: str = FINE, at: int = 0, *, by_itself: bool = False, doctors: int = 1
) -> Treated:
    """A saga that waits is damaged, and a doctor comes, whose write number `at` meets `fate`; another one follows, unless
    workers are left to find it `by_itself`.
    """
    try:
        return run_virtual(_treated(damage, fate, at, by_itself=by_itself, doctors=doctors), MOST_ROUNDS)
    except Livelock as error:
        return Treated([f"{RECOVERY}: {error}"], [])


async def _treated(damage: str, fate: str, at: int, *, by_itself: bool, doctors: int) -> Treated:
    world = World.start()
    saga = await start(world, TRIP, {}, "trip")
    await asyncio.sleep(20)
    before = _stored(world, saga)
    DAMAGE[damage](world, saga)
    spoilt = _stored(world, saga)
    plan = world.plan = Plan(at={at: fate} if at else {})
    with suppress(Crash, EngineFault):
        await asyncio.gather(*(world.service().diagnosis(saga, repairs=True) for _ in range(doctors)))
    writes, world.plan = plan.writes[:], Plan()
    if not by_itself:
        await asyncio.sleep(1)
        await world.service().diagnosis(saga, repairs=True)
    await asyncio.sleep(4_000)  # longer than any pause
    broken = [text async for text in _ended(world, saga)]
    gone = [key for key, data in spoilt.items() if _stored(world, saga).get(key) != data]
    broken += [f"an entry was changed or deleted: {gone}"] if gone else []
    if (count := len(_recoveries(world, saga))) != (before != spoilt):
        broken.append(f"{count} recoveries")
    return Treated([f"{RECOVERY}: {text}" for text in broken], writes)


def _stored(world: World, saga: str) -> dict[tuple[int, int], bytes]:
    return {
        (branch, version): record.data
        for (ref, branch), entries in world.log._entries.items()
        for version, record in entries.items()
        if ref.id == saga
    }


async def _ended(world: World, saga: str) -> Any:
    """Faults of a saga once it has had the signal that it waits for."""
    status = head_of(world, saga).status
    if status != "waiting":
        yield f"it is {status} and not waiting"
    with suppress(UserError, Unreadable):
        await world.service().signal(saga, "go", {}, "go")
    await world.settle(7_200)
    status = head_of(world, saga).status
    if status != "completed":
        yield f"it came to {status}"
    if twice := [what for what, count in Counter(world.books.happened).items() if count > 1]:
        yield f"done twice: {twice}"
    for one in (await world.service().diagnosis(saga, repairs=False)).findings:
        yield f"left: {one.code}: {one.message}"


def readable(world: World, saga: str) -> list[Entry]:
    """The entries of a saga that can be read."""
    found = []
    for data in _stored(world, saga).values():
        with suppress(Unreadable):
            found.append(decode_entry(data))
    return sorted(found, key=lambda entry: entry.version)


# ---- promises of single runs


def busy(seed: int = 0) -> list[str]:
    """A doctor looks again and again at a healthy saga that works, waits, is cancelled, ends and is forked meanwhile."""

    async def main() -> list[str]:
        drawn = random.Random(f"busy {seed}")
        world = World.start()
        world.slow.update(
            append=drawn.choice([0, 0.2]), release=drawn.choice([0, 0.1]), read_tail=0.3 * (seed % 2)
        )
        saga = await start(world, TRIP, {}, "trip")

        async def live() -> None:
            await asyncio.sleep(drawn.uniform(2, 10))
            for number in range(12):
                with suppress(UserError):
                    await world.service().cancel(saga, "", 0)
                await asyncio.sleep(drawn.uniform(0.5, 3))
                with suppress(UserError):
                    await world.service().fork(saga, 2, "", f"fork-{number}")
                await asyncio.sleep(drawn.uniform(0.1, 3))

        task, found = asyncio.create_task(live()), list[str]()
        while not task.done():
            await asyncio.sleep(drawn.choice([0, 0.003, 0.05]))
            there = (await world.service().diagnosis(saga, repairs=False)).findings
            found += [f"{RECOVERY}: false: {one.code}: {one.message}" for one in there]
        task.result()
        return found

    return _run(main())


def _run(main: Coroutine[Any, Any, list[str]]) -> list[str]:
    try:
        return run_virtual(main, MOST_ROUNDS)
    except Livelock as error:
        return [f"{RECOVERY}: {error}"]


def forked() -> list[str]:
    """Entry 4 of the branch that a fork has left is damaged: what the fork has left stays left."""

    async def main() -> list[str]:
        world = World.start()
        saga = await start(world, TRIP, {}, "trip")
        await asyncio.sleep(20)
        await world.service().fork(saga, 2, "again")
        await asyncio.sleep(20)
        spoil(world, saga, 4)
        await world.service().diagnosis(saga, repairs=True)
        forks = [one.events[-1] for one in _recoveries(world, saga)]
        cuts = [fork.cut for fork in forks if isinstance(fork, Forked)]
        found = [] if cuts == [2] else [f"it goes on from {cuts} and not from the fork's own cut"]
        await asyncio.sleep(90)
        found += [text async for text in _ended(world, saga)]
        return [f"{RECOVERY}: {text}" for text in found]

    return _run(main())


def cancelled() -> list[str]:
    """A caller's cancel lies behind the damage: the saga does not go on."""

    async def main() -> list[str]:
        world = World.start()
        saga = await start(world, TRIP, {}, "trip")
        await asyncio.sleep(20)
        world.stream_on = False
        await world.service().cancel(saga, "not wanted", 0)
        spoil(world, saga, 3)
        world.stream_on = True
        await world.service().diagnosis(saga, repairs=True)
        await asyncio.sleep(120)
        status = head_of(world, saga).status
        return [] if status == "cancelled" else [f"{RECOVERY}: cancelled, and it is {status}"]

    return _run(main())


def ended() -> list[str]:
    """A saga has ended behind the damage: nothing of it runs again, and no worker repairs it without being asked."""

    async def main() -> list[str]:
        world = World.start()
        saga = await start(world, TRIP, {}, "trip")
        await asyncio.sleep(20)
        await patiently(world, lambda service: service.signal(saga, "go", {}, "go"))
        await world.settle()
        spoil(world, saga, 3)
        rewrite_head(world, saga, due_at=1, lane="work")
        await asyncio.sleep(90)
        found = ["repaired unasked"] if len(_recoveries(world, saga)) else []
        await world.service().diagnosis(saga, repairs=True)
        await asyncio.sleep(4_000)
        last = readable(world, saga)[-1].events[0]
        if not (isinstance(last, WorkflowRecovered) and isinstance(last.ended, SagaEnded)):
            found.append(f"it goes on behind its end: {last}")
        status = (await world.queries().show(saga))["status"]
        found += [] if status == "completed" else [f"it is {status}"]
        return [f"{RECOVERY}: {text}" for text in found]

    return _run(main())


def _recoveries(world: World, saga: str) -> list[Entry]:
    return [one for one in readable(world, saga) if isinstance(one.events[0], WorkflowRecovered)]


def newer() -> list[str]:
    """A newer release, and perhaps some release, has written an entry: workers leave it alone."""

    async def main() -> list[str]:
        found = []
        for data in (b'{"format":2,"version":3,"events":[]}', b'{"format":1,"version":3,"events":7}'):
            world = World.start()
            saga = await start(world, TRIP, {}, "trip")
            await asyncio.sleep(20)
            spoil(world, saga, 3, data)
            rewrite_head(world, saga, due_at=1, lane="work")
            await asyncio.sleep(4_000)
            if _recoveries(world, saga):
                found.append(f"{RECOVERY}: left behind: {data!r}")
        return found

    return _run(main())


def held() -> list[str]:
    """A worker that has a saga in its memory is not disturbed by damage that a doctor finds meanwhile."""

    async def main() -> list[str]:
        world = World.start()
        saga = await start(world, TRIP, {}, "trip")
        while len(world.entries(saga)) < 2 or not head_of(world, saga).owner:
            await asyncio.sleep(0.01)
        spoil(world, saga, 2, GARBAGE)
        await world.service().diagnosis(saga, repairs=True)
        is_left = bool(_recoveries(world, saga)) and bool(head_of(world, saga).owner)
        return [f"{RECOVERY}: its log was left under the worker"] if is_left else []

    return _run(main())


def in_runs() -> Iterator[Callable[[], tuple[str, ...]]]:
    """The runs in which planted bugs are searched for."""
    cut_short = (("a damaged entry in no index", 1), ("a damaged entry", 2), ("no graph", 1))
    runs: list[Callable[[], list[str]]] = [forked, cancelled, ended, newer, held]
    runs += (partial(_broken, damage) for damage in DAMAGE)
    runs += (partial(_broken, damage, CRASH_AFTER, at) for damage, at in cut_short)
    runs += (partial(busy, seed) for seed in (1, 3, 0))
    for run in runs:
        yield partial(_texts, run)


def _texts(run: Callable[[], list[str]]) -> tuple[str, ...]:
    return tuple(run())


def _broken(damage: str, fate: str = FINE, at: int = 0) -> list[str]:
    return treated(damage, fate, at, by_itself=True).broken


def found_by(bug: Callable[[], Any]) -> int:
    """The number of the run that shows the bug; -1 if none does."""
    runs = [*in_runs()]
    with bug():
        return first(bug.__name__, runs, lambda run: bool(run()))
