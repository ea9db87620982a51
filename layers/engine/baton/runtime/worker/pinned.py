"""Sagas that stay with a version of the code: wakes are handed to that version, or the saga parks if it is gone.

Loaded with the first such saga. The head names the version (runtime/log/lease.py), and the log says which
(core/log/work.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from baton.core.decide.parking import parking
from baton.core.log import events as ev
from baton.ports import Clock, Message, Versions
from baton.runtime.engine.run import LogWriter, Run

GATHER_S = 0.05
"""Seconds for which the wakes of a batch are gathered that are for the same version."""
VERSION_GONE = "version_gone"


class HandOver:
    """Wakes of one invocation that are for other versions. Each version is invoked for all of them together.

    The invocation waits for its end, as its wakes do in the queue: none is lost, and no more invocations of
    old versions run than the queue keeps workers busy. `until`: the end of theirs.
    """

    def __init__(self, versions: Versions, until: int) -> None:
        self._versions = versions
        self._until = until
        self._gathered: dict[str, tuple[list[Message], asyncio.Task[Sequence[int]]]] = {}

    async def give(self, version: str, message: Message) -> bool:
        """Hand a wake over. Return true if it has to come again. Raises `VersionGone`, engine faults."""
        if version not in self._gathered:
            messages = list[Message]()
            self._gathered[version] = messages, asyncio.create_task(self._run(version, messages))
        messages, task = self._gathered[version]
        messages.append(message)
        position = len(messages) - 1
        return position in await task

    async def _run(self, version: str, messages: list[Message]) -> Sequence[int]:
        await asyncio.sleep(GATHER_S)
        del self._gathered[version]
        return await self._versions.run(version, messages, self._until)


async def park_without_its_version(log: LogWriter, run: Run, clock: Clock) -> None:
    """Park a saga whose version of the code does not exist. One that stops goes on to its end."""
    version = run.history.state.pinned
    while (state := run.history.state).pinned == version and state.ended is None and not state.is_stopping:
        now = clock.now()
        text = f"version {version} of the worker function, whose code the saga began with, does not exist any more"
        parked = ev.Parked(code=VERSION_GONE, message=text, at=now)
        if await log.append(run.lease, run.history, parking(state, parked, now)):
            return
        await log.news(run.lease, run.history)
