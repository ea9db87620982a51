"""A run in which an `async` tool holds the event loop fails, and says which tool, where, and what would be right."""

from __future__ import annotations

import asyncio
import logging
import threading
import time

import pytest

from baton import tool
from baton.ports import StepContext
from baton.runtime.invocation.watch import BlockedLoop, WatchedCall
from baton.testing import LoopBlocked, loop, run
from baton.testing.loop import Blockers
from baton.tools.define import Registry
from tests.kit.sentences import Says

TOLD = threading.Event()


class Telling(logging.Handler):
    """Hears what is logged while the loop is blocked."""

    def emit(self, record: logging.LogRecord) -> None:
        TOLD.set()


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    run(
        "name: w\nnodes: {a: {tool: shop.waits}}", tools=of()
    )  # else its imports may take as long as the limit
    monkeypatch.setattr(loop, "LIMIT_MS", 20)
    TOLD.clear()


def of(is_inside: bool = False) -> Registry:
    registry = Registry()

    @tool("shop.blocks", registry=registry)
    async def blocks() -> None:
        """Until it is told of, so that no machine is too slow for the test."""

        async def hold() -> None:
            logger, handler = logging.getLogger("baton.worker"), Telling(logging.WARNING)
            logger.addHandler(handler)
            end = time.monotonic() + 30
            while (
                not TOLD.is_set()
            ):  # it computes: on a busy machine, one that waits looks like one that is frozen
                assert time.monotonic() < end
            logger.removeHandler(handler)

        await (asyncio.gather(hold()) if is_inside else hold())

    @tool("shop.waits", registry=registry)
    async def waits() -> None:
        await asyncio.sleep(5)

    @tool("shop.plain", registry=registry)
    def plain() -> None:
        time.sleep(0.1)

    return registry


@pytest.mark.parametrize("is_inside", [False, True])
def test_a_tool_that_blocks_fails_the_run_by_its_name_and_its_line(is_inside: bool, says: Says) -> None:
    with pytest.raises(LoopBlocked) as error:
        run("name: w\nnodes: {pay: {tool: shop.blocks}}", tools=of(is_inside))
    text = str(error.value)
    says.within(text, 2)
    assert "test_blocked.py:" in text


def test_a_plain_function_may_take_its_time_and_so_may_one_that_awaits() -> None:
    result = run(
        "name: w\nnodes: {a: {tool: shop.waits}, b: {tool: shop.plain}, c: {tool: shop.plain, after: b}}",
        tools=of(),
    )
    assert (result.status, result.took_s) == ("completed", 5)


@pytest.mark.parametrize(
    "file", ["/usr/lib/python3.13/bdb.py:97 trace_dispatch", "/x/pydevd/pydevd.py:1 wait"]
)
def test_a_person_at_a_breakpoint_may_take_their_time(file: str) -> None:
    told: list[BlockedLoop] = []
    blockers = Blockers(told.append)
    call = WatchedCall(blockers.watch, "t", StepContext(saga="s", tenant="t", user="u", node="n"))
    blockers.hear(BlockedLoop(call, 9_000, ["/x/sagas/order.py:3 charge", file]))
    blockers.check()
    assert told == []
