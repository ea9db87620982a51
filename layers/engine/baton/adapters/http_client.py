"""`HttpClient`, as cheap as nothing until it is used: the library behind it is imported by the first request.

How a request is made is in httpx_exchange.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from importlib import import_module

from baton.ports.outside import HttpAnswer, HttpClient, HttpRequest


class LazyHttpClient:
    """The `HttpClient` of a process."""

    def __init__(
        self, hosts: Collection[str] = (), plain: Collection[str] = (), closed: Collection[str] = ()
    ) -> None:
        """hosts: the allow-list (http_hosts.py). plain: hosts that are called without TLS, besides loopback.

        closed: addresses, `ip:port`, that are refused whatever the list says.
        """
        self._hosts = frozenset(hosts)
        self._plain = frozenset(plain)
        self._closed = frozenset(closed)
        self._opened: HttpClient | None = None

    async def aclose(self) -> None:
        """Ends the connections of this event loop. A process that lives as long as its loop need not."""
        if self._opened is not None:
            await self._opened.aclose()

    async def send(self, request: HttpRequest) -> HttpAnswer:
        if self._opened is None:
            # In a thread, because others run on this loop. Two first requests make two clients; the later one stays.
            module = await asyncio.to_thread(import_module, "baton.adapters.httpx_exchange")
            self._opened = module.HttpxClient(self._hosts, self._plain, self._closed)
        assert self._opened is not None
        return await self._opened.send(request)
