"""Pauses that take no time: what a busy store is asked again, and for how long, does not depend on this machine."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from baton.adapters.clock import SystemClock
from baton.runtime.invocation import context


class Pauses:
    """The engine's clock: it stands still, and moves on by each pause before a store is asked again."""

    def __init__(self) -> None:
        self.now = self.began = SystemClock().now()

    @property
    def passed(self) -> int:
        return self.now - self.began

    async def sleep(self, seconds: float) -> None:
        self.now += math.ceil(seconds * 1_000)
        await asyncio.sleep(0)


@contextmanager
def skipped() -> Iterator[Pauses]:
    pauses = Pauses()
    loops = SimpleNamespace(**vars(asyncio) | {"sleep": pauses.sleep})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemClock, "now", lambda _: pauses.now)
        patch.setattr(context, "asyncio", loops)
        yield pauses
