"""Text as it comes: `live`, which stays with a saga and prints what its models are writing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from baton.cli.terminal.watching import Pace
from baton.client.api import Api
from baton.client.exits import Busy
from baton.words.text import plain

_SAME = 64  # so many characters tell where what was printed ends in a text that has lost its beginning


async def live(api: Api, saga: str, every_s: float | None, show: Callable[[Mapping[str, Any]], None]) -> None:
    """Give each answer of the API that shows something new to `show`, until the saga has ended."""
    pace, last = Pace(every_s), list[Any]()
    while True:
        try:
            found = await api.live(saga)
        except Busy as busy:
            await pace.wait(busy.pause_s)
            continue
        if found["texts"] != last:
            last = found["texts"]
            pace.changed()
            show(found)
        if found["watched_until"] is None:
            return
        await pace.wait()


class Writer:
    """Prints of each answer what is new, below the name of its node where another one's was printed before."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._printed: dict[str, str] = {}
        self._last = ""

    def show(self, found: Mapping[str, Any]) -> None:
        names = [_name(text) for text in found["texts"]]
        self._printed = {name: self._printed.get(name, "") for name in names}
        for name, one in zip(names, found["texts"], strict=True):
            text = plain(one["text"])
            if more := _new(self._printed[name], text):
                self._write(f"\n{name}:\n{more}" if name != self._last else more)
                self._last, self._printed[name] = name, text


def _name(text: Mapping[str, Any]) -> str:
    iteration = "".join(f"@{number}" for number in text["iteration"])
    return f"{text['node']}{iteration} {text['item']}".rstrip()


def _new(printed: str, text: str) -> str:
    if text.startswith(printed):
        return text[len(printed) :]
    end = printed[-_SAME:]
    at = text.rfind(end)
    return text[at + len(end) :] if at >= 0 else f"… {text}"
