"""Planted bugs in how a parent hears of its children, as in bugs.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from baton.adapters.memory.log import MemoryLog
from baton.ports import Release, SagaRef, Wake
from baton.runtime.invocation.context import StoreRetrier
from baton.runtime.relay import Relay, StreamItem
from tests.kit.bugs import replaced


@contextmanager
def release_ignores_the_inbox() -> Iterator[None]:
    """Release row: what was announced between the last look at the inbox and the release is cleared with it."""
    real = MemoryLog.release

    def let_go(self: MemoryLog, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        head = self.read_head(ref)
        if head is not None and release.inbox is not None:
            release = msgspec.structs.replace(release, inbox=head.inbox)
        return real(self, ref, owner, epoch, release)

    with replaced(MemoryLog, "release", let_go):
        yield


@contextmanager
def a_report_is_announced_before_it_is_left() -> Iterator[None]:
    """Report row: a parent that is woken looks into its inbox before anything stands there."""
    real = Relay._tell_parents

    async def tell(self: Relay, items: Sequence[StreamItem], call: StoreRetrier) -> list[str]:
        for item in items:
            parent = SagaRef.parse(item.wake.parent)
            if await call(self._inbox.announce, parent):
                await self._send([StreamItem(item.id, parent, Wake(v=0))], call)

        async def quiet(parent: SagaRef, call: StoreRetrier) -> bool:
            return False

        any_relay: Any = self
        any_relay._announce = quiet
        return await real(self, items, call)

    with replaced(Relay, "_tell_parents", tell):
        yield
