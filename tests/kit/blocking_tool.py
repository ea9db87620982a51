"""A tool that holds the event loop, in virtual time: the loop's clock goes on, and the watchdog looks at it meanwhile.

The tool that is watched plays the clock and the thread of the watchdog.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from baton import tool
from baton.runtime.invocation.watch import BlockedLoop, Watch
from baton.tools.define import Registry
from tests.kit.virtual_time import SimulationLoop


class Machine:
    """Clock and thread of a watchdog. `looks` are those of the invocations that are watched."""

    def __init__(self) -> None:
        self.at = self.cpu = 0
        self.looks: list[tuple[Callable[[], None], int]] = []
        self.begun = 0

    def passed(self) -> int:
        return self.at

    def worked(self) -> int:
        return self.cpu

    def pulse(self, look: Callable[[], None], every_ms: int) -> Callable[[], None]:
        one = (look, every_ms)
        self.looks.append(one)
        self.begun += 1
        return lambda: self.looks.remove(one)

    def look(self, ms: int = 0) -> None:
        """So much time passes, and the thread looks once."""
        self.at += ms
        for look, _ in list(self.looks):
            look()

    def hold(self, ms: int) -> None:
        """The loop's thread does nothing else for so long; that of the watchdog looks as often as it does."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulationLoop)
        left = ms
        while left > 0:
            every = min([left, *(every for _, every in self.looks)])
            loop.pass_time(every / 1_000)
            self.look(every)
            left -= every


class Holding:
    """A machine, a watchdog on it with what it has told, and the tool `hold` of a registry."""

    def __init__(self, limit_ms: int = 1_000) -> None:
        self.machine = Machine()
        self.told: list[BlockedLoop] = []
        self.watch = Watch(limit_ms, self.machine, self.machine.pulse, self.told.append)

    def add_to(self, registry: Registry) -> None:
        @tool("hold", registry=registry)
        async def hold(ms: int, then: str = "", inside: bool = False) -> dict[str, Any]:
            """`then`: awaits, or fails. `inside`: by a task of its own."""

            async def block() -> None:
                self.machine.hold(ms)

            await (asyncio.gather(block()) if inside else block())
            if then == "await":
                await asyncio.sleep(0.001)
            if then == "fail":
                raise RuntimeError("no")
            return {}
