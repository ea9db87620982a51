"""Which hosts may be called, and at which addresses: the allow-list of a deployment.

An entry is `*` (any host), a name, `*.` and a domain, an address or a network; each but `*` and a network may have a
port. Names lead to public addresses only, unless the list has the address or its network too: who names one says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
ANY: Final = "*"


class Hosts:
    """The allow-list, read."""

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
        """Whether this host may be asked for."""
        try:
            return (ANY, None) in self._names or self.has(ip_address(host.strip("[]")), port)
        except ValueError:
            pass
        name = host.lower().rstrip(".")
        domains = (f"*.{name[at + 1 :]}" for at, character in enumerate(name) if character == ".")
        wanted = {(known, at) for known in (name, *domains) for at in (port, None)}
        return (ANY, None) in self._names or not wanted.isdisjoint(self._names)

    def has(self, address: Address, port: int) -> bool:
        """Whether the list has this very address, or its network."""
        return any(
            address.version == network.version and address in network and at in (port, None)
            for network, at in self._networks
        )


def _parted(entry: str) -> tuple[str, int | None]:
    """Host and port of an entry."""
    if entry.startswith("["):
        host, _, port = entry[1:].partition("]")
        return host, int(port[1:]) if port[1:] else None
    host, colon, port = entry.partition(":")
    return (host, int(port)) if colon and port.isdecimal() else (entry, None)
