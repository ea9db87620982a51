"""Watching of sagas: `show --watch`, `events --follow`, and `live`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.live import Live

from baton.cli.terminal.shared import console, print_json, print_table
from baton.cli.text.render import saga_line, saga_table
from baton.client import transport
from baton.client.api import Api
from baton.client.connection import command_line
from baton.client.exits import NO, Busy, CommandFailed
from baton.core.log.state import FINISHED
from baton.words.text import plain

SOONEST_S = 1.0
LATEST_S = 15.0
_SLOWER = 1.5
PARKED, PAUSED, SUSPENDED = "parked", "paused", "suspended"
# What takes a parked saga up again.
_TAKES_UP = frozenset({"resumed", "forked", "limit_reached", "cancel_requested"})


class Pace:
    """Pauses between two requests: fixed if given, else up to fifteen seconds while nothing changes."""

    def __init__(self, every_s: float | None) -> None:
        self._every = every_s
        self._next = SOONEST_S

    def changed(self) -> None:
        """Shorten the next pause, because further changes are likely."""
        self._next = SOONEST_S

    async def wait(self, at_least_s: float = 0.0) -> None:
        """Wait until the next request is due."""
        now = self._next if self._every is None else self._every
        self._next = min(LATEST_S, self._next * _SLOWER)
        await transport.pause(max(now, at_least_s))


async def watch(api: Api, saga: str, every_s: float | None, *, as_json: bool) -> None:
    """Show a saga whenever it changes. Raises `CommandFailed` unless it completed."""
    out = console()
    # Without a screen there is nothing to redraw: a line for each change then.
    live = Live(console=out, auto_refresh=False) if out.is_terminal and not as_json else None
    pace = Pace(every_s)
    found: Mapping[str, Any] = {}
    etag = ""
    last: tuple[object, ...] = ()
    with live or contextlib.nullcontext():
        while True:
            try:
                changed, etag = await api.show_changed(saga, etag)
            except Busy as busy:
                await pace.wait(busy.pause_s)
                continue
            found = found if changed is None else changed
            seen = (found.get("version"), found.get("status"), found.get("invocations"))
            if seen != last:
                pace.changed()
                if as_json:
                    print_json(found, line=True)
                elif not live:
                    out.print(saga_line(found))
            if live:
                live.update(saga_table(found, now(), out.width), refresh=True)
            last = seen
            if _is_over(found["status"]):
                break
            await pace.wait()
    if live is None and not as_json:
        print_table(saga_table(found, now()))
    _judge(saga, found["status"])


async def until_over(api: Api, saga: str) -> dict[str, Any]:
    """Return a saga once it has ended, or waits for a person."""
    pace = Pace(None)
    while True:
        found = await api.show(saga)
        if _is_over(found["status"]):
            return found
        await pace.wait()


async def follow_entries(
    api: Api, saga: str, after: int, every_s: float | None, show: Callable[[Mapping[str, Any]], None]
) -> None:
    """Pass each new entry to `show` once written. Raises `CommandFailed` unless the saga completed."""
    pace = Pace(every_s)
    status = etag = ""
    asked = asks = False
    while not _is_over(status):
        try:
            entries, etag, more = await api.events_changed(saga, after, etag)
            for entry in entries:
                show(entry)
                status = _status_after(entry, status)
                asks = _asks_after(entry, asks)
                asked = asked and not asks  # whether anything else goes on stands nowhere in an entry
            if entries:
                pace.changed()
                # Another version is another page, with another ETag.
                after, etag = int(entries[-1]["version"]), ""
            elif not asked:
                # It may have ended before the first entry that was asked for.
                asked, status = True, str((await api.show(saga))["status"])
        except Busy as busy:
            await pace.wait(busy.pause_s)
            continue
        if not more and not _is_over(status):
            await pace.wait()
    _judge(saga, status)


def now() -> int:
    """Return epoch milliseconds."""
    return round(time.time() * 1000)


def _status_after(entry: Mapping[str, Any], status: str) -> str:
    """Return the status if this entry ends or parks the saga, empty if the saga continues."""
    for event in entry["events"]:
        if event["kind"] == "saga_ended":
            status = str(event["status"])
        elif event["kind"] == PARKED:
            status = PAUSED if event.get("by") else PARKED
        elif event["kind"] in _TAKES_UP or _fails_saga(event):
            status = ""
    return status


def _fails_saga(event: Mapping[str, Any]) -> bool:
    """Return true if the event is a failure that nothing has repaired."""
    is_wrong = event["kind"] == "step_failed" or event.get("fault") is not None
    return is_wrong and not event.get("emits")


def _asks_after(entry: Mapping[str, Any], asks: bool) -> bool:
    """Return true if a question may be open after this entry."""
    for event in entry["events"]:
        if event["kind"] == "strategy_chosen":
            asks = asks or bool(event.get("ask"))
        elif event["kind"] == "question_closed":
            asks = False
    return asks


def _is_over(status: str) -> bool:
    return status in FINISHED or status in (PARKED, PAUSED, SUSPENDED)


def _judge(saga: str, status: str) -> None:
    if status == PARKED:
        raise CommandFailed(
            NO,
            "the saga is parked: a person has to decide",
            "Let it try again: " + command_line(f"resume {saga}"),
        )
    if status == PAUSED:
        raise CommandFailed(NO, "the saga is paused", "Let it go on: " + command_line(f"resume {saga}"))
    if status == SUSPENDED:
        raise CommandFailed(
            NO, "the saga waits for an answer", "See what it asks: " + command_line(f"show {saga}")
        )
    if status != "completed":
        raise CommandFailed(NO, f"the saga ended {status}")


_SAME = 64  # so many characters tell where what was printed ends in a text that has lost its beginning


async def live(api: Api, saga: str, every_s: float | None, show: Callable[[Mapping[str, Any]], None]) -> None:
    """Pass each answer of the API with new content to `show`, until the saga has ended."""
    pace, last, after = Pace(every_s), list[Any](), None
    while True:
        try:
            found = await api.live(saga, after)
            after = found.get("version")  # an older deployment has none
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
    """Printer of the new part of each answer, below the name of its node where that changes."""

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
