"""One embedded AWS for a test session: the MiniStack of the local run, on a free loopback port.

Only starting and stopping it; what is created in it is the business of the tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from baton.local.ministack import MiniStack


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Its address, for as long as the block lasts; `folder` takes its log and whatever else it writes."""
    stack = MiniStack(folder)
    stack.log.parent.mkdir(parents=True, exist_ok=True)
    with asyncio.Runner() as runner:
        runner.run(stack.start())
        try:
            yield stack.endpoint
        finally:
            runner.run(stack.stop())
