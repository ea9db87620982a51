"""Fifty at once on one saga, on a real DynamoDB wire protocol with real concurrency: only one gets through."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise

import pytest

from baton.core.log.events import CancelRequested, Revived, SagaEnded, SignalReceived, StepSucceeded
from baton.errors import KeyReused
from baton.ports import SagaRef
from tests.e2e.deployment import chain
from tests.e2e.store import Held, Store

pytestmark = pytest.mark.e2e
MANY = 50
# What a wake ends with that has nothing to do.
STOPPED = {"held", "wake-left", "nothing-new"}


def steps(store: Store, ref: SagaRef) -> list[str]:
    return [event.node for event in store.events(ref) if isinstance(event, StepSucceeded)]


def ended(store: Store, ref: SagaRef) -> bool:
    return isinstance(store.events(ref)[-1], SagaEnded)


async def at_once(
    store: Store, ref: SagaRef, version: int, name: str, milliseconds: int = 30_000
) -> list[list[str]]:
    """Many invocations of the worker for one saga, each under a name of its own; what must come again."""
    work = (store.invoke(ref, version, f"{name}-{n}", milliseconds) for n in range(MANY))
    return await asyncio.gather(*work)


def test_of_fifty_invocations_one_runs_the_saga_and_the_others_stop_or_leave_a_nudge(store: Store) -> None:
    held = Held()  # until all others have come

    async def main() -> SagaRef:
        ref = await store.begin(chain("fifty", 4, 0))
        worker = store.worker(performer=held)
        work = [
            asyncio.ensure_future(store.invoke(ref, 1, f"fresh-{n}", 120_000, worker)) for n in range(MANY)
        ]
        while sum(task.done() for task in work) < MANY - 1 or not held.begun:
            await asyncio.sleep(0.01)
        held.let_go.set()
        assert await asyncio.gather(*work) == [[]] * MANY
        return ref

    with store.endings() as endings:
        ref = store.run(main())
    counted = Counter(endings)
    assert counted.pop("finished") == 1
    assert counted.total() == MANY - 1
    assert set(counted) <= STOPPED
    assert counted["wake-left"] == 1  # one told the holder of version 1; the others knew no more than that
    assert steps(store, ref) == held.begun == ["s0", "s1", "s2", "s3"]
    assert store.head(ref).epoch == 1
    assert len({entry.invocation for entry in store.entries(ref)[1:]}) == 1
    assert ended(store, ref)


def test_of_fifty_invocations_that_find_a_dead_one_a_single_one_revives_the_saga(store: Store) -> None:
    async def main() -> SagaRef:
        ref = await store.begin(chain("revived", 3, 0.1))
        now = store.engine.clock.now()
        assert store.engine.log.take(ref, "dead", now - 5_000, 0, now - 1) is not None
        assert await at_once(store, ref, 1, "reviver") == [[]] * MANY
        return ref

    with store.endings() as endings:
        ref = store.run(main())
    assert Counter(endings)["finished"] == 1
    deaths = [event for event in store.events(ref) if isinstance(event, Revived)]
    assert [death.dead for death in deaths] == ["dead"]
    assert store.head(ref).epoch == 2
    assert steps(store, ref) == ["s0", "s1", "s2"]
    assert store.books.begun(ref.id) == Counter(steps(store, ref))


def test_fifty_invocations_at_every_hand_over_do_each_step_once(store: Store) -> None:
    nodes = [f"s{n}" for n in range(8)]

    async def main() -> SagaRef:
        ref = await store.begin(chain("handed-over", len(nodes), 0.3))
        rounds = 0
        while not ended(store, ref):
            rounds += 1
            assert rounds < 20
            # The first are too short for all steps, and on a busy machine for any: who finds no time to ask the table
            # says so, and comes again.
            given_ms = 1_800 * 2 ** min(rounds - 1, 5)
            again = await at_once(store, ref, store.entries(ref)[-1].version, f"round-{rounds}", given_ms)
            assert all(ids in ([], ["m"]) for ids in again)
        return ref

    with store.endings() as endings:
        ref = store.run(main())
    assert endings.count("finished") == 1
    assert store.head(ref).epoch >= 2
    assert steps(store, ref) == nodes
    versions = [entry.version for entry in store.entries(ref)]
    assert versions == list(range(1, len(versions) + 1))
    epochs = [entry.epoch for entry in store.entries(ref)]
    assert epochs == sorted(epochs)
    assert store.books.effects(ref.id) == Counter(nodes)


def test_signals_that_race_with_a_running_saga_are_all_in_the_log_once(store: Store) -> None:
    # It ends only when told to, so that no signal can be too late, however slow this machine is.
    head, output = chain("raced", 8, 0.05, first="{wait: {signal: go}}").rsplit("output:", 1)
    document = f"{head}  last: {{wait: {{signal: stop}}, after: s7}}\noutput:{output}"
    keys = [f"key-{n}" for n in range(20)]

    async def signal(ref: SagaRef, key: str) -> None:
        for _ in range(2):  # everyone repeats
            await store.service().signal(ref.id, "go", key, key)

    async def main() -> SagaRef:
        ref = await store.begin(document)
        await store.service().signal(ref.id, "go", "first", "first")
        work = [store.invoke(ref, 2, f"raced-{n}", 30_000) for n in range(10)]
        await asyncio.gather(*work, *(signal(ref, key) for key in keys))
        await store.service().signal(ref.id, "stop", None, "stop")
        await store.invoke(ref, store.entries(ref)[-1].version, "raced-last", 30_000)
        return ref

    ref = store.run(main())
    found = [event.key for event in store.events(ref) if isinstance(event, SignalReceived)]
    assert sorted(found) == sorted(["first", *keys, "stop"])
    assert steps(store, ref) == [f"s{n}" for n in range(8)]
    assert [entry.version for entry in store.entries(ref)] == list(range(1, len(store.entries(ref)) + 1))
    assert ended(store, ref)
    assert store.head(ref).folded == store.entries(ref)[-1].version


def test_of_fifty_cancels_of_a_running_saga_one_is_enough(store: Store) -> None:
    held = Held()

    async def main() -> SagaRef:
        ref = await store.begin(chain("cancelled", 3, 0))
        worker = store.worker(performer=held)
        running = asyncio.create_task(store.invoke(ref, 1, "cancelled-1", 120_000, worker))
        while not held.begun:
            await asyncio.sleep(0.01)
        answers = await asyncio.gather(
            *(store.service().cancel(ref.id, "enough", 120_000 - n) for n in range(MANY))
        )
        assert all(answers)
        held.let_go.set()
        await running
        return ref

    ref = store.run(main())
    last = store.events(ref)[-1]
    assert isinstance(last, SagaEnded)
    assert last.status == "cancelled"
    asked = [event for event in store.events(ref) if isinstance(event, CancelRequested)]
    assert asked
    assert all(a.at + a.grace_ms > b.at + b.grace_ms for a, b in pairwise(asked))
    assert steps(store, ref) == held.begun == ["s0"]


@pytest.mark.parametrize("bodies", [1, 2])
def test_of_fifty_starts_with_one_key_comes_one_saga(bodies: int, store: Store) -> None:
    key = f"one-key-{bodies}"

    async def main() -> list[tuple[dict[str, object], bool] | BaseException]:
        await store.service().register(chain("started", 1, 0), json_only=False)
        work = (store.service().start("started", n % bodies, key) for n in range(MANY))
        return list(await asyncio.gather(*work, return_exceptions=True))

    answers = store.run(main())
    accepted = [answer for answer in answers if isinstance(answer, tuple)]
    refused = [answer for answer in answers if not isinstance(answer, tuple)]
    (saga,) = {str(view["id"]) for view, _ in accepted}
    assert sum(is_new for _, is_new in accepted) == 1
    assert len(accepted) == MANY // bodies
    assert all(isinstance(error, KeyReused) for error in refused)
    assert [entry.version for entry in store.entries(SagaRef("acme", saga))] == [1]
