"""The routes of schedules, as calls of `Api`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from baton.client.transport import Transport

_ALL = "/schedules"


class ScheduleCalls:
    """What an `Api` can ask about schedules."""

    if TYPE_CHECKING:
        _transport: Transport

        def _pages(
            self, path: str, name: str, filters: Mapping[str, str], limit: int | None, cursor: str | None
        ) -> AsyncIterator[tuple[list[dict[str, Any]], str | None]]: ...

        def _shaped(self, document: dict[str, Any], has: str) -> dict[str, Any]: ...

    def schedules(self) -> AsyncIterator[tuple[list[dict[str, Any]], str | None]]:
        """`GET /schedules`, all pages."""
        return self._pages(_ALL, "schedules", {}, None, None)

    async def schedule(self, name: str) -> dict[str, Any]:
        """`GET /schedules/{name}`."""
        answer = await self._transport.ask("GET", _of(name))
        return self._shaped(answer.document or {}, "state")

    async def set_schedule(self, name: str, do: str) -> dict[str, Any]:
        """`POST /schedules/{name}/pause` or `/resume`."""
        answer = await self._transport.ask("POST", f"{_of(name)}/{do}", body={})
        return self._shaped(answer.document or {}, "state")

    async def trigger(self, name: str, key: str) -> dict[str, Any]:
        """`POST /schedules/{name}/trigger`."""
        answer = await self._transport.ask("POST", f"{_of(name)}/trigger", body={}, key=key)
        return self._shaped(answer.document or {}, "id")


def _of(name: str) -> str:
    return f"{_ALL}/{quote(name, safe='')}"
