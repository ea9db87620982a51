"""Look for how long the time of children has stood still, and of those below them: for a saga whose own time is over."""

from __future__ import annotations

import asyncio

from baton.core.decide.commands import LookAtStanding
from baton.core.decide.context import Standing
from baton.core.log.state import State
from baton.ports import SagaRef
from baton.runtime.engine.parts import Parts
from baton.runtime.engine.run import Run
from baton.runtime.log.history import History

AT_ONCE = 16


class StandingLooker:
    """Puts into the memory of a run what it has found."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    async def perform(self, run: Run, command: LookAtStanding) -> bool:
        now = self._p.clock.now()
        longest = Standing(now)
        for start in range(0, len(command.children), AT_ONCE):
            part = command.children[start : start + AT_ONCE]
            looks = (stood(self._p, SagaRef(run.lease.ref.tenant, child), now) for child in part)
            found = await asyncio.gather(*looks)
            for child, (ms, lasts) in zip(part, found, strict=True):
                if ms > longest.ms:
                    longest = Standing(now, ms, child, lasts)
        run.standing = longest
        return True


async def stood(parts: Parts, ref: SagaRef, now: int) -> tuple[int, int]:
    """For how long the time of a saga, or of one that it waits for, has stood still; and for how much of it until now without a break."""
    head = await parts.call(parts.log.read_head, ref)
    if head is None:
        return 0, 0
    history = History(parts.log, parts.blobs, parts.call, ref)
    await history.load(head)
    state: State = history.state
    if state.ended is not None:
        return 0, 0
    standing = now - state.parked.at if state.parked is not None and state.stands_still else 0
    longest = (state.stood + standing, standing)
    for work in state.open.values():
        if work.orphan is not None:
            longest = max(longest, await stood(parts, SagaRef(ref.tenant, work.orphan.saga), now))
    return longest
