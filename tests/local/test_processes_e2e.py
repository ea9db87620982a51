"""How invocations find their processes: warm ones first, no more than the limit, and what an ending is called."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from baton.local.functions import Throttled
from baton.local.processes import LocalRunError
from baton.local.run import FunctionError, LocalRun
from tests.local.project import WORKER, Scenario, shared_run, until, write_project

pytestmark = pytest.mark.e2e
NOTHING = frozenset({"stream", "queue", "schedule"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("processes")


@pytest.fixture(scope="module")
def play(folder: Path) -> Iterator[Callable[[Scenario], None]]:
    """Its functions have time enough to be held up. Two processes each, and one of Front at a time."""
    template = write_project(folder)
    template.write_text(
        re.sub("Timeout: (4|10)", "Timeout: 60", template.read_text()).replace(
            "CodeUri: front/", "CodeUri: front/\n      ReservedConcurrentExecutions: 1"
        )
    )
    with shared_run(template, switched_off=NOTHING, process_limit=2) as play:
        yield play


def test_processes_are_reused_and_their_number_is_limited(
    play: Callable[[Scenario], None], tmp_path: Path
) -> None:
    async def scenario(run: LocalRun) -> None:
        for process in run.processes("Worker"):
            run.kill(process.pid)
        await until(lambda: not run.processes("Worker"))
        before = len(run.invocations)
        for _ in range(3):
            await run.invoke("Worker", {})
        first, *others = run.invocations[before:]
        assert [first.cold, *(record.cold for record in others)] == [True, False, False]
        assert {record.pid for record in others} == {first.pid}
        assert first.init_ms > 0
        go = tmp_path / "go"
        held = [asyncio.create_task(run.invoke("Worker", {"do": "wait", "for": str(go)})) for _ in range(5)]
        await until(lambda: sum(process.busy for process in run.processes("Worker")) == 2)
        go.touch()
        await asyncio.gather(*held)
        assert len({record.pid for record in run.invocations[before:]}) == 2
        assert len(run.processes("Worker")) == 2
        assert {record.outcome for record in run.invocations[before:]} == {"ok"}

    play(scenario)


def test_a_process_that_ends_itself_or_answers_too_much_is_an_error_of_the_function(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(run: LocalRun) -> None:
        before = len(run.invocations)
        with pytest.raises(FunctionError, match=r"Runtime\.ExitError.* exit status 4"):
            await run.invoke("Worker", {"do": "exit"})
        with pytest.raises(FunctionError, match=r"Function\.ResponseSizeTooLarge"):
            await run.invoke("Worker", {"answer": 7 * 1024 * 1024})
        assert [record.outcome for record in run.invocations[before:]] == ["error", "error"]
        assert await run.invoke("Worker", {"n": 1}) == {"n": 1}

    play(scenario)


def test_reserved_concurrency_refuses_what_is_beyond_it(
    play: Callable[[Scenario], None], tmp_path: Path
) -> None:
    async def scenario(run: LocalRun) -> None:
        go = tmp_path / "go"
        body = json.dumps({"do": "wait", "for": str(go)})
        held = asyncio.create_task(run.invoke("Front", {"rawPath": "/", "body": body}))
        await until(lambda: run.processes("Front")[0].busy)
        with pytest.raises(Throttled):
            await run.invoke("Front", {})
        go.touch()
        await held

    play(scenario)


def numbers_of(run: LocalRun) -> list[int]:
    """The numbers that the worker's processes have in their names, as `ps` shows them; only Linux tells."""
    names = [
        Path(f"/proc/{process.pid}/comm").read_text()
        for process in run.processes("Worker")
        if sys.platform == "linux"
    ]
    return [int(name.strip().removeprefix("baton-worker-")) for name in names]


def test_an_unknown_function_or_process_is_named(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(run: LocalRun) -> None:
        with pytest.raises(LocalRunError, match=r"no function Wroker \(nearest: Worker\)"):
            run.processes("Wroker")
        with pytest.raises(LocalRunError, match="1 is not a process of a function"):
            run.kill(1)

    play(scenario)


def test_a_reload_runs_new_code_and_what_is_at_work_ends_as_it_began(
    folder: Path, play: Callable[[Scenario], None], tmp_path: Path
) -> None:
    code = folder / "worker/app.py"

    async def scenario(run: LocalRun) -> None:
        try:
            await story(run)
        finally:
            code.write_text(WORKER)
            await run.reload()

    async def story(run: LocalRun) -> None:
        go = tmp_path / "go"
        waits = {"do": "wait", "for": str(go)}
        held = asyncio.create_task(run.invoke("Worker", waits))
        await until(lambda: any(process.busy for process in run.processes("Worker")))
        code.write_text("def handler(event, context):\n    return 'the code of now, and longer'\n")
        old, numbers = [process.pid for process in run.processes("Worker")], numbers_of(run)
        await run.reload()
        assert await run.invoke("Worker", {}) == "the code of now, and longer"
        assert not held.done()
        go.touch()
        assert await held == waits
        await until(lambda: not any(process.pid in old for process in run.processes("Worker")))
        assert len(run.processes("Worker")) == 1
        assert all(number > max(numbers) for number in numbers_of(run))
        code.write_text("soup(\n")
        with pytest.raises(LocalRunError, match=r"Worker .* does not start"):
            await run.reload()

    play(scenario)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="functions are forked on Linux only")
def test_when_the_fork_server_ends_its_functions_end_and_another_one_serves(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(run: LocalRun) -> None:
        await run.invoke("Worker", {})
        os.kill(parent_of(run.processes("Worker")[0].pid), signal.SIGKILL)
        await until(lambda: not run.processes("Worker"))
        assert await run.invoke("Worker", {"n": 1}) == {"n": 1}

    play(scenario)
