"""The routes of circuit breakers, as calls of `Api`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.client.calls import Calls, Pages, path_of


class BreakerCalls(Calls):
    """What an `Api` can do with circuit breakers."""

    def breakers(self) -> Pages:
        """`GET /breakers`, all pages."""
        return self._pages("/breakers", "breakers", {}, None, None)

    async def breaker(self, name: str) -> dict[str, Any]:
        """`GET /breakers/{name}`."""
        return await self._get(path_of("breakers", name), has="state")

    async def set_breaker(self, name: str, do: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """`POST /breakers/{name}/open` or `/reset`."""
        answer = await self._transport.ask("POST", path_of("breakers", name, do), body=body)
        return self._shaped(answer.document or {}, "state")
