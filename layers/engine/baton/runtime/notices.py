"""Telling people what a saga's log says they are to be told, beside its steps and never instead of them.

Belongs here: one try at a time, within a short time, and when to try again. Does not belong here: what is to be told
(core/), how it is sent (a port), and the entry that says it was (runner.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from baton.core.log.events import Notice
from baton.core.log.state import State
from baton.errors import EngineFault
from baton.ports import Notices
from baton.runtime.context import InvocationContext

logger = logging.getLogger("baton.worker")


class Teller:
    """The notices of one saga in one invocation that must end by `deadline`.

    `again`: when to try again what could not be sent.
    """

    def __init__(self, context: InvocationContext, notices: Notices, deadline: int) -> None:
        self._notices = notices
        self._call = context.call
        self._clock = context.clock
        self._limits = context.limits
        self._deadline = deadline
        self._task: asyncio.Task[tuple[str, ...]] | None = None
        self._oldest = 0
        self.again: int | None = None

    def begin(self, state: State, notices: Sequence[Notice]) -> None:
        """Try to send these, unless that is under way or was in vain a moment ago."""
        now = self._clock.now()
        if not notices or self._task is not None or (self.again is not None and now < self.again):
            return
        self._oldest = min(notice.at for notice in notices)
        self._task = asyncio.create_task(self._tell(state, notices), name=f"{state.origin.saga}/notices")

    async def wait(self) -> None:
        """Until the try is over. It has its own time, which is short."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def heard(self) -> tuple[str, ...]:
        """The keys of what was sent since this was asked."""
        task = self._task
        if task is None or not task.done():
            return ()
        self._task = None
        keys = task.result()
        if not keys:
            # The longer nobody can be told, the more seldom it is tried.
            now = self._clock.now()
            pause = max(self._limits.fault_pause_ms, now - self._oldest)
            self.again = now + min(pause, self._limits.sweep_longest_ms)
        return keys

    def stop(self) -> None:
        """Whatever is under way is left alone: it can be sent again under the same key."""
        if self._task is not None:
            self._task.cancel()

    async def _tell(self, state: State, notices: Sequence[Notice]) -> tuple[str, ...]:
        began = self._clock.now()
        until = min(began + self._limits.telling_ms, self._deadline)
        call = self._call.until(until)
        told = []

        async def one(notice: Notice) -> None:
            try:
                await call(
                    self._notices.tell,
                    state.origin.tenant,
                    state.origin.saga,
                    state.origin.user,
                    notice,
                    began,
                )
                told.append(notice.key)
            except EngineFault as error:
                logger.warning("a notice could not be sent: %r", error, extra={"saga": state.origin.saga})

        await asyncio.gather(*map(one, notices))
        return tuple(told)
