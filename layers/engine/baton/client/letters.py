"""The routes of dead letters, as calls of `Api`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.client.calls import Calls, Pages, path_of

_NAME = "dead-letters"


class LetterCalls(Calls):
    """What an `Api` can ask about dead letters."""

    async def dead_letters(self, filters: Mapping[str, str], limit: int | None, cursor: str | None) -> Pages:
        """`GET /dead-letters` page by page, as `sagas`."""
        async for page in self._pages(path_of(_NAME), "dead_letters", filters, limit, cursor):
            yield page

    async def dead_letter(self, letter: str) -> dict[str, Any]:
        """`GET /dead-letters/{id}`."""
        return await self._letter("GET", path_of(_NAME, letter), None)

    async def redrive(self, letter: str, *, force: bool = False) -> dict[str, Any]:
        """`POST /dead-letters/{id}/redrive`; repeating it changes nothing until the letter dies again."""
        return await self._letter("POST", path_of(_NAME, letter, "redrive"), {"force": force})

    async def redrive_all(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """`POST /dead-letters/redrive`, once: `next` of the answer continues it."""
        return await self._letter("POST", path_of(_NAME, "redrive"), wanted, "matched")

    async def discard_all(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """`POST /dead-letters/discard`, once: `next` of the answer continues it."""
        return await self._letter("POST", path_of(_NAME, "discard"), wanted, "matched")

    async def discard(self, letter: str, reason: str) -> dict[str, Any]:
        """`POST /dead-letters/{id}/discard`; repeating it changes nothing."""
        return await self._letter("POST", path_of(_NAME, letter, "discard"), {"reason": reason})

    async def _letter(
        self, method: str, path: str, body: Mapping[str, Any] | None, has: str = "redrives"
    ) -> dict[str, Any]:
        return self._shaped((await self._transport.ask(method, path, body=body)).document or {}, has)
