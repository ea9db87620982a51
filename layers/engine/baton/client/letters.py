"""The routes of dead letters, as calls of `Api`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from baton.client.transport import Transport

_ALL = "/dead-letters"


class LetterCalls:
    """What an `Api` can ask about dead letters."""

    if TYPE_CHECKING:
        _transport: Transport

        def _pages(
            self, path: str, name: str, filters: Mapping[str, str], limit: int | None, cursor: str | None
        ) -> AsyncIterator[tuple[list[dict[str, Any]], str | None]]: ...

        def _shaped(self, document: dict[str, Any], has: str) -> dict[str, Any]: ...

    async def dead_letters(
        self, filters: Mapping[str, str], limit: int | None, cursor: str | None
    ) -> AsyncIterator[tuple[list[dict[str, Any]], str | None]]:
        """`GET /dead-letters` page by page, as `sagas`."""
        async for page in self._pages(_ALL, "dead_letters", filters, limit, cursor):
            yield page

    async def dead_letter(self, letter: str) -> dict[str, Any]:
        """`GET /dead-letters/{id}`."""
        return await self._letter("GET", _of(letter), None)

    async def redrive(self, letter: str, *, force: bool = False) -> dict[str, Any]:
        """`POST /dead-letters/{id}/redrive`; repeating it changes nothing until the letter dies again."""
        return await self._letter("POST", f"{_of(letter)}/redrive", {"force": force})

    async def redrive_all(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """`POST /dead-letters/redrive`, once: `next` of the answer continues it."""
        return await self._letter("POST", f"{_ALL}/redrive", wanted, "matched")

    async def discard_all(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """`POST /dead-letters/discard`, once: `next` of the answer continues it."""
        return await self._letter("POST", f"{_ALL}/discard", wanted, "matched")

    async def discard(self, letter: str, reason: str) -> dict[str, Any]:
        """`POST /dead-letters/{id}/discard`; repeating it changes nothing."""
        return await self._letter("POST", f"{_of(letter)}/discard", {"reason": reason})

    async def _letter(
        self, method: str, path: str, body: Mapping[str, Any] | None, has: str = "redrives"
    ) -> dict[str, Any]:
        return self._shaped((await self._transport.ask(method, path, body=body)).document or {}, has)


def _of(letter: str) -> str:
    return f"{_ALL}/{quote(letter, safe='')}"
