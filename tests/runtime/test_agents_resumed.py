"""A resume of an agent reads about the same after a hundred turns as after twenty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from baton import tool
from baton.core.log.scopes import Agent
from baton.core.log.snapshots import encode_state
from baton.ports import Head, Record, SagaRef
from baton.ports.models import ModelAnswer, ModelRequest
from baton.runtime.invocation.context import StoreRetrier, inline
from baton.runtime.log.history import History
from tests.kit.corpus import start
from tests.kit.scripted import Scripted, asks_for, says
from tests.kit.virtual_time import SeededEntropy, VirtualClock, run_virtual
from tests.kit.world import TENANT, World
from tests.runtime.test_agents import Desk, document


@dataclass
class Resume:
    """What one load reads: entries, bytes of log and snapshot; and what it comes to: bytes of state, blobs of the transcript."""

    entries: int
    bytes: int
    state: int
    segments: int


class Read:
    """The log of a world, and what is read of it. All else goes to the log as it is."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.entries = self.bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def read_tail(self, ref: SagaRef, branch: int, after: int, *limit: int) -> Any:
        page = self._log.read_tail(ref, branch, after, *limit)
        self.entries += len(page)
        self.bytes += sum(len(record.data) for record in page)
        return page

    def read_snapshot(self, ref: SagaRef, branch: int, at_most: int) -> Record | None:
        found: Record | None = self._log.read_snapshot(ref, branch, at_most)
        self.bytes += len(found.data) if found else 0
        return found


async def resumed_after(world: World, turns: int) -> Resume:
    """An agent that has so many turns behind it, and waits for a person: it is loaded as its next worker loads it."""
    Desk(world)

    @tool("sum.sign", registry=world.registry, requires_approval=True)
    async def sign() -> int:
        return 1

    world.tools = world.registry.specs()

    def script(request: ModelRequest, _: int) -> ModelAnswer:
        spoken = sum(message["role"] == "assistant" for message in request.messages)
        if spoken > turns:
            return says("done")
        call = ("sum_sign", {}) if spoken == turns else ("sum_add", {"a": spoken, "b": 1})
        return asks_for(call, ("sum_add", {"a": -spoken, "b": 2}))

    world.models = Scripted(script)
    saga = await start(
        world, document(", turns: 400, calls: 900, price: {input: 0.1, output: 0.1}"), {"a": 1}, "w"
    )
    await world.settle(3_000)
    log, ref = Read(world.log), SagaRef(TENANT, saga)
    head: Head | None = world.log.read_head(ref)
    assert head is not None
    assert head.status == "suspended"
    clock = VirtualClock()
    call = StoreRetrier(inline, clock, SeededEntropy(1), world.limits, clock.now() + 60_000)
    history = History(log, world.blobs, call, ref)  # type: ignore[arg-type]
    await history.load(head)
    work = history.state.open["find"]
    assert isinstance(work, Agent)
    assert work.turn == turns + 1
    return Resume(log.entries, log.bytes, len(encode_state(history.state)), len(work.segments))


def test_a_resume_after_a_hundred_turns_reads_what_one_after_twenty_reads() -> None:
    found: dict[int, Resume] = {}

    def after(turns: int) -> None:
        async def resume() -> None:
            world = World.start()
            found[turns] = await resumed_after(world, turns)

        run_virtual(resume())

    # The tail behind a snapshot comes and goes: the most that is read of several lengths.
    few, many = (20, 24, 28, 32), (100, 106)
    for turns in (*few, *many):
        after(turns)
    for name in ("entries", "bytes", "state"):
        young, old = (max(getattr(found[turns], name) for turns in some) for some in (few, many))
        assert old <= 1.5 * young, f"{name}: {msgspec.to_builtins(found)}"
    assert max(found[turns].segments for turns in many) <= 7 + 2, "log2 n + 2 blobs"
