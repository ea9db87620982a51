"""`HttpClient` and the allow-list of hosts. The first request imports the library behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from importlib import import_module
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from baton.ports.outside import HttpAnswer, HttpClient, HttpRequest


class LazyHttpClient:
    """The `HttpClient` of a process, which loads its library with the first request."""

    def __init__(
        self, hosts: Collection[str] = (), plain: Collection[str] = (), closed: Collection[str] = ()
    ) -> None:
        """Create a client that connects when first used. `hosts`: the allow-list (http_client.py).
        `plain`: hosts that are called without TLS, besides loopback. `closed`: addresses, `ip:port`, that are
        refused whatever the list says.
        """
        self._hosts = frozenset(hosts)
        self._plain = frozenset(plain)
        self._closed = frozenset(closed)
        self._opened: HttpClient | None = None

    async def aclose(self) -> None:
        """Close this event loop's connections. A process that lives no longer than its loop need not."""
        if self._opened is not None:
            await self._opened.aclose()

    async def send(self, request: HttpRequest) -> HttpAnswer:
        if self._opened is None:
            # In a thread, because others run on this loop. Two first requests make two clients; the later one stays.
            module = await asyncio.to_thread(import_module, "baton.adapters.httpx_exchange")
            self._opened = module.HttpxClient(self._hosts, self._plain, self._closed)
        assert self._opened is not None
        return await self._opened.send(request)


Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
ANY: Final = "*"


class AllowedHosts:
    """The parsed allow-list of hosts."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._names: set[tuple[str, int | None]] = set()
        self._networks: list[tuple[Network, int | None]] = []
        for entry in entries:
            host, port = _parted(entry.lower())
            try:
                self._networks.append((ip_network(host), port))
            except ValueError:
                self._names.add((host.rstrip("."), port))

    def name(self, host: str, port: int) -> bool:
        """Return true if this host may be called."""
        try:
            return (ANY, None) in self._names or self.has(ip_address(host.strip("[]")), port)
        except ValueError:
            pass
        name = host.lower().rstrip(".")
        domains = (f"*.{name[at + 1 :]}" for at, character in enumerate(name) if character == ".")
        wanted = {(known, at) for known in (name, *domains) for at in (port, None)}
        return (ANY, None) in self._names or not wanted.isdisjoint(self._names)

    def has(self, address: Address, port: int) -> bool:
        """Return true if the list has this very address, or its network."""
        return any(
            address.version == network.version and address in network and at in (port, None)
            for network, at in self._networks
        )


def _parted(entry: str) -> tuple[str, int | None]:
    """Return host and port of an entry."""
    if entry.startswith("["):
        host, _, port = entry[1:].partition("]")
        return host, int(port[1:]) if port[1:] else None
    host, colon, port = entry.partition(":")
    return (host, int(port)) if colon and port.isdecimal() else (entry, None)
