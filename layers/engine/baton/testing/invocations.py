"""Invocations of the worker that are under way, beside each other as on Lambda.

What is worked on in each is in deployment.py, and so is what else happens meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine
from typing import Any

from baton.ports import SagaRef, Wake


class Invocations:
    """What runs, and the wakes that were left on the table's stream meanwhile."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._stream: list[tuple[SagaRef, Wake]] = []
        self._news = asyncio.Event()

    def __bool__(self) -> bool:
        """Whether there is something to pause for: what runs, or has left wakes that are not passed on yet."""
        return bool(self._running or self._stream)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._running.add(asyncio.create_task(work))

    def note(self, ref: SagaRef, wake: Wake) -> None:
        """A wake on the stream: it ends a pause."""
        self._stream.append((ref, wake))
        self._news.set()

    def drain(self) -> list[tuple[SagaRef, Wake]]:
        """The wakes since the last call, oldest first."""
        stream, self._stream = self._stream, []
        self._news.clear()
        return stream

    async def pause(self, seconds: float | None) -> None:
        """Until so much time has passed, an invocation has ended or a wake is on the stream, whichever is first.

        Raises what an invocation has ended with.
        """
        news = asyncio.create_task(self._news.wait())
        done, _ = await asyncio.wait(
            {*self._running, news}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        news.cancel()
        self._take_out(done)

    async def end(self) -> None:
        """Until none is under way. Raises what one has ended with."""
        while self._running:
            done, _ = await asyncio.wait(self._running)
            self._take_out(done)

    def _take_out(self, done: Collection[asyncio.Future[Any]]) -> None:
        for task in self._running.intersection(done):
            self._running.remove(task)
            task.result()
