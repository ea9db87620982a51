"""Sagas that stay with a build of the code: wakes are handed to that build, or the saga parks if it is gone.

Loaded with the first such saga. The head names the build (runtime/log/lease.py), as the log does
(core/log/work.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from baton.core.decide.parking import parking
from baton.core.log import events as ev
from baton.ports import Builds, Clock, Message
from baton.runtime.engine.run import LogWriter, Run

GATHER_S = 0.05
"""Seconds for which the wakes of an invocation are gathered that are for the same build."""
CODE_GONE = "code_gone"


class HandOver:
    """Wakes of one invocation that are for other builds. Each build is invoked for all of them together.

    The invocation waits for its end, and its wakes stay in the queue as long: none is lost, and no more
    invocations of other builds run than the queue keeps workers busy. `until`: the end of theirs.
    """

    def __init__(self, builds: Builds, until: int) -> None:
        self._builds = builds
        self._until = until
        self._gathered: dict[str, tuple[list[Message], asyncio.Task[Sequence[int]]]] = {}

    async def give(self, build: str, message: Message) -> bool:
        """Hand a wake over. Return true if it has to come again. Raises `CodeGone`, engine faults."""
        if build not in self._gathered:
            first = list[Message]()
            self._gathered[build] = first, asyncio.create_task(self._run(build, first))
        messages, task = self._gathered[build]
        messages.append(message)
        position = len(messages) - 1
        return position in await task

    async def _run(self, build: str, messages: list[Message]) -> Sequence[int]:
        await asyncio.sleep(GATHER_S)
        del self._gathered[build]
        return await self._builds.run(build, messages, self._until)


async def park_without_its_code(log: LogWriter, run: Run, clock: Clock) -> None:
    """Park a saga whose build is gone. With that it stays with no build: a person lets it go on.

    One that stops goes on to its end, with the code that is there.
    """
    build = run.history.state.pinned
    while (state := run.history.state).pinned == build and state.ended is None and not state.is_stopping:
        now = clock.now()
        text = f"the saga stays with the code that it began with (build {build}), and no version of the worker has it"
        parked = ev.Parked(code=CODE_GONE, message=text, at=now)
        if await log.append(run.lease, run.history, parking(state, parked, now)):
            return
        await log.news_of(run)
