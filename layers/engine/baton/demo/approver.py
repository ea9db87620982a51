"""The person who is asked in the demo: looks into the inbox, thinks for a moment, and approves over the API.

Who asks, and when, is in scenario; whether all of it was in order is in promises.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from baton.client.api import Api
from baton.demo.evidence import Course
from baton.words.text import span


class Approver:
    """Approves the first question, `thinks_s` after it was seen: one sees its saga wait.

    `api` is that of another person than the one who started the sagas.
    """

    def __init__(self, api: Api, say: Callable[[str], None], course: Course, thinks_s: float) -> None:
        self._api = api
        self._say = say
        self._course = course
        self._thinks_s = thinks_s
        self._seen_at = 0.0

    async def look(self, sagas: Mapping[str, Mapping[str, Any]]) -> None:
        """Look into the inbox; answer what was found there once it has been left alone. `sagas`: as last seen."""
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
