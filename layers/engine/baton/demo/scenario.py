"""The scenario of the demo: the sagas that it starts, and the people who answer them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from baton.client.api import Api
from baton.client.exits import CommandFailed
from baton.core.log.state import FINISHED
from baton.demo.evidence import Books, Course, Kill, request_of
from baton.local.processes import ProcessInfo
from baton.words.text import span


class Approver:
    """A person other than the starter, who approves the first question `thinks_s` seconds after seeing it."""

    def __init__(self, api: Api, say: Callable[[str], None], course: Course, thinks_s: float) -> None:
        self._api = api
        self._say = say
        self._course = course
        self._thinks_s = thinks_s
        self._seen_at = 0.0

    async def look(self, sagas: Mapping[str, Mapping[str, Any]]) -> None:
        """Check the inbox, and answer a question after its waiting time. `sagas`: latest states."""
        if not self._course.asking or self._course.approved_ms:
            return
        async for page, _ in self._api.questions(limit=1, cursor=None):
            for asked in page:
                await self._consider(asked, sagas)

    async def _consider(self, asked: Mapping[str, Any], sagas: Mapping[str, Mapping[str, Any]]) -> None:
        saga = asked["saga"]
        if not self._seen_at:
            self._seen_at = time.monotonic()
            self._say(f"saga {saga} asks: {asked['title']} {asked['message']}")
        elif (waited_s := time.monotonic() - self._seen_at) >= self._thinks_s:
            self._course.approved_ms = time.time_ns() // 1_000_000
            await self._api.answer(saga, {"ask": asked["id"], "action": "approve"})
            status, waited = sagas[saga]["status"], span(round(waited_s * 1000))
            self._say(f"approved by another person, over the API; the saga was {status} for {waited}")


WORDS = "Dinner for four in Vienna tonight, something Thai."
CHANGE = "We are more: for six, not four."
ASK = "ask"
# The step of the child saga after which the guest has the other wish.
SIGN = "hold"


class Guest:
    """The guest. `api` is that of the person who has started the saga."""

    def __init__(self, api: Api, say: Callable[[str], None], course: Course) -> None:
        self._api = api
        self._say = say
        self._course = course
        self._answered: set[str] = set()
        self._child = ""

    async def look(self, saga: Mapping[str, Any]) -> None:
        """Confirm the saga's question. `saga`: latest state."""
        for asked in saga.get("questions") or ():
            if asked["node"] != ASK or asked["id"] in self._answered:
                continue
            self._answered.add(asked["id"])
            understood = asked["details"]["understood"]
            self._say(f"the agent has understood: {understood}. {asked['message']} The guest confirms that")
            await self._api.answer(saga["id"], {"ask": asked["id"], "action": "confirm"})

    async def change(self, saga: Mapping[str, Any]) -> None:
        """Request another table once one is held."""
        if self._course.changed_ms or not self._answered:
            return
        if not self._child:
            opened = await self._events(saga["id"], "child_opened")
            self._child = opened[0]["child"] if opened else ""
        if self._child and any(
            one["node"] == SIGN for one in await self._events(self._child, "step_succeeded")
        ):
            try:
                await self._api.signal(saga["id"], "follow_up", CHANGE)
            except CommandFailed:  # too late, which promises tells of
                return
            self._course.changed_ms = time.time_ns() // 1_000_000
            self._say(f"the table is held, and the guest says: {CHANGE}")

    async def _events(self, saga: str, kind: str) -> list[Mapping[str, Any]]:
        try:
            entries = [entry async for entry in self._api.events(saga)]
        except CommandFailed:  # recorded, and not yet there
            return []
        return [event for entry in entries for event in entry["events"] if event["kind"] == kind]


FIRST_EVENING = datetime(2026, 12, 1, 19, 30, tzinfo=UTC)
CITIES = ("Lisbon", "Porto", "Bergen", "Graz", "Ghent")
# The one evening whose party is so large that a person is asked before its table is held.
LARGE, LARGE_PARTY = 3, 9
# The one evening that falls through: what is to be brought to its bar is sold out, when everything else is booked and paid.
FALLING = 2
# The one evening that an agent plans. No other is in its city, so that no other takes its table.
GUEST = {"at": FIRST_EVENING.isoformat()}
# What is done first of the guest's evening.
GUESTS_CITY, HELD = "Vienna", "hold"
# In which city the first effect of this kind is answered late, and its worker killed meanwhile. The deposit is the one effect
# for which a second request would be a second one: its service takes no idempotency key.
KILLS = (("Lisbon", "deposit"), ("Porto", "confirm"))
LOOK_EVERY_TICKS, ASK_TICKS = 10, 3


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """Size of the scenario. `thinks_s`: seconds for which the person leaves the question unanswered."""

    sagas: int = 20
    cancel_after_steps: int = 4
    thinks_s: float = 2.0
    limit_s: float = 180.0  # of a machine that is busy; a saga that ends as it should takes half a minute
    tick_s: float = 0.1


class Workers(Protocol):
    """The processes of a function."""

    def processes(self, function: str) -> Sequence[ProcessInfo]: ...

    def kill(self, pid: int) -> None:
        """Send SIGKILL to a process."""
        ...


class Screen(Protocol):
    """Display of the scenario's progress."""

    def say(self, text: str) -> None: ...
    def update(self, sagas: Mapping[str, Mapping[str, Any]]) -> None: ...


class Scenario:
    """One run of the scenario. `course` records its actions."""

    def __init__(
        self,
        plan: DemoPlan,
        api: Api,
        other: Api,
        workers: Workers,
        holder: Callable[[str], Awaitable[str]],
        books: Books,
        screen: Screen,
        steps: int,
    ) -> None:
        """Create the scenario. `holder` returns the name under which a worker holds a saga."""
        self._plan = plan
        self._books = books
        self._holder = holder
        self._cities: dict[str, str] = {}
        self._to_kill = [*KILLS[: plan.sagas], (GUESTS_CITY, HELD)]
        self._api = api
        self._workers = workers
        self._screen = screen
        self._latest: dict[str, dict[str, Any]] = {}
        self.course = Course(expected_steps=steps, kills_wanted=len(self._to_kill))
        self._approver = Approver(other, screen.say, self.course, plan.thinks_s)
        self._guest = Guest(api, screen.say, self.course)

    async def run(self) -> Course:
        """Run until every saga has ended, or the time is up."""
        course = self.course
        course.started_ms = _now_ms()
        course.asked_to_end_by_ms = course.started_ms + round(self._plan.limit_s * 1000)
        await self._start()
        beside = asyncio.gather(self._kill_all(), self._cancel_one(), self._change_wish())
        try:
            await self._watch(beside)
        finally:
            beside.cancel()
            await asyncio.gather(beside, return_exceptions=True)
        course.ended_ms = _now_ms()
        self._screen.update(self._latest)
        return course

    async def _watch(self, beside: asyncio.Future[Any]) -> None:
        """Wait until every saga has ended, or the time is up. Raises the error of `beside`."""
        tick = 0
        while _now_ms() < self.course.asked_to_end_by_ms:
            if beside.done():
                beside.result()
            if tick % LOOK_EVERY_TICKS == 0:
                await self._look()
                await self._approver.look(self._latest)
                await self._guest.look(self._latest[self.course.planning])
                if all(saga["status"] in FINISHED for saga in self._latest.values()):
                    return
            self._screen.update(self._latest)
            tick += 1
            await asyncio.sleep(self._plan.tick_s)

    async def _start(self) -> None:
        started = await asyncio.gather(
            *(self._api.start("dinner", evening(n)) for n in range(self._plan.sagas))
        )
        planned = await self._api.intend(WORDS, GUEST)
        for saga in (*started, planned):
            self._latest[str(saga["id"])] = {"steps": 0, "active": [], **saga}
        self._cities = {str(saga["id"]): evening(n)["city"] for n, saga in enumerate(started)}
        self.course.sagas = list(self._latest)
        self.course.planning = str(planned["id"])
        self.course.asking = next(iter(self.course.sagas[LARGE:]), "")
        self.course.falling = next((str(saga["id"]) for saga in started[FALLING:]), "")
        self._screen.say(f"{len(started)} dinner sagas started over HTTP, and one from words: {WORDS}")

    async def _look(self) -> None:
        """Fetch every saga that has not ended."""
        running = [saga for saga, seen in self._latest.items() if seen["status"] not in FINISHED]
        for saga, seen in zip(running, await asyncio.gather(*map(self._api.show, running)), strict=True):
            self._latest[saga] = seen

    async def _kill_all(self) -> None:
        """Kill workers beside the polling of sagas, whose answers may be late by seconds."""
        while self._to_kill:
            await self._kill_one()
            await asyncio.sleep(self._plan.tick_s)

    async def _change_wish(self) -> None:
        """Send the guest's changed wish between the held table and the end of the booking."""
        while not self.course.changed_ms:
            await self._guest.change(self._latest[self.course.planning])
            await asyncio.sleep(self._plan.tick_s * ASK_TICKS)

    async def _kill_one(self) -> None:
        """Kill a worker at the worst moment: after a service's effect, before the worker knows of it."""
        if not self._busy():
            return
        for effect in await self._books.unanswered():
            saga = str(effect["identity"].get("reference"))
            moment = (self._city(saga), effect["kind"])
            if moment not in self._to_kill:
                continue
            process = self._busy().get(request_of(await self._holder(saga)))
            if process is not None and effect in await self._books.unanswered():
                await self._kill(process, effect)
                await self._books.switch(moment[0].lower(), after_kill(moment[0]))
                self._to_kill.remove(moment)
                return

    def _city(self, saga: str) -> str:
        """Return the city of a saga's evening."""
        return GUESTS_CITY if self.course.is_planned(saga) else self._cities.get(saga, "")

    async def _kill(self, process: ProcessInfo, effect: Mapping[str, Any]) -> None:
        if process.request_id not in self._busy():
            return  # it ended while we looked
        self._workers.kill(process.pid)
        now = _now_ms()
        busy_ms = now - (process.busy_since or now)
        # The answer is late by seconds, so that what was unanswered a moment ago was so at the kill.
        saga, kind = str(effect["identity"]["reference"]), str(effect["kind"])
        whose = "the guest's" if self.course.is_planned(saga) and kind == HELD else "its"
        moment = f"when {whose} {kind} was done and not yet known"
        self.course.kills.append(Kill(process.pid, process.request_id, now, busy_ms, moment, saga, kind))
        self._screen.say(f"kill -9 {process.pid}: a worker, {span(busy_ms)} into its work, {moment}")

    def _busy(self) -> dict[str, ProcessInfo]:
        """Return the workers that were not killed yet, by the invocation they are busy with."""
        struck = {kill.pid for kill in self.course.kills}
        workers = self._workers.processes("WorkerFunction")
        return {one.request_id: one for one in workers if one.busy and one.pid not in struck}

    async def _cancel_one(self) -> None:
        """Cancel the first saga that is well under way, with time for its running steps to finish.

        Sagas whose worker is to be killed, that ask a person, that have an agent, or that roll back are
        excluded, because they have other promises to show.
        """
        course = self.course
        cities = [city for city, _ in self._to_kill]
        needed = {course.asking, course.planning, course.falling}
        for saga in course.sagas:
            if saga not in needed and self._city(saga) not in cities and await self._cancelled(saga):
                return

    async def _cancelled(self, saga: str) -> bool:
        """Cancel a saga once enough steps are completed. Return true if that was before its end."""
        while (seen := await self._api.show(saga))["status"] not in FINISHED:
            if seen["status"] == "running" and int(seen.get("steps") or 0) >= self._plan.cancel_after_steps:
                try:
                    await self._api.cancel(saga, "the guests changed their minds", "graceful", 3)
                except CommandFailed:  # it has ended meanwhile
                    return False
                self.course.cancelled, self.course.cancelled_ms = saga, _now_ms()
                self._screen.say(f"cancelled saga {saga} after {seen['steps']} steps")
                return True
            await asyncio.sleep(self._plan.tick_s * ASK_TICKS)
        return False


def evening(n: int) -> dict[str, Any]:
    """Return the input of the n-th saga. Cities and days differ, so that no two need the same table."""
    day = FIRST_EVENING + timedelta(days=n // len(CITIES))
    party = LARGE_PARTY if n == LARGE else 2 + n % 4
    return {"city": CITIES[n % len(CITIES)], "party": party, "at": day.isoformat()}


def service_faults() -> dict[str, list[dict[str, Any]]]:
    """Return the faults of the services, by place.

    Answers are late where a kill is planned, until it has happened: on a busy machine the first may be over
    too soon. The guest's deposit is refused three times, which leaves time for a changed wish. In one
    evening, the last item is sold out.
    """
    found: dict[str, list[dict[str, Any]]] = {GUESTS_CITY.lower(): after_kill(GUESTS_CITY)}
    for city, kind in (*KILLS, (GUESTS_CITY, HELD)):
        found.setdefault(city.lower(), []).append({"kind": "late", "operations": [kind], "times": 3})
    falling = evening(FALLING)
    sold_out = {"kind": "full", "operations": ["order"], "at": _bar_at(falling["at"])}
    return found | {f"{falling['city'].lower()}/dumplings": [sold_out]}


def after_kill(city: str) -> list[dict[str, Any]]:
    """Return the remaining faults in a city after the kill has hit a late answer there."""
    return [{"kind": "unavailable", "operations": ["deposit"], "times": 3}] if city == GUESTS_CITY else []


def _bar_at(at: str) -> str:
    """Return the time when the guests are at the bar, three hours later."""
    return (datetime.fromisoformat(at) + timedelta(hours=3)).isoformat()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
