"""Background tasks: none fails unseen, and all of a set are ended together.

What they do is the business of those who start them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Any

log = logging.getLogger("baton.local")


class Tasks:
    """Keeps its tasks alive until they are done; `what` names them in the log when one breaks."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """For work whose result no caller awaits."""
        _ = self.add(work)

    def add(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """For work whose result the caller may await."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("%s: broke", self._what, exc_info=task.exception())

    def cancel(self) -> None:
        for task in list(self._running):
            task.cancel()

    async def cancelled(self) -> None:
        """Cancels and waits until all have ended."""
        running = list(self._running)
        self.cancel()
        await settled(running)


async def settled(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Waits until all have ended, however they did."""
    await asyncio.gather(*tasks, return_exceptions=True)
