"""What happens in the demo, in order: start the sagas, one of them from a guest's words, kill workers at work, cancel one, approve one, wait.

How processes start is in run, what is shown in progress, what is measured in evidence.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from baton.client.api import Api
from baton.client.text import span
from baton.core.log.status import FINISHED
from baton.demo.approver import Approver
from baton.demo.books import Books
from baton.demo.evidence import Course, Kill, request_of
from baton.demo.guest import WORDS, Guest
from baton.local.records import ProcessInfo

FIRST_EVENING = datetime(2026, 12, 1, 19, 30, tzinfo=UTC)
CITIES = ("Lisbon", "Porto", "Bergen", "Graz", "Ghent")
# The one evening whose party is so large that a person is asked before its table is held.
LARGE, LARGE_PARTY = 3, 9
# The one evening that falls through: what is to be brought to its bar is sold out, when everything else is booked and paid.
FALLING = 2
# The one evening that an agent plans. No other is in its city, so that no other takes its table.
GUEST = {"at": FIRST_EVENING.isoformat()}
# The one effect for which a second request would be a second one: its service takes no idempotency key.
PAYMENT = "deposit"
# What is done first of the guest's evening.
HELD = "hold"
LOOK_EVERY_TICKS = 10
PATIENCE_TICKS = 30


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of what. `kills`: without the one of the agent's worker. A kill strikes a worker that has been at work for `kill_after_s` to `kill_before_s`.

    The second number keeps the kill away from the moment at which a worker has already yielded. `thinks_s`: how long
    the person who is asked leaves the question alone.
    """

    sagas: int = 20
    kills: int = 2
    kill_after_s: float = 0.8
    kill_before_s: float = 3.5
    cancel_after_steps: int = 4
    thinks_s: float = 2.0
    limit_s: float = 100.0
    tick_s: float = 0.1


class Workers(Protocol):
    """The processes of a function."""

    def processes(self, function: str) -> Sequence[ProcessInfo]: ...

    def kill(self, pid: int) -> None:
        """SIGKILL."""
        ...


class Screen(Protocol):
    """Where the course of things is shown."""

    def say(self, text: str) -> None: ...
    def update(self, sagas: Mapping[str, Mapping[str, Any]]) -> None: ...


class Scenario:
    """One run. `course` says afterwards, or while it runs, what was done."""

    def __init__(
        self, plan: Plan, api: Api, other: Api, workers: Workers, books: Books, screen: Screen, steps: int
    ) -> None:
        self._plan = plan
        self._books = books
        self._patience = PATIENCE_TICKS
        self._api = api
        self._workers = workers
        self._screen = screen
        self._latest: dict[str, dict[str, Any]] = {}
        self.course = Course(expected_steps=steps, kills_wanted=plan.kills)
        self._approver = Approver(other, screen.say, self.course, plan.thinks_s)
        self._guest = Guest(api, screen.say, self.course)

    async def run(self) -> Course:
        """Returns when every saga has ended, or when the time is up."""
        course = self.course
        course.started_ms = _now_ms()
        course.asked_to_end_by_ms = course.started_ms + round(self._plan.limit_s * 1000)
        await self._start()
        tick = 0
        while _now_ms() < course.asked_to_end_by_ms:
            if len(self._kills()) < self._plan.kills:
                await self._kill_one()
            if self._plan.kills:
                await self._kill_planning()
            await self._guest.change(self._latest[course.planning])
            if tick % LOOK_EVERY_TICKS == 0:
                await self._look()
                await self._approver.look(self._latest)
                await self._guest.look(self._latest[course.planning])
                if all(saga["status"] in FINISHED for saga in self._latest.values()):
                    break
                if not course.cancelled:
                    await self._cancel_one()
            self._screen.update(self._latest)
            tick += 1
            await asyncio.sleep(self._plan.tick_s)
        course.ended_ms = _now_ms()
        self._screen.update(self._latest)
        return course

    async def _start(self) -> None:
        started = await asyncio.gather(
            *(self._api.start("dinner", evening(n)) for n in range(self._plan.sagas))
        )
        planned = await self._api.intend(WORDS, GUEST)
        for saga in (*started, planned):
            self._latest[str(saga["id"])] = {"steps": 0, "active": [], **saga}
        self.course.sagas = list(self._latest)
        self.course.planning = str(planned["id"])
        self.course.asking = next(iter(self.course.sagas[LARGE:]), "")
        self.course.falling = next((str(saga["id"]) for saga in started[FALLING:]), "")
        self._screen.say(f"{len(started)} dinner sagas started over HTTP, and one from words: {WORDS}")

    async def _look(self) -> None:
        """Ask for every saga that has not ended."""
        running = [saga for saga, seen in self._latest.items() if seen["status"] not in FINISHED]
        for saga, seen in zip(running, await asyncio.gather(*map(self._api.show, running)), strict=True):
            self._latest[saga] = seen

    async def _kill_one(self) -> None:
        """SIGKILL a worker at the worst moment: a service has acted for it, and it does not know yet.

        The first kill waits for a payment, the second until sagas are in their second invocation, so that both
        legs are hit. When the worst moment cannot be caught for a while, the next best will do: any effect, then
        any worker in the middle of its work.
        """
        kills = self._kills()
        if kills:
            # A second leg is short: on a busy machine it would be over before all patience is.
            self._patience = min(self._patience, PATIENCE_TICKS // 3)
        if kills and not any(int(s.get("invocations") or 0) > 1 for s in self._latest.values()):
            return
        prey = self._at_work()
        if not prey:
            return
        is_choosy = not kills and self._patience > PATIENCE_TICKS // 2
        # The youngest first: it stays unanswered for longest.
        for effect in sorted(await self._books.unanswered(), key=lambda effect: -effect["at_ms"]):
            saga = str(effect["identity"].get("reference"))
            # The saga that waited for a person is late as it is: killed, too, it would be the last by far. That of the
            # agent has a kill of its own.
            if saga.partition(".")[0] in (self.course.asking, self.course.planning) or (
                is_choosy and effect["kind"] != PAYMENT
            ):
                continue
            request_id = await self._holder(saga)
            if request_id in prey and effect in await self._books.unanswered():
                await self._kill(prey[request_id], effect)
                return
        self._patience -= 1
        if self._patience <= 0:
            await self._kill(next(iter(prey.values())), {})

    def _kills(self) -> list[Kill]:
        """Those for which any saga but the agent's will do."""
        return [kill for kill in self.course.kills if not self.course.is_planned(kill.saga)]

    async def _kill_planning(self) -> None:
        """SIGKILL the worker of the guest's evening, once: when a service has held a table for it, or later, at the next effect."""
        if any(map(self.course.is_planned, (kill.saga for kill in self.course.kills))) or not self._busy():
            return
        for effect in await self._books.unanswered():
            saga = str(effect["identity"].get("reference"))
            if not self.course.is_planned(saga):
                continue
            process = self._busy().get(await self._holder(saga))
            if process is not None and effect in await self._books.unanswered():
                await self._kill(process, effect)
                return

    async def _kill(self, process: ProcessInfo, effect: Mapping[str, Any]) -> None:
        if process.request_id not in self._busy():
            return  # it ended while we looked
        self._workers.kill(process.pid)
        now = _now_ms()
        busy_ms = now - (process.busy_since or now)
        saga = kind = ""
        moment = "in the middle of its work"
        # Only what is unanswered even now is sure to have been so at the kill.
        if effect and effect in await self._books.unanswered():
            saga, kind = str(effect["identity"]["reference"]), str(effect["kind"])
            whose = "the guest's" if self.course.is_planned(saga) and kind == HELD else "its"
            moment = f"when {whose} {kind} was done and not yet known"
        self.course.kills.append(Kill(process.pid, process.request_id, now, busy_ms, moment, saga, kind))
        self._screen.say(f"kill -9 {process.pid}: a worker, {span(busy_ms)} into its work, {moment}")

    def _busy(self) -> dict[str, ProcessInfo]:
        """The workers that were not killed yet, by the invocation they are busy with."""
        struck = {kill.pid for kill in self.course.kills}
        workers = self._workers.processes("WorkerFunction")
        return {one.request_id: one for one in workers if one.busy and one.pid not in struck}

    def _at_work(self) -> dict[str, ProcessInfo]:
        """Those of them that may be killed now."""
        now = _now_ms()
        least, most = self._plan.kill_after_s * 1000, self._plan.kill_before_s * 1000
        return {
            request_id: process
            for request_id, process in self._busy().items()
            if process.busy_since is not None and least <= now - process.busy_since <= most
        }

    async def _holder(self, saga: str) -> str:
        """The Lambda request that wrote last into a saga's log."""
        entries = [entry async for entry in self._api.events(saga) if entry["epoch"]]
        return request_of(str(entries[-1]["invocation"])) if entries else ""

    async def _cancel_one(self) -> None:
        """Cancel the first saga that is well under way, with time for its running steps to finish.

        None whose worker was killed at the worst moment, that asked a person or has an agent: they have to show that they go on. Nor
        the one that falls through.
        """
        course = self.course
        needed = {course.asking, course.planning, course.falling, *(kill.saga for kill in course.kills)}
        for saga, seen in self._latest.items():
            if saga in needed:
                continue
            if seen["status"] == "running" and int(seen.get("steps") or 0) >= self._plan.cancel_after_steps:
                await self._api.cancel(saga, "the guests changed their minds", "graceful", 3)
                self.course.cancelled, self.course.cancelled_ms = saga, _now_ms()
                self._screen.say(f"cancelled saga {saga} after {seen['steps']} steps")
                return


def evening(n: int) -> dict[str, Any]:
    """The input of the n-th saga: cities and days differ, so that no two want the same table."""
    day = FIRST_EVENING + timedelta(days=n // len(CITIES))
    party = LARGE_PARTY if n == LARGE else 2 + n % 4
    return {"city": CITIES[n % len(CITIES)], "party": party, "at": day.isoformat()}


def fault() -> tuple[str, list[dict[str, Any]]]:
    """What is wrong at open-delivery: the place, and the fault there, because of which one evening falls through."""
    falling = evening(FALLING)
    sold_out = {"kind": "full", "operations": ["order"], "at": _bar_at(falling["at"])}
    return f"{falling['city'].lower()}/dumplings", [sold_out]


def _bar_at(at: str) -> str:
    """When the guests are at the bar, three hours later."""
    return (datetime.fromisoformat(at) + timedelta(hours=3)).isoformat()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
