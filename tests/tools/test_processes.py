"""Plain functions with effects run in helper processes: all they say comes back, and what was stopped does nothing more.

Nothing here waits for time to pass. That a process is dead is asked of the system, in the very moment in which its
call is over.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import pytest

from baton.core.effects.rows import Row
from baton.ports import NoRoom, StepContext, StepFailure
from baton.tools.perform import RaisedElsewhere, ToolPerformer
from baton.tools.processes.pool import Helpers
from baton.tools.standard import load_app
from tests.kit.sentences import Says

T = TypeVar("T")
APP = "tests.kit.app.plain"
LIMIT = 1_000  # bytes of a result


def run(work: Coroutine[Any, Any, T]) -> T:
    """In a loop of its own, with an end in case something hangs."""

    async def limited() -> T:
        return await asyncio.wait_for(work, 20)

    return asyncio.run(limited())


def context() -> StepContext:
    return StepContext(
        saga="s1",
        tenant="acme",
        user="ada",
        node="n",
        iteration=(2, 1),
        idempotency_key="k",
        traceparent="00-1",
    )


@pytest.fixture(scope="module")
def helpers() -> Iterator[Helpers]:
    """As in a worker: made once, whatever event loops come and go."""
    made = Helpers(APP, most=2, result_bytes=LIMIT, variables=lambda: {"PLAIN_TRACE": "t-1"})
    yield made
    run(made.close())
    assert made._count == 0


async def call(helpers: Helpers, tool: str, of: StepContext | None = None, **arguments: Any) -> Any:
    """As the runner does: a call that finds no room is made again."""
    while True:
        try:
            return await helpers.perform(f"plain.{tool}", arguments, of or context())
        except NoRoom as error:
            if "being started" not in str(error):
                raise
            await asyncio.sleep(0.01)


def failure(helpers: Helpers, tool: str, of: StepContext | None = None, **arguments: Any) -> tuple[str, str]:
    with pytest.raises(StepFailure) as caught:
        run(call(helpers, tool, of, **arguments))
    return caught.value.code, caught.value.message


def is_dead(pid: int) -> bool:
    """Whether it executes nothing any more: it is not there, or nothing of it is but its status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


@dataclass
class Waiting:
    """A call of `plain.wait`, which has begun, in a process with a child in a session of its own."""

    task: asyncio.Task[Any]
    limit: asyncio.Timeout
    context: StepContext
    processes: list[int]
    pipe: Path
    done: Path

    def is_over(self) -> bool:
        """All are dead, no process reads the pipe, and the effect has not been had."""
        with pytest.raises(OSError, match="No such device or address"):
            os.open(self.pipe, os.O_WRONLY | os.O_NONBLOCK)
        return all(map(is_dead, self.processes)) and not self.done.exists()


@asynccontextmanager
async def waiting(helpers: Helpers, folder: Path) -> AsyncIterator[Waiting]:
    begun, pipe, done, of = folder / "begun", folder / "pipe", folder / "done", context()
    os.mkfifo(pipe)

    async def limited() -> None:
        async with asyncio.timeout(None) as limit:
            limits.append(limit)
            await call(helpers, "wait", of, begun=str(begun), pipe=str(pipe), done=str(done))

    limits: list[asyncio.Timeout] = []
    task = asyncio.create_task(limited())
    await until(begun.exists)
    found = Waiting(task, limits[0], of, [int(pid) for pid in begun.read_text().split()], pipe, done)
    assert not any(map(is_dead, found.processes))
    yield found
    task.cancel()


# ---- where a tool runs -----------------------------------------------------------------------------------------------


def test_only_a_plain_function_with_effects_runs_in_another_process(helpers: Helpers) -> None:
    performer = ToolPerformer(load_app(APP), helpers)

    async def perform(name: str) -> Any:
        return await performer.perform(name, {}, context())

    assert run(call(helpers, "who"))["pid"] != os.getpid()
    assert run(perform("plain.who"))["pid"] != os.getpid()
    assert run(perform("plain.pure")) == os.getpid()
    assert run(perform("plain.coroutine")) == os.getpid()


def test_a_hundred_calls_are_one_process_that_has_not_imported_the_app_itself(helpers: Helpers) -> None:
    async def scenario() -> list[dict[str, int]]:
        return [await call(helpers, "who") for _ in range(100)]

    (one,) = {tuple(answer.values()) for answer in run(scenario())}
    pid, imported_by, threads = one
    assert imported_by not in (pid, os.getpid())
    assert threads == 1


def test_a_tool_finds_its_step_and_the_variables_of_the_invocation(helpers: Helpers) -> None:
    assert run(call(helpers, "told")) == ["n", [2, 1], "k", "00-1", "t-1"]


# ---- what comes back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [None, [], {"a": [1, 2.5, "x", True]}, 2**70, "\u00e9 \U0001f600", "x" * 990]
)
def test_values_come_and_go_as_json(value: Any, helpers: Helpers) -> None:
    given = run(call(helpers, "echo", value=value))
    assert (given, type(given)) == (value, type(value))


def test_what_a_tool_says_besides_its_result_comes_back(
    helpers: Helpers, caplog: pytest.LogCaptureFixture
) -> None:
    of = context()
    assert run(call(helpers, "busy", of)) == "done"
    assert of.spent == [Decimal("0.25"), Decimal("0.5")]
    assert of.rows == [Row("table", "t1", {"seats": 2})]
    first, second = (record for record in caplog.records if record.name == "plain.app")
    assert (first.levelname, first.getMessage()) == ("WARNING", "table t1")
    assert (first.__dict__["saga"], first.__dict__["node"], first.__dict__["seats"]) == ("s1", "n", 2)
    assert (first.funcName, Path(first.pathname).name) == ("busy", "plain.py")
    assert "KeyError: 't2'" in second.getMessage(), "with the traceback"


def test_a_tool_logs_as_much_as_its_worker_does(helpers: Helpers, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        run(call(helpers, "busy"))
    assert "not worth a word" in caplog.text


def test_noise_is_no_part_of_the_answer(
    helpers: Helpers, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(call(helpers, "noise")) == "done"
    assert "half a character: ?" in caplog.text
    assert run(call(helpers, "echo", value=1)) == 1


@pytest.mark.parametrize(
    ("how", "code", "message"),
    [
        ("error", "tool_error", "ValueError: no table"),
        ("exit", "tool_error", "SystemExit: 3"),
        ("interrupt", "tool_error", "KeyboardInterrupt: stop"),
        ("half", "tool_error", "OSError: half ?"),
        ("long", "tool_error", "ValueError: xxx"),
        ("own", "sold_out", "no table for 9"),
        ("nan", "result_invalid", "`plain.fail` returned what JSON cannot hold: "),
        ("object", "result_invalid", "`plain.fail` returned what JSON cannot hold: "),
        ("deep", "result_invalid", "`plain.fail` returned what JSON cannot hold: "),
        ("large", "result_too_large", f"the result is larger than {LIMIT} bytes"),
    ],
)
def test_a_failure_is_the_one_that_it_would_be_in_a_thread(
    how: str, code: str, message: str, helpers: Helpers
) -> None:
    given = failure(helpers, "fail", how=how)
    assert given[0] == code
    assert given[1].startswith(message)
    assert len(given[1]) < 200_000


def test_what_is_known_of_an_exception_comes_with_the_failure(helpers: Helpers) -> None:
    with pytest.raises(StepFailure) as caught:
        run(call(helpers, "fail", how="service"))
    cause = caught.value.__cause__
    assert isinstance(cause, RaisedElsewhere)
    assert cause.evidence.status == 503
    assert cause.evidence.exceptions[0] == f"{APP}._Unavailable"


@pytest.mark.parametrize(
    ("how", "code", "known"),
    [
        ("service", "service_unavailable", ("transient", 503, "7")),
        ("told", "sold_out", ("recoverable", 409, "9")),
        ("own", "sold_out", ("unknown", 0, "")),
        ("error", "tool_error", ("unknown", 0, "")),
    ],
)
def test_class_status_and_pause_come_with_a_failure(
    how: str, code: str, known: tuple[str, int, str], helpers: Helpers
) -> None:
    with pytest.raises(StepFailure) as caught:
        run(call(helpers, "fail", how=how))
    failed = caught.value
    assert (failed.code, (failed.kind, failed.status, failed.retry_after)) == (code, known)


def test_input_that_does_not_match_is_told_with_its_path(helpers: Helpers) -> None:
    assert failure(helpers, "fail", how=5) == (
        "input_invalid",
        "`plain.fail`: at /how: Input should be a valid string",
    )


def test_where_a_tool_raised_is_in_the_log_of_its_worker(
    helpers: Helpers, caplog: pytest.LogCaptureFixture
) -> None:
    failure(helpers, "fail", how="own")
    assert caplog.records == [], "it knew what it did"
    failure(helpers, "fail", how="error")
    (record,) = caplog.records
    assert record.name == "baton.tools"
    assert "in fail" in record.getMessage()


def test_a_tool_that_has_no_room_begins_later(helpers: Helpers) -> None:
    with pytest.raises(NoRoom, match="the kitchen is full"):
        run(call(helpers, "fail", how="full"))


def test_a_tool_that_the_app_does_not_declare_by_being_imported_is_told_what_to_do(
    helpers: Helpers, says: Says
) -> None:
    code, message = failure(helpers, "echoes")
    assert code == "tool_missing"
    says(message)


# ---- being stopped ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["timeout", "cancel"])
def test_a_call_that_is_stopped_does_nothing_afterwards(by: str, helpers: Helpers, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with waiting(helpers, tmp_path) as call:
            if by == "timeout":
                call.limit.reschedule(0)
            else:
                call.task.cancel()
            with pytest.raises(TimeoutError if by == "timeout" else asyncio.CancelledError):
                await call.task
            assert call.is_over()
            assert call.context.spent == [Decimal("0.125")], "that money is gone"

    run(scenario())


def test_what_was_spent_before_the_end_counts_even_if_it_was_not_yet_read(
    helpers: Helpers, tmp_path: Path
) -> None:
    async def scenario() -> None:
        await call(helpers, "who")
        of, begun, pipe = context(), tmp_path / "begun", tmp_path / "pipe"
        os.mkfifo(pipe)
        arguments = {"begun": str(begun), "pipe": str(pipe), "done": str(tmp_path / "done")}
        task = asyncio.create_task(helpers.perform("plain.wait", arguments, of))
        await asyncio.sleep(0)
        while not begun.exists():
            time.sleep(0.001)  # noqa: ASYNC251  # the loop is to stand still
        assert of.spent == []
        task.cancel()
        await asyncio.wait([task])
        assert of.spent == [Decimal("0.125")]

    run(scenario())


def test_a_call_that_is_left_alone_has_its_effect(helpers: Helpers, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with waiting(helpers, tmp_path) as call:
            os.close(os.open(call.pipe, os.O_WRONLY))
            await call.task
            assert call.done.exists()
            assert not is_dead(call.processes[0]), "it waits for the next call"
            for pid in call.processes[1:]:
                os.kill(pid, signal.SIGKILL)

    run(scenario())


def test_a_place_is_taken_until_the_process_is_dead(helpers: Helpers, tmp_path: Path, says: Says) -> None:
    async def scenario() -> None:
        folders = [tmp_path / name for name in "ab"]
        for folder in folders:
            folder.mkdir()
        async with waiting(helpers, folders[0]) as one, waiting(helpers, folders[1]) as other:
            with says.raised(NoRoom):
                await call(helpers, "who")
            one.task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await one.task
            assert one.is_over()
            assert (await call(helpers, "who"))["pid"] not in one.processes
            assert not any(map(is_dead, other.processes)), "the others have nothing to do with it"
            other.task.cancel()
            await asyncio.wait([other.task])
            assert other.is_over()

    run(scenario())


@pytest.mark.parametrize(
    "how",
    [
        "exit",
        "memory",
        "segv",
        "garbage",
    ],
)
def test_a_tool_that_takes_its_process_with_it_has_crashed_and_harms_no_other(
    how: str, helpers: Helpers, capfd: pytest.CaptureFixture[str], says: Says
) -> None:
    of = context()
    code, message = failure(helpers, "end", of, how=how)
    assert code == "tool_crashed"
    says(message)
    assert of.spent == [Decimal("0.5")]
    assert run(call(helpers, "echo", value=1)) == 1
