"""`breakpoint()` under `baton up --debug`: it stops in a terminal, and no timeout ends what is looked at."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from baton.local import debugging
from baton.ports import StepContext
from baton.tools.define import Registry, tool
from baton.tools.perform import ToolPerformer


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The other end of the terminal."""
    mine, theirs = os.openpty()
    monkeypatch.setenv(debugging.TERMINAL, os.ttyname(theirs))
    monkeypatch.setenv("PYTHONBREAKPOINT", debugging.HOOK)
    monkeypatch.setattr(asyncio.BaseEventLoop, "time", asyncio.BaseEventLoop.time)
    yield mine
    os.close(mine)
    os.close(theirs)


def read_until(terminal: int, text: bytes) -> str:
    said = b""
    while not said.endswith(text):
        said += os.read(terminal, 1_000)
    return said.decode()


async def looked_at(seats: int) -> int:
    breakpoint()
    await asyncio.sleep(0)
    return seats + 1


def looked_at_in_a_thread(seats: int) -> int:
    breakpoint()
    return seats + 1


@pytest.mark.parametrize("function", [looked_at, looked_at_in_a_thread])
def test_a_person_looks_at_a_tool_for_longer_than_its_timeout(
    function: Callable[..., Any], terminal: int
) -> None:
    registry, said, times = Registry(), list[str](), list[float]()
    tool("t", effect="pure", registry=registry)(function)
    context = StepContext(saga="s1", tenant="acme", user="ada", node="pay")
    begun: list[asyncio.AbstractEventLoop] = []

    def person() -> None:
        said.append(read_until(terminal, b"(Pdb) "))
        times.append(begun[0].time())
        os.write(terminal, b"p seats\n")
        said.append(read_until(terminal, b"(Pdb) "))
        times.append(begun[0].time())
        os.write(terminal, b"seats = 10\nc\n")

    async def call() -> Any:
        begun.append(asyncio.get_running_loop())
        return await ToolPerformer(registry).perform("t", {"seats": 3}, context)

    one = threading.Thread(target=person)
    one.start()
    assert asyncio.run(call()) == 11
    one.join()
    assert function.__name__ in said[0]
    assert said[1].split() == ["p", "seats", "3", "(Pdb)"]
    assert times[0] == times[1], "the time of the loop stands still"
