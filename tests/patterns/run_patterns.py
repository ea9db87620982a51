"""Runs a pattern's document on the real engine, in memory and in virtual time; every document here has `shop.do` for its work."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Any

from baton.testing import Result, run
from baton.tools.define import Registry, tool

HERE = Path(__file__).parent
DOCUMENTS = {int(path.name[3:5]): path for path in sorted(HERE.glob("wcp*.yaml"))}
CHILDREN = sorted((HERE / "children").glob("*.yaml"))


class Diary:
    """What `shop.do` was asked to do: when it began, when it ended, and when it was stopped, in seconds of virtual time."""

    def __init__(self) -> None:
        self.begun: dict[str, list[float]] = defaultdict(list)
        self.ended: dict[str, float] = {}
        self.stopped: dict[str, float] = {}

    def registry(self) -> Registry:
        registry = Registry()

        @tool("shop.do", registry=registry, timeout="10m")
        async def do(what: str, takes: float = 1) -> str:
            now = asyncio.get_running_loop().time
            self.begun[what].append(now())
            try:
                await asyncio.sleep(takes)
            except asyncio.CancelledError:
                self.stopped[what] = now()
                raise
            self.ended[what] = now()
            return what

        @tool("shop.open", registry=registry, effect="pure")
        def open_box(boxes: int) -> int:
            return boxes - 1

        return registry

    @property
    def order(self) -> list[str]:
        """What was begun, in the order of time."""
        return sorted(self.begun, key=lambda what: self.begun[what][0])

    def most_at_once(self) -> int:
        """How many of these were at work at a time, at most."""
        ends = {**self.stopped, **self.ended}
        spans = [(self.begun[what][-1], ends[what]) for what in self.begun]
        return max(sum(begin <= at < end for begin, end in spans) for at, _ in spans)


def play(number: int, given: Any = None, **options: Any) -> tuple[Result, Diary]:
    """The saga of the document of WCP-`number`, and what it did."""
    diary, document = Diary(), DOCUMENTS[number]
    is_alone = "workflow:" not in document.read_text("utf-8")
    result = run(
        document,
        given,
        tools=diary.registry(),
        workflows=[] if is_alone else [*CHILDREN, document],
        worker_timeout="15m",
        **options,
    )
    return result, diary
