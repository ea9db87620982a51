"""Messages of a queue, worked on in real processes: redelivery, dead letters, deadlines, kill -9, concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from baton.local.run import LocalRun
from tests.local.project import Scenario, deliveries, received, send, shared_run, until, write_project

pytestmark = pytest.mark.e2e
ONLY_QUEUE = frozenset({"stream", "schedule"})


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Scenario], None]]:
    with shared_run(write_project(tmp_path_factory.mktemp("queue")), switched_off=ONLY_QUEUE) as play:
        yield play


@pytest.fixture(scope="module")
def play_slowly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Scenario], None]]:
    """Batches of two, whose functions have time enough to be held up."""
    template = write_project(tmp_path_factory.mktemp("slow"))
    template.write_text(
        template.read_text().replace("BatchSize: 10", "BatchSize: 2").replace("Timeout: 4", "Timeout: 60")
    )
    with shared_run(template, switched_off=ONLY_QUEUE) as play:
        yield play


def alive(pid: int) -> bool:
    """Whether it runs; a zombie that is not reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_only_the_failed_message_of_a_batch_comes_again_and_poison_ends_in_the_dead_letter_queue(
    play: Callable[[Scenario], None],
) -> None:
    good, shaky, poison = {"do": "nothing"}, {"do": "fail once"}, {"do": "fail always"}

    async def scenario(run: LocalRun) -> None:
        before = len(run.invocations)
        await send(run, good, shaky, poison)
        letter = await received(run, "DeadLetters")
        assert letter["Body"] == '{"do": "fail always"}'
        assert len(deliveries(run, good)) == 1
        first, second = deliveries(run, shaky)
        # Not before the queue's visibility timeout of 4 s.
        assert second.started - first.started > 3_900
        assert len(deliveries(run, poison)) == 2
        assert {record.outcome for record in run.invocations[before:]} == {"ok"}

    play(scenario)


def test_a_function_over_its_time_is_killed_with_all_it_started_and_its_message_comes_back(
    tmp_path: Path,
) -> None:
    hangs = {"do": "hang once"}
    template = write_project(tmp_path)
    template.write_text(
        template.read_text()
        .replace(" Timeout: 4", " Timeout: 3")
        .replace("VisibilityTimeout: 4", "VisibilityTimeout: 6")
    )

    async def scenario() -> None:
        async with LocalRun(template, switched_off=ONLY_QUEUE) as run:
            await send(run, hangs)
            await until(lambda: any(process.busy for process in run.processes("Worker")))
            pid = run.processes("Worker")[0].pid
            helper = int(await until(lambda: helper_of(pid)))
            first, second = await until(lambda: len(deliveries(run, hangs)) == 2 and deliveries(run, hangs))
            assert (first.outcome, first.pid) == ("timeout", pid)
            assert first.duration_ms > 2_990
            assert first.error["errorType"] == "Sandbox.Timedout"
            assert second.outcome == "ok"
            assert second.cold
            assert second.pid != pid
            assert not alive(pid)
            assert not alive(helper)
            log = run._lambdas.find("Worker").log.read_text()
            assert f"START RequestId: {first.request_id}" in log
            assert "Task timed out after 3.00 seconds" in log
            assert f"REPORT RequestId: {second.request_id}\tDuration:" in log

    asyncio.run(scenario())


def helper_of(pid: int) -> str:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return children.read_text().strip() if children.exists() else ""


def test_a_process_killed_in_the_middle_leaves_its_message_to_another(
    play: Callable[[Scenario], None], tmp_path: Path
) -> None:
    slow = {"do": "wait", "for": str(tmp_path / "go")}

    async def scenario(run: LocalRun) -> None:
        await send(run, slow)
        busy = await until(lambda: [process for process in run.processes("Worker") if process.busy])
        run.kill(busy[0].pid)
        (tmp_path / "go").touch()
        first, second = await until(lambda: len(deliveries(run, slow)) == 2 and deliveries(run, slow))
        assert (first.outcome, first.request_id) == ("killed", busy[0].request_id)
        assert first.error["errorType"] == "Runtime.ExitError"
        assert second.outcome == "ok"

    play(scenario)


def test_no_more_batches_are_worked_on_at_once_than_the_template_says(
    play_slowly: Callable[[Scenario], None], tmp_path: Path
) -> None:
    go = tmp_path / "go"
    bodies = [{"do": "wait", "for": str(go), "n": number} for number in range(7)]

    async def scenario(run: LocalRun) -> None:
        before = len(run.invocations)
        await send(run, *bodies)
        await until(lambda: sum(process.busy for process in run.processes("Worker")) == 2)
        go.touch()
        await until(lambda: all(deliveries(run, body) for body in bodies))
        records = run.invocations[before:]
        assert len(records) >= 4
        assert {record.outcome for record in records} == {"ok"}
        # How many were running when each one started.
        running = [sum(r.started <= record.started < r.ended for r in records) for record in records]
        assert max(running) == 2

    play_slowly(scenario)


def test_of_two_tenants_the_one_with_less_in_flight_is_first_and_nothing_comes_twice(
    play_slowly: Callable[[Scenario], None], tmp_path: Path
) -> None:
    go = tmp_path / "go"
    flood: list[dict[str, Any]] = [{"do": "wait", "for": str(go), "n": number} for number in range(40)]
    quiet: dict[str, Any] = {"do": "nothing", "tenant": "globex", "for": str(go)}

    async def scenario(run: LocalRun) -> None:
        before = len(run.invocations)
        await send(run, *flood, group="acme")
        await send(run, quiet, group="globex")
        go.touch()
        await until(lambda: all(deliveries(run, body) for body in (*flood, quiet)))
        assert [len(deliveries(run, body)) for body in (*flood, quiet)] == [1] * 41
        (of_quiet,) = deliveries(run, quiet)
        earlier = [record for record in run.invocations[before:] if record.started < of_quiet.started]
        assert len(earlier) <= 8, "not after the twenty that were sent before it"

    play_slowly(scenario)
