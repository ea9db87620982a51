"""`make trace`: the files that a step, `POST /sagas` and a compilation enter, in order, with moves, calls and executed lines.

The counts that may only go down are in tests/architecture/trace.json. Each path runs on memory adapters, a second time in its
process: what is imported, compiled or cached once is no part of it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import Any

import baton
from baton.adapters.memory.log import MemoryLog
from baton.core.documents.compile import compile_document
from baton.core.log.codec import decode_entry
from baton.core.log.events import StepSucceeded
from baton.ports import Record, SagaRef
from baton.runtime.engine.parts import Engine
from baton.runtime.invocation.context import Invocation
from baton.runtime.worker.worker import Delivery, Worker
from baton.settings import ApiSettings, read_settings
from baton.testing import loop
from baton.web.app import Api
from benchmarks.stage import HOUR_MS, REGISTRY, chain_of, memory_engine, start
from tests.kit.virtual_time import EPOCH, SeededEntropy, run_virtual

ENGINE = Path(baton.__file__).parent
LOOP = loop.__file__  # of virtual time, in place of that of a function
GOLDEN = Path(__file__).parents[1] / "tests/architecture/trace.json"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
DOCUMENT = chain_of(1)
_SETTINGS = {
    "BATON_TABLE": "trace",
    "BATON_BUCKET": "trace",
    "BATON_WORKER": "worker",
}
EVENT = Path(__file__).parents[1] / "events/api/start.json"


@dataclass
class Trace:
    """Lines that Python executes in files of the engine; library code between them is no move.

    `calls` are of functions and generators, with comprehensions that the interpreter runs as functions.
    """

    files: Counter[str] = field(default_factory=Counter)
    moves: int = 0
    calls: int = 0

    @property
    def lines(self) -> int:
        return sum(self.files.values())

    def counts(self) -> dict[str, int]:
        return {"files": len(self.files), "moves": self.moves, "calls": self.calls, "lines": self.lines}


@contextmanager
def traced() -> Iterator[Trace]:
    """Count what this thread executes."""
    trace, root, last = Trace(), f"{ENGINE}/", ""
    entered: set[FrameType] = set()  # a coroutine that goes on is the same frame, and the same call

    def line(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal last
        if event == "line":
            name = frame.f_code.co_filename
            trace.files[name.removeprefix(root)] += 1
            trace.moves += last not in ("", name)
            last = name
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(root) or name == LOOP:
            return None
        if frame not in entered:
            entered.add(frame)
            trace.calls += 1
        return line

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield trace
    finally:
        sys.settrace(before)


class _Log(MemoryLog):
    """Calls `written` when the result of a step is durable."""

    written: Callable[[], None] | None = None

    def append(self, ref: SagaRef, record: Record, *more: Any, **named: Any) -> Any:
        appended = super().append(ref, record, *more, **named)
        if self.written and any(isinstance(one, StepSucceeded) for one in decode_entry(record.data).events):
            self.written()
        return appended


class _Still:
    """A clock that stands still: what the engine does depends on how long it takes."""

    def now(self) -> int:
        return EPOCH


class _Context:
    aws_request_id = "trace"

    def get_remaining_time_in_millis(self) -> int:
        return HOUR_MS


def _engine(log: MemoryLog | None = None) -> Engine:
    return memory_engine(log, clock=_Still(), entropy=SeededEntropy(1))


def step() -> Trace:
    """From the worker's event to the durable write of a tool's result."""
    log = _Log()
    engine = _engine(log)
    worker = Worker(engine, None, None)  # type: ignore[arg-type]  # no delivery dies, and none is passed on

    async def run() -> Trace:
        first, second = map(str, await start(engine, 1, 2))
        await handle(first)
        with traced() as trace:
            log.written = lambda: sys.settrace(None)
            await handle(second)
        return trace

    async def handle(saga: str) -> None:
        wake = Delivery("1", json.dumps({"saga": saga, "v": 1}))
        if await worker.handle([wake], Invocation("trace", EPOCH, EPOCH + HOUR_MS)):
            raise RuntimeError("the worker gave the wake back")

    return run_virtual(run())


def post() -> Trace:
    """From the event of `POST /sagas` to its answer."""
    engine = _engine()
    config = read_settings(ApiSettings, _SETTINGS)
    api = Api(engine, config, engine.store.rates, None, None)  # type: ignore[arg-type]  # both are the console's

    def send(path: str, body: Any, type: str = "application/json") -> None:
        event = json.loads(EVENT.read_text(encoding="utf-8"))
        event.update(rawPath=path, body=body)
        event["requestContext"]["http"]["path"] = path
        event["headers"].update({"content-type": type, "idempotency-key": engine.entropy.token(24)})
        answer = api.handle(event, _Context())
        if answer["statusCode"] != HTTPStatus.CREATED:
            raise RuntimeError(f"{path} answered {answer}")

    send("/workflows", DOCUMENT, "application/yaml")
    body = json.dumps({"workflow": "chain", "input": {"n": 0}})
    send("/sagas", body)
    with traced() as trace:
        send("/sagas", body)
    return trace


def document() -> Trace:
    """From the text of a document of one node to its graph."""
    tools = REGISTRY.specs()
    compile_document(DOCUMENT, tools)
    with traced() as trace:
        compile_document(DOCUMENT, tools)
    return trace


PATHS: Mapping[str, Callable[[], Trace]] = {"step": step, "post": post, "document": document}


def counts(found: Mapping[str, Trace]) -> dict[str, Any]:
    """As tests/architecture/trace.json has them."""
    return {"python": PYTHON, **{name: trace.counts() for name, trace in found.items()}}


def main(arguments: Sequence[str]) -> None:
    """Print the paths; `--write`: renew the file of the counts."""
    found = {name: path() for name, path in PATHS.items()}
    if "--write" in arguments:
        GOLDEN.write_text(json.dumps(counts(found), indent=2) + "\n", encoding="utf-8")
        return
    for name, trace in found.items():
        print(f"{name}: {PATHS[name].__doc__}")
        for number, (file, lines) in enumerate(trace.files.items(), 1):
            print(f"  {number:3} {lines:5} lines  {file}")
        print(f"  {', '.join(f'{n:,} {what}' for what, n in trace.counts().items())}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
