"""Agents of the OpenAI Agents SDK in sagas, whatever happens to their workers: each request and each call once.

`make test` meets a sample of the faults, `make soak` all.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from functools import cache, partial
from itertools import product
from typing import Any

import msgspec
import pytest
from agents import (
    InputGuardrailTripwireTriggered,
    Model,
    ModelResponse,
    Usage,
    function_tool,
)
from agents.testing import assistant_message, function_call

from baton import Context, StepFailure, WorkflowContext, tool, workflow
from baton.compat.openai_agents import Agent, Runner
from baton.core.log.events import UnitRecorded
from baton.core.log.questions import Answer
from baton.errors import NotAllowedNow
from baton.runtime.requests.service import Service
from baton.testing import run
from baton.tools.define import Registry
from baton.tools.functions.define import document_of
from tests.compat.returns_desk import MESSAGE, REQUESTS, WAY, Desk, Scripted, Traces
from tests.kit.corpus import Scenario, patiently, shown, start
from tests.kit.faults import EVERYTHING, Chaos, Plan, scripted
from tests.kit.shared_budget import resume_parked
from tests.kit.verdict import Verdict
from tests.kit.verdict import run as verdict_of
from tests.kit.world import World

ALL = bool(os.environ.get("BATON_CRASH_POINTS"))


@pytest.fixture(autouse=True)
def traces() -> list[Any]:
    """Return what the SDK traces, in place of sending it."""
    return Traces.begin().sent


# ---- in a workflow function


def test_each_request_and_each_call_is_an_operation(traces: list[Any]) -> None:
    desk = Desk()
    result = desk.run()
    assert (result.status, result.output) == ("completed", ["It is done.", "clerk"]), result
    assert result.way == WAY
    assert (desk.requests, desk.refunds) == (REQUESTS, ["refunded c3"])
    assert result.steps["triage[1]/refund"].output == {"value": "refunded c3"}
    assert traces == []


def test_a_rejected_call_is_not_made_and_its_model_hears_why() -> None:
    desk = Desk()
    result = desk.run(answers={"approve_refund": {"action": "reject", "comment": "too much"}})
    assert (result.output, desk.refunds) == (["It is done.", "clerk"], [])
    assert "triage[1]/refund" not in result.way


def test_a_guardrail_that_trips_raises_in_the_function() -> None:
    desk = Desk(polite="no")

    @workflow("guarded", registry=desk.registry)
    async def guarded(message: str, context: WorkflowContext) -> str:
        try:
            await Runner.run(desk.triage, message)
        except InputGuardrailTripwireTriggered as error:
            return str(error.guardrail_result.output.output_info)
        return "passed"

    result = desk.run(guarded)
    assert (result.status, result.output, desk.refunds) == ("completed", "no", []), result


DEATHS = [*product((one for one in WAY if "approve" not in one), ("before", "during", "after"))]


@pytest.mark.parametrize(("operation", "moment"), DEATHS if ALL else DEATHS[::4])
def test_a_worker_that_dies_at_an_operation_repeats_no_recorded_one(operation: str, moment: str) -> None:
    desk = Desk()
    result = desk.run(kills={operation: moment})
    assert (result.status, result.output) == ("completed", ["It is done.", "clerk"]), result
    assert set(desk.refunds) == {"refunded c3"}
    assert len(desk.requests) + len(desk.refunds) <= len(REQUESTS) + 3  # what was under way, and no more


@pytest.mark.parametrize(
    ("kind", "status", "tries"), [("transient", "completed", 2), ("permanent", "failed", 1)]
)
def test_a_request_fails_as_a_step_does(kind: str, status: str, tries: int) -> None:
    desk, asked = Desk(), list[str]()

    class Failing(Scripted):
        async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
            asked.append(kind)
            if len(asked) == 1:
                raise StepFailure("no_model", "it does not answer", kind=kind)
            return await super().get_response(*args, **options)

    desk.clerk.model = Failing(desk, "clerk", assistant_message("It is done."))
    result = desk.run()
    assert (result.status, len(asked)) == (status, tries), result
    assert (result.error or "no_model").startswith("no_model")


async def _approve(service: Service, saga: str, question: str) -> None:
    await service.answer(saga, Answer(ask=question, action="approve"), f"key-{question}")


async def _driven(world: World, desk: Desk) -> str:
    document = json.dumps(document_of(desk.registry["support"]))
    saga = await start(world, document, MESSAGE, "support")
    while world.end(saga) is None:
        for question in (await shown(world, saga))["questions"]:
            with suppress(NotAllowedNow):
                await patiently(world, partial(_approve, saga=saga, question=question["id"]))
        await asyncio.sleep(20)
        await resume_parked(world, patiently)
    return saga


def endured(plan: Plan, drive: Any = _driven, expected: str = "completed") -> tuple[Desk, Verdict]:
    desk = Desk()
    return desk, verdict_of(Scenario("support", partial(drive, desk=desk), expected), plan, desk.furnish)


@cache
def writes() -> range:
    _, whole = endured(Plan())
    return range(1, len(whole.writes) + 1)


@pytest.mark.simulation
@pytest.mark.parametrize("fate", EVERYTHING)
def test_nothing_recorded_is_paid_or_done_again_whatever_fails_at_a_write(fate: str) -> None:
    """Workers crash, stand still past their leases, and have no answer; at each write in turn."""
    for number in writes() if ALL else writes()[3 * EVERYTHING.index(fate) :: 3 * len(EVERYTHING)]:
        desk, verdict = endured(scripted((("write", number, fate),)))
        assert (verdict.broken, desk.again) == ((), []), number
        assert (verdict.status, verdict.output) == ("completed", ["It is done.", "clerk"]), number
        assert set(desk.refunds) == {"refunded c3"}, number


@pytest.mark.simulation
@pytest.mark.parametrize("seed", range(100 if ALL else 2))
def test_nothing_recorded_is_paid_or_done_again_whatever_fails_by_chance(seed: int) -> None:
    desk, verdict = endured(Chaos(seed=seed, budget=8, kinds=EVERYTHING))
    assert (verdict.broken, desk.again) == ((), [])
    assert (verdict.status, verdict.output) == ("completed", ["It is done.", "clerk"])


@pytest.mark.simulation
def test_a_fork_keeps_what_was_done_before_its_cut() -> None:
    async def drive(world: World, desk: Desk) -> str:
        saga = await _driven(world, desk)
        done = [one.version for one in world.entries(saga) if b'"refunded c3"' in msgspec.json.encode(one)]
        desk.requests.clear()
        await world.service().fork(saga, done[0], "once more", "fork")
        await world.settle()
        return saga

    desk, verdict = endured(Plan(), drive)
    assert (verdict.status, verdict.output, verdict.broken) == ("completed", ["It is done.", "clerk"], ())
    assert (desk.requests, desk.refunds) == (["clerk 3"], ["refunded c3"])


@pytest.mark.simulation
def test_a_cancelled_saga_asks_no_model_any_more() -> None:
    async def drive(world: World, desk: Desk) -> str:
        saga = await start(world, json.dumps(document_of(desk.registry["support"])), MESSAGE, "support")
        await asyncio.sleep(30)  # it waits for its approval
        await world.service().cancel(saga, "enough", 0)
        await world.settle()
        return saga

    desk, verdict = endured(Plan(), drive, "cancelled")
    assert (verdict.status, verdict.broken, desk.refunds) == ("cancelled", (), [])
    assert desk.requests == REQUESTS[:-1]


# ---- in a tool


@pytest.mark.simulation
class Echo(Model):
    """A model whose server gives each call the same id, and whose answer is the call's result."""

    def __init__(self, city: str, slow: list[str]) -> None:
        self._city, self._slow = city, slow

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, **options: Any
    ) -> ModelResponse:
        if self._city in self._slow:
            await asyncio.sleep(1)
        results = [one["output"] for one in input if isinstance(one, dict) and "output" in one]
        call = function_call("look", {"city": self._city}, call_id="functions.look:0")
        return ModelResponse([assistant_message(results[0]) if results else call], Usage(), None)

    def stream_response(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("it is not asked for a stream")


def test_agents_at_once_find_their_own_calls_though_a_server_repeats_ids() -> None:
    registry, slow, tries = Registry(), ["a"], list[int]()

    @function_tool
    async def look(city: str) -> str:
        """Look at the weather."""
        if city in slow:
            await asyncio.sleep(3)
        return f"weather of {city}"

    @tool("both", cost_usd="0.000001", registry=registry)
    async def both() -> list[str]:
        tries.append(1)
        made = [Agent(name=one, instructions=one, model=Echo(one, slow), tools=[look]) for one in "ab"]
        try:
            async with asyncio.timeout(3):
                found = await asyncio.gather(*(Runner.run(one, "weather?") for one in made))
        except TimeoutError:
            slow.clear()
            raise StepFailure("connection_failed", "the line is down", kind="transient") from None
        return [one.final_output for one in found]

    result = run("name: x\nnodes: {a: {tool: both}}\noutput: ${ctx.a.output}", tools=registry)
    assert (result.output, len(tries)) == (["weather of a", "weather of b"], 2), result


@pytest.mark.parametrize("fate", ["", "crash before", "crash after", "freeze"])
def test_in_a_tool_requests_and_calls_are_units_of_its_journal(fate: str) -> None:
    async def drive(world: World, desk: Desk) -> str:
        saga = await start(world, document, MESSAGE, "whole")
        await world.settle()
        return saga

    def ended(plan: Plan) -> tuple[Desk, Verdict]:
        desk = Desk(approves=False)

        @tool("desk.answer", registry=desk.registry, cost_usd="0.000001")
        async def answer(message: str, context: Context) -> str:
            return str((await Runner.run(desk.triage, message)).final_output)

        return desk, verdict_of(Scenario("whole", partial(drive, desk=desk)), plan, desk.furnish)

    document = "name: whole\ninput: {}\nnodes: {answer: {tool: desk.answer, with: {message: hello}}}\noutput: ${ctx.answer.output}"
    _, verdict = ended(Plan())
    events = [event for _, entries in verdict.logs for entry in entries for event in entry.events]
    units = [event.name.partition(" ")[0] for event in events if isinstance(event, UnitRecorded)]
    assert sorted(units) == ["find_order", *["model"] * 5, "refund"]
    for number in range(3, len(verdict.writes), 1 if ALL else 3) if fate else ():
        desk, verdict = ended(scripted((("write", number, fate),)))
        assert (verdict.status, verdict.output, verdict.broken) == ("completed", "It is done.", ()), number
        assert (desk.again, set(desk.refunds)) == ([], {"refunded c3"}), number
