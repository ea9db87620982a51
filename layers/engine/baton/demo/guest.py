"""The guest of the evening that an agent plans: confirms what was understood, and changes one wish on the way.

Whether the saga did what the guest wanted is in promises.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from baton.client.api import Api
from baton.client.exits import Failed
from baton.demo.evidence import Course

WORDS = "Dinner for four in Vienna tonight, something Thai."
CHANGE = "We are more: for six, not four."
ASK = "ask"
# The step of the child saga after which the guest has the other wish.
SIGN = "hold"


class Guest:
    """`api` is that of the person who has started the saga."""

    def __init__(self, api: Api, say: Callable[[str], None], course: Course) -> None:
        self._api = api
        self._say = say
        self._course = course
        self._answered: set[str] = set()
        self._child = ""

    async def look(self, saga: Mapping[str, Any]) -> None:
        """Confirm what the saga asks. `saga`: as last seen."""
        for asked in saga.get("questions") or ():
            if asked["node"] != ASK or asked["id"] in self._answered:
                continue
            self._answered.add(asked["id"])
            understood = asked["details"]["understood"]
            self._say(f"the agent has understood: {understood}. {asked['message']} The guest confirms that")
            await self._api.answer(saga["id"], {"ask": asked["id"], "action": "confirm"})

    async def change(self, saga: Mapping[str, Any]) -> None:
        """Once a table is held: say that it is to be another one."""
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
            except Failed:  # too late, which promises tells of
                return
            self._course.changed_ms = time.time_ns() // 1_000_000
            self._say(f"the table is held, and the guest says: {CHANGE}")

    async def _events(self, saga: str, kind: str) -> list[Mapping[str, Any]]:
        try:
            entries = [entry async for entry in self._api.events(saga)]
        except Failed:  # recorded, and not yet there
            return []
        return [event for entry in entries for event in entry["events"] if event["kind"] == kind]
