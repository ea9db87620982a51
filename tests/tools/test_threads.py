"""Plain functions run in threads, of which a process has so many and no more; a thread that cannot start fails no step."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from baton.ports import NoRoom, StepContext, StepFailure
from baton.tools.define import Registry, tool
from baton.tools.perform import MAX_THREADS, ToolPerformer
from tests.kit.sentences import Says

CONTEXT = StepContext(saga="s1", tenant="acme", user="ada", node="n")
LAMBDAS_THREADS = 1_024


class Gate:
    """A plain tool that stands still until it is let go; `running` is how many do."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.let_go = threading.Event()
        self.begun = threading.Semaphore(0)

        @tool("wait", registry=self.registry)
        def wait() -> str:
            self.begun.release()
            assert self.let_go.wait(20)
            return "done"

        @tool("quick", registry=self.registry)
        async def quick() -> str:
            return "quick"


async def until_begun(gate: Gate, count: int) -> None:
    for _ in range(count):
        assert await asyncio.to_thread(gate.begun.acquire, timeout=20)


def test_a_plain_function_too_many_is_told_at_once_and_an_async_one_needs_no_thread() -> None:
    async def scenario() -> list[Any]:
        gate = Gate()
        performer = ToolPerformer(gate.registry, max_threads=2)
        running = [asyncio.create_task(performer.perform("wait", {}, CONTEXT)) for _ in range(2)]
        await until_begun(gate, 2)
        with pytest.raises(NoRoom, match="2 plain functions"):
            await performer.perform("wait", {}, CONTEXT)
        answers = [await performer.perform("quick", {}, CONTEXT)]
        gate.let_go.set()
        answers += await asyncio.gather(*running)
        return [*answers, await performer.perform("wait", {}, CONTEXT)]

    assert asyncio.run(asyncio.wait_for(scenario(), 20)) == ["quick", "done", "done", "done"]


def test_an_abandoned_function_keeps_its_place_until_it_ends() -> None:
    async def scenario() -> None:
        gate = Gate()
        performer = ToolPerformer(gate.registry, max_threads=1)
        task = asyncio.create_task(performer.perform("wait", {}, CONTEXT))
        await until_begun(gate, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(NoRoom):
            await performer.perform("wait", {}, CONTEXT)
        gate.let_go.set()
        while True:
            try:
                assert await performer.perform("wait", {}, CONTEXT) == "done"
                return
            except NoRoom:
                await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_a_place_is_free_again_even_if_the_loop_has_gone() -> None:
    gate = Gate()
    performer = ToolPerformer(gate.registry, max_threads=1)

    async def abandoned() -> None:
        task = asyncio.create_task(performer.perform("wait", {}, CONTEXT))
        await until_begun(gate, 1)
        task.cancel()

    asyncio.run(abandoned())
    gate.let_go.set()
    for thread in threading.enumerate():
        if thread.name == "tool":
            thread.join(20)
    assert asyncio.run(performer.perform("wait", {}, CONTEXT)) == "done"


def test_a_thread_that_cannot_start_is_no_failure_of_the_step(
    monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    gate = Gate()
    performer = ToolPerformer(gate.registry, max_threads=1)

    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with says.raised(NoRoom):
            asyncio.run(performer.perform("wait", {}, CONTEXT))
    gate.let_go.set()
    assert asyncio.run(performer.perform("wait", {}, CONTEXT)) == "done", "it took no place"


def test_a_tool_that_cannot_start_a_thread_of_its_own_fails_like_any_other(says: Says) -> None:
    registry = Registry()

    @tool("greedy", registry=registry)
    def greedy() -> None:
        raise RuntimeError("can't start new thread")

    with says.raised(StepFailure):
        asyncio.run(ToolPerformer(registry).perform("greedy", {}, CONTEXT))


def test_all_places_together_leave_most_of_lambdas_threads_to_others() -> None:
    assert MAX_THREADS + 32 <= LAMBDAS_THREADS // 2
