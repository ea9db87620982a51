"""JSON from and to services that are not Baton, such as the books of the demo."""

from __future__ import annotations

import asyncio
from typing import Any, Self

import httpx

from baton.client.exits import UNREACHABLE, Failed
from baton.client.transport import TOTAL_S


class Reader:
    """Reads and replaces documents; shows no token."""

    def __init__(self) -> None:
        self._http = httpx.AsyncClient(
            timeout=TOTAL_S, limits=httpx.Limits(keepalive_expiry=2), trust_env=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def get(self, url: str) -> Any:
        """One document. Raises `Failed`."""
        return (await self._answer("GET", url)).json()

    async def put(self, url: str, document: Any) -> None:
        """Replace a document. Raises `Failed`."""
        await self._answer("PUT", url, document)

    async def _answer(self, method: str, url: str, document: Any = None) -> httpx.Response:
        try:
            async with asyncio.timeout(TOTAL_S):
                answer = await self._http.request(method, url, json=document)
            return answer.raise_for_status()
        except (TimeoutError, httpx.HTTPError) as error:
            raise Failed(UNREACHABLE, f"{url}: {error}") from error
