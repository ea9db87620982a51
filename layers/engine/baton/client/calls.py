"""How a call of the API is made: a path, a body or pages, what the answer has to have, and sagas named by the beginning of their ids.

How a request travels is in transport.py; which calls there are, in a file each family, put together in api.py.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from itertools import chain
from typing import Any, Self
from urllib.parse import quote

from baton.client.connection import Connection
from baton.client.exits import UNREACHABLE, USAGE, Failed
from baton.client.prefixes import RECENT, SHORTEST, whole
from baton.client.transport import Answer, Transport

PAGE = 100
Pages = AsyncIterator[tuple[list[dict[str, Any]], str | None]]
"""Lists page by page, each with the cursor of what comes after."""
_TOO_SHORT = f"The beginning of an id names a saga if it has at least {SHORTEST} characters."


class Calls:
    """One API for one caller. Every call raises `Failed`, which says how the command ends."""

    def __init__(self, connection: Connection, *, connections: int = 16) -> None:
        self._url = connection.url
        self._transport = Transport(connection, connections)
        self._whole: dict[str, str] = {}  # ids by the beginnings that were given for them

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.close()

    async def _of(self, saga: str, method: str, *more: str, **said: Any) -> Answer:
        """What the API answers about a saga, which may be named by the beginning of its id."""
        return await self._named(
            saga, lambda known: self._transport.ask(method, path_of("sagas", known, *more), **said)
        )

    async def _named(self, saga: str, ask: Callable[[str], Awaitable[Answer]]) -> Answer:
        """The answer to what is asked with the whole id of a saga, of which the beginning may be given."""
        known = self._whole.get(saga, saga)
        try:
            return await ask(known)
        except Failed as refusal:
            if known != saga or refusal.problem.get("detail") != f"there is no saga `{saga}`":
                raise
            if len(saga) < SHORTEST:
                raise refusal.hinting(_TOO_SHORT) from refusal
            if (found := await self._begun_with(saga)) in (None, saga):
                raise
        self._whole[saga] = str(found)
        return await self._named(saga, ask)

    async def _begun_with(self, beginning: str) -> str | None:
        """The id that begins so among those of the latest sagas. Raises `Failed` where several do."""
        try:
            pages = [page async for page, _ in self._pages("/sagas", "sagas", {}, RECENT, None)]
        except Failed:
            return None  # a caller who may not list sagas has to write whole ids
        return whole(beginning, chain.from_iterable(pages))

    async def _get_of(
        self, saga: str, *more: str, query: Mapping[str, str] | None = None, has: str
    ) -> dict[str, Any]:
        return self._shaped((await self._of(saga, "GET", *more, query=query)).document or {}, has)

    async def _send_to(
        self, saga: str, *more: str, body: Mapping[str, Any], key: str | None = None
    ) -> dict[str, Any]:
        return self._shaped((await self._of(saga, "POST", *more, body=body, key=key)).document or {}, "id")

    async def _get(self, path: str, query: Mapping[str, str] | None = None, *, has: str) -> dict[str, Any]:
        return self._shaped((await self._transport.ask("GET", path, query=query)).document or {}, has)

    async def _send(self, path: str, body: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:
        return self._shaped(
            (await self._transport.ask("POST", path, body=body, key=key)).document or {}, "id"
        )

    def _shaped(self, document: dict[str, Any], has: str) -> dict[str, Any]:
        """The document, if it has the field by which an answer of a Baton API is known."""
        if document.get(has) is None:
            raise Failed(UNREACHABLE, f"{self._url} answers, but not as a Baton API does: `{has}` is missing")
        return document

    async def _pages(
        self, path: str, name: str, filters: Mapping[str, str], limit: int | None, cursor: str | None
    ) -> Pages:
        left = limit
        while left is None or left > 0:
            query = {**filters, "limit": str(min(PAGE, left or PAGE))}
            if cursor:
                query["cursor"] = cursor
            page = await self._get(path, query, has=name)
            before, cursor = cursor, page.get("next")
            yield page[name], cursor
            if left is not None:
                left -= len(page[name])
            if not cursor:
                return
            if cursor == before:
                raise Failed(UNREACHABLE, f"{path} answers every page with the same cursor")


def path_of(*segments: str) -> str:
    """The path of these names. Raises `Failed` for what is none."""
    for segment in segments:
        # Every program on the way takes these for another path.
        if segment in ("", ".", ".."):
            raise Failed(USAGE, f"`{segment}` is no name")
    return "".join("/" + quote(segment, safe="") for segment in segments)


def new_key() -> str:
    """An idempotency key that no request has used."""
    return str(uuid.uuid4())
