"""What the client of models takes besides the engine: CPU of one request by the `openai` client, over HTTP on loopback.

The provider answers in a thread of its own; only the thread of the client is measured.
"""

from __future__ import annotations

import asyncio
import json
import time
from http.server import BaseHTTPRequestHandler

from baton.ports.models import ModelRequest
from tests.kit.payments import serving
from tests.kit.provider import KEY, models

_PARTS = (
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "A table"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"content": " for four."}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}},
)
_STREAM = b"".join(b"data: %s\n\n" % json.dumps(part).encode() for part in _PARTS) + b"data: [DONE]\n\n"


class _Provider(BaseHTTPRequestHandler):
    """Gives the same short answer to each request."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(_STREAM)))
        self.end_headers()
        self.wfile.write(_STREAM)

    def log_message(self, format: str, *args: object) -> None:
        """It says nothing."""


def cpu_ms(requests: int) -> float:
    """Milliseconds of CPU of one request, the first of the process aside."""

    async def ask(url: str) -> float:
        adapter = models(f"openai={url}/v1", lambda _: KEY)
        request = ModelRequest(model="gpt-5-mini", messages=({"role": "user", "content": "hello"},))
        try:
            await adapter.answer(request)
            before = time.thread_time()
            for _ in range(requests):
                await adapter.answer(request)
            return (time.thread_time() - before) * 1_000 / requests
        finally:
            await adapter.aclose()

    with serving(_Provider) as url:
        return asyncio.run(ask(url))
