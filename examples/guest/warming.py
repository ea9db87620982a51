"""What is looked up while the guest is still writing, so that it is there, and everything is awake, when the guest asks.

A look is a saga of `look.yaml`: it takes the way of every saga, through the functions of the API, the relay and the worker and the
worker's connection to table-stack. So the evening that follows meets none of them asleep. What was found is kept for five minutes and shown below the words. The guest's
request never waits for a look, and a look that fails is a look that did not happen.
"""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from examples.guest.api import ENDED, RefusedError

KEPT_S = 300
MOST_KEPT = 200
MOST_AT_ONCE = 4
TRIES, PAUSE_S = 30, 0.3
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_PARTY = re.compile(rf"\bfor (?:us )?({'|'.join(_NUMBERS)}|1[0-2]|[1-9])\b", re.IGNORECASE)
_CITY = re.compile(r"\bin ([A-Z]\w{1,40})")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What can be told from words that are not finished yet."""

    city: str
    party: int
    at: str


@dataclass(slots=True)
class _Look:
    until: float
    found: str = ""


def understood(words: str, at: str) -> Wanted | None:
    """The last word about each counts, as in the example's model. None: no city yet, so there is nothing to look for."""
    cities, parties = _CITY.findall(words), _PARTY.findall(words)
    if not cities:
        return None
    said = parties[-1].lower() if parties else "two"
    return Wanted(cities[-1], _NUMBERS.index(said) + 1 if said in _NUMBERS else int(said), at)


class Warmer:
    """`start` begins a saga of a workflow with an input and a key, `show` tells where it is; `now` in seconds."""

    def __init__(
        self,
        start: Callable[[str, dict[str, Any], str], Awaitable[str]],
        show: Callable[[str], Awaitable[Any]],
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._start, self._show, self._now, self._sleep = start, show, now, sleep
        self._looks: dict[Wanted, _Look] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def warm(self, words: str, at: str) -> str:
        """What is known by now of what the words ask for; empty: nothing yet. Returns at once, whatever it begins."""
        wanted = understood(words, at)
        if wanted is None:
            return ""
        now = self._now()
        self._looks = {key: look for key, look in self._looks.items() if look.until > now}
        if (look := self._looks.get(wanted)) is not None:
            return look.found
        if len(self._tasks) < MOST_AT_ONCE and len(self._looks) < MOST_KEPT:
            self._looks[wanted] = _Look(now + KEPT_S)
            task = asyncio.create_task(self._look(wanted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return ""

    async def settled(self) -> None:
        """When what was begun is over: for the end of the program, and for tests."""
        await asyncio.gather(*self._tasks)

    async def _look(self, wanted: Wanted) -> None:
        try:
            given = {"city": wanted.city, "party": wanted.party, "at": wanted.at}
            saga = await self._start("look", given, _key(wanted, self._now()))
            view: Any = {"status": ""}
            for _ in range(TRIES):
                view = await self._show(saga)
                if view["status"] in ENDED:
                    break
                await self._sleep(PAUSE_S)
            if view["status"] != "completed":
                raise LookupError(view["status"])
            self._looks[wanted].found = _told(wanted, view["result"])
        except (RefusedError, LookupError, TypeError):  # the guest has not asked for it
            self._looks.pop(wanted, None)


def _key(wanted: Wanted, now: float) -> str:
    """The same for all who want the same in the same five minutes: one saga looks for all of them."""
    text = f"{wanted.city.lower()}/{wanted.party}/{wanted.at}/{int(now // KEPT_S)}"
    return f"look-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def _told(wanted: Wanted, result: Any) -> str:
    tables = (result or {}).get("tables") or []
    if not tables:
        return f"No table for {wanted.party} is free in {wanted.city} then; other ways are looked for when you ask."
    houses = list(dict.fromkeys(str(one["house"]) for one in tables))
    return f"Free in {wanted.city} for {wanted.party}: {', '.join(houses[:3])}."
