"""Lambda's Runtime API (2018-06-01), one listener per process, so that the port says who is calling.

Just enough HTTP/1.1 for its two clients, which are inside awslambdaric (libcurl and http.client): both
send Content-Length. What is handed out, and what becomes of answers, is decided in sandbox.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

# Lambda: 6 MB for the answer of a synchronous invocation.
MAX_RESPONSE_BYTES = 6 * 1024 * 1024 + 100
_PREFIX = "/2018-06-01/runtime"
_HEAD_LIMIT = 4 * 1024 * 1024  # awslambdaric sends up to 1 MB of traceback as a header


@dataclass(frozen=True)
class Work:
    """One invocation as the runtime sees it: headers for its context, and the event."""

    headers: Mapping[str, str]
    event: bytes


class Runtime(Protocol):
    """The process behind one listener. The last three return False for a request that is not theirs."""

    async def next(self) -> Work: ...

    def answered(self, request_id: str, body: bytes) -> bool: ...

    def failed(self, request_id: str, body: bytes) -> bool: ...

    def init_failed(self, body: bytes) -> None: ...


async def listen(runtime: Runtime) -> tuple[asyncio.Server, str]:
    """The listener, and its address for AWS_LAMBDA_RUNTIME_API. asyncio switches Nagle off by itself."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _serve(runtime, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the process ended, or the run does: sandbox.py notices by itself
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=_HEAD_LIMIT)
    host, port = server.sockets[0].getsockname()[:2]
    return server, f"{host}:{port}"


async def _serve(runtime: Runtime, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        status, answer_headers, answer = await _answer(runtime, method, path, body)
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(answer)}", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in answer_headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode("utf-8") + answer)
        await writer.drain()


async def _answer(
    runtime: Runtime, method: str, path: str, body: bytes
) -> tuple[str, Mapping[str, str], bytes]:
    parts = path.removeprefix(_PREFIX).strip("/").split("/")
    if method == "GET" and parts == ["invocation", "next"]:
        work = await runtime.next()
        return "200 OK", work.headers, work.event
    if method == "POST" and parts == ["init", "error"]:
        runtime.init_failed(body)
        return "202 Accepted", {}, b'{"status":"OK"}'
    if method == "POST" and len(parts) == 3 and parts[0] == "invocation":
        request_id, kind = parts[1], parts[2]
        if kind == "response" and len(body) > MAX_RESPONSE_BYTES:
            runtime.failed(request_id, _too_large(len(body)))
            return "413 Payload Too Large", {}, b'{"errorType":"RequestEntityTooLarge"}'
        known = (runtime.answered if kind == "response" else runtime.failed)(request_id, body)
        if known:
            return "202 Accepted", {}, b'{"status":"OK"}'
        return "400 Bad Request", {}, b'{"errorType":"InvalidRequestID"}'
    return "404 Not Found", {}, b"{}"


def _too_large(size: int) -> bytes:
    message = f"Response payload size ({size} bytes) exceeded maximum allowed payload size (6291556 bytes)."
    return json.dumps({"errorType": "Function.ResponseSizeTooLarge", "errorMessage": message}).encode()
