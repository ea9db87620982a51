"""The worker's side of helper processes: how many there are, what they are asked, and that none is left.

A call has a helper to itself. Cancelled, whatever for, it kills the helper and waits for its death before it
lets go: what was said to be over does nothing any more.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final

import msgspec

from baton.core.effects.rows import MAX_BYTES, MAX_PER_STEP, Row
from baton.core.failures.evidence import Evidence
from baton.core.limits import Limits
from baton.core.models.usage import Usage
from baton.core.money import Assumed
from baton.ports import HoldRequest, NoRoom, StepContext, StepFailure
from baton.tools.output import step_fields
from baton.tools.perform import Places, RaisedElsewhere, not_json, report, tenant_and_saga
from baton.tools.processes import wire

# A helper that only waits has a few MB of its own; what a tool adds, such as a client of boto3, it has as often.
MAX_HELPERS: Final = 16
# What a step pays at most of a helper's start, out of its own time. A fork takes a few milliseconds.
PATIENCE_S: Final = 0.2
# From SIGKILL to the end it takes a millisecond, unless the kernel is in the middle of something.
DEATH_S: Final = 2.0
_CHUNK: Final = 1 << 18
_ROWS: Final = MAX_PER_STEP * MAX_BYTES * 8  # as JSON, with room for what it escapes

_log = logging.getLogger("baton.tools")


class Helpers:
    """The helper processes of one worker, which begin with the first call. `close` ends them early.

    app: the module whose import declares the tools. most: how many calls run at a time. variables: of the
    environment, for each call anew.
    """

    def __init__(
        self,
        app: str,
        *,
        most: int = MAX_HELPERS,
        result_bytes: int = Limits.result_bytes,
        variables: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._app = app
        self._most = most
        self._places = Places(most)
        self._result_bytes = result_bytes
        self._variables = variables
        self._frame_bytes = result_bytes + _ROWS
        self._forker: _Forker | None = None
        self._starting: list[_Helper] = []
        self._idle: list[_Helper] = []
        self._count = 0  # of all, whatever they are doing

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        """Return the result as JSON types. Raises `StepFailure`, `NoRoom`. Cancelled, it kills the helper."""
        request, who = self._request(tool, arguments, context), tenant_and_saga(context)
        if not self._places.take(who, asyncio.get_running_loop().time()):
            raise NoRoom(f"{self._count} plain functions with effects are running or starting already")
        try:
            return await self._call(request, tool, context)
        finally:
            self._places.give_back(who)

    async def _call(self, request: bytes, tool: str, context: StepContext) -> Any:
        helper = await self._ready_one()
        try:
            end = await helper.ask(request, tool, context)
        except _Lost as error:
            status = await self._end(helper)
            text = f"the process that ran `{tool}` {_how_it_ended(status, str(error))}"
            raise StepFailure("tool_crashed", text) from error
        except BaseException:
            await self._end(helper)
            raise
        self._idle.append(helper)
        if end.tag == wire.NO_ROOM and helper.no_room is not None:
            raise helper.no_room
        return _result_of(end, tool, context)

    def _begun(self) -> _Forker:
        if self._forker is None:
            self._forker = _Forker(self._app)
        return self._forker

    async def close(self) -> None:
        """End all helpers that are not at work, and the process that made them;
        those at work are killed with it.
        """
        for helper in [*self._idle, *self._starting]:
            await self._end(helper)
        self._idle.clear()
        self._starting.clear()
        if self._forker is not None:
            await asyncio.to_thread(self._forker.close)
            self._forker = None

    # ---- finding one

    async def _ready_one(self) -> _Helper:
        """Return a helper that is ready.
        The last one used comes first, so that few stay in memory. Raises `NoRoom`, `StepFailure`.
        """
        while self._idle:
            helper = self._idle.pop()
            if not helper.has_gone():
                return helper
            await self._end(helper)
        helper = self._starting_one()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await helper.until(lambda: helper.has_started)
        except (TimeoutError, asyncio.CancelledError):
            self._starting.append(helper)  # it goes on starting, for the next caller
            # Also when the step's time is over or the step is stopped: it has not begun, and not failed.
            raise NoRoom("a helper process for plain functions with effects is being started") from None
        return await self._started(helper)

    async def _started(self, helper: _Helper) -> _Helper:
        if helper.problem:
            await self._end(helper)
            _log.error("a helper process cannot import %s: %s", self._app, helper.problem)
            last = helper.problem.rstrip().rpartition("\n")[2]
            raise StepFailure(
                "tool_missing", f"`{self._app}` cannot be imported in a process of its own: {last}"
            )
        if not helper.pid:
            status = await self._end(helper)
            raise NoRoom(f"a helper process {_how_it_ended(status, 'has gone')} while it started")
        return helper

    def _starting_one(self) -> _Helper:
        """Return a helper without a caller: it has started meanwhile, or is about to, or is new.
        Raises `NoRoom`.
        """
        for helper in self._starting:
            helper.read()
        self._starting.sort(key=lambda helper: not helper.has_started)
        if self._starting:
            return self._starting.pop(0)
        if self._count >= self._most:
            raise NoRoom(f"{self._count} plain functions with effects are running or starting already")
        return self._new()

    def _new(self) -> _Helper:
        for attempt in (1, 2):
            forker = self._begun()
            ends = [*socket.socketpair(), *socket.socketpair()]
            try:
                forker.fork(ends[1], ends[3])
            except OSError as error:  # it was killed from outside, and its helpers with it
                forker.close()
                self._forker = None
                for end in ends:
                    end.close()
                if attempt == 2:
                    raise NoRoom(f"no process can be started: {error}") from error
                continue
            self._count += 1
            return _Helper(ends[0], ends[2], self._frame_bytes)
        raise AssertionError("either way it has been left")

    async def _end(self, helper: _Helper) -> int | None:
        """Kill it, and wait until it is dead. How it ended, if that is known."""
        helper.kill()
        try:
            return await helper.status()
        finally:
            self._count -= 1
            helper.close()

    def _request(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> bytes:
        told = {name: getattr(context, name) for name in context.__struct_fields__}
        for name in _NOT_TOLD:
            del told[name]
        request = {
            "tool": tool,
            "arguments": arguments,
            "context": told,
            "log_level": logging.getLogger().level,
            "variables": dict(self._variables()),
            "result_bytes": self._result_bytes,
        }
        return json.dumps(request).encode()


_NOT_TOLD = ("rows", "spent", "usage", "blocked", "units", "journal", "threads")
"""Fields of a context that come back, or belong to the loop."""


class _Lost(Exception):
    """The helper says nothing sensible any more."""


class _Helper:
    """Helper process. `pid`, `problem`: known when it has started, or never. It may outlive an event loop.

    `no_room`: refusal of money that its call has met.
    """

    def __init__(self, calls: socket.socket, life: socket.socket, most: int) -> None:
        self.pid = 0
        self.problem = ""
        self._calls, self._life = calls, life
        for end in (calls, life):
            end.setblocking(False)
        self._decoder = wire.Decoder(most)
        self._lost = ""
        self._number = 0
        self._tool = ""
        self._context: StepContext | None = None
        self._end: wire.Frame | None = None
        self.no_room: NoRoom | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._answering: asyncio.Task[None] | None = None

    @property
    def has_started(self) -> bool:
        return bool(self.pid or self.problem or self._lost)

    def has_gone(self) -> bool:
        """Return true if an idle helper has died."""
        self.read()
        return bool(self._lost)

    async def ask(self, request: bytes, tool: str, context: StepContext) -> wire.Frame:
        """Return the frame that ends the call. Raises `_Lost`."""
        self._number += 1
        self._tool, self._context, self._end, self.no_room = tool, context, None, None
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_sendall(self._calls, wire.encode(wire.CALL, self._number, request))
        except OSError as error:
            raise _Lost("has gone") from error
        await self.until(lambda: self._end is not None or bool(self._lost))
        return self._ended()

    def _ended(self) -> wire.Frame:
        if self._end is None:
            raise _Lost(self._lost)
        self._context = None
        return self._end

    async def until(self, condition: Callable[[], bool]) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(self._calls, self._on_readable)
        try:
            while not condition():
                self._waiter = loop.create_future()
                await self._waiter
        finally:
            self._waiter = None
            loop.remove_reader(self._calls)

    def _on_readable(self) -> None:
        self.read()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def read(self) -> bool:
        """Take in what it has said. Whether there may be more."""
        try:
            data = b"" if self._lost else self._calls.recv(_CHUNK)
            for frame in self._decoder.feed(data):
                self._take(frame)
        except BlockingIOError:
            return False
        except (OSError, wire.InvalidFrame, ValueError, ArithmeticError) as error:
            self._lost = f"said what no helper says ({type(error).__name__}: {error})"
            return False
        if not data:
            self._lost = self._lost or "has gone"
        return bool(data)

    def _take(self, frame: wire.Frame) -> None:
        context = self._context if frame.call == self._number else None
        if frame.tag == wire.READY:
            self.pid = int(frame.data)
        elif frame.tag == wire.BROKEN:
            self.problem = frame.data.decode()
        elif frame.tag == wire.LOG:
            _write(json.loads(frame.data), step_fields(None if context is None else (self._tool, context)))
        elif frame.tag == wire.SPENT and context is not None:
            kind = Assumed if frame.data.startswith(wire.ASSUMED) else Decimal
            context.spent.append(kind(frame.data.removeprefix(wire.ASSUMED).decode()))
        elif frame.tag == wire.USED and context is not None:
            context.usage.append(msgspec.json.decode(frame.data, type=Usage))
        elif frame.tag in (wire.UNITS, wire.UNIT, wire.HOLD) and context is not None:
            self._answering = asyncio.create_task(self._answer(frame, context))
        elif frame.tag in wire.ENDS and context is not None:
            self._end = frame

    async def _answer(self, frame: wire.Frame, context: StepContext) -> None:
        """Answer a question about the journal or the money: the helper waits for nothing else."""
        asked, value, refused = json.loads(frame.data or b"{}"), None, None
        self.no_room = None
        try:
            if context.units is None:
                raise StepFailure("tool_error", "this context has no journal: no worker runs the tool")
            units = context.units()
            if frame.tag == wire.UNIT:
                await units.record(asked["name"], asked["key"], asked["result"])
            elif frame.tag == wire.HOLD:
                held = await units.hold(msgspec.convert(asked, HoldRequest))
                value = msgspec.to_builtins(held)
            elif asked:
                units.check(asked["name"])
            else:
                value = units.recorded()
        except StepFailure as failure:
            refused = failure.code, failure.message
        except NoRoom as error:
            self.no_room = error
        told = {"value": value, "refused": refused, "has_no_room": self.no_room is not None}
        answer = json.dumps(told, ensure_ascii=False, default=dict).encode()
        with suppress(OSError):  # it has gone, which its life says
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(self._calls, wire.encode(wire.ANSWER, frame.call, answer))

    # ---- its end

    def kill(self) -> None:
        """Close this end of its life line; the process that holds the other end kills it."""
        if self._answering is not None:
            self._answering.cancel()
        with suppress(OSError):
            self._life.shutdown(socket.SHUT_WR)

    async def status(self) -> int | None:
        """Wait for the death of the process.
        Return its status, or None if that is unknown. Its earlier output is taken in.
        """
        data = b""
        try:
            async with asyncio.timeout(DEATH_S):
                data = await asyncio.get_running_loop().sock_recv(self._life, wire.STATUS.size)
        except TimeoutError:
            _log.error("process %d was killed and has not ended in %s s", self.pid, DEATH_S)
        except OSError:  # the forker was killed, and with it its helpers
            pass
        while self.read():
            pass
        return wire.STATUS.unpack(data)[0] if len(data) == wire.STATUS.size else None

    def close(self) -> None:
        self._calls.close()
        self._life.close()


class _Forker:
    """The process that has imported the app. Raises `NoRoom`."""

    def __init__(self, app: str) -> None:
        self._control, other = socket.socketpair()
        told = json.dumps({"path": sys.path, "control": other.fileno(), "app": app, "each": False})
        try:
            with other:
                self._process = subprocess.Popen(  # noqa: S603  # this interpreter, and a program of ours
                    [sys.executable, "-c", wire.PROGRAM, told],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[other.fileno()],
                    # Ctrl-C and a kill of the worker's group must not end it: it has work to do then.
                    start_new_session=True,
                )
        except OSError as error:
            self._control.close()
            raise NoRoom(f"no process can be started: {error}") from error
        # By hand, by the collector, or when this interpreter ends.
        self.close = weakref.finalize(self, _close, self._control, self._process)

    def fork(self, calls: socket.socket, life: socket.socket) -> None:
        """Start a helper with these ends, which are closed here. Raises `OSError`."""
        socket.send_fds(self._control, [b"f"], [calls.fileno(), life.fileno()])
        calls.close()
        life.close()


def _close(control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """End a forker, which ends its helpers."""
    control.close()
    try:
        process.wait(DEATH_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _how_it_ended(status: int | None, otherwise: str) -> str:
    if status is None:
        return otherwise
    if not os.WIFSIGNALED(status):
        return f"ended itself with status {os.WEXITSTATUS(status)}"
    name = signal.Signals(os.WTERMSIG(status)).name
    return f"was killed by {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")


def _result_of(end: wire.Frame, tool: str, context: StepContext) -> Any:
    if end.tag == wire.NO_ROOM:
        raise NoRoom(end.data.decode())
    try:
        told = json.loads(end.data)
    except (ValueError, RecursionError) as error:
        raise not_json(tool, error) from error
    if end.tag == wire.FAILURE:
        if told["traceback"]:
            report(told["traceback"])
        cause = RaisedElsewhere(msgspec.convert(told["evidence"], Evidence))
        more = {name: told[name] for name in ("kind", "status", "retry_after", "happened", "unsent")}
        raise StepFailure(told["code"], told["message"], **more) from cause
    context.rows.extend(Row(*row) for row in told["rows"])
    return told["value"]


def _write(line: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
    """Write a line of a helper's log as a line of ours, with the place and time of its writing."""
    logger = logging.getLogger(line["name"])
    record = logger.makeRecord(
        line["name"], line["level"], line["file"], line["line"], line["text"], (), None, line["function"],
        {**extra, **line["extra"]},
    )  # fmt: skip
    record.created = line["at"]
    record.msecs = int(line["at"] % 1 * 1_000)
    logger.handle(record)
