"""A process that imports the app once, forks helpers off itself, and kills them: with all that they have
started.

It runs nothing of the app but its imports, so it has one thread and is always there to kill. The worker talks
to it over three kinds of sockets: `control` brings, for each helper that is wished, the other ends of two
more. One is the helper's own, for calls. The other is its life: when the worker closes it, or dies, the
helper is killed; when the helper has ended, however that came about, its status is written there.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import json
import logging
import os
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

from baton.core.expressions import nearest, with_hint
from baton.core.failures import sanitised
from baton.core.failures.codes import TOOL_DEFECT
from baton.core.failures.evidence import Evidence
from baton.core.models.usage import Usage
from baton.core.money import Assumed
from baton.ports import HeldMoney, HoldRequest, NoRoom, StepContext, StepFailure
from baton.ports.process import Draft
from baton.tools.define import REGISTRY
from baton.tools.output import finish_line, take_printed
from baton.tools.perform import (
    CURRENT,
    bind,
    evidence_for,
    plain_json,
    tool_failure,
    traceback_of,
    utf8_text,
    with_journal,
)
from baton.tools.processes import wire
from baton.tools.standard import load_app

_CHUNK: Final = 1 << 18
_PLAIN_RECORD: Final = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime"})


class Channel:
    """The helper's end. What its own children say is lost: they have no part in it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._decoder = wire.Decoder(wire.LONGEST)  # the worker's arguments are the engine's business
        self._lock, self._asking = threading.Lock(), threading.Lock()
        self._is_called = False
        self._pid = os.getpid()
        self.call = 0

    @property
    def is_mine(self) -> bool:
        """True in the helper, false in a process that a tool has forked from it."""
        return os.getpid() == self._pid

    def send(self, tag: int, data: bytes) -> None:
        if self.is_mine:
            with self._lock:  # a tool may have threads
                self._connection.sendall(wire.encode(tag, self.call, data))

    def ask(self, tag: int, data: bytes) -> Any:
        """Return what the worker answers, as JSON. Raises `StepFailure`, `NoRoom`, or `EOFError`."""
        with self._asking:
            if not self._is_called or os.getpid() != self._pid:
                text = "a unit is named by the call of the tool, not by what it has started and left behind"
                raise StepFailure(TOOL_DEFECT, text)
            self.send(tag, data)
            answer = json.loads(self._receive(wire.ANSWER))
        if answer["has_no_room"]:
            raise NoRoom("the worker says why")
        if answer["refused"] is not None:
            raise StepFailure(*answer["refused"])
        return answer["value"]

    def end(self) -> None:
        """Answer no question of the call any more, which is over: the next frame is the next call."""
        with self._asking:
            self._is_called = False

    def receive(self) -> bytes:
        """Return the next call. Raises `EOFError` when there will be none."""
        data = self._receive(wire.CALL)
        self._is_called = True
        return data

    def _receive(self, tag: int) -> bytes:
        while data := self._connection.recv(_CHUNK):
            for frame in self._decoder.feed(data):
                if frame.tag == tag:
                    self.call = frame.call
                    return frame.data
        raise EOFError


class LogHandler(logging.Handler):
    """Handler that sends log lines to the worker; before it has one, to standard error."""

    channel: Channel | None = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = self.format(record)  # with the traceback, if there is one
            if self.channel is None:
                sys.stderr.write(sanitised(utf8_text(message)) + "\n")
                return
            line: dict[str, Any] = {
                "name": record.name,
                "level": record.levelno,
                "text": utf8_text(message[: wire.MAX_TEXT]),
                "at": record.created,
                "file": record.pathname,
                "line": record.lineno,
                "function": record.funcName,
                "extra": {name: value for name, value in vars(record).items() if name not in _PLAIN_RECORD},
            }
            data = json.dumps(line, default=str, skipkeys=True)
            if len(data) > 2 * wire.MAX_TEXT:
                data = json.dumps({**line, "text": line["text"][: wire.MAX_TEXT // 4], "extra": {}})
            self.channel.send(wire.LOG, data.encode())
        except Exception:  # noqa: BLE001  # as every handler: what cannot be logged harms no call
            self.handleError(record)


class _Spent(list[Decimal]):
    """Reports what a call spends at once, so that it counts even if the process ends right after."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    def append(self, amount: Decimal, /) -> None:
        mark = wire.ASSUMED if isinstance(amount, Assumed) else b""
        self._channel.send(wire.SPENT, mark + str(amount).encode())


class _Used(list[Usage]):
    """Reports the tokens that models have used for a call, as `_Spent` does."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    def append(self, usage: Usage, /) -> None:
        self._channel.send(wire.USED, msgspec.json.encode(usage))


class _Units:
    """The `UnitLog` of a call, which the worker keeps."""

    def __init__(self, channel: Channel, most_bytes: int) -> None:
        self._channel, self._most_bytes = channel, most_bytes
        self._known: dict[str, Any] = channel.ask(wire.UNITS, b"")
        self.has_units = bool(self._known)

    def recorded(self) -> Mapping[str, Any]:
        return self._known

    def check(self, name: str) -> None:
        self._channel.ask(wire.UNITS, json.dumps({"name": name}).encode())

    async def record(self, name: str, key: str, result: Any) -> None:
        data = json.dumps({"name": name, "key": key, "result": result}, ensure_ascii=False).encode()
        if len(data) > self._most_bytes + len(name) + len(key) + 100:
            text = f"the result of the unit `{name}` is larger than {self._most_bytes} bytes"
            raise StepFailure("result_too_large", text)
        self._channel.ask(wire.UNIT, data)

    async def hold(self, asked: HoldRequest) -> HeldMoney:
        return msgspec.convert(self._channel.ask(wire.HOLD, msgspec.json.encode(asked)), HeldMoney)

    def draft(self) -> AbstractContextManager[Draft]:
        return nullcontext(Draft())  # what a process writes is not shown


def import_app(app: str) -> str:
    """Declare the app's tools. Return what went wrong, or an empty text."""
    try:
        load_app(app)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # returned as text
        return traceback_of(error)
    return ""


def serve(channel: Channel, handler: LogHandler, app: str, *, is_imported: bool) -> None:
    """Answer calls until there are no more."""
    if not faulthandler.is_enabled():
        with suppress(OSError, ValueError, AttributeError):  # a standard error that is no file
            faulthandler.enable()
    if not is_imported and (problem := import_app(app)):
        channel.send(wire.BROKEN, problem[-wire.MAX_TEXT :].encode())
        return
    handler.channel = channel
    take_printed(lambda: channel.call if channel.is_mine else None)
    channel.send(wire.READY, str(os.getpid()).encode())
    with suppress(EOFError, ConnectionError):
        while True:
            tag, data = _answer(channel, app, channel.receive())
            finish_line(channel.call)
            channel.end()
            for stream in (sys.stdout, sys.stderr):  # the last words may be the ones that matter
                with suppress(Exception):
                    stream.flush()
            channel.send(tag, data)


def _answer(channel: Channel, app: str, data: bytes) -> tuple[int, bytes]:
    """Return the last frame of a call. Whatever the tool raises is in it."""
    call = json.loads(data)
    # What Lambda's runtime writes into the worker's environment for each invocation, the tool finds here too.
    os.environ.update(call["variables"])  # noqa: TID251  # written, not read: it is the tools' environment
    logging.getLogger().setLevel(call["log_level"])
    name, told = call["tool"], call["context"]
    tool = REGISTRY.get(name)
    if tool is None:
        hint = f"importing `{app}` in a process of its own does not declare it: do so at the top of a module"
        missing = with_hint(f"there is no tool `{name}`: {hint}", nearest(name, REGISTRY))
        return _failure(StepFailure("tool_missing", missing))
    context = StepContext(
        **{**told, "iteration": tuple(told["iteration"])},
        spent=_Spent(channel),
        usage=_Used(channel),
        units=partial(_Units, channel, call["result_bytes"]),
    )
    context = with_journal(context, name, None)
    CURRENT.set(context)
    try:
        value = plain_json(tool, tool.function(**bind(tool, call["arguments"], context)))
        result = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except NoRoom as error:
        return wire.NO_ROOM, utf8_text(str(error)[: wire.MAX_TEXT]).encode()
    except BaseException as error:  # noqa: BLE001  # carried over to the caller
        evidence = evidence_for(error)
        traceback = "" if isinstance(error, StepFailure) else traceback_of(error)
        return _failure(tool_failure(error, tool, evidence), traceback, evidence)
    if len(result) > call["result_bytes"]:
        too_large = f"the result is larger than {call['result_bytes']} bytes"
        return _failure(StepFailure("result_too_large", too_large))
    rows = json.dumps([[row.key, row.sort, row.attributes] for row in context.rows])
    return wire.VALUE, b'{"rows":%b,"value":%b}' % (rows.encode(), result)


def _failure(
    failure: StepFailure, traceback: str = "", evidence: Evidence | None = None
) -> tuple[int, bytes]:
    # Of a traceback the end says what happened; of a message the beginning.
    parts: Mapping[str, Any] = {
        "code": failure.code[: wire.MAX_TEXT],
        "message": failure.message[: wire.MAX_TEXT],
        "kind": failure.kind,
        "status": failure.status,
        "retry_after": failure.retry_after[: wire.MAX_TEXT],
        "happened": failure.happened,
        "unsent": failure.unsent,
        "traceback": traceback[-wire.MAX_TEXT :],
        "evidence": msgspec.to_builtins(evidence or Evidence()),
    }
    return wire.FAILURE, json.dumps(parts).encode()


_LINUX: Final = sys.platform == "linux"
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
# If memory runs out, the kernel takes a tool before it takes the worker.
_TAKE_ME_FIRST: Final = "500"


def main(told: str) -> None:
    """Run the forker. `told`: JSON with `path`, `control`, `app` and `each`, by pool.py."""
    given = json.loads(told)
    control = socket.socket(fileno=given["control"])
    control.set_inheritable(False)
    handler = LogHandler()
    # Before the app can: its `logging.basicConfig` is to do nothing here, as on Lambda.
    logging.getLogger().addHandler(handler)
    if not given["each"] and (import_app(given["app"]) or not _can_fork()):
        # Begin anew, without the app: each helper imports it, and says what is wrong with it.
        control.set_inheritable(True)
        again = json.dumps({**given, "each": True})
        os.execv(sys.executable, [sys.executable, "-c", wire.PROGRAM, again])  # noqa: S606  # this very program
    gc.collect()
    gc.freeze()  # or the collector would write to all that the helpers share
    _Forker(control, handler, given["app"], is_imported=not given["each"]).run()


def _can_fork() -> bool:
    """Return true if forks can share the state of the import: no threads, no connections."""
    if not _LINUX or threading.active_count() > 1:
        return False  # elsewhere the system's own libraries do not stand a fork
    links = [_link(entry) for entry in Path("/proc/self/fd").iterdir()]
    sockets = sum(link.startswith("socket:") for link in links)
    return sockets <= 1 + _inherited_sockets() and len(list(Path("/proc/self/task").iterdir())) == 1


def _inherited_sockets() -> int:
    """Return the number of standard input, output and error that are sockets."""
    return sum(_link(Path(f"/proc/self/fd/{number}")).startswith("socket:") for number in range(3))


def _link(entry: Path) -> str:
    try:
        return str(entry.readlink())
    except OSError:
        return ""


class _Forker:
    """`_lives`: by process id, the sockets of helpers that live or whose end is not reported yet."""

    def __init__(self, control: socket.socket, handler: LogHandler, app: str, *, is_imported: bool) -> None:
        self._control = control
        self._handler = handler
        self._app = app
        self._is_imported = is_imported
        self._pid = os.getpid()
        self._lives: dict[int, socket.socket] = {}
        self._ended: dict[int, int] = {}
        self._wake, self._waker = os.pipe()
        for end in (self._wake, self._waker):
            os.set_blocking(end, False)
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        """Run until the worker has gone."""
        if _LINUX:
            _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what a dead helper has left comes to this process
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(self._control, selectors.EVENT_READ)
        self._selector.register(self._wake, selectors.EVENT_READ)
        is_wanted = True
        while is_wanted or self._lives:
            for key, _ in self._selector.select():
                if key.data is not None:
                    self._selector.unregister(key.fileobj)  # there is nothing more to hear from it
                    _kill(key.data)
                elif key.fd == self._wake:
                    with suppress(BlockingIOError):
                        os.read(self._wake, 1 << 16)
                elif is_wanted and not self._fork():
                    is_wanted = False
                    self._selector.unregister(self._control)
                    for pid in self._lives:
                        _kill(pid)
            self._reap()

    def _fork(self) -> bool:
        """Fork one more helper. Return false when no more are wanted."""
        try:
            _, descriptors, _, _ = socket.recv_fds(self._control, 1, 2)
        except ConnectionError:
            descriptors = []
        if len(descriptors) != 2:
            return False
        calls, life = (socket.socket(fileno=descriptor) for descriptor in descriptors)
        with calls:
            for end in (calls, life):
                end.set_inheritable(False)
            try:
                pid = os.fork()
            except OSError as error:  # no memory, no processes: closed sockets say that there is no helper
                sys.stderr.write(f"no helper process for a plain function: {error}\n")
                life.close()
                return True
            if pid == 0:
                self._become_helper(calls, life)
        with suppress(OSError):  # the helper was quicker, or has gone already
            os.setpgid(pid, pid)
        self._lives[pid] = life
        self._selector.register(life, selectors.EVENT_READ, pid)
        return True

    def _become_helper(self, calls: socket.socket, life: socket.socket) -> NoReturn:
        status = 1
        try:
            with suppress(OSError):
                os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._selector.close()
            for end in (self._control, life, *self._lives.values()):
                end.close()
            os.close(self._wake)
            os.close(self._waker)
            if _LINUX:
                _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                # What its children leave behind stays its own, to be found.
                _prctl(_PR_SET_CHILD_SUBREAPER, 1)
                with suppress(OSError):
                    Path("/proc/self/oom_score_adj").write_text(_TAKE_ME_FIRST, "ascii")
            if os.getppid() == self._pid:
                serve(Channel(calls), self._handler, self._app, is_imported=self._is_imported)
                status = 0
        except BaseException as error:  # noqa: BLE001  # whatever it is, this process must not go on as the forker
            sys.stderr.write(f"a helper process ends: {type(error).__name__}: {error}\n")
        finally:
            os._exit(status)

    def _reap(self) -> None:
        """Report the end of a helper once every process that it has started has ended, too."""
        for pid, status in _dead():
            if pid in self._lives:
                self._ended[pid] = status
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
        if not self._ended:
            return
        orphans = [pid for pid in _children(self._pid) if pid not in self._lives or pid in self._ended]
        for pid in orphans:
            _kill(pid)
        if not orphans:
            for pid, status in self._ended.items():
                with self._lives.pop(pid) as life:
                    with suppress(KeyError, ValueError):
                        self._selector.unregister(life)
                    with suppress(OSError):
                        life.sendall(wire.STATUS.pack(status))
            self._ended.clear()


def _kill(pid: int) -> None:
    """Send SIGKILL to a child that has not been waited for, and to its group, if it leads one."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _dead() -> Iterator[tuple[int, int]]:
    """Yield the children that have ended, with their status: whose they are does not matter."""
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            yield pid, status


def _children(parent: int) -> Iterator[int]:
    """Yield the children of a process; none on systems other than Linux, where groups must do."""
    if not _LINUX:
        return
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                # pid (name) state parent …, and a name may have anything in it
                after = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                if int(after[1]) == parent and after[0] != "Z":
                    yield int(folder.name)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
