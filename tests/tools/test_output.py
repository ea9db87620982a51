"""What a tool prints and logs names its saga, node and attempt, wherever the tool runs."""

# ruff: noqa: T201  # as tools do
from __future__ import annotations

import asyncio
import io
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from baton.ports import StepContext, StepFailure
from baton.tools.define import Registry, tool
from baton.tools.output import Printed, name_steps
from baton.tools.perform import ToolPerformer
from baton.tools.processes.pool import Helpers

_log = logging.getLogger("shop")
Said = list[dict[str, Any]]


class _Lines(logging.Handler):
    """As the handler of Lambda's runtime: it writes lines to what is standard output by then."""

    def __init__(self) -> None:
        super().__init__()
        self.said: Said = []

    def emit(self, record: logging.LogRecord) -> None:
        sys.stdout.write(record.getMessage() + "\n")
        self.said.append({**vars(record), "text": record.getMessage()})


@contextmanager
def worker() -> Iterator[tuple[Said, io.StringIO]]:
    """The log and the output of a worker. Not a fixture: pytest sets the streams when a test begins."""
    handler, root, streams, out = _Lines(), logging.getLogger(), (sys.stdout, sys.stderr), io.StringIO()
    sys.stdout, sys.stderr = out, io.StringIO()
    root.addHandler(handler)
    name_steps(root)
    try:
        yield handler.said, out
    finally:
        root.removeHandler(handler)
        sys.stdout, sys.stderr = streams


def perform(function: Callable[..., Any], *, helpers: Helpers | None = None, effect: str = "pure") -> None:
    registry = Registry()
    tool("t", effect=effect, registry=registry)(function)
    context = StepContext(saga="s1", tenant="acme", user="ada", node="pay", iteration=(1,), attempt=2)
    asyncio.run(ToolPerformer(registry, helpers).perform("t", {}, context))


def places(said: Said) -> list[tuple[str, Any, Any, Any]]:
    return [(line["text"], line.get("saga"), line.get("slot"), line.get("attempt")) for line in said]


async def prints() -> None:
    print("one", 1)
    await asyncio.sleep(0)
    _log.error("two")
    print("three\nfour", end="")


def plain() -> None:
    print("one", 1)
    _log.error("two")
    print("three\nfour", end="")


@pytest.mark.parametrize("function", [prints, plain])
def test_each_line_names_its_step(function: Callable[..., Any]) -> None:
    with worker() as (said, out):
        perform(function)
        lines = ["one 1", "two", "three", "four"]
        assert places(said) == [(line, "s1", "pay@1", 2) for line in lines]
        assert out.getvalue().splitlines() == lines, "and is written once"


def test_what_no_tool_prints_passes() -> None:
    with worker() as (said, out):
        print("started")
        assert (said, out.getvalue()) == ([], "started\n")
        _log.error("of the engine")
        assert places(said) == [("of the engine", None, None, None)]


def test_lines_of_tools_at_once_are_not_mixed() -> None:
    with worker() as (said, _):

        async def two() -> None:
            async def say(word: str) -> None:
                print(word, end="")
                await asyncio.sleep(0)
                print(word.upper())

            registry = Registry()
            tool("t", registry=registry)(say)
            performer = ToolPerformer(registry)
            contexts = [StepContext(saga=f"s{number}", tenant="a", user="b", node="n") for number in (1, 2)]
            await asyncio.gather(
                *(performer.perform("t", {"word": of.saga}, of) for of in contexts),
            )

        asyncio.run(two())
        assert {(line["saga"], line["text"]) for line in said} == {("s1", "s1S1"), ("s2", "s2S2")}


def test_a_traceback_is_one_line_of_the_log_that_begins_as_python_prints_it() -> None:
    with worker() as (said, _):

        def breaks() -> None:
            raise KeyError("table")

        with pytest.raises(StepFailure):
            perform(breaks)
        (line,) = said
        assert line["text"].startswith("Traceback")
        assert (line["saga"], line["levelname"]) == ("s1", "WARNING")


def test_the_same_traceback_of_a_further_attempt_is_one_line() -> None:
    with worker() as (said, _):

        def breaks() -> None:
            raise KeyError("table")

        registry = Registry()
        tool("t", registry=registry)(breaks)
        performer = ToolPerformer(registry)
        for saga, attempt in (("s1", 1), ("s1", 2), ("s2", 1)):
            of = StepContext(saga=saga, tenant="a", user="b", node="n", attempt=attempt)
            with pytest.raises(StepFailure):
                asyncio.run(performer.perform("t", {}, of))
        first, again, other = (line["text"] for line in said)
        assert ("\n" in first, "\n" in again) == (True, False)
        assert first == other != again


def test_a_thread_of_a_tools_own_prints_as_before() -> None:
    with worker() as (said, out):

        def starts() -> None:
            own = threading.Thread(target=print, args=("from a thread",))
            own.start()
            own.join()

        perform(starts)
        assert (places(said), out.getvalue()) == ([], "from a thread\n")


def test_a_tool_in_a_helper_process_prints_into_the_log_of_its_worker() -> None:
    with worker() as (said, _):
        helpers = Helpers("tests.kit.app.plain", most=1)

        async def call() -> None:
            registry = Registry()
            from tests.kit.app.plain import prints as printing

            tool("plain.prints", registry=registry)(printing)
            context = StepContext(saga="s1", tenant="acme", user="ada", node="pay", attempt=2)
            performer = ToolPerformer(registry, helpers)
            try:
                while True:
                    try:
                        await performer.perform("plain.prints", {}, context)
                    except Exception as error:
                        if "being started" not in str(error):
                            raise
                        await asyncio.sleep(0.01)
                    else:
                        return
            finally:
                await helpers.close()

        asyncio.run(call())
        assert [(line["text"], line["name"], line["saga"], line["attempt"]) for line in said] == [
            ("printed", "stdout", "s1", 2),
            ("complained", "stderr", "s1", 2),
            ("from a thread", "stdout", "s1", 2),
            ("no end", "stdout", "s1", 2),
        ]


def test_the_streams_keep_what_they_can_besides() -> None:
    with worker() as (_, out):
        assert isinstance(sys.stdout, Printed)
        sys.stdout.writelines(["a", "b"])
        sys.stdout.flush()
        assert out.getvalue() == "ab"
        assert sys.stdout.isatty() is False
