"""Standard tools run as a worker runs them, against real counterparts: what the tests of this room share.

No assertions here.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import lru_cache
from http.server import BaseHTTPRequestHandler
from typing import Any, cast

import pytest

from baton.adapters.clock import SystemClock
from baton.adapters.http_client import LazyHttpClient
from baton.ports import StepContext, StepFailure
from baton.ports.outside import Entities, HttpClient, Mailer, Objects
from baton.runtime.invocation.context import Threads
from baton.testing.outside import HOSTS, SIGNING_KEY
from baton.tools.perform import ToolPerformer
from baton.tools.standard import Services, standard_tools

THREADS = Threads(4)


HTTP = LazyHttpClient(HOSTS)


def services(**parts: Any) -> Services:
    """With HTTP; of the others what is given."""
    given: dict[str, Any] = {
        "http": HTTP,
        "entities": cast("Entities", None),
        "objects": cast("Objects", None),
        "mailer": cast("Mailer", None),
        "clock": SystemClock(),
        "offload": THREADS,
        "most_bytes": 100_000,
        "signing_key": SIGNING_KEY,
    }
    return Services(**given | parts)


def context(key: str = "k1", seconds: float = 20, **changes: Any) -> StepContext:
    """Of a step with so much time left."""
    fields: dict[str, Any] = {"saga": "s1", "tenant": "acme", "user": "ada", "node": "n"}
    deadline = SystemClock().now() + round(seconds * 1_000)
    return StepContext(**fields | {"idempotency_key": key, "deadline_ms": deadline} | changes)


@lru_cache(maxsize=8)
def performer(of: Services) -> ToolPerformer:
    """Declaring all the tools takes longer than to run one."""
    return ToolPerformer(standard_tools(of))


def perform(tool: str, of: Services, at: StepContext | None = None, **arguments: Any) -> Any:
    """The tool's result, as it gets into the log."""

    async def limited() -> Any:
        try:
            return await asyncio.wait_for(performer(of).perform(tool, arguments, at or context()), 30)
        finally:
            await of.http.aclose()

    return asyncio.run(limited())


def failure(tool: str, of: Services, at: StepContext | None = None, **arguments: Any) -> StepFailure:
    with pytest.raises(StepFailure) as caught:
        perform(tool, of, at, **arguments)
    return caught.value


class Crash(BaseException):
    """The process ends here."""


class CrashingClient:
    """Dies at one exchange: before it is sent, or when it was answered and the answer is unread."""

    def __init__(self, inner: HttpClient, at: int, *, after: bool) -> None:
        self._inner, self._at, self._after, self._count = inner, at, after, 0

    @property
    def died(self) -> bool:
        return self._count > self._at

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def send(self, request: Any) -> Any:
        self._count += 1
        if self._count - 1 != self._at:
            return await self._inner.send(request)
        if self._after:
            await self._inner.send(request)
        raise Crash


class Outside:
    """A server whose pages are functions of the request; it remembers what it was sent."""

    def __init__(self) -> None:
        self.url = ""
        self.pages: dict[str, Callable[[Any], None]] = {}
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.over = threading.Event()

    def page(
        self, path: str, status: int = 200, body: bytes = b"", kind: str = "application/json", **headers: str
    ) -> str:
        """Its address."""

        def give(at: BaseHTTPRequestHandler) -> None:
            at.send_response(status)
            for name, value in ({"content-type": kind, "content-length": str(len(body))} | headers).items():
                at.send_header(name.replace("_", "-"), value)
            at.end_headers()
            at.wfile.write(body)

        self.pages[path] = give
        return self.url + path

    @property
    def headers(self) -> dict[str, str]:
        """Those of the last request."""
        return self.seen[-1][2]
