"""Counting of names that models mistake: workers at once, workers that die, writes that hang or come late."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from baton.core.log.events import StepSucceeded
from baton.core.models import aliases as core
from baton.core.models.aliases import APPROVED, COUNTED, PROPOSED, Alias
from baton.runtime.models import aliases
from tests.kit.bugs import replaced
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, HANG, LATE, NO_ANSWER, STALL, THROTTLE, Plan
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.virtual_time import run_virtual
from tests.kit.world import TENANT, World

pytestmark = pytest.mark.simulation

DOCUMENT = "name: w\nnodes: {a: {agent: {model: m, prompt: Work., tools: [work]}}}\n"
MISTAKEN = by_turn(asks_for(("work", {"m": 1})), says("Done."))
OURS = ("get", "put")


def stored(world: World) -> tuple[Alias, ...]:
    there = world.store.entities.get(TENANT, "~aliases", "all")
    return () if there is None else msgspec.convert(there.data, tuple[Alias, ...])


def broken(sagas: int, plan: Plan | None = None, *, wanted: str = "") -> list[str]:
    """Broken promises of a world in which so many sagas make the same mistake at once."""
    plan = plan or Plan()

    async def main() -> list[str]:
        world = World.start(models=Scripted(MISTAKEN))
        await world.service_without_faults().register(DOCUMENT, json_only=False)
        ids = [(await world.service_without_faults().start("w", {}, f"k{n}"))[0]["id"] for n in range(sagas)]
        world.plan, world.slow = plan, dict.fromkeys(OURS, 0.05)  # so that they meet
        await world.settle()
        made = {
            f"{one} {event.slot}-{index}"
            for one in ids
            for event in world.events(str(one))
            if isinstance(event, StepSucceeded) and event.slot == "a#t1"
            for index, call in enumerate(event.output.v["calls"])
            if "error" in call
        }
        found = [] if len(made) == sagas else [f"{len(made)} of {sagas} mistakes are in the logs"]
        (alias,) = stored(world) or (Alias(tool="", given="", parameter=""),)
        counted, most = set(alias.seen), min(sagas, 5)
        if len(counted) < len(alias.seen):
            found.append("a call counts twice")
        if counted - made:
            found.append("what no model has mistaken counts")
        if not world.faults and len(counted) < most:
            found.append(f"{len(counted)} of {most} are counted")
        if alias.status != (PROPOSED if len(counted) == 5 else COUNTED):
            found.append(f"{len(counted)} mismatches are {alias.status}")
        return found

    return run_virtual(main())


@pytest.mark.parametrize("sagas", [1, 4, 5, 8])
def test_five_equal_mismatches_of_workers_at_once_are_five(sagas: int) -> None:
    assert broken(sagas) == []


def _places(sagas: int) -> Iterator[tuple[str, int]]:
    """The numbers of the calls that may be those of the aliases."""
    plan = Plan()
    broken(sagas, plan)
    yield from (("write", number) for number, name in enumerate(plan.writes, 1) if name in OURS)
    yield from (("read", number) for number, name in enumerate(plan.reads, 1) if name in OURS)


def _runs(sagas: int, fates: Sequence[str]) -> Iterator[list[str]]:
    for what, number in _places(sagas):
        for fate in fates:
            at = {number: fate}
            yield broken(sagas, Plan(at=at) if what == "write" else Plan(at_reads=at))


@pytest.mark.parametrize("fate", [CRASH_BEFORE, CRASH_AFTER, THROTTLE, HANG, LATE, NO_ANSWER, STALL])
def test_a_count_that_fails_hangs_or_dies_with_its_worker_is_made_once_or_not_at_all(fate: str) -> None:
    runs = list(_runs(2, [fate]))
    assert len(runs) > 4
    assert runs == [[]] * len(runs)


@contextmanager
def a_call_counts_as_often_as_it_is_met() -> Iterator[None]:
    real = core.count_mismatch

    def counted(those: Sequence[Alias], found: Any, saga: str, call: str, now: int, **more: Any) -> Any:
        with_it = real(those, found, saga, call, now, **more)
        if with_it is those and those and those[0].status == COUNTED:
            return (replace(those[0], seen=(*those[0].seen, f"{saga} {call}")),)
        return with_it

    with replaced(aliases, "count_mismatch", counted):
        yield


@contextmanager
def the_last_writer_wins() -> Iterator[None]:
    class Blind:
        def __init__(self, entities: Any) -> None:
            self.get, self._put = entities.get, entities.put

        def put(self, *what: Any, key: str, expected: int) -> Any:
            return self._put(*what, key=key)

    def blind(self: aliases.AliasBook, entities: Any, call: Any, tenant: str) -> None:
        real(self, cast("Any", Blind(entities)), call, tenant)

    real = aliases.AliasBook.__init__
    with replaced(aliases.AliasBook, "__init__", blind):
        yield


def test_a_planted_bug_is_found() -> None:
    with a_call_counts_as_often_as_it_is_met():
        assert any("a call counts twice" in found for found in _runs(2, [CRASH_AFTER]))
    with the_last_writer_wins():
        assert "are counted" in "".join(broken(5))


def test_an_approved_alias_is_applied_while_others_change_the_aliases() -> None:
    async def main() -> None:
        world = World.start(models=Scripted(MISTAKEN))
        service = world.service_without_faults()
        await service.register(DOCUMENT, json_only=False)
        await service.aliases.decide("work", "m", "n", "approve")
        (alias,) = stored(world)
        assert (alias.status, alias.seen) == (APPROVED, ())
        views = [await service.start("w", {}, f"k{n}") for n in range(3)]
        await asyncio.gather(*(service.aliases.decide("work", f"x{n}", "n", "reject") for n in range(4)))
        await world.settle()
        for view, _ in views:
            (answer, *_) = [
                event.output.v
                for event in world.events(str(view["id"]))
                if isinstance(event, StepSucceeded) and event.slot == "a#t1"
            ]
            assert answer["calls"] == [{"tool": "work", "arguments": {"n": 1}, "renamed": {"m": "n"}}]
        assert len(stored(world)) == 5, "and nothing was counted"

    run_virtual(main())
