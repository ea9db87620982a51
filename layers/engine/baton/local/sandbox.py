"""One process of one function, and Lambda's Runtime API (2018-06-01) that delivers its invocations."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol

from baton.local.processes import (
    ChildProcess,
    Children,
    InvocationRecord,
    Outcome,
    ProcessInfo,
    Shared,
    Trigger,
    peak_memory_mb,
)
from baton.local.stack import Function

# Lambda: 6 MB for the answer of a synchronous invocation.
MAX_RESPONSE_BYTES = 6 * 1024 * 1024 + 100
_PREFIX = "/2018-06-01/runtime"
_HEAD_LIMIT = 4 * 1024 * 1024  # awslambdaric sends up to 1 MB of traceback as a header


@dataclass(frozen=True)
class NextInvocation:
    """One invocation as the runtime receives it: headers for its context, and the event."""

    headers: Mapping[str, str]
    event: bytes


class Runtime(Protocol):
    """Process behind one listener. The last three methods return False for another's request."""

    async def next(self) -> NextInvocation: ...

    def answered(self, request_id: str, body: bytes) -> bool: ...

    def failed(self, request_id: str, body: bytes) -> bool: ...

    def init_failed(self, body: bytes) -> None: ...


async def listen(runtime: Runtime) -> tuple[asyncio.Server, str]:
    """Return the listener, and its address for AWS_LAMBDA_RUNTIME_API. Nagle's algorithm is off."""

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


# Lambda allows 10 s before it starts over. This machine may be slower, and there is no second chance here.
INIT_LIMIT_S = 30.0


@dataclass(frozen=True)
class InvocationResult:
    """Result of an invocation. `payload` is the answer, or the error document if `outcome` is not ok."""

    request_id: str
    outcome: Outcome
    payload: bytes

    @property
    def ok(self) -> bool:
        """True if the invocation succeeded."""
        return self.outcome == "ok"

    def document(self) -> Any:
        """Return the parsed payload, or None if it is not JSON: awslambdaric lets bytes pass."""
        try:
            return json.loads(self.payload)
        except ValueError:
            return None


@dataclass
class LocalInvocation:
    request_id: str
    trigger: Trigger
    event: bytes
    done: asyncio.Future[InvocationResult]
    started: float = field(default=0.0)


class Sandbox:
    """A process of a function. `idle` and `ended` are called on every change that matters to the pool."""

    def __init__(
        self,
        function: Function,
        log: BinaryIO,
        children: Children,
        *,
        name: str,
        shared: Shared,
        idle: Callable[[Sandbox], None],
        ended: Callable[[Sandbox], None],
        record: Callable[[InvocationRecord], None],
    ) -> None:
        self.function = function
        self.ready = asyncio.Event()
        self.gone = asyncio.Event()
        self.init_error: bytes = b""
        self.current: LocalInvocation | None = None
        self.waiting = False
        self.retired = False  # it takes no further invocation
        self._name, self._shared = name, shared
        self._log, self._children = log, children
        self._idle, self._ended, self._record = idle, ended, record
        self._next: asyncio.Future[NextInvocation] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timed_out = False
        self._served = 0
        self._born = time.monotonic()
        self._init_ms = 0.0
        self._process: ChildProcess | None = None
        self._server: asyncio.Server | None = None

    # ---- life

    async def run(self, environment: Mapping[str, str]) -> None:
        """Start the process and return when it has ended."""
        try:
            self._server, address = await listen(self)
            self._process = await self._children.fork(
                self.function.handler,
                name=self._name,
                environment={**environment, "AWS_LAMBDA_RUNTIME_API": address},
                folder=self.function.code,
                log=self._log,
                shared=self._shared,
            )
            self._start_timer(INIT_LIMIT_S)
            status = await self._process.wait()
            self._on_exit(status)
        finally:
            if self._process is not None:
                self._children.ended(self._process.pid)
            self._stop_timer()
            if self._server is not None:
                self._server.close()
            if self._next is not None:
                self._next.cancel()  # or the listener would wait for ever to answer a process that is gone
            self.gone.set()
            self._ended(self)

    def kill(self) -> None:
        """Send SIGKILL to the process and all that it started."""
        if self._process is not None:
            self._children.kill(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    def info(self) -> ProcessInfo:
        work = self.current
        return ProcessInfo(
            pid=self.pid,
            busy=work is not None,
            request_id=work.request_id if work else "",
            busy_since=int(work.started * 1000) if work else None,
            cold=self._served == 0,
        )

    # ---- handing out work

    def assign(self, invocation: LocalInvocation) -> None:
        """Give the idle process its next invocation, whose time runs from here."""
        assert self._next is not None, "the process has not asked"
        assert self.current is None, "the process is busy"
        self.current, self.waiting = invocation, False
        invocation.started = time.time()
        deadline_ms = int((invocation.started + self.function.timeout_s) * 1000)
        self._start_timer(self.function.timeout_s)
        self._write(f"START RequestId: {invocation.request_id} Version: $LATEST\n")
        waiter, self._next = self._next, None
        headers = {
            "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
            "Lambda-Runtime-Deadline-Ms": str(deadline_ms),
            "Lambda-Runtime-Invoked-Function-Arn": self.function.arn,
            "Lambda-Runtime-Trace-Id": _trace_id(invocation),
        }
        waiter.set_result(NextInvocation(headers, invocation.event))

    # ---- what the runtime reports (the Runtime protocol of sandbox.py)

    async def next(self) -> NextInvocation:
        if not self.ready.is_set():
            self._init_ms = (time.monotonic() - self._born) * 1000
            self._stop_timer()
            self.ready.set()
        self._next = asyncio.get_running_loop().create_future()
        self.waiting = True
        waiter = self._next
        self._idle(self)
        return await waiter

    def answered(self, request_id: str, body: bytes) -> bool:
        return self._settle(request_id, "ok", body)

    def failed(self, request_id: str, body: bytes) -> bool:
        return self._settle(request_id, "error", body)

    def init_failed(self, body: bytes) -> None:
        self.init_error = body

    # ---- endings

    def refuse(self, invocation: LocalInvocation) -> None:
        """Fail an invocation with the reason why this process did not start."""
        self.current = invocation
        invocation.started = time.time()
        self._settle(invocation.request_id, "error", self.init_error)

    def _settle(self, request_id: str, outcome: Outcome, payload: bytes) -> bool:
        work = self.current
        if work is None or work.request_id != request_id:
            return False
        self._stop_timer()
        ended, cold = time.time(), self._served == 0
        self.current = None
        self._served += 1
        duration_ms = (ended - work.started) * 1000
        self._report(work, duration_ms, outcome, cold)
        result = InvocationResult(request_id, outcome, payload)
        self._record(
            InvocationRecord(
                function=self.function.logical_id,
                request_id=request_id,
                trigger=work.trigger,
                event=json.loads(work.event),
                started=int(work.started * 1000),
                ended=int(ended * 1000),
                cold=cold,
                outcome=outcome,
                duration_ms=duration_ms,
                init_ms=self._init_ms if cold else 0.0,
                pid=self.pid,
                error=None if outcome == "ok" else result.document(),
            )
        )
        if not work.done.done():
            work.done.set_result(result)
        return True

    def _on_exit(self, status: int) -> None:
        self._stop_timer()
        self.waiting = False
        if not self.ready.is_set() and not self.init_error:
            self.init_error = _error("Runtime.ExitError", self._how_it_ended(status))
        work = self.current
        if work is None:
            return
        message = f"RequestId: {work.request_id} Error: {self._how_it_ended(status)}"
        outcome: Outcome = "timeout" if self._timed_out else "killed" if status < 0 else "error"
        error = "Sandbox.Timedout" if self._timed_out else "Runtime.ExitError"
        self._write(f"{message}\n")
        self._settle(work.request_id, outcome, _error(error, message))

    def _how_it_ended(self, status: int) -> str:
        if self._timed_out and self.current is None:
            return f"Initialisation took longer than {INIT_LIMIT_S:.0f} seconds"
        if self._timed_out:
            return f"Task timed out after {self.function.timeout_s:.2f} seconds"
        if status < 0:
            return f"Runtime exited with error: signal: {signal.Signals(-status).name.removeprefix('SIG').lower()}"
        return (
            f"Runtime exited with error: exit status {status}"
            if status
            else "Runtime exited without providing a reason"
        )

    # ---- the clock, and the log

    def _start_timer(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._on_timer)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timed_out = True
        self.kill()

    def _write(self, line: str) -> None:
        self._log.write(line.encode())

    def _report(self, work: LocalInvocation, duration_ms: float, outcome: Outcome, cold: bool) -> None:
        memory = self.function.memory_mb
        fields = [
            f"REPORT RequestId: {work.request_id}",
            f"Duration: {duration_ms:.2f} ms",
            f"Billed Duration: {int(duration_ms) + 1} ms",
            f"Memory Size: {memory} MB",
            f"Max Memory Used: {peak_memory_mb(self.pid) or memory} MB",
        ]
        if cold:
            fields.append(f"Init Duration: {self._init_ms:.2f} ms")
        if outcome != "ok":
            fields.append(f"Status: {outcome}")
        self._write(f"END RequestId: {work.request_id}\n" + "\t".join(fields) + "\n")


def _error(kind: str, message: str) -> bytes:
    return json.dumps({"errorType": kind, "errorMessage": message}).encode()


def _trace_id(invocation: LocalInvocation) -> str:
    digits = invocation.request_id.replace("-", "")
    return f"Root=1-{int(invocation.started):08x}-{digits[:24]};Parent={digits[-16:]};Sampled=0"
