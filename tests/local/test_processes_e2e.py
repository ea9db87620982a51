"""How invocations find their processes: warm ones first, no more than the limit, and what an ending is called."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from baton.local.functions.pool import Throttled
from baton.local.processes.problems import LocalRunError
from baton.local.run import FunctionError, LocalRun
from tests.local.project import Scenario, shared_run, until, write_project

pytestmark = pytest.mark.e2e
NOTHING = frozenset({"stream", "queue", "schedule"})


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Scenario], None]]:
    with shared_run(write_project(tmp_path_factory.mktemp("processes")), switched_off=NOTHING) as play:
        yield play


def patient_project(folder: Path) -> Path:
    """Its functions have time enough to be held up."""
    template = write_project(folder)
    template.write_text(template.read_text().replace("Timeout: 4", "Timeout: 60"))
    return template


def test_processes_are_reused_and_their_number_is_limited(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with LocalRun(patient_project(tmp_path), switched_off=NOTHING, process_limit=2) as run:
            for _ in range(3):
                await run.invoke("Worker", {})
            first = run.invocations[0]
            assert [record.cold for record in run.invocations] == [True, False, False]
            assert {record.pid for record in run.invocations} == {first.pid}
            assert first.init_ms > 0
            go = tmp_path / "go"
            held = [
                asyncio.create_task(run.invoke("Worker", {"do": "wait", "for": str(go)})) for _ in range(5)
            ]
            await until(lambda: sum(process.busy for process in run.processes("Worker")) == 2)
            go.touch()
            await asyncio.gather(*held)
            assert len({record.pid for record in run.invocations}) == 2
            assert len(run.processes("Worker")) == 2
            assert {record.outcome for record in run.invocations} == {"ok"}

    asyncio.run(scenario())


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


def test_reserved_concurrency_refuses_what_is_beyond_it(tmp_path: Path) -> None:
    template = patient_project(tmp_path)
    source = template.read_text()
    template.write_text(
        source.replace("CodeUri: worker/", "CodeUri: worker/\n      ReservedConcurrentExecutions: 1")
    )

    async def scenario() -> None:
        async with LocalRun(template, switched_off=NOTHING) as run:
            go = tmp_path / "go"
            held = asyncio.create_task(run.invoke("Worker", {"do": "wait", "for": str(go)}))
            await until(lambda: run.processes("Worker")[0].busy)
            with pytest.raises(Throttled):
                await run.invoke("Worker", {})
            go.touch()
            await held

    asyncio.run(scenario())


def name_of(pid: int) -> str:
    """What `ps` shows; only Linux tells."""
    return Path(f"/proc/{pid}/comm").read_text().strip() if sys.platform == "linux" else "baton-worker-2"


def test_a_reload_runs_new_code_and_what_is_at_work_ends_as_it_began(tmp_path: Path) -> None:
    template = patient_project(tmp_path)

    async def scenario() -> None:
        async with LocalRun(template, switched_off=NOTHING) as run:
            go = tmp_path / "go"
            waits = {"do": "wait", "for": str(go)}
            held = asyncio.create_task(run.invoke("Worker", waits))
            await until(lambda: run.processes("Worker")[0].busy)
            code = template.parent / "worker/app.py"
            code.write_text("def handler(event, context):\n    return 'the code of now, and longer'\n")
            old = run.processes("Worker")[0].pid
            await run.reload()
            assert await run.invoke("Worker", {}) == "the code of now, and longer"
            assert not held.done()
            go.touch()
            assert await held == waits
            await until(lambda: old not in [process.pid for process in run.processes("Worker")])
            assert [name_of(process.pid) for process in run.processes("Worker")] == ["baton-worker-2"]
            code.write_text("soup(\n")
            with pytest.raises(LocalRunError, match=r"Worker .* does not start"):
                await run.reload()

    asyncio.run(scenario())


def test_an_unknown_function_or_process_is_named(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(run: LocalRun) -> None:
        with pytest.raises(LocalRunError, match=r"no function Wroker \(nearest: Worker\)"):
            run.processes("Wroker")
        with pytest.raises(LocalRunError, match="1 is not a process of a function"):
            run.kill(1)

    play(scenario)
