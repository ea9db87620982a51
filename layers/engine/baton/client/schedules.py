"""The routes of schedules, as calls of `Api`."""

from __future__ import annotations

from typing import Any

from baton.client.calls import Calls, Pages, path_of

_NAME = "schedules"


class ScheduleCalls(Calls):
    """What an `Api` can ask about schedules."""

    def schedules(self) -> Pages:
        """`GET /schedules`, all pages."""
        return self._pages(path_of(_NAME), "schedules", {}, None, None)

    async def schedule(self, name: str) -> dict[str, Any]:
        """`GET /schedules/{name}`."""
        answer = await self._transport.ask("GET", path_of(_NAME, name))
        return self._shaped(answer.document or {}, "state")

    async def set_schedule(self, name: str, do: str) -> dict[str, Any]:
        """`POST /schedules/{name}/pause` or `/resume`."""
        answer = await self._transport.ask("POST", path_of(_NAME, name, do), body={})
        return self._shaped(answer.document or {}, "state")

    async def trigger(self, name: str, key: str) -> dict[str, Any]:
        """`POST /schedules/{name}/trigger`."""
        answer = await self._transport.ask("POST", path_of(_NAME, name, "trigger"), body={}, key=key)
        return self._shaped(answer.document or {}, "id")
