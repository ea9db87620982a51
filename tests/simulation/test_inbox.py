"""A person with few places, under faults: never told of more open questions than that, told of each in turn, and no row is left."""

from __future__ import annotations

import asyncio
import math
import os
from contextlib import suppress

import pytest

from baton.core.limits import Limits
from baton.core.log.events import NoticeDue, SignalReceived
from baton.core.log.questions import Answer, answer_key
from baton.core.log.state import ANSWER
from baton.errors import EngineFault, NotAllowedNow
from baton.ports import SagaRef
from tests.kit import oracles
from tests.kit.corpus import patiently
from tests.kit.faults import EVERYTHING, Chaos, Crash, Plan
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

pytestmark = pytest.mark.simulation

DOCUMENT = "name: w\nnodes: {ask: {human: {title: t, expires: 48h}}}"
SAGAS, PLACES, ASK = 9, 2, "0.ask"
IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))  # `make soak` has more seeds


def most_at_once(world: World) -> int:
    """How many open questions the person knew of at most: each from when it was first told until the log had its answer."""
    known = [span for head in world.log.heads() if (span := known_between(world, head.ref))]
    return max(sum(begin <= at < end for begin, end in known) for at, _ in known)


def known_between(world: World, ref: SagaRef) -> tuple[float, float] | None:
    """The span of one saga's question; None if it was never told while it was open."""
    told, answered = list[float](), math.inf
    for entry in world.entries(ref.id):
        for event in entry.events:
            if isinstance(event, NoticeDue) and event.notice.ask == ASK:
                landed = world.told.landed[ref.tenant, event.notice.key]
                told += [one.time for one in landed if one.call == "tell"]
            elif (
                isinstance(event, SignalReceived)
                and event.name == ANSWER
                and event.key == answer_key(ASK, "k")
            ):
                answered = world.written[str(ref), entry.version]
    begin = min(told, default=answered)
    return (begin, answered) if begin < answered else None


def lived(seed: int, plan: Plan) -> tuple[int, int, list[str]]:
    """How many open questions were known at most, how many were answered, and what promises were broken.

    A person answers one of those that were told at a time; an operator resumes what deaths have parked.
    """

    async def main() -> tuple[int, int, list[str]]:
        limits = Limits(pending_per_person=PLACES)
        world = World.start(plan=plan, seed=seed, limits=limits)
        await patiently(world, lambda service: service.register(DOCUMENT, json_only=False))
        for n in range(SAGAS):
            await patiently(world, lambda service, n=n: service.start("w", n, f"key-{n}"))  # type: ignore[misc]  # bound now
        answered = set[str]()
        end = asyncio.get_running_loop().time() + 40 * 3_600
        while len(answered) < SAGAS and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(20)
            for parked in [head.ref.id for head in world.log.heads() if head.status == "parked"]:
                with suppress(EngineFault, Crash, NotAllowedNow):
                    await world.service().resume(parked)
            told = {telling.saga for telling in world.notices.told if telling.notice.ask == ASK}
            for saga in sorted(told - answered)[:1]:
                with suppress(EngineFault, Crash):
                    await world.service().answer(saga, Answer(ask=ASK, action="approve"), "k")
                    answered.add(saga)
        await world.settle()
        return most_at_once(world), len(answered), list(oracles.of_world(world))

    return run_virtual(main())


@pytest.mark.parametrize("seed", range(16 if IS_ALL else 6))
def test_each_of_many_questions_has_its_turn_and_never_more_than_there_are_places(seed: int) -> None:
    most, answered, broken = lived(seed, Chaos(seed=seed, rate=0.1, budget=25, kinds=EVERYTHING))
    assert (answered, broken) == (SAGAS, [])
    assert 1 <= most <= PLACES


def test_without_faults_all_places_are_taken() -> None:
    assert lived(0, Plan()) == (PLACES, SAGAS, [])
