"""The services' books, read over HTTP: what they did, counted by them and not by us.

What the books prove is in promises.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from baton.client.api import Reader


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
