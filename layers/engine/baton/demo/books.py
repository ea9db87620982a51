"""The services, over HTTP: their books, in which they count what they did, and their faults.

What the books prove is in promises.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from baton.client.reader import Reader


class Books:
    """The books of all services of a run."""

    def __init__(self, reader: Reader, services: Sequence[str]) -> None:
        self._reader = reader
        self._services = services

    async def all(self) -> list[dict[str, Any]]:
        """Every book, whole."""
        return list(await asyncio.gather(*(self._reader.get(f"{url}/books") for url in self._services)))

    async def unanswered(self) -> list[dict[str, Any]]:
        """The effects that were carried out and whose callers have not heard of it, at this moment."""
        pages = (self._reader.get(f"{url}/books/unanswered") for url in self._services)
        return [effect for page in await asyncio.gather(*pages) for effect in page["effects"]]

    async def switch(self, place: str, faults: Sequence[Any]) -> None:
        """What is wrong at a place from now on, with each service that knows the operations."""
        await asyncio.gather(*(self._reader.put(f"{url}/faults/{place}", faults) for url in self._services))
