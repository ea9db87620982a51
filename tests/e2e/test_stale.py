"""An invocation that wakes after its lease: it appends nothing and starts nothing, whatever its clock says."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from baton.core.log.events import Revived, SagaEnded, StepSucceeded
from baton.ports import SagaRef
from tests.e2e.deployment import chain, until
from tests.e2e.store import ROOT, Held, ShiftedClock, Store
from tests.kit.patience import PATIENCE_S

pytestmark = pytest.mark.e2e
BUDGET_MS = 4_000


@contextmanager
def worker_process(store: Store, ref: SagaRef) -> Iterator[subprocess.Popen[str]]:
    """The real handler in a process of its own, at work on a saga."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "layers/engine")])
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.kit.app.invoke", str(BUDGET_MS), str(ref)],
        env={**store.environment, "PATH": os.defpath, "PYTHONPATH": path},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def nodes_done(store: Store, ref: SagaRef) -> list[str]:
    return [event.node for event in store.events(ref) if isinstance(event, StepSucceeded)]


def test_a_worker_process_that_was_frozen_beyond_its_lease_thaws_and_does_nothing(store: Store) -> None:
    # Its first step takes until it is frozen, however busy the machine is.
    document = chain("frozen", 3, 0.05).replace(
        "trial.work, with: {n: 0, seconds: 0.05}", "trial.held, with: {gate: frozen}"
    )
    ref = store.run(store.begin(document))
    with worker_process(store, ref) as process:
        until(lambda: store.books.begun(ref.id)["s0"], "the first step")
        process.send_signal(signal.SIGSTOP)
        due_at = store.head(ref).due_at or 0  # when the lease is over by every clock
        store.books.open("frozen")
        until(lambda: store.engine.clock.now() > due_at, "the end of the lease")
        store.run(store.invoke(ref, 1, "reviver", 30_000))
        assert nodes_done(store, ref) == ["s0", "s1", "s2"]
        assert isinstance(store.events(ref)[-1], SagaEnded)
        log, head, begun = store.entries(ref), store.head(ref), len(store.books.deeds(ref.id, "begun"))

        process.send_signal(signal.SIGCONT)
        answer, _ = process.communicate(timeout=PATIENCE_S)
        # Whether it asks for its message again does not matter: a repeated wake finds nothing to do.
        assert set(json.loads(answer)) == {"batchItemFailures"}
    assert store.entries(ref) == log
    assert store.head(ref) == head
    assert len(store.books.deeds(ref.id, "begun")) == begun
    (death,) = [event for event in store.events(ref) if isinstance(event, Revived)]
    assert death.dead.startswith("frozen.")
    assert store.books.begun(ref.id) == {"s0": 2, "s1": 1, "s2": 1}
    assert set(store.books.effects(ref.id).values()) == {1}


@pytest.mark.parametrize("when", ["in time, as its slow clock says", "too late, as its clock says"])
def test_a_stale_invocation_is_stopped_by_the_log_if_not_by_its_clock(when: str, store: Store) -> None:
    """Its clock stands still, so that it believes in its lease; or it jumps, as after a thaw."""

    async def main() -> tuple[SagaRef, Held, Held]:
        ref = await store.begin(chain("stale", 3, 0))
        slow, quick = Held(), Held()
        quick.let_go.set()
        clock = ShiftedClock()
        stale = asyncio.create_task(
            store.invoke(ref, 1, "stale", 30_000, store.worker(clock=clock, performer=slow))
        )
        while not slow.begun:
            await asyncio.sleep(0.01)
        clock.stop()
        later = ShiftedClock(60_000)
        await store.invoke(ref, 1, "reviver", 30_000, store.worker(clock=later, performer=quick))
        before = store.entries(ref)
        if when.startswith("too late"):
            clock.shift = 60_000
        slow.let_go.set()
        assert await stale == []
        assert store.entries(ref) == before
        return ref, slow, quick

    with store.endings() as endings:
        ref, slow, quick = store.run(main())
    assert endings == ["finished", "superseded"]
    assert slow.begun == ["s0"]
    assert quick.begun == ["s0", "s1", "s2"]
    assert nodes_done(store, ref) == ["s0", "s1", "s2"]
    assert {entry.invocation for entry in store.entries(ref)[1:]} == {"reviver"}


def test_past_its_lease_an_invocation_stops_though_no_other_took_over(store: Store) -> None:
    async def main() -> tuple[SagaRef, Held]:
        ref = await store.begin(chain("lonely", 2, 0))
        slow, clock = Held(), ShiftedClock()
        stale = asyncio.create_task(
            store.invoke(ref, 1, "lonely", 30_000, store.worker(clock=clock, performer=slow))
        )
        while not slow.begun:
            await asyncio.sleep(0.01)
        clock.shift = 60_000
        slow.let_go.set()
        assert await stale == []
        return ref, slow

    with store.endings() as endings:
        ref, slow = store.run(main())
    assert endings == ["superseded"]
    assert slow.begun == ["s0"]
    assert [entry.version for entry in store.entries(ref)] == [1]
    assert store.head(ref).owner == "lonely"  # it runs out by itself


def test_an_invocation_that_was_superseded_leaves_the_lease_of_its_successor_alone(store: Store) -> None:
    """The successor is still at work when the stale one wakes."""

    async def main() -> tuple[SagaRef, Held, Held]:
        ref = await store.begin(chain("both", 2, 0))
        slow, successor = Held(), Held()
        clock = ShiftedClock()
        stale = asyncio.create_task(
            store.invoke(ref, 1, "stale-2", 30_000, store.worker(clock=clock, performer=slow))
        )
        while not slow.begun:
            await asyncio.sleep(0.01)
        clock.stop()
        later = ShiftedClock(60_000)
        work = asyncio.create_task(
            store.invoke(ref, 1, "successor", 30_000, store.worker(clock=later, performer=successor))
        )
        while not successor.begun:
            await asyncio.sleep(0.01)
        slow.let_go.set()
        await stale
        assert store.head(ref).owner == "successor"
        successor.let_go.set()
        await work
        return ref, slow, successor

    with store.endings() as endings:
        ref, slow, successor = store.run(main())
    assert endings == ["superseded", "finished"]
    assert (slow.begun, successor.begun) == (["s0"], ["s0", "s1"])
    assert nodes_done(store, ref) == ["s0", "s1"]
