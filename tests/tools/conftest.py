"""A server on loopback for the tests of tools that speak HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from tests.kit.payments import serving
from tests.tools.outside import Outside


@pytest.fixture(scope="module")
def server() -> Iterator[Outside]:
    outside = Outside()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            named = {name.lower(): value for name, value in self.headers.items()}
            outside.seen.append((self.command, self.path, named, body))
            outside.pages[self.path.partition("?")[0]](self)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = answer  # noqa: N815  # http.server's names

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with serving(Handler) as outside.url:
        yield outside
        outside.over.set()
