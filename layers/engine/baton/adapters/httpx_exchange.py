"""`HttpClient` by httpx: one exchange within a total time, to addresses that may be called.

Names are resolved here and the connection is made to the very address that was
looked at, so that no name can stand for one address when it is judged and for
another when it is used. What a step makes of an answer is in tools/standard.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Collection, Iterable
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final

import httpcore
import httpx

from baton.adapters.http_client import AllowedHosts
from baton.core.failures.evidence import evidence_of
from baton.core.version import VERSION
from baton.ports import StepFailure
from baton.ports.outside import HttpAnswer, HttpRequest

# What zlib is told of the beginning: the header of gzip, or that of zlib. What else there is was never asked for.
_FORMATS: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class Body:
    """Collector of the bytes of one answer. `most` bounds them as received, and as decoded."""

    def __init__(self, encoding: str, most: int, host: str) -> None:
        """Prepare for a body. Raises `StepFailure` for an encoding that is not decoded here."""
        names = [name.strip() for name in encoding.lower().split(",")]
        coded = [name for name in names if name not in ("", "identity")]
        if len(coded) > 1 or not _FORMATS.keys() >= set(coded):
            what = f"{host} answered with the content encoding `{encoding[:40]}`; one of gzip and deflate is read"
            raise StepFailure("invalid_response", what)
        self._decoder = zlib.decompressobj(_FORMATS[coded[0]]) if coded else None
        self._is_deflate = coded == ["deflate"]
        self._most, self._host = most, host
        self._raw = self._size = 0
        self._parts: list[bytes] = []

    async def read(self, raw: AsyncIterator[bytes]) -> bytes:
        """Return the whole body. Raises `StepFailure`."""
        try:
            async for part in raw:
                self._take(part)
        except zlib.error as error:
            raise self._broken() from error
        if self._decoder is not None and self._raw and not self._decoder.eof:
            raise self._broken()
        return b"".join(self._parts)

    def _take(self, part: bytes) -> None:
        self._raw += len(part)
        if self._raw <= self._most and self._decoder is not None:
            # One byte more than fits says that there is too much; what is left of the part is never looked at.
            part = self._decoded(part, self._most - self._size + 1)
        self._size += len(part)
        if self._raw > self._most or self._size > self._most:
            raise StepFailure("result_too_large", f"{self._host} answered with more than {self._most} bytes")
        self._parts.append(part)

    def _decoded(self, part: bytes, most: int) -> bytes:
        assert self._decoder is not None
        try:
            return self._decoder.decompress(part, most)
        except zlib.error:
            if not self._is_deflate or self._raw != len(part):
                raise
        # Many servers send deflate without the header that it should have.
        self._decoder = zlib.decompressobj(-zlib.MAX_WBITS)
        return self._decoder.decompress(part, most)

    def _broken(self) -> StepFailure:
        return StepFailure("invalid_response", f"{self._host} answered with what cannot be decoded")


# Where machines tell who asks them their credentials: nothing that a workflow names may reach these. The first
# also holds the addresses of instances (169.254.169.254), of containers (169.254.170.2) and of Lambda itself.
_NEVER = tuple(
    ip_network(net)
    for net in (
        "169.254.0.0/16",
        "fe80::/10",
        "fd00:ec2::/32",
        "0.0.0.0/8",
        "::/128",
        "224.0.0.0/4",
        "ff00::/8",
    )
)
_NAT64, _NAT64_LOCAL = ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48")
_CONNECT_MS = 5_000
_LAST_PORT = 65_535
# Idle connections are given up early: a process that was frozen for minutes must not send its next request into one
# that the other side has long closed.
_IDLE_S = 2.0

# They write a line for each request, with its whole address, which may hold a secret.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)


class AddressRefused(Exception):
    """Error for an address that the allow-list does not permit."""


class HttpxClient:
    """The `HttpClient` of a process. Connections belong to an event loop, so a new loop has new ones."""

    def __init__(
        self, hosts: Collection[str] = (), plain: Collection[str] = (), closed: Collection[str] = ()
    ) -> None:
        """Create the client. `hosts`: the allow-list.
        `plain`: hosts that are called without TLS, `*` for all. `closed`: `ip:port` refused besides.
        """
        self._hosts = AllowedHosts(hosts)
        self._plain = frozenset(plain)
        self._closed = frozenset(closed)
        self._of: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None

    async def send(self, request: HttpRequest) -> HttpAnswer:
        host = _host(request.url)
        try:
            self.check_scheme(httpx.URL(request.url))
            if not request.named:
                self.check_host(httpx.URL(request.url))
            async with asyncio.timeout(request.within_ms / 1_000):
                return await self._exchange(request, host)
        except TimeoutError as error:
            raise StepFailure("timeout", f"{host} did not answer within {request.within_ms} ms") from error
        except AddressRefused as error:
            raise StepFailure("permission_denied", f"{host} is not called from here: {error}") from error
        except (httpx.InvalidURL, httpx.LocalProtocolError, ValueError) as error:
            # Without its text, which quotes addresses and headers.
            raise StepFailure("bad_request", f"{host}: this is no request that HTTP knows") from error
        except httpx.TransportError as error:
            found = evidence_of(error)
            what = f"{host}: {str(error) or type(error).__name__}"
            raise StepFailure(found.verdict().code, what, unsent=found.unsent) from error

    async def aclose(self) -> None:
        """Close this loop's connections; the next request opens new ones."""
        if self._of is not None and self._of[0] is asyncio.get_running_loop():
            await self._of[1].aclose()
            self._of = None

    def check_scheme(self, url: httpx.URL) -> None:
        """Raise `StepFailure` for a scheme other than https, unless the host may be called without TLS."""
        if url.scheme not in ("http", "https") or not url.host or (url.port or 0) > _LAST_PORT:
            raise StepFailure("bad_request", "an address begins with https:// and a host")
        if url.scheme == "https" or _is_loopback(url.host) or not self._plain.isdisjoint({url.host, "*"}):
            return
        hint = "use https://, or have the deployment's `PlainHttpHosts` name this host"
        raise StepFailure("permission_denied", f"{url.host} is not called without TLS; {hint}")

    def check_host(self, url: httpx.URL) -> None:
        """Raise `StepFailure` for a host that the deployment does not name."""
        port = url.port or (443 if url.scheme == "https" else 80)
        if not self._hosts.name(url.raw_host.decode("ascii"), port):
            what = f"{url.host} is not called from here: `HttpHosts` of the deployment does not name it"
            raise StepFailure("permission_denied", what)

    async def _exchange(self, request: HttpRequest, host: str) -> HttpAnswer:
        headers = {"user-agent": f"Baton/{VERSION}", "accept-encoding": "identity", **request.headers}
        opened = self._client()
        # One process serves many tenants: cookies must not pass from one to another.
        opened.cookies.clear()
        built = opened.build_request(
            request.method, request.url, headers=headers, content=request.body or None
        )
        answer = await opened.send(built, stream=True)
        try:
            body = Body(answer.headers.get("content-encoding", ""), request.most, host)
            whole = await body.read(answer.aiter_raw())
        finally:
            await answer.aclose()
        return HttpAnswer(status=answer.status_code, headers=dict(answer.headers), body=whole)

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._of is None or self._of[0] is not loop:
            # No environment: a proxy that it names would resolve names in our place, past the guard.
            client = httpx.AsyncClient(
                transport=_Guarded(self._hosts, self._closed),
                trust_env=False,
                follow_redirects=False,
                timeout=httpx.Timeout(None, connect=_CONNECT_MS / 1_000),
            )
            self._of = (loop, client)
        return self._of[1]


@cache
def _tls() -> ssl.SSLContext:
    """Create the TLS context once: reading the certificates of all authorities takes its time."""
    return httpx.create_ssl_context()


class _Guarded(httpx.AsyncHTTPTransport):
    """httpx's own transport, whose connections are made by the guard."""

    def __init__(self, hosts: AllowedHosts, closed: frozenset[str]) -> None:
        super().__init__(verify=_tls())
        # httpx has no parameter for it, httpcore has: the pool is the one that httpx would make.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=_tls(),
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=_IDLE_S,
            network_backend=_Guard(hosts, closed),
        )


class _Guard(httpcore.AsyncNetworkBackend):
    """Guard that resolves a name, checks its addresses, and connects to one."""

    def __init__(self, hosts: AllowedHosts, closed: frozenset[str]) -> None:
        self._hosts = hosts
        self._closed = closed
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's own interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failed: Exception = httpcore.ConnectError(f"no address is known for {host}")
        addresses = await _resolve(host, port)
        for address in addresses:  # all of them first: which one answers is not the name's to choose
            check_address(address, port, self._hosts, self._closed)
        for address in addresses:
            try:
                return await self._inner.connect_tcp(
                    str(address), port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


async def _resolve(host: str, port: int) -> list[IPv4Address | IPv6Address]:
    try:
        return [ip_address(host.strip("[]"))]
    except ValueError:
        pass
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(f"the name cannot be resolved: {error}") from error
    addresses = dict.fromkeys(str(place[0]).partition("%")[0] for *_, place in found)
    return [ip_address(address) for address in addresses]


def check_address(
    address: IPv4Address | IPv6Address, port: int, hosts: AllowedHosts, closed: Collection[str] = ()
) -> None:
    """Raise `AddressRefused` for an address that no workflow may reach, in any notation."""
    meant: IPv4Address | IPv6Address = address
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            meant = address.ipv4_mapped
        elif address.sixtofour is not None:
            meant = address.sixtofour
        elif address in _NAT64:
            meant = IPv4Address(int(address) & 0xFFFFFFFF)
    if any(meant in net for net in _NEVER if net.version == meant.version):
        raise AddressRefused("its address is one of those by which machines speak to themselves")
    if f"{meant}:{port}" in closed:
        raise AddressRefused("its address belongs to the runtime of this function")
    if not _is_public(meant) and not hosts.has(meant, port):
        raise AddressRefused(
            "its address is not public, and `HttpHosts` of the deployment does not name the address"
        )


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address) and (address.is_site_local or address in _NAT64_LOCAL):
        return False
    return address.is_global and not address.is_reserved


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _host(url: str) -> str:
    """Return the host for a message, and nothing of the address that may be a secret."""
    try:
        return httpx.URL(url).host or "an address without a host"
    except (httpx.InvalidURL, TypeError):
        return "an address that is none"
