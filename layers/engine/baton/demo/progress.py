"""What is seen while the demo runs: redrawn on a terminal, a line every few seconds elsewhere.

It decides nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from baton.core.log.status import FINISHED
from baton.demo.evidence import tally
from baton.words.text import counted

EVERY_S = 2.0
_BAR = 14
_STYLES = {
    "completed": "green",
    "cancelled": "yellow",
    "suspended": "magenta",
    "failed": "red",
    "parked": "red",
}


class Progress:
    """Shows sagas as `GET /sagas/{id}` describes them. Enter before the first update."""

    def __init__(self, console: Console, steps: int) -> None:
        self._console = console
        self._steps = max(1, steps)
        self._began = time.monotonic()
        self._last = 0.0
        self._live = (
            Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        )

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def say(self, text: str) -> None:
        """Something happened that stays on the screen."""
        console = self._live.console if self._live else self._console
        console.print(Text(f"{self._elapsed():6.1f} s  {text}"))

    def update(self, sagas: Mapping[str, Mapping[str, Any]]) -> None:
        """The latest state of every saga."""
        if self._live:
            self._live.update(self._drawing(sagas), refresh=True)
        elif self._elapsed() - self._last >= EVERY_S:
            self._last = self._elapsed()
            self.say(summary(sagas))

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _drawing(self, sagas: Mapping[str, Mapping[str, Any]]) -> Group:
        table = Table.grid(padding=(0, 3))
        cells = [self._cell(saga) for saga in sagas.values()]
        half = -(-len(cells) // 2)
        for index in range(half):
            table.add_row(*cells[index::half])
        return Group(table, Text(f"{self._elapsed():6.1f} s  {summary(sagas)}", style="bold"))

    def _cell(self, saga: Mapping[str, Any]) -> Text:
        done = min(self._steps, int(saga.get("steps") or 0))
        filled = done * _BAR // self._steps
        status = str(saga.get("status"))
        where = (
            status
            if status in FINISHED or status == "suspended"
            else ", ".join(str(a.get("node")) for a in saga.get("active") or ()) or status
        )
        text = Text(f"{str(saga.get('id'))[-6:]} ")
        text.append("━" * filled, style=_STYLES.get(status, "cyan")).append(
            "─" * (_BAR - filled), style="dim"
        )
        return text.append(f" {done:>2}/{self._steps} ").append(
            where[:24].ljust(24), style=_STYLES.get(status, "")
        )


def summary(sagas: Mapping[str, Mapping[str, Any]]) -> str:
    """All sagas in one line."""
    statuses = ", ".join(
        f"{count} {status}" for status, count in tally(str(s.get("status")) for s in sagas.values()).items()
    )
    steps = sum(int(saga.get("steps") or 0) for saga in sagas.values())
    legs = sum(int(saga.get("invocations") or 0) for saga in sagas.values())
    return f"{counted(len(sagas), 'saga')}: {statuses}; {counted(steps, 'step')}, taken up {counted(legs, 'time')}"
