"""Sagas of functions that stay with the code that they began with: what is written, and what if that code is gone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from baton import WorkflowContext, tool, workflow
from baton.core.limits import NEWEST, PINNED, Limits
from baton.core.log import events as ev
from baton.errors import CodeGone, StoreUnavailable, Throttled
from baton.ports import Builds, Head, Message, SagaRef
from baton.runtime.mending import CURRENT, MISSING, ROLLING, SETTLED_MS, UNSURE, BuildKeeper
from baton.runtime.worker.pinned import HandOver
from baton.tools.functions.define import document_of
from tests.kit.corpus import patiently, start
from tests.kit.process import REFUSES, Outage
from tests.kit.toolbox import Books, make_registry
from tests.kit.version_runs import Versioned
from tests.kit.virtual_time import run_virtual
from tests.kit.world import TENANT, World


def deployed(code: str = PINNED, **world: Any) -> Versioned:
    made = Versioned(make_registry(Books()), **world)
    made.limits = replace(Limits(), function_code=code)
    made.deploy("1", ["first"])
    made.switch_on()
    return made


async def begin(world: Versioned, wait: int = 600) -> str:
    document = json.dumps(document_of(world.registry["noted"]))
    return str(await start(world, document, {"saga": "s", "wait": wait}, "noted"))


def head(world: World, saga: str) -> Any:
    return world.log.read_head(SagaRef(TENANT, saga))


def parked(world: World, saga: str) -> list[str]:
    return [event.code for event in world.events(saga) if isinstance(event, ev.Parked)]


def play(story: Callable[[], Awaitable[None]]) -> None:
    run_virtual(story())  # type: ignore[arg-type]


def test_head_and_log_name_the_build_and_the_newest_code_names_none() -> None:
    async def story() -> None:
        for code, build in ((PINNED, "1"), (NEWEST, "")):
            world = deployed(code)
            saga = await begin(world)
            await asyncio.sleep(60)
            assert head(world, saga).build == build
            (began,) = (event for event in world.events(saga) if isinstance(event, ev.FunctionBegan))
            assert began.build == build
            assert (await world.queries().show(saga))["build"] == (build or None)

    play(story)


def test_a_document_names_none_even_one_with_a_function_in_it() -> None:
    document = "name: w\nnodes:\n  one: {wait: {for: 1m}}\n  two: {function: noted, after: one, with: {saga: s, wait: 60}}"

    async def story() -> None:
        world = deployed()
        saga = str(await start(world, document, {}, "w"))
        await asyncio.sleep(90)
        assert head(world, saga).build == ""
        assert any(isinstance(event, ev.FunctionBegan) for event in world.events(saga))

    play(story)


def test_code_that_is_gone_parks_the_saga_and_resuming_goes_on_with_the_newest() -> None:
    async def story() -> None:
        world = deployed()
        saga = await begin(world)
        await asyncio.sleep(60)
        world.deploy("2", ["first"])
        del world.versions["1"]
        await world.settle()
        assert parked(world, saga) == ["code_gone"]
        assert head(world, saga).build == ""
        assert "build 1" in str(world.events(saga))
        await world.service().resume(saga)
        await world.settle()
        codes = {event.failure.code for event in world.events(saga) if isinstance(event, ev.AttemptFailed)}
        end = world.end(saga)
        assert (end is not None and end.status == "completed") or codes == {"function_changed"}
        assert {version for _, _, version in world.calls} >= {"1"}

    play(story)


def test_a_saga_whose_code_is_gone_can_be_cancelled() -> None:
    async def story() -> None:
        world = deployed()
        saga = await begin(world)
        await asyncio.sleep(60)
        world.deploy("2", ["other"])
        del world.versions["1"]
        await world.service().cancel(saga, "no more", 0)
        await world.settle()
        end = world.end(saga)
        assert end is not None
        assert end.status == "cancelled"
        assert parked(world, saga) == []

    play(story)


def test_signals_and_a_cancel_reach_the_code_that_it_began_with() -> None:
    def declare(world: Versioned, version: str) -> None:
        @tool("said", registry=world.registry)
        async def said(what: str) -> str:
            return f"{version} {what}"

        @workflow("waits", registry=world.registry)
        async def waits(context: WorkflowContext) -> str:
            await context.signal(f"go{version}")
            return str(await context.step("said", "went"))

        world.tools = world.registry.specs()

    async def story() -> None:
        world = deployed()
        declare(world, "1")
        saga = str(await start(world, json.dumps(document_of(world.registry["waits"])), {}, "waits"))
        await asyncio.sleep(60)
        world.deploy("2", ["other"])
        declare(world, "2")
        await patiently(world, lambda service: service.signal(saga, "go1", None, "k"))
        await world.settle()
        end = world.end(saga)
        assert end is not None
        assert end.output.v == "1 went"

    play(story)


def test_a_saga_that_parks_for_a_defect_goes_on_with_the_newest_code() -> None:
    def declare(world: Versioned, *, is_right: bool) -> None:
        @tool("gives", registry=world.registry)
        async def gives() -> str:
            if not is_right:
                raise KeyError("to")
            return "given"

        @workflow("mends", registry=world.registry)
        async def mends(context: WorkflowContext) -> str:
            await context.sleep("1m")
            return str(await context.step("gives"))

        world.tools = world.registry.specs()

    async def story() -> None:
        world = deployed()
        declare(world, is_right=False)
        saga = str(await start(world, json.dumps(document_of(world.registry["mends"])), {}, "mends"))
        await world.settle()
        assert (head(world, saga).status, head(world, saga).build) == ("parked", "")
        world.deploy("2", ["other"])
        declare(world, is_right=True)
        await asyncio.sleep(3_600)
        end = world.end(saga)
        assert end is not None
        assert end.output.v == "given"

    play(story)


def test_a_fork_has_the_code_of_its_saga() -> None:
    async def story() -> None:
        world = deployed()
        saga = await begin(world)
        await asyncio.sleep(60)
        world.deploy("2", ["other"])
        await world.service().fork(saga, 1, "again")
        await world.settle()
        end = world.end(saga)
        assert end is not None
        assert set(end.output.v) == {"1"}
        assert {version for _, _, version in world.calls} == {"1"}

    play(story)


# ---- handing over


class Lambda:
    """Builds that answer as they are told."""

    def __init__(self, answer: Sequence[int] | Exception = ()) -> None:
        self.answer = answer
        self.asked: list[tuple[str, list[str], int]] = []

    async def run(self, build: str, messages: Sequence[Message], until: int) -> Sequence[int]:
        self.asked.append((build, [one.saga for one in messages], until))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_the_wakes_of_an_invocation_for_one_build_are_one_invocation_of_it() -> None:
    async def story() -> None:
        builds: Builds = Lambda([1])
        over = HandOver(builds, 90_000)
        wakes = [("1", "a"), ("2", "b"), ("1", "c")]
        again = await asyncio.gather(*(over.give(build, Message(saga)) for build, saga in wakes))
        assert again == [False, False, True]
        assert builds.asked == [("1", ["a", "c"], 90_000), ("2", ["b"], 90_000)]  # type: ignore[attr-defined]

    play(story)


@pytest.mark.parametrize("error", [StoreUnavailable("it has failed"), Throttled("not now"), CodeGone("gone")])
def test_what_a_build_meets_is_met_by_each_of_its_wakes(error: Exception) -> None:
    async def story() -> None:
        over = HandOver(Lambda(error), 90_000)
        met = await asyncio.gather(*(over.give("1", Message(saga)) for saga in "ab"), return_exceptions=True)
        assert met == [error, error]

    play(story)


def test_a_wake_whose_build_cannot_be_invoked_comes_again_and_the_saga_ends_later() -> None:
    async def story() -> None:
        world = deployed(outages=(Outage("lambda", REFUSES, 50, 900),))
        saga = await begin(world, wait=60)
        await asyncio.sleep(40)
        world.deploy("2", ["other"])
        await asyncio.sleep(240)
        assert world.end(saga) is None
        await world.settle()
        end = world.end(saga)
        assert end is not None
        assert set(end.output.v) == {"1"}

    play(story)


def test_ten_thousand_sagas_of_one_build_take_no_more_workers_than_the_queue_may_keep_busy() -> None:
    """A hundred here, with two workers of the queue: two of its own, and two of the build's."""

    async def story() -> None:
        world = deployed(slots=2, batch=10)
        most = busy = 0
        real = world._work

        async def work(*args: Any) -> Any:
            nonlocal most, busy
            busy += 1
            most = max(most, busy)
            try:
                return await real(*args)
            finally:
                busy -= 1

        document = json.dumps(document_of(world.registry["noted"]))
        await world.service().register(document, json_only=False)
        sagas = [await _one(world, number) for number in range(100)]
        await asyncio.sleep(30)
        world.deploy("2", ["other"])
        world._work = work  # type: ignore[method-assign,assignment]
        world.reconciler_on = False
        await world.settle()
        ends = [world.end(saga) for saga in sagas]
        assert {tuple(end.output.v) for end in ends if end} == {("1", "1", "1")}
        assert most <= 4

    async def _one(world: Versioned, number: int) -> str:
        view, _ = await world.service().start("noted", {"saga": f"s{number}", "wait": 300}, f"k{number}")
        return str(view["id"])

    play(story)


# ---- which builds are drained


def test_a_build_is_kept_for_its_sagas_and_for_a_while_after_a_deploy() -> None:
    async def story() -> None:
        world = deployed()
        process = world.process("operator")
        keeper = BuildKeeper(world.log, world, process.clock, process.offload)

        async def kept() -> list[tuple[str, int, str]]:
            return [(one.build, one.sagas, one.kept) for one in await keeper.report()]

        saga = await begin(world, wait=86_400)
        await asyncio.sleep(60)
        assert await kept() == [("1", 1, CURRENT)]
        world.deploy("2", ["other"])
        (old, new) = await kept()
        assert (old[:2], bool(old[2]), new) == (("1", 1), True, ("2", 0, CURRENT))
        await world.service().cancel(saga, "no more", 0)
        await asyncio.sleep(60)
        assert await kept() == [("1", 0, ROLLING), ("2", 0, CURRENT)]
        await asyncio.sleep(SETTLED_MS / 1_000)
        assert await kept() == [("1", 0, ""), ("2", 0, CURRENT)]
        assert [one.build for one in await keeper.delete_drained()] == ["1"]
        assert list(world.versions) == ["2"]

    play(story)


def test_a_build_is_kept_while_a_saga_of_a_dead_worker_waits_for_another() -> None:
    async def story() -> None:
        world = deployed(reconciler_on=False)
        world.deploy("2", ["other"])
        await asyncio.sleep(SETTLED_MS / 1_000)
        process = world.process("operator")
        lost = Head(
            ref=SagaRef(TENANT, "lost"),
            workflow="noted",
            graph="g",
            user="ann",
            created=0,
            start_hash="h",
            owner="dead",
            until=process.clock.now() - 1,
            due_at=process.clock.now() + 3_000,
        )
        assert world.log.create_head(lost) is None
        world.log.settle_index()
        keeper = BuildKeeper(world.log, world, process.clock, process.offload)
        assert [one.kept for one in await keeper.report()] == [UNSURE, CURRENT]

    play(story)


def test_a_build_that_sagas_name_and_that_is_not_there_is_reported() -> None:
    async def story() -> None:
        world = deployed()
        await begin(world, wait=86_400)
        await asyncio.sleep(60)
        world.deploy("2", ["other"])
        del world.versions["1"]
        process = world.process("operator")
        keeper = BuildKeeper(world.log, world, process.clock, process.offload)
        (first, _) = await keeper.report()
        assert (first.build, first.sagas, first.kept) == ("1", 1, MISSING)

    play(story)
