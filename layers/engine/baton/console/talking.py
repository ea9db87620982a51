"""The page of conversations: a part of the log at a time, with the texts that are kept beside it; and the page of one such value.

What the entries say is in talk.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import escape

from baton.console.acting import ENDED, pace
from baton.console.rendering import part, pretty
from baton.console.shell import commands, printing
from baton.console.talk import Stored, Talk, stored_in, talks_of
from baton.console.visits import Answer, Html, Unchanged, Visit, tag_of
from baton.core.log.references import SCHEME
from baton.errors import UserError

PART: Final = 150  # entries of one page
_MARGIN: Final = 25
"""Entries that are read before and behind them: a turn that is parted by the edge of a page is whole on one of the two."""
_PARTS_WITHOUT: Final = 5
"""Parts without a turn that are passed over before a page says that there is none."""
MOST_VALUES: Final = 8
LARGEST_VALUE: Final = 65_536
_SIDE_BY_SIDE: Final = 4
_ROOM: Final = 90_000  # bytes of all texts of a page, as HTML
_CUTS: Final = (4_000, 1_500, 600, 250, 100)  # characters of each text


@dataclass(frozen=True, slots=True)
class _Window:
    """Entries behind `low` up to `high`, of a log of `whole` entries. is_new: the newest turn is shown first."""

    low: int
    high: int
    whole: int
    is_new: bool

    @property
    def is_fixed(self) -> bool:
        """Nothing that comes can change what it shows."""
        return self.high + _MARGIN <= self.whole

    def next(self) -> _Window | None:
        """The one that is read on to."""
        if self.is_new:
            return _Window(max(self.low - PART, 0), self.low, self.whole, is_new=True) if self.low else None
        if self.high >= self.whole:
            return None
        return _Window(self.high, min(self.high + PART, self.whole), self.whole, is_new=False)

    def links(self, there: str) -> dict[str, str]:
        """Addresses of the pages beside it."""

        def address(**query: int | str) -> str:
            return f"{there}?{urlencode(query)}"

        order = "new" if self.is_new else "old"
        older, newer = max(self.low - PART, 0), self.high + PART
        links = {"older": "", "newer": ""}
        if self.low:
            links["older"] = (
                address(order=order, before=self.low + 1)
                if self.is_new
                else address(order=order, after=older)
            )
        if self.high < self.whole:
            beyond = address(order=order) if newer >= self.whole else address(order=order, before=newer + 1)
            links["newer"] = beyond if self.is_new else address(order=order, after=self.high)
        return links


async def conversations(visit: Visit) -> Answer:
    """What agents and their models said to each other: the newest first while the saga is at work, else from the beginning."""
    saga = visit.path["saga"]
    view = await visit.call("showSaga", {"saga": saga})
    window: _Window | None = _chosen(visit, view)
    assert window is not None
    tag = tag_of(visit.query, window.low, window.high) if window.is_fixed else tag_of(view["version"])
    if tag == visit.seen:
        return Unchanged()
    shown, talks = window, list[Talk]()
    for _ in range(_PARTS_WITHOUT):
        if window is None:
            break
        shown, talks = window, await _read(visit, saga, window)
        window = None if talks else shown.next()
    turns = [turn for talk in talks for turn in talk.turns.values()]
    there = f"/console/sagas/{part(saga)}/talk"
    data = {
        "saga": view,
        "talks": [(talk, sorted(talk.turns.values(), key=lambda turn: turn.number)) for talk in talks],
        "turns": len(turns),
        "first": shown.low + 1,
        "last": shown.high,
        "is_new": shown.is_new,
        "is_whole": shown.low == 0 and shown.high >= shown.whole,
        "is_last": shown.high >= shown.whole,
        "is_over": shown.high >= shown.whole and view["status"] in ENDED,
        "most": _most(talks),
        "orders": (("new", "Newest first", shown.is_new), ("old", "From the beginning", not shown.is_new)),
        "there": there,
        **shown.links(there),
        "commands": printing(visit.api, saga, str(shown.low), str(max(shown.high - shown.low, 1))),
    }
    if shown.is_new:
        data["talks"] = [(talk, list(reversed(each))) for talk, each in reversed(data["talks"])]
    return Html(template="talk.html", title=f"Conversations of {saga}", data=data, tag=tag, every=pace(view))


def _chosen(visit: Visit, view: Mapping[str, Any]) -> _Window:
    whole = int(view["version"])
    order = visit.query.get("order", "")
    is_new = order == "new" or (order != "old" and view["status"] not in ENDED)
    if is_new:
        high = min(_number(visit, "before", whole + 1) - 1, whole)
        return _Window(max(high - PART, 0), max(high, 0), whole, is_new=True)
    low = min(_number(visit, "after", 0), whole)
    return _Window(low, min(low + PART, whole), whole, is_new=False)


def _number(visit: Visit, name: str, otherwise: int) -> int:
    said = visit.query.get(name, "")
    if said and not (said.isascii() and said.isdigit() and len(said) < 10):
        raise UserError(f"`{name}` is a whole number: the version of an entry in the log")
    return int(said) if said else otherwise


async def _read(visit: Visit, saga: str, window: _Window) -> list[Talk]:
    """The turns of a window, with what is kept beside the log, as far as there is room for it."""
    begin, end = max(window.low - _MARGIN, 0), window.high + _MARGIN
    entries = list[Any]()
    after: int | None = begin
    while after is not None and after < end:  # an answer of the API ends where it is full
        asked = {"after": str(after), "limit": str(end - after)}
        page = await visit.call("listEvents", {"saga": saga}, asked)
        entries, after = [*entries, *page["entries"]], page["next"]

    def made(values: Mapping[str, Any]) -> list[Talk]:
        talks = talks_of(entries, values, is_part=begin > 0)
        for talk in talks:
            talk.turns = {
                number: turn
                for number, turn in talk.turns.items()
                if window.low < turn.moved <= window.high or (turn.moved > window.high >= window.whole)
            }
        # An agent that has begun has no turn for a moment.
        return [talk for talk in talks if talk.turns or (talk.given and window.high >= window.whole)]

    talks = made({})
    wanted = {one.digest: one for talk in reversed(talks) for one in stored_in(talk)}
    if not wanted:
        return talks
    small = [one for one in wanted.values() if one.size <= LARGEST_VALUE][:MOST_VALUES]
    return made(await _values(visit, saga, small))


async def _values(visit: Visit, saga: str, wanted: Sequence[Stored]) -> dict[str, Any]:
    slots = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def one(digest: str) -> tuple[str, Any]:
        async with slots:
            return digest, await visit.call("showValue", {"saga": saga, "digest": digest})

    found = await asyncio.gather(*(one(each.digest) for each in wanted), return_exceptions=True)
    read = dict[str, Any]()
    for each in found:
        if isinstance(each, tuple) and each[1]["next"] is None:
            read[each[0]] = each[1]["value"]
        elif isinstance(each, BaseException) and not isinstance(each, UserError):
            raise each
    return read


def _most(talks: Sequence[Talk]) -> int:
    """Characters that each text of a page may have, so that all of them have room."""
    texts = list[str]()
    for talk in talks:
        given = talk.given if isinstance(talk.given, Mapping) else {}
        said = [given.get("instructions"), given.get("prompt")]
        for turn in talk.turns.values():
            said += [
                turn.answer,
                *turn.heard,
                *(one for call in turn.calls for one in (call.arguments, call.result)),
            ]
        texts += [one if isinstance(one, str) else pretty(one) for one in said]
    for most in _CUTS:
        if sum(len(escape(one[:most]).encode()) for one in texts) <= _ROOM:
            return most
    return _CUTS[-1]


async def value(visit: Visit) -> Html:
    """A value that is kept beside the log."""
    saga, digest = visit.path["saga"], visit.path["digest"]
    after = str(_number(visit, "after", 0))
    found = await visit.call("showValue", {"saga": saga, "digest": digest}, {"after": after})
    ref = f"{SCHEME}{digest}"
    data = {
        "saga": saga,
        "found": found,
        "after": after,
        "commands": commands(visit.api, f"/sagas/{part(saga)}/values/{digest}", ["value", saga, ref]),
    }
    return Html(template="value.html", title=f"A value of {saga}", data=data)
