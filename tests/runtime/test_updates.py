"""Updates of a workflow function: signals that are checked, and that the function answers: each sender hears one answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from baton import Update, WorkflowContext, workflow
from baton.core.log import events as ev
from baton.errors import InvalidInput, KeyReused, NotAllowedNow
from tests.kit.corpus import patiently
from tests.kit.world import World
from tests.runtime.functions import Application, During, Result, killed

HOUR_S = 3_600


def _not_far(zip_code: str) -> str:
    if zip_code.startswith("9"):
        raise ValueError("we do not deliver there")
    return zip_code


@dataclass
class Address:
    """Where an order goes."""

    zip: Annotated[str, AfterValidator(_not_far)]


@pytest.fixture
def app() -> Application:
    made = Application()

    @workflow("delivers", registry=made.registry)
    async def delivers(context: WorkflowContext) -> list[str]:
        """An hour in which the address may be changed, until the parcel is packed."""
        made.runs.append("delivers")
        to = ["10115"]
        try:
            async with asyncio.timeout(3_600):
                while True:
                    change: Update[Address] = await context.update("change_address", Address)
                    is_near = (await context.step("echo", change.value.zip))[0] == "1"
                    if is_near:
                        to.append(change.value.zip)
                    await change.answer({"accepted": is_near})
        except TimeoutError:
            return to

    @workflow("decides-late", registry=made.registry)
    async def decides_late(context: WorkflowContext) -> str:
        """It looks at what has come only after an hour, and takes what fits."""
        await context.sleep("1h")
        change = await context.update("change_address", Address, timeout="1h")
        await change.answer("taken")
        return change.value.zip

    @workflow("does-not-answer", registry=made.registry)
    async def does_not_answer(context: WorkflowContext) -> None:
        await context.update("change_address", Address)
        await context.sleep("30m")

    @workflow("fails-after", registry=made.registry)
    async def fails_after(context: WorkflowContext) -> None:
        change = await context.update("change_address")
        await change.answer(False)
        context.fail("gone", "it is over", kind="permanent")

    return made


async def send(world: World, saga: str, zip_code: Any, key: str = "k1") -> dict[str, Any]:
    payload = {"zip": zip_code}
    return await patiently(world, lambda service: service.signal(saga, "change_address", payload, key))


async def answer(world: World, saga: str, zip_code: Any, key: str = "k1") -> Any:
    """Send it until there is an answer, as clients do."""
    for _ in range(400):
        if (sent := await send(world, saga, zip_code, key))["outcome"] == "answered":
            return sent["answer"]
        await asyncio.sleep(1)
    raise AssertionError("there is no answer")


def run(app: Application, name: str, during: During, **more: Any) -> Result:
    return app.run(name, during=during, **more)


def test_its_sender_hears_what_the_function_decides(app: Application) -> None:
    heard: list[Any] = []

    async def during(world: World, saga: str) -> None:
        await asyncio.sleep(60)
        assert (await send(world, saga, "12043"))["outcome"] == "waiting"
        heard.append(await answer(world, saga, "12043"))
        heard.append(await answer(world, saga, "80331", "k2"))

    found = run(app, "delivers", during)
    assert heard == [{"accepted": True}, {"accepted": False}]
    assert (found.status, found.output) == ("completed", ["10115", "12043"])


def test_a_repeated_update_has_the_same_answer_and_is_taken_once(app: Application) -> None:
    async def during(world: World, saga: str) -> None:
        await asyncio.sleep(60)
        first = await answer(world, saga, "12043")
        again = await send(world, saga, "12043")
        assert (again["answer"], again["changed"]) == (first, False)
        with pytest.raises(KeyReused):
            await send(world, saga, "12045")
        await asyncio.sleep(HOUR_S)
        assert (await send(world, saga, "12043"))["answer"] == first, "also when the saga has ended"

    found = run(app, "delivers", during)
    assert found.output == ["10115", "12043"]
    assert app.calls == ["12043"]


def test_a_value_that_does_not_fit_is_refused_while_the_function_waits(app: Application) -> None:
    async def during(world: World, saga: str) -> None:
        await asyncio.sleep(60)
        with pytest.raises(InvalidInput) as caught:
            await send(world, saga, 12043)
        assert [one.path for one in caught.value.problems] == ["/payload/zip"]

    found = run(app, "delivers", during)
    assert not [one for one in found.events if isinstance(one, ev.SignalReceived)]


@pytest.mark.parametrize(("unfit", "why"), [(12043, "/zip"), ("99999", "we do not deliver there")])
def test_one_that_came_before_and_does_not_fit_is_refused_and_the_function_waits_on(
    app: Application, unfit: Any, why: str
) -> None:
    async def during(world: World, saga: str) -> None:
        await asyncio.sleep(60)
        assert (await send(world, saga, unfit, "bad"))["outcome"] == "waiting"
        await send(world, saga, "12043", "good")
        assert await world.queries().show(saga)
        await asyncio.sleep(HOUR_S)
        with pytest.raises(InvalidInput, match=why):
            await send(world, saga, unfit, "bad")
        assert await answer(world, saga, "12043", "good") == "taken"

    assert run(app, "decides-late", during).output == "12043"


def test_a_saga_that_ends_without_an_answer_says_so(app: Application) -> None:
    async def during(world: World, saga: str) -> None:
        await asyncio.sleep(60)
        await send(world, saga, "12043")
        await asyncio.sleep(60)
        assert (await send(world, saga, "12043"))["outcome"] == "taken"
        await send(world, saga, "12045", "k2")
        await asyncio.sleep(HOUR_S)
        for key, code in (("k1", "12043"), ("k2", "12045")):
            sent = await send(world, saga, code, key)
            assert (sent["outcome"], sent["answer"], sent["status"]) == ("ended", None, "completed")
        with pytest.raises(NotAllowedNow, match="the saga has ended"):
            await send(world, saga, "12047", "k3")

    assert run(app, "does-not-answer", during).status == "completed"


def test_an_answer_stays_when_the_function_fails_after_it(app: Application) -> None:
    async def during(world: World, saga: str) -> None:
        await asyncio.sleep(60)
        assert await answer(world, saga, "12043") is False

    assert run(app, "fails-after", during).status == "failed"


@pytest.mark.parametrize("write", range(6, 24))
def test_a_worker_that_dies_behind_any_write_answers_once(app: Application, write: int) -> None:
    heard: list[Any] = []

    async def during(world: World, saga: str) -> None:
        await asyncio.sleep(60)
        for key, code in (("k1", "12043"), ("k2", "80331"), ("k1", "12043")):
            heard.append(await answer(world, saga, code, key))

    found = run(app, "delivers", during, plan=killed(write))
    assert heard == [{"accepted": True}, {"accepted": False}, {"accepted": True}]
    assert found.output == ["10115", "12043"]
    replies = [
        one.answers
        for event in found.events
        if isinstance(event, ev.OperationsBegan)
        for one in event.operations
        if one.answers
    ]
    assert replies == ["change_address/k1", "change_address/k2"]


def test_an_answer_takes_no_entry_of_its_own(app: Application) -> None:
    async def during(world: World, saga: str) -> None:
        await asyncio.sleep(60)
        await answer(world, saga, "12043")

    found = run(app, "delivers", during)
    (entry,) = [one for one in found.entries if any(isinstance(event, ev.NodePassed) for event in one.events)]
    assert [type(event) for event in entry.events].count(ev.OperationsBegan) == 2
    assert any(isinstance(event, ev.StepSucceeded) for event in entry.events)


@pytest.mark.parametrize("size", [20_000, 70_000])
def test_a_large_answer_is_stored_beside_the_log_and_a_larger_one_is_a_mistake(
    app: Application, size: int
) -> None:
    @workflow("says-much", registry=app.registry)
    async def says_much(context: WorkflowContext) -> None:
        await (await context.update("change_address")).answer("x" * size)

    async def during(world: World, saga: str) -> None:
        await asyncio.sleep(60)
        if size < 65_536:
            assert await answer(world, saga, "1") == "x" * size
        else:
            await send(world, saga, "1")

    found = run(app, "says-much", during)
    assert found.status == ("completed" if size < 65_536 else "parked")
    if size > 65_536:
        assert (found.failure.code, "65,536 bytes" in found.failure.message) == ("function_defect", True)


@pytest.mark.parametrize("times", [0, 2])
def test_an_update_is_answered_once_and_the_answer_is_awaited(app: Application, times: int) -> None:
    @workflow("mistaken", registry=app.registry)
    async def mistaken(context: WorkflowContext) -> None:
        change = await context.update("change_address")
        change.answer(1)
        for _ in range(times):
            await change.answer(2)

    async def during(world: World, saga: str) -> None:
        await asyncio.sleep(60)
        await send(world, saga, "1")

    failure = run(app, "mistaken", during).failure
    why = "has been answered" if times else "has never awaited `answer`"
    assert (failure.code, why in failure.message) == ("function_defect", True)


def test_after_its_time_it_is_a_time_out(app: Application) -> None:
    @workflow("impatient", registry=app.registry)
    async def impatient(context: WorkflowContext) -> str:
        try:
            await context.update("change_address", timeout="1h")
        except TimeoutError:
            return "too late"
        return ""

    assert app.run("impatient").output == "too late"


def test_a_function_that_begins_again_after_each_answer_knows_those_before(app: Application) -> None:
    @workflow("long", registry=app.registry)
    async def long(context: WorkflowContext) -> int:
        done: int = context.state or 0
        if done < 3:
            change = await context.update("change_address", Address)
            await change.answer(done)
            context.checkpoint(done + 1)
        return done

    async def during(world: World, saga: str) -> None:
        await asyncio.sleep(60)
        for number in range(3):
            assert await answer(world, saga, "12043", f"k{number}") == number
        assert await answer(world, saga, "12043", "k0") == 0

    assert run(app, "long", during).output == 3
