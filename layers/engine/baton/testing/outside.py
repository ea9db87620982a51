"""What the standard tools reach in a test of an application: stores in memory, mail that is not sent, real HTTP.

A test that wants no HTTP gives a stand-in for `std.http`; one that does starts a server on loopback.
"""

from __future__ import annotations

from baton.adapters.http_client import LazyHttpClient
from baton.adapters.memory.outside import MemoryEntities, MemoryMailer, MemoryObjects
from baton.ports import Clock
from baton.ports.outside import HttpAnswer, HttpClient, HttpRequest
from baton.runtime.invocation.store_retrier import inline
from baton.tools.standard import Services

# Any host, and whatever a test starts on its own machine.
HOSTS = ("*", "127.0.0.0/8", "[::1]")
SIGNING_KEY = "the-key-of-every-test-and-of-nothing-else"
MAIL_FROM = "tester@baton.example"


def services(clock: Clock) -> Services:
    """For one run."""
    return Services(
        http=_Http(LazyHttpClient(HOSTS)),
        entities=MemoryEntities(),
        objects=MemoryObjects(),
        mailer=MemoryMailer(),
        clock=clock,
        offload=inline,
        mail_from=MAIL_FROM,
        signing_key=SIGNING_KEY,
    )


class _Http:
    """Keeps no idle connection: as long as a socket is open, time is not virtual."""

    def __init__(self, inner: HttpClient) -> None:
        self._inner = inner
        self._busy = 0

    async def send(self, request: HttpRequest) -> HttpAnswer:
        self._busy += 1
        try:
            return await self._inner.send(request)
        finally:
            self._busy -= 1
            if not self._busy:
                await self.aclose()

    async def aclose(self) -> None:
        await self._inner.aclose()
