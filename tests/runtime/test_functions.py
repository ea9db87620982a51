"""A workflow function goes on where it was: what it asks for is asked once, and what it heard is heard again in the same order."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections import Counter
from contextvars import ContextVar
from typing import Any

import pytest

from baton import StepFailure, WorkflowContext, tool, workflow
from baton.core.log import events as ev
from baton.core.log.functions import RunningFunction
from baton.core.log.records import Failure
from baton.ports.functions import FunctionFacts, FunctionStep
from baton.runtime.worker.functions import _Live
from baton.tools.functions import loop as loops
from baton.tools.functions.loop import FunctionRun
from tests.core.build import replay
from tests.kit.world import World
from tests.runtime.functions import Application, killed

PLACE: ContextVar[str] = ContextVar("PLACE", default="outside")


@pytest.fixture
def app() -> Application:
    return Application()


def steps(app: Application, seconds: float = 0.1) -> str:
    """A function of steps one after the other, each with the result of the one before."""

    @workflow("steps", registry=app.registry)
    async def steps(length: int, context: WorkflowContext) -> list[str]:
        app.runs.append("steps")
        heard = ["0"]
        for n in range(length):
            heard.append(await context.step("echo", f"{n + 1} after {heard[-1][0]}", seconds=seconds))
        return heard

    return "steps"


# ---- the log -----------------------------------------------------------------------------------------------------------


def test_the_entry_with_an_outcome_has_what_is_asked_for_next(app: Application) -> None:
    found = app.run(steps(app), {"length": 7})
    assert found.status == "completed"
    assert len(found.output) == 8
    assert len(found.entries) == 1 + 7 + 1
    assert app.runs == ["steps"], "it has never left the memory of its worker"


def test_a_function_that_asks_for_nothing_takes_one_entry(app: Application) -> None:
    @workflow("adds", registry=app.registry)
    async def adds(a: int, b: int) -> int:
        return a + b

    found = app.run("adds", {"a": 1, "b": 2})
    assert (found.status, found.output, len(found.entries)) == ("completed", 3, 2)


def test_results_that_come_together_are_one_entry_and_heard_in_the_order_of_the_log(app: Application) -> None:
    @workflow("both", registry=app.registry)
    async def both(context: WorkflowContext) -> list[str]:
        heard: list[str] = []

        async def one(what: str) -> None:
            heard.append(await context.step("echo", what))

        await asyncio.gather(one("a"), one("b"), one("c"))
        app.runs.append(",".join(heard))
        return heard

    found = app.run("both", timeout_s=30)
    (ended,) = [one for one in found.events if isinstance(one, ev.FunctionClosed)]
    order = [one.item for one in found.events if isinstance(one, ev.StepSucceeded) and one.item]
    assert [*ended.heard] == order[-len(ended.heard) :]
    assert sorted(found.output) == ["a", "b", "c"]


def test_after_a_hand_over_it_is_run_again_and_asks_for_nothing_twice(app: Application) -> None:
    found = app.run(steps(app, seconds=2), {"length": 9})
    assert found.status == "completed"
    assert len(app.runs) > 2
    assert app.calls == found.output[1:]
    assert len(found.asked) == len(set(found.asked)) == 9


@pytest.mark.parametrize("write", range(6, 24, 2))
def test_a_worker_that_dies_behind_any_write_changes_nothing(app: Application, write: int) -> None:
    found = app.run(steps(app), {"length": 5}, plan=killed(write))
    assert (found.status, len(found.output)) == ("completed", 6)
    assert len(found.asked) == len(set(found.asked)) == 5


def test_what_was_written_first_by_another_changes_nothing(app: Application) -> None:
    """A signal comes before an entry that the function has run on for; the time that it has seen is that of the log."""

    @workflow("told", registry=app.registry)
    async def told(context: WorkflowContext) -> list[Any]:
        app.runs.append("told")
        heard = [context.signal("early")]
        for n in range(4):
            await context.step("poke", n)
            heard.append(context.step("echo", f"{n} at {context.now().timestamp()}"))
        await context.sleep("1h")
        return list(await asyncio.gather(*heard))

    worlds: list[tuple[World, str]] = []

    @tool("poke", registry=app.registry)
    async def poke(n: int) -> None:
        app.calls.append(n)
        world, saga = worlds[0]
        await asyncio.sleep(0.2)
        await world.service().signal(saga, "early", n, f"key-{n}")

    async def during(world: World, saga: str) -> None:
        worlds.append((world, saga))

    found = app.run("told", during=during)
    assert found.status == "completed"
    assert len(app.runs) > 1
    assert len(found.asked) == len(set(found.asked)) == 10
    assert Counter(one for one in app.calls if isinstance(one, int)) == Counter(range(4))


@pytest.mark.parametrize("size", [10, 20_000])
def test_the_time_of_its_start_is_the_same_when_it_runs_again(app: Application, size: int) -> None:
    @workflow("dated", registry=app.registry)
    async def dated(text: str, context: WorkflowContext) -> str:
        app.runs.append("dated")
        when: str = await context.step("echo", context.now().isoformat())
        await context.sleep("1h")
        return when

    found = app.run("dated", {"text": "x" * size})
    assert (found.status, found.output, len(app.runs)) == ("completed", app.calls[0], 2)


def test_a_large_argument_and_a_large_result_are_blobs(app: Application) -> None:
    @workflow("large", registry=app.registry)
    async def large(size: int, context: WorkflowContext) -> list[str]:
        app.runs.append("large")
        one = await context.step("echo", "x" * size)
        two, three = await asyncio.gather(context.step("echo", one + "y"), context.step("echo", "z" * size))
        await context.sleep("1h")
        await context.step("echo", two[-2:])
        return [one[0], two[-1], three[0]]

    found = app.run("large", {"size": 30_000})
    assert (found.status, found.output) == ("completed", ["x", "y", "z"])
    assert len(app.runs) == 2
    asked = [
        one for event in found.events if isinstance(event, ev.OperationsBegan) for one in event.operations
    ]
    assert [bool(one.given and one.given.ref) for one in asked] == [True, True, True, False, False]
    assert max(len(str(event)) for event in found.events) < 6_000


def test_many_results_are_few_segments(app: Application) -> None:
    found = app.run(steps(app, seconds=0.06), {"length": 120}, timeout_s=4)
    assert found.status == "completed"
    assert len(app.runs) > 1
    assert len(found.asked) == len(set(found.asked)) == 120
    assert app.calls == found.output[1:]
    parts = [one.segments for one in found.events if isinstance(one, ev.OperationsBegan) and one.segments]
    assert parts
    for at, segments in enumerate(parts, 1):
        turns = [one.turns for one in segments]
        assert len(turns) <= at.bit_length()
        assert turns == sorted(turns, reverse=True)
    (work,) = [one for one in replay(found.entries[:-2]).open.values() if isinstance(one, RunningFunction)]
    assert sum(one.turns for one in work.segments) + len(work.tail) == work.heard - 1
    assert len(work.tail) < 40


def test_many_results_of_one_decision_are_segments_too(app: Application) -> None:
    """Each is there at once; a decision that has to write a segment is made again from its beginning."""

    @workflow("restless", registry=app.registry)
    async def restless(context: WorkflowContext) -> int:
        for _ in range(100):
            await context.sleep_until("2020-01-01T00:00:00Z")
        counted: int = await context.step("count", 1)
        return counted

    found = app.run("restless")
    assert (found.status, found.output, len(found.asked)) == ("completed", 2, 101)


def test_two_functions_in_one_invocation_do_not_meet(app: Application) -> None:
    @workflow("pair", registry=app.registry)
    async def pair(mark: str, context: WorkflowContext) -> list[str]:
        PLACE.set(mark)
        found = []
        for n in range(4):
            found.append(await context.step("echo", f"{mark}{n}", seconds=0.3))
            assert PLACE.get() == mark
            await asyncio.sleep(0)
        return found

    async def second(world: World, saga: str) -> None:
        view, _ = await world.service().start("pair", {"mark": "b"}, "key-2")
        await world.settle()
        shown = await world.queries().show(view["id"])
        assert shown["result"] == [f"b{n}" for n in range(4)]

    found = app.run("pair", {"mark": "a"}, during=second)
    assert found.output == [f"a{n}" for n in range(4)]
    assert PLACE.get() == "outside"


def test_a_function_is_forgotten_with_its_invocation(app: Application) -> None:
    """Its `finally` runs, and can ask for nothing: neither of its saga nor of the worker's loop."""

    @workflow("tidy", registry=app.registry)
    async def tidy(context: WorkflowContext) -> str:
        try:
            await context.sleep("1h")
        except GeneratorExit:
            context.step("echo", "too late")
            asyncio.get_running_loop().create_task(stray())
            raise
        finally:
            app.runs.append("finally")
        return "done"

    async def stray() -> None:
        app.runs.append("stray")

    found = app.run("tidy")
    assert (found.status, found.output, app.calls) == ("completed", "done", [])
    assert app.runs == ["finally", "finally"]


@pytest.mark.parametrize("write", [0, *range(7, 27, 4)])
def test_after_a_checkpoint_nothing_before_it_is_heard_or_done_again(app: Application, write: int) -> None:
    @workflow("rounds", registry=app.registry)
    async def rounds(length: int, context: WorkflowContext) -> list[str]:
        done = list(context.state or [])
        app.runs.append(str(len(done)))
        done.append(await context.step("echo", f"{len(done)} at {context.now().timestamp()}"))
        both = await asyncio.gather(context.step("echo", f"a{len(done)}"), context.step("count", len(done)))
        await context.sleep("10m")
        if len(done) < length:
            context.checkpoint(done)
        return [*done, str(both)]

    found = app.run("rounds", {"length": 3}, plan=killed(write))
    assert found.status == "completed"
    assert [one.partition(" ")[0] for one in found.output[:3]] == ["0", "1", "2"]
    assert len(found.asked) == len(set(found.asked)) == 12
    (work,) = [one for one in replay(found.entries[:-1]).open.values() if isinstance(one, RunningFunction)]
    assert (work.checkpoints, work.heard <= 4) == (2, True)


# ---- asyncio -----------------------------------------------------------------------------------------------------------


def test_the_first_of_several_wins_and_the_others_are_stopped(app: Application) -> None:
    @workflow("race", registry=app.registry)
    async def race(context: WorkflowContext) -> list[Any]:
        app.runs.append("race")
        fast, slow = context.step("echo", "fast", seconds=0.3), context.step("echo", "slow", seconds=5)
        done, left = await asyncio.wait({fast, slow}, return_when=asyncio.FIRST_COMPLETED)
        for one in left:
            one.cancel()
        await context.sleep("1h")
        return [one.result() for one in done]

    found = app.run("race", timeout_s=30)
    assert (found.status, found.output, app.calls) == ("completed", ["fast"], ["fast"])
    assert len(app.runs) == 2
    left = [item for one in found.events if isinstance(one, ev.OperationsBegan) for item in one.left]
    assert left == ["echo-2"]


def test_what_ends_together_with_the_winner_has_lost_all_the_same(app: Application) -> None:
    @workflow("tie", registry=app.registry)
    async def tie(context: WorkflowContext) -> list[Any]:
        app.runs.append("tie")
        both = [context.sleep(60, name="one"), context.sleep(60, name="two")]
        done, left = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for one in left:
            one.cancel()
        await context.step("echo", f"{len(done)} {len(left)}")
        await context.sleep("1h")
        return [len(done), len(left)]

    found = app.run("tie")
    assert (found.status, found.output) == ("completed", [1, 1])
    assert len(app.runs) == 3
    heard = [one.heard for one in found.events if isinstance(one, ev.OperationsBegan) if one.heard]
    assert heard[0] == ("one", "two")


def test_times_of_asyncio_are_times_of_the_saga(app: Application) -> None:
    @workflow("timed", registry=app.registry)
    async def timed(context: WorkflowContext) -> list[str]:
        app.runs.append("timed")
        told = []
        for patience in (asyncio.timeout(30), asyncio.timeout(None)):
            try:
                async with patience:
                    told.append(await asyncio.wait_for(context.signal("s"), 7_200))
            except TimeoutError:
                told.append("late")
        began = context.now()
        await asyncio.sleep(3_600)
        told.append(str((context.now() - began).total_seconds() // 60))
        await asyncio.sleep(0)
        return told

    async def during(world: World, saga: str) -> None:
        await asyncio.sleep(600)
        await world.service().signal(saga, "s", "heard", "k")

    found = app.run("timed", during=during)
    assert (found.status, found.output) == ("completed", ["late", "heard", "60.0"])


def test_a_group_stops_the_others_when_one_fails(app: Application) -> None:
    @workflow("group", registry=app.registry)
    async def group(context: WorkflowContext) -> list[str]:
        async def other() -> None:
            try:
                await context.signal("never")
            except asyncio.CancelledError:
                app.runs.append("stopped")
                raise

        codes = []
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(other())
                tasks.create_task(fails(context))
        except* StepFailure as found:
            codes += [one.code for one in found.exceptions if isinstance(one, StepFailure)]
        return codes

    async def fails(context: WorkflowContext) -> None:
        await context.step("decline")

    found = app.run("group")
    assert (found.status, found.output, app.runs) == ("completed", ["declined"], ["stopped"])


def test_a_failure_in_a_group_is_the_failure_of_its_saga(app: Application) -> None:
    @workflow("group", registry=app.registry)
    async def group(context: WorkflowContext) -> None:
        async with asyncio.TaskGroup() as tasks:
            for n in range(3):
                tasks.create_task(one(n, context))

    async def one(n: int, context: WorkflowContext) -> None:
        await context.step("decline" if n == 1 else "echo", "sold_out")

    found = app.run("group")
    assert (found.status, found.failure.code) == ("failed", "sold_out")


def test_a_task_that_is_cancelled_ends_and_its_operation_with_it(app: Application) -> None:
    @workflow("cancels", registry=app.registry)
    async def cancels(context: WorkflowContext) -> list[Any]:
        task = asyncio.create_task(one(context))
        await context.step("echo", "first")
        task.cancel()
        result = await asyncio.gather(task, return_exceptions=True)
        return [type(result[0]).__name__, await context.step("echo", "last")]

    async def one(context: WorkflowContext) -> None:
        await context.signal("never")

    found = app.run("cancels")
    assert found.output == ["CancelledError", "last"]
    assert [one.left for one in found.events if isinstance(one, ev.OperationsBegan) if one.left] == [
        ("one-1--never",)
    ]


def test_a_map_has_so_many_at_once_and_tolerates_so_many_failures(app: Application) -> None:
    @workflow("maps", registry=app.registry)
    async def maps(context: WorkflowContext) -> list[Any]:
        async def one(n: int) -> int:
            if n == 2:
                await context.step("decline")
            return int(await context.step("count", n))

        found = await context.map(one, range(5), concurrency=2, tolerated_failures=1)
        return [one.code if isinstance(one, StepFailure) else one for one in found]

    found = app.run("maps")
    assert found.output == [1, 2, "declined", 4, 5]
    began = [len(one.operations) for one in found.events if isinstance(one, ev.OperationsBegan)]
    assert max(began) == 2


def test_locks_queues_and_events_work_between_tasks(app: Application) -> None:
    @workflow("talks", registry=app.registry)
    async def talks(context: WorkflowContext) -> list[str]:
        queue: asyncio.Queue[str] = asyncio.Queue(1)

        async def puts() -> None:
            for n in range(3):
                await queue.put(await context.step("echo", str(n)))

        task = asyncio.create_task(puts())
        found = [await queue.get() for _ in range(3)]
        await task
        return found

    assert app.run("talks").output == ["0", "1", "2"]


def test_any_name_of_an_operation_is_its_own(app: Application) -> None:
    """Words of the engine are names like others, and no two of them meet."""
    names = ["undo", "_undo", "o", "t1", "plan", "a1", "undo_it", "ask"]

    @workflow("named", registry=app.registry, tools=["echo"])
    async def named(context: WorkflowContext) -> list[str]:
        both = [context.step("echo", one, name=one) for one in names for _ in range(2)]
        found = list(await asyncio.gather(*both))
        await context.sleep("1h")
        return found

    found = app.run("named")
    assert (found.status, found.output) == ("completed", [one for one in names for _ in range(2)])
    assert len(set(found.asked)) == len(names) * 2 + 1


# ---- mistakes ----------------------------------------------------------------------------------------------------------


async def _never_awaits(context: WorkflowContext) -> None:
    context.step("echo", "forgotten")


async def _waits_for_nothing(context: WorkflowContext) -> None:
    await asyncio.Event().wait()


async def _spins(context: WorkflowContext) -> None:
    while True:
        await asyncio.sleep(0)


async def _opens_a_socket(context: WorkflowContext) -> None:
    await asyncio.open_connection("127.0.0.1", 1)


async def _uses_a_thread(context: WorkflowContext) -> None:
    await asyncio.to_thread(time.time)


async def _starts_a_process(context: WorkflowContext) -> None:
    await asyncio.create_subprocess_exec("true")


async def _raises(context: WorkflowContext) -> None:
    raise TypeError("an int is no str")


async def _exits(context: WorkflowContext) -> None:
    raise SystemExit(1)


async def _no_tool(context: WorkflowContext) -> None:
    await context.step(threading.Thread)


async def _wrong_arguments(context: WorkflowContext) -> None:
    await context.step("echo", wat=1)


async def _no_json(context: WorkflowContext) -> None:
    await context.step("echo", socket.socket)


async def _returns_no_json(context: WorkflowContext) -> Any:
    return socket.socket


MISTAKES = {
    _never_awaits: "has never awaited `echo`",
    _waits_for_nothing: "waits for what is no operation",
    _spins: "goes round without waiting",
    _opens_a_socket: "into a step",
    _uses_a_thread: "loop.run_in_executor",
    _starts_a_process: "loop.subprocess_exec",
    _raises: "an int is no str",
    _exits: "SystemExit",
    _no_tool: "`Thread` is not known as a step",
    _wrong_arguments: "no parameter `wat`",
    _no_json: "cannot be written as JSON",
}


@pytest.mark.parametrize("function", MISTAKES, ids=lambda one: one.__name__)
def test_a_mistake_in_its_code_parks_the_saga_and_says_what_is_wrong(
    app: Application, function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "MOST_CALLS", 1_000)
    workflow("wrong", registry=app.registry, tools=["echo"])(function)
    found = app.run("wrong")
    assert (found.status, found.failure.code) == ("parked", "function_defect")
    assert MISTAKES[function] in found.failure.message


def test_a_result_that_is_no_json_fails_its_saga(app: Application) -> None:
    workflow("wrong", registry=app.registry)(_returns_no_json)
    found = app.run("wrong")
    assert found.status in {"parked", "failed"}


def test_a_failure_of_its_business_fails_the_saga(app: Application) -> None:
    @workflow("fails", registry=app.registry)
    async def fails(context: WorkflowContext) -> None:
        await context.step("echo", "a")
        context.fail("out_of_stock", "there is none")

    found = app.run("fails")
    assert (found.status, found.failure.code) == ("failed", "out_of_stock")


def test_a_steps_arguments_that_do_not_fit_are_a_mistake_of_the_code(app: Application) -> None:
    @workflow("wrong", registry=app.registry)
    async def wrong(context: WorkflowContext) -> None:
        await context.step("count", "many")

    found = app.run("wrong")
    assert (found.status, found.failure.code) == ("parked", "input_invalid")


# ---- other code --------------------------------------------------------------------------------------------------------


def changed(app: Application, *, mends: bool) -> Any:
    """A function whose code changes while its saga sleeps, and perhaps again when it is parked."""
    code = {"tool": "echo"}

    @workflow("changes", registry=app.registry)
    async def changes(context: WorkflowContext) -> str:
        await (context.step("echo", "one") if code["tool"] == "echo" else context.step("count", 1))
        await context.sleep("1h")
        return str(await context.step("echo", "two"))

    async def during(world: World, saga: str) -> None:
        await asyncio.sleep(600)
        code["tool"] = "count"
        await world.settle()
        if mends:
            code["tool"] = "echo"
            await world.service().resume(saga)

    return during


def test_code_that_asks_for_other_operations_parks_the_saga_with_both(app: Application) -> None:
    found = app.run("changes", during=changed(app, mends=False))
    assert (found.status, found.failure.code) == ("parked", "function_changed")
    assert "`echo`" in found.failure.message
    assert "`count`" in found.failure.message
    assert app.calls == ["one"]


def test_with_the_right_code_it_goes_on(app: Application) -> None:
    found = app.run("changes", during=changed(app, mends=True))
    assert (found.status, found.output, app.calls) == ("completed", "two", ["one", "two"])


def versioned(app: Application, *, from_the_start: bool) -> Any:
    """A function that asks `version` in its first and its last round; its code has the change from the start, or from a deploy on."""
    code = {"changed": from_the_start}

    @workflow("changes", registry=app.registry)
    async def changes(context: WorkflowContext) -> list[bool]:
        found = []
        for _ in range(2):
            if code["changed"] and context.version("count"):
                await context.step("count", 1)
                found.append(True)
            else:
                await context.step("echo", "one")
                found.append(False)
            await context.sleep("1h")
        return found

    async def during(world: World, saga: str) -> None:
        await asyncio.sleep(600)
        code["changed"] = True

    return during


@pytest.mark.parametrize("from_the_start", [True, False])
def test_a_saga_goes_the_way_of_a_change_if_it_met_it_first(
    app: Application, *, from_the_start: bool
) -> None:
    found = app.run("changes", during=versioned(app, from_the_start=from_the_start))
    assert (found.status, found.output) == ("completed", [from_the_start] * 2)
    assert app.calls == ([1, 1] if from_the_start else ["one", "one"])


def test_the_way_of_a_change_is_in_the_log_before_a_worker_dies(app: Application) -> None:
    during = versioned(app, from_the_start=True)
    for write in range(7, 14):
        app.calls.clear()
        found = app.run("changes", during=during, plan=killed(write))
        assert (found.status, found.output) == ("completed", [True, True]), write


def test_after_a_checkpoint_all_changes_are_met_anew(app: Application) -> None:
    code = {"changed": False}

    @workflow("changes", registry=app.registry)
    async def changes(context: WorkflowContext) -> list[bool]:
        found = [*(context.state or []), code["changed"] and context.version("count")]
        await context.sleep("30m")
        if len(found) < 3:
            context.checkpoint(found)
        return found

    async def during(world: World, saga: str) -> None:
        await asyncio.sleep(600)
        code["changed"] = True

    assert app.run("changes", during=during).output == [False, True, True]


def test_a_result_that_no_longer_fits_its_tool_parks_the_saga(app: Application) -> None:
    @tool("typed", registry=app.registry)
    async def typed() -> int:
        return 1

    @workflow("reads", registry=app.registry)
    async def reads(context: WorkflowContext) -> str:
        await context.step("typed")
        await context.sleep("1h")
        return "done"

    @tool("typed")
    async def later() -> dict[str, str]:
        return {}

    async def during(world: World, saga: str) -> None:
        from baton.tools.define import REGISTRY

        await asyncio.sleep(600)
        app.registry._tools["typed"] = REGISTRY._tools.pop("typed")

    found = app.run("reads", during=during)
    assert (found.status, found.failure.code) == ("parked", "function_changed")
    assert "typed" in found.failure.message


def test_numbers_differ_after_a_checkpoint_and_are_the_same_in_a_replay() -> None:
    def drawn(checkpoints: int) -> tuple[float, str]:
        facts = FunctionFacts(
            saga="s", tenant="t", user="u", workflow="w", slot="f", node="f", checkpoints=checkpoints
        )
        context = WorkflowContext(facts, {}, FunctionRun())
        return context.random(), str(context.uuid())

    assert drawn(0) == drawn(0)
    assert len({drawn(0), drawn(1), drawn(2)}) == 3


class _Session:
    """A function that asks for nothing."""

    def start(self, at: int) -> FunctionStep:
        return FunctionStep()

    def deliver(self, item: str, at: int, output: Any, failure: Failure | None, by: str = "") -> FunctionStep:
        return FunctionStep()

    def mark_replay(self, *, on: bool) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("lasts_ms", "code"), [(10_000, ""), (10_001, "function_blocks")])
def test_a_function_that_computes_for_too_long_is_over(lasts_ms: int, code: str) -> None:
    times = iter([5, 5 + lasts_ms])
    live = _Live("slow", _Session(), lambda: next(times), 0, None, 0)
    live.start(1_000)
    failure = None if live.end is None else live.end.failure
    assert ("" if failure is None else failure.code) == code
