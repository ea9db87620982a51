"""Processes, servers and background tasks of a local run. None of them outlives the run."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol
from urllib.parse import urlsplit

import uvicorn

from baton.errors import BatonError


class LocalRunError(BatonError):
    """Error of a local run that cannot start or continue. The message names the place and the correction."""


class TemplateProblem(LocalRunError):
    """Error for a template that is wrong or uses something that the local run does not support."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"template: {where}: {what}")
        self.where = where


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ` (nearest: X)` for the most similar existing name, or the names if there are few."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f" (nearest: {close[0]})"
    if names and len(names) <= 12:
        return f" (known: {', '.join(names)})"
    return ""


def tail(path: Path, lines: int = 25) -> str:
    """Return the last lines of a log file, indented, for an error message. Empty without the file."""
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
    # awslambdaric ends the lines of a traceback with \r and indents with no-break spaces.
    plain = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u00a0", " ")
    return "\n".join("    " + line for line in plain.splitlines()[-lines:])


Outcome = Literal["ok", "error", "timeout", "killed"]
Trigger = Literal["sqs", "stream", "event", "invoke", "http", "schedule"]


@dataclass(frozen=True)
class ProcessInfo:
    """A process of a function. `cold`: no invocation has ended. `request_id`: empty while idle."""

    pid: int
    busy: bool
    request_id: str
    busy_since: int | None
    cold: bool


@dataclass(frozen=True)
class InvocationRecord:
    """An ended invocation.

    `outcome`: `error` is an exception of the handler, a failed import or an exit of its own; `timeout` was
    killed at the deadline; `killed` ended by another signal. `error` is the function's error document (None
    when ok). `init_ms` is 0 unless the invocation was `cold`.
    """

    function: str
    request_id: str
    trigger: Trigger
    event: Any
    started: int
    ended: int
    cold: bool
    outcome: Outcome
    duration_ms: float
    init_ms: float
    pid: int
    error: Any = None


log = logging.getLogger("baton.local")


class Tasks:
    """Running tasks, kept alive until they end. `what` names them in the log if one fails."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start work whose result is not awaited."""
        _ = self.add(work)

    def add(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start work whose result the caller may await."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("%s: broke", self._what, exc_info=task.exception())

    def cancel(self) -> None:
        for task in list(self._running):
            task.cancel()

    async def cancelled(self) -> None:
        """Cancel all tasks and wait for their end."""
        running = list(self._running)
        self.cancel()
        await wait_for_all(running)


async def wait_for_all(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Wait until all tasks have ended, with or without errors."""
    await asyncio.gather(*tasks, return_exceptions=True)


_GUARD = str(Path(__file__).with_name("guard.py"))
_LIFELINE = str(Path(__file__).with_name("lifeline.py"))


class ChildProcess(Protocol):
    """A child of this process, or of its fork server."""

    pid: int

    async def wait(self) -> int:
        """Wait for the end and return the exit status."""


@dataclass(frozen=True)
class Shared:
    """Parts that all functions of a run share: a part of PYTHONPATH, and modules that are imported once.

    Code of the app layer is not among them, because it changes during a run, and the runtime is not, because
    its library reads the environment.
    """

    path: str
    modules: tuple[str, ...]


class _Forked:
    """Process of a fork server. `started` has its process id, or 0 if it ended before it had one."""

    def __init__(self) -> None:
        self.pid = 0
        self.started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def start(self, pid: int) -> None:
        self.pid = pid
        if not self.started.done():
            self.started.set_result(pid)

    def end(self, status: int) -> None:
        self.start(self.pid)
        if not self._ended.done():
            self._ended.set_result(status)


class _ForkServer:
    """Client of the fork server in lifeline.py. When the server ends, its processes have ended."""

    def __init__(self, process: asyncio.subprocess.Process, ended: Callable[[int], None]) -> None:
        self.process, self._ended = process, ended
        self._numbers = count(1)
        self._forked: dict[int, _Forked] = {}
        self.serves = True
        self.reading = asyncio.create_task(self._read())

    async def fork(self, request: Mapping[str, Any]) -> _Forked:
        assert self.process.stdin is not None
        number, forked = next(self._numbers), _Forked()
        self._forked[number] = forked
        self.process.stdin.write(json.dumps({**request, "number": number}).encode() + b"\n")
        if not await forked.started:
            raise LocalRunError(f"{request['name']}: its fork server ended")
        return forked

    def retire(self) -> None:
        """End the server after the last of its processes."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.serves = False

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            word, number, value = line.decode().split()
            if word == "started":
                self._forked[int(number)].start(int(value))
            else:
                self._forked.pop(int(number)).end(int(value))
        self.serves = False
        for forked in self._forked.values():
            forked.end(-signal.SIGKILL)
        await self.process.wait()
        self._ended(self.process.pid)


class Children:
    """All child processes of one run. `open` comes first, `close` last."""

    def __init__(self) -> None:
        self._guard: asyncio.subprocess.Process | None = None
        self._servers: list[_ForkServer] = []
        self._starting = asyncio.Lock()

    async def open(self) -> None:
        self._guard = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            _GUARD,
            "baton-guard",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C at the terminal is not meant for it
        )

    async def start(
        self,
        module: str,
        *arguments: str,
        name: str,
        environment: Mapping[str, str],
        folder: Path,
        log: BinaryIO,
    ) -> asyncio.subprocess.Process:
        """Start `python -m module arguments` in `folder`, with exactly this environment. `name` is shown by
        `ps`.

        On Linux the child dies with the *thread* that called this (prctl(2), PR_SET_PDEATHSIG): that is the
        event loop's, and must never be one of an executor.
        """
        return await self._spawn(
            module, *arguments, name=name, environment=environment, folder=folder, log=log
        )

    async def _spawn(
        self,
        *arguments: str,
        name: str,
        environment: Mapping[str, str],
        folder: Path,
        log: BinaryIO,
        pipe: int | None = None,
    ) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            _LIFELINE,
            name,
            str(os.getpid()),
            *arguments,
            env=dict(environment),
            cwd=folder,
            stdin=pipe or asyncio.subprocess.DEVNULL,
            stdout=pipe or log,
            stderr=log,
            start_new_session=True,
        )
        self._tell(f"+{process.pid}")
        return process

    async def fork(
        self,
        *arguments: str,
        name: str,
        environment: Mapping[str, str],
        folder: Path,
        log: BinaryIO,
        shared: Shared,
    ) -> ChildProcess:
        """Start `python -m awslambdaric arguments` like `start`, from a process that has imported the engine.

        Only Linux forks: elsewhere libraries start threads when they are imported.
        """
        if sys.platform != "linux":
            return await self.start(
                "awslambdaric", *arguments, name=name, environment=environment, folder=folder, log=log
            )
        async with self._starting:
            if not (self._servers and self._servers[-1].serves):
                self._servers.append(await self._start_server(environment, shared, folder, log))
            server = self._servers[-1]
        request = {
            "name": name,
            "arguments": arguments,
            "environment": dict(environment),
            "folder": str(folder),
            "log": os.fspath(log.name),
        }
        forked = await server.fork(request)
        self._tell(f"+{forked.pid}")
        return forked

    async def _start_server(
        self, environment: Mapping[str, str], shared: Shared, folder: Path, log: BinaryIO
    ) -> _ForkServer:
        named = {name: environment[name] for name in ("PATH", "LANG", "TZ") if name in environment}
        process = await self._spawn(
            "fork",
            *shared.modules,
            name="baton-functions",
            environment=named | {"PYTHONPATH": shared.path},
            folder=folder,
            log=log,
            pipe=asyncio.subprocess.PIPE,
        )
        return _ForkServer(process, self.ended)

    def renew(self) -> None:
        """Let processes of functions that start from now on import everything anew."""
        for server in self._servers:
            server.retire()

    async def end(self, process: asyncio.subprocess.Process, patience_s: float) -> None:
        """Send SIGTERM to a child, and SIGKILL if it has not ended after `patience_s`."""
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), patience_s)
        self.kill(process.pid)

    def kill(self, pid: int) -> None:
        """Send SIGKILL to a child and all it started (it leads their group), if it is there."""
        # macOS answers EPERM, not ESRCH, for a group of which only a zombie is left.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)

    def ended(self, pid: int) -> None:
        """Handle the end of a child: end the processes that it started, and forget it."""
        self.kill(pid)
        self._tell(f"-{pid}")

    async def close(self) -> None:
        """Kill the remaining processes, and wait for the guard and the fork servers only."""
        for server in self._servers:
            self.kill(server.process.pid)
            await server.reading
        if self._guard is not None:
            if self._guard.stdin is not None:
                self._guard.stdin.close()
            await self._guard.wait()

    def _tell(self, line: str) -> None:
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.write(f"{line}\n".encode())


def peak_memory_mb(pid: int) -> int:
    """Return the peak memory of the process in MB. 0 if the system does not report it."""
    try:
        with Path(f"/proc/{pid}/status").open(encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) // 1024
    except OSError:
        pass
    return 0


def bind(port: int, what: str) -> socket.socket:
    """Return a listening loopback socket; port 0: a free one. Raises `LocalRunError` if it is taken."""
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
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://{host}:{port}"


class _Quiet(uvicorn.Server):
    """Server that does not handle signals: the program around it decides about the end of the run."""

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


_HERE = frozenset({"127.0.0.1", "localhost", "::1"})
# Containers of `sam local` reach this machine by this name, which no web page can give an address.
_CONTAINERS = "host.docker.internal"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_SIMPLE = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")

Scope = MutableMapping[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]


def request_refusal(
    method: str, headers: Iterable[tuple[bytes, bytes]], port: int, *, programs_only: bool
) -> str:
    """Return the reason why a request is refused, empty for an accepted one.

    With programs_only, the server has no pages for browsers, so every request of a page is refused. Without
    it, requests of pages on this machine are accepted, and read requests of other pages.
    """
    said = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
    if not _is_here(f"//{said.get('host', '')}", port):
        return "the Host is not the address of this server: another name may lead here by a page's own DNS"
    origin, site = said.get("origin", ""), said.get("sec-fetch-site", "none")
    if programs_only:
        return "no web page may call this server" if origin or site not in ("none", "same-origin") else ""
    if method in _SAFE:
        return ""
    is_strange = origin not in ("", "null") and not _is_here(origin)
    if is_strange or site == "cross-site" or (origin == "null" and site == "none"):
        return "the request comes from a page of another site"
    return ""


def is_simple(content_type: str) -> bool:
    """Return true if a page of any site may send this type without a preflight request."""
    return content_type.partition(";")[0].strip().lower() in _SIMPLE


def _is_here(address: str, port: int = 0) -> bool:
    try:
        parts = urlsplit(address)
        name, found = parts.hostname or "", parts.port or 80
    except ValueError:
        return False
    is_name = name in _HERE or name.endswith(".localhost") or name == _CONTAINERS
    # A container may reach the port by another one.
    return is_name and (not port or found == port or name == _CONTAINERS)


def guard_application(application: Application, port: int, *, programs_only: bool) -> Application:
    """Return the application behind the check of callers, without cross-origin headers of its own."""

    async def guard(scope: Scope, receive: Any, send: Any) -> None:
        why = ""
        if scope["type"] in ("http", "websocket"):
            method = scope.get("method", "GET")
            why = request_refusal(method, scope["headers"], port, programs_only=programs_only)
        if not why:
            await application(scope, receive, _quiet(send) if programs_only else send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            body = f'{{"message": "refused: {why}"}}'.encode()
            kind = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": 403, "headers": kind})
            await send({"type": "http.response.body", "body": body})

    return guard


def _quiet(send: Any) -> Any:
    """Return a `send` that removes the headers that let pages of other sites read an answer."""

    async def passed(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = message.get("headers", ())
            kept = [one for one in headers if not one[0].lower().startswith(b"access-control-")]
            message = {**message, "headers": kept}
        await send(message)

    return passed
