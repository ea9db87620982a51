"""HTTP servers of the local run: bound before anything else, so that their addresses can be handed out.

What they serve is given to them as an ASGI application.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Generator
from typing import Any

import uvicorn

from baton.local.processes.problems import LocalRunError


def bind(port: int, what: str) -> socket.socket:
    """A loopback socket, listening from now on; port 0 is any free one. Raises `LocalRunError` if it is taken."""
    # asyncio switches Nagle's algorithm off only for what it is told is TCP; with it each answer takes 40 ms more.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise LocalRunError(
            f"{what}: port {port} of 127.0.0.1 cannot be used ({error.strerror}); "
            "choose another one, or 0 for any that is free"
        ) from error
    listener.setblocking(False)
    return listener


def address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{host}:{port}"


class _Quiet(uvicorn.Server):
    """Leaves the signals alone: who ends the run is decided by the program around it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


class HttpServer:
    def __init__(self, listener: socket.socket, application: Any) -> None:
        config = uvicorn.Config(
            application,
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
            ws="none",
        )
        self._listener = listener
        self._server = _Quiet(config)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        while not self._server.started and not self._task.done():  # noqa: ASYNC110  # uvicorn sets a flag
            await asyncio.sleep(0.005)
        if self._task.done():
            await self._task

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await asyncio.wait([self._task], timeout=3)
            self._task.cancel()
        self._listener.close()
