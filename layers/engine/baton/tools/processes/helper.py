"""Inside a helper process: one call after another, each with its log lines and its expenses reported as they happen.

How helpers come and go is in forker.py.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final

import msgspec

from baton.core.expressions.spelling import hinted, nearest
from baton.core.failures import sanitised
from baton.core.failures.evidence import Evidence
from baton.ports import NoRoom, StepContext, StepFailure
from baton.tools.calls import bind, evidence_for, failure_of, plain, text, traceback_of
from baton.tools.define import REGISTRY
from baton.tools.processes import wire
from baton.tools.standard.loading import load_app

_CHUNK: Final = 1 << 18
_PLAIN_RECORD: Final = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime"})


class Channel:
    """The helper's end. What its own children say is lost: they have no part in it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._decoder = wire.Decoder(wire.LONGEST)  # the worker's arguments are the engine's business
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self.call = 0

    def send(self, tag: int, data: bytes) -> None:
        if os.getpid() == self._pid:
            with self._lock:  # a tool may have threads
                self._connection.sendall(wire.encode(tag, self.call, data))

    def receive(self) -> bytes:
        """The next call. Raises `EOFError` when there will be none."""
        while data := self._connection.recv(_CHUNK):
            for frame in self._decoder.feed(data):
                self.call = frame.call
                return frame.data
        raise EOFError


class LogHandler(logging.Handler):
    """Log lines go to the worker, which writes them as its own; before there is a worker, to standard error."""

    channel: Channel | None = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = self.format(record)  # with the traceback, if there is one
            if self.channel is None:
                sys.stderr.write(sanitised(text(message)) + "\n")
                return
            line: dict[str, Any] = {
                "name": record.name,
                "level": record.levelno,
                "text": text(message[: wire.MAX_TEXT]),
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
        self._channel.send(wire.SPENT, str(amount).encode())


def import_app(app: str) -> str:
    """Declares the app's tools. What went wrong, or an empty text."""
    try:
        load_app(app)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # returned as text
        return traceback_of(error)
    return ""


def serve(channel: Channel, handler: LogHandler, app: str, *, is_imported: bool) -> None:
    """Answers calls until there are no more."""
    if not faulthandler.is_enabled():
        with suppress(OSError, ValueError, AttributeError):  # a standard error that is no file
            faulthandler.enable()
    if not is_imported and (problem := import_app(app)):
        channel.send(wire.BROKEN, problem[-wire.MAX_TEXT :].encode())
        return
    handler.channel = channel
    channel.send(wire.READY, str(os.getpid()).encode())
    with suppress(EOFError, ConnectionError):
        while True:
            tag, data = _answer(channel, app, channel.receive())
            for stream in (sys.stdout, sys.stderr):  # the last words may be the ones that matter
                with suppress(Exception):
                    stream.flush()
            channel.send(tag, data)


def _answer(channel: Channel, app: str, data: bytes) -> tuple[int, bytes]:
    """The last frame of a call. Whatever the tool raises is in it."""
    call = json.loads(data)
    # What Lambda's runtime writes into the worker's environment for each invocation, the tool finds here too.
    os.environ.update(call["variables"])  # noqa: TID251  # written, not read: it is the tools' environment
    logging.getLogger().setLevel(call["log_level"])
    name, told = call["tool"], call["context"]
    tool = REGISTRY.get(name)
    if tool is None:
        hint = f"importing `{app}` in a process of its own does not declare it: do so at the top of a module"
        missing = hinted(f"there is no tool `{name}`: {hint}", nearest(name, REGISTRY))
        return _failure(StepFailure("tool_missing", missing))
    context = StepContext(**{**told, "iteration": tuple(told["iteration"])}, spent=_Spent(channel))
    try:
        value = plain(tool, tool.function(**bind(tool, call["arguments"], context)))
        result = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except NoRoom as error:
        return wire.NO_ROOM, text(str(error)[: wire.MAX_TEXT]).encode()
    except BaseException as error:  # noqa: BLE001  # carried over to the caller
        evidence = evidence_for(error)
        traceback = "" if isinstance(error, StepFailure) else traceback_of(error)
        return _failure(failure_of(error, tool, evidence), traceback, evidence)
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
