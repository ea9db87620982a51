"""The carrier's MCP server, of the standard library alone. `python -m examples.support_desk.parcels` serves it
at the address in `mcp.lock.json`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

PORT: Final = 18790
TRACK: Final[dict[str, Any]] = {
    "name": "track",
    "description": "Say where the parcel of an order is.",
    "inputSchema": {
        "type": "object",
        "properties": {"order": {"type": "integer"}},
        "required": ["order"],
        "additionalProperties": False,
    },
    "outputSchema": {
        "type": "object",
        "properties": {"status": {"type": "string"}},
        "required": ["status"],
    },
}
FOUND: Final = {"status": "delivered on Monday"}


class Carrier(BaseHTTPRequestHandler):
    """Answers the messages of MCP clients, without sessions and with JSON."""

    def do_POST(self) -> None:  # the name is http.server's
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = {
            "jsonrpc": "2.0",
            "id": asked.get("id"),
            **_answer(asked["method"], asked.get("params") or {}),
        }
        body = json.dumps(said).encode() if "id" in asked else b""
        self.send_response(200 if body else 202)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write no line for each request."""


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "parcels", "version": "1"}}
        return {"result": {"protocolVersion": "2025-11-25", **about}}
    if method == "tools/list":
        return {"result": {"tools": [TRACK]}}
    if method == "tools/call" and params.get("name") == "track":
        return {"result": {"content": [], "structuredContent": FOUND}}
    return {"error": {"code": -32601, "message": "there is no such method or tool"}}


class _Server(ThreadingHTTPServer):
    allow_reuse_port = True  # a second run at the same time has a server of its own
    daemon_threads = True


@contextmanager
def serving() -> Iterator[None]:
    """Serve the carrier at the address of `mcp.lock.json`."""
    with _Server(("127.0.0.1", PORT), Carrier) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


if __name__ == "__main__":
    with serving():
        threading.Event().wait()
