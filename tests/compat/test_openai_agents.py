"""Agents of the OpenAI Agents SDK in sagas: a desk of the shape of its public examples, whatever happens to its workers.

A triage agent with a guardrail, which asks an agent of its own, hands over to a clerk with tools; one of them needs an
approval. `make test` meets a sample of the faults, `make soak` all.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import agents
import msgspec
import openai
import pytest
from agents import (
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    Model,
    ModelResponse,
    RunConfig,
    RunContextWrapper,
    Usage,
    function_tool,
    input_guardrail,
)
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext
from pydantic import BaseModel

from baton import Context, StepFailure, WorkflowContext, tool, workflow
from baton.compat import openai_agents
from baton.compat.openai_agents import Agent, Runner, SagaSession, add_operations, step_tool
from baton.core.log.events import UnitRecorded
from baton.core.log.questions import Answer
from baton.errors import NotAllowedNow
from baton.runtime.requests.service import Service
from baton.testing import run
from baton.testing.result import Result
from baton.tools.define import Registry
from baton.tools.functions.define import document_of
from examples.services.models import Reply
from tests.kit.corpus import Scenario, patiently, shown, start
from tests.kit.faults import EVERYTHING, Chaos, Plan, scripted
from tests.kit.process import RUNS_IN, pause
from tests.kit.provider import served
from tests.kit.shared_budget import resume_parked
from tests.kit.verdict import Verdict
from tests.kit.verdict import run as verdict_of
from tests.kit.world import World

MESSAGE = {"message": "I want my money back."}
WAY = [
    "triage[1]/model",
    "polite[1]/model",
    *(f"triage[1]/{one}" for one in ("model#2", "find_order", "model#3", "approve", "refund", "model#4")),
]
REQUESTS = ["triage 0", "polite 0", "clerk 1", "clerk 2", "clerk 3"]
ALL = bool(os.environ.get("BATON_CRASH_POINTS"))


class Scripted(Model):
    """A model that answers by the number of results that it is told: a request may be repeated."""

    def __init__(self, desk: Desk, name: str, *answers: Any) -> None:
        self._desk, self._name, self._answers = desk, name, answers

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, **options: Any
    ) -> ModelResponse:
        items = input if isinstance(input, list) else []
        done = sum(one.get("type") == "function_call_output" for one in items)
        told = f"{self._name} {done}"
        await self._desk.acts(told, self._desk.requests)
        await pause(0.2)
        use = Usage(requests=1, input_tokens=100, output_tokens=10, total_tokens=110)
        return ModelResponse([self._answers[min(done, len(self._answers) - 1)]], use, told)

    async def stream_response(self, *args: Any, **options: Any) -> Any:
        made = await self.get_response(*args, **options)
        async for event in ScriptedModel([made.output]).stream_response(*args, **options):
            yield event


class Desk:
    """The agents, and all that they did. `again`: what was done although its result was in the log."""

    def __init__(
        self, polite: str = "yes", approves: bool = True, clerk: tuple[Any, ...] = (), **tools: Any
    ) -> None:
        self.requests: list[str] = []
        self.refunds: list[str] = []
        self.again: list[str] = []
        self.world: World | None = None
        self.registry = Registry()
        add_operations(self.registry)

        @function_tool(timeout=30)
        async def find_order(context: ToolContext[Any], text: str) -> str:
            """Find the order that a text is about."""
            await self.acts(f"found {context.tool_call_id}", [])
            return f"found {context.tool_call_id}"

        @function_tool(needs_approval=approves)
        async def refund(context: ToolContext[Any], order: str) -> str:
            """Give the money for an order back."""
            await self.acts(f"refunded {context.tool_call_id}", self.refunds)
            return f"refunded {context.tool_call_id}"

        guard = Agent(name="polite", model=Scripted(self, "polite", assistant_message(polite)))

        @input_guardrail
        async def is_polite(
            context: RunContextWrapper[Any], agent: Any, text: Any
        ) -> GuardrailFunctionOutput:
            said = await Runner.run(guard, text, context=context.context)
            return GuardrailFunctionOutput(said.final_output, tripwire_triggered=said.final_output == "no")

        answers = clerk or (
            function_call("find_order", {"text": "my order"}, call_id="c2"),
            function_call("refund", {"order": "o1"}, call_id="c3"),
            assistant_message("It is done."),
        )
        self.clerk: Agent[Any] = Agent(
            name="clerk",
            handoff_description="Gives money back",
            tools=tools.get("tools", [find_order, refund]),
            model=Scripted(self, "clerk", answers[0], *answers),
        )
        self.triage: Agent[Any] = Agent(
            name="triage",
            instructions="Send the customer to a colleague.",
            handoffs=[self.clerk],
            input_guardrails=[is_polite],
            model=Scripted(self, "triage", function_call("transfer_to_clerk", {}, call_id="c1")),
        )

        @workflow("support", registry=self.registry, tools=tools.get("steps", ()))
        async def support(message: str, context: WorkflowContext) -> Any:
            result = await Runner.run(self.triage, message)
            return [result.final_output, result.last_agent.name]

        self.support = support

    async def acts(self, told: str, book: list[str]) -> None:
        """Note what is done, and if its result is in the log: a process that stood still cannot know that."""
        if (process := RUNS_IN.get()) is not None:
            process.check()
        if self.world is not None and not (process is not None and process.is_frozen):
            entries = self.world.entries(self.world.log.heads()[0].ref.id)
            if any(f'"{told}"'.encode() in msgspec.json.encode(one) for one in entries):
                self.again.append(told)
        book.append(told)

    def run(self, function: Callable[..., Any] | None = None, **options: Any) -> Result:
        options = {"answers": {"approve": "approve"}, **options}
        return run(function or self.support, MESSAGE, tools=self.registry, **options)

    def furnish(self, world: World) -> None:
        """Put it into a world."""
        self.world = world
        for one in self.registry.values():
            world.registry.add(one)
        world.tools = world.registry.specs()


class Traces(agents.TracingProcessor):
    """Notes the traces that would be sent away."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def on_trace_start(self, trace: Any) -> None:
        self.sent.append(trace)

    def on_trace_end(self, trace: Any) -> None:
        """Nothing more."""

    def on_span_start(self, span: Any) -> None:
        self.sent.append(span)

    def on_span_end(self, span: Any) -> None:
        """Nothing more."""

    def shutdown(self) -> None:
        """Nothing is open."""

    def force_flush(self) -> None:
        """Nothing is kept back."""


@pytest.fixture(autouse=True)
def traces() -> list[Any]:
    """Return what the SDK traces, in place of sending it."""
    made = Traces()
    agents.set_trace_processors([made])
    return made.sent


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
    result = desk.run(answers={"approve": {"action": "reject", "comment": "too much"}})
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


@pytest.mark.parametrize("moment", ["before", "during", "after"])
@pytest.mark.parametrize("operation", [one for one in WAY if "approve" not in one])
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


@pytest.mark.simulation
@pytest.mark.parametrize("fate", EVERYTHING)
def test_nothing_recorded_is_paid_or_done_again_whatever_fails_at_a_write(fate: str) -> None:
    """Workers crash, stand still past their leases, and have no answer; at each write in turn."""
    _, whole = endured(Plan())
    numbers = range(1, len(whole.writes) + 1)
    for number in numbers if ALL else numbers[EVERYTHING.index(fate) :: 9]:
        desk, verdict = endured(scripted((("write", number, fate),)))
        assert (verdict.broken, desk.again) == ((), []), number
        assert (verdict.status, verdict.output) == ("completed", ["It is done.", "clerk"]), number
        assert set(desk.refunds) == {"refunded c3"}, number


@pytest.mark.simulation
@pytest.mark.parametrize("seed", range(100 if ALL else 4))
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


# ---- tools of Baton, sessions, streams


def _with_steps(*, fails: bool = False, approves: bool = True) -> tuple[Desk, list[str]]:
    books, registry = list[str](), Registry()

    @tool("bank.refund", registry=registry, undo="bank.charge")
    async def refund(order: str, context: Context) -> str:
        """Give the money back."""
        books.append(context.idempotency_key)
        if fails:
            raise StepFailure("card_closed", "there is no such card", kind="permanent")
        return f"refunded {order}"

    @tool("bank.charge", registry=registry)
    async def charge(order: str) -> None:
        books.append(f"charged {order}")

    answers = (function_call("refund", {"order": "o1"}, call_id="c3"), assistant_message("It is done."))
    desk = Desk(clerk=answers, tools=[step_tool(refund, needs_approval=approves)], steps=[refund])
    for one in registry.values():
        desk.registry.add(one)
    return desk, books


@pytest.mark.parametrize("moment", ["", "before", "during", "after"])
def test_a_tool_of_baton_is_a_step_with_its_key(moment: str) -> None:
    desk, keys = _with_steps()
    result = desk.run(kills={"refund": moment} if moment else {})
    assert (result.status, result.steps["triage[1]/refund"].output) == ("completed", "refunded o1"), result
    assert len(set(keys)) == 1


def test_a_model_hears_that_a_step_has_failed_for_good() -> None:
    desk, keys = _with_steps(fails=True)
    result = desk.run()
    assert (result.output, len(keys)) == (["It is done.", "clerk"], 1)
    assert "refund: failed" in repr(result)


def test_a_rollback_undoes_the_steps_of_agents() -> None:
    desk, books = _with_steps()

    @workflow("then-fails", registry=desk.registry, tools=["bank.refund"])
    async def then_fails(message: str, context: WorkflowContext) -> None:
        await Runner.run(desk.triage, message)
        context.fail("regret", "no money after all", kind="permanent")

    result = desk.run(then_fails)
    assert (result.status, result.undone, books[1:]) == ("rolled_back", ["triage[1]/refund"], ["charged o1"])


@pytest.mark.parametrize("kills", [{}, {"talker[1]/model": "after", "talker[2]/model": "after"}])
def test_a_session_has_its_items_after_deaths_and_a_checkpoint(kills: dict[str, str]) -> None:
    desk, heard = Desk(), list[int]()
    registry = desk.registry

    class Counting(Scripted):
        async def get_response(
            self, system_instructions: Any, input: Any, *args: Any, **options: Any
        ) -> ModelResponse:
            heard.append(len(input))
            return await super().get_response(system_instructions, input, *args, **options)

    talker = Agent(name="talker", model=Counting(desk, "talker", assistant_message("I see.")))

    @workflow("talk", registry=registry)
    async def talk(context: WorkflowContext) -> int:
        session = SagaSession(items=context.state)
        for word in ("one", "two"):
            await Runner.run(talker, word, session=session)
        if context.state is None:
            context.checkpoint(await session.get_items())
        assert len(await session.get_items(3)) == 3
        await session.pop_item()
        count = len(await session.get_items())
        await session.clear_session()
        return count + len(await session.get_items())

    result = run(talk, tools=registry, kills=kills)
    assert (result.status, result.output) == ("completed", 7), result
    assert sorted(set(heard)) == [1, 3, 5, 7]


def test_a_stream_has_the_recorded_answers() -> None:
    desk, kinds = Desk(), list[str]()

    @workflow("streams", registry=desk.registry)
    async def streams(message: str, context: WorkflowContext) -> Any:
        stream = Runner.run_streamed(desk.triage, message)
        async for event in stream.stream_events():
            kinds.append(event.type)
        return [stream.final_output, len(stream.interruptions)]

    result = desk.run(streams)
    assert (result.status, result.output) == ("completed", [None, 1]), result
    assert result.way == [one for one in WAY[:-2] if "approve" not in one]
    assert {"raw_response_event", "run_item_stream_event", "agent_updated_stream_event"} == set(kinds)


class Written(BaseModel):
    """Value that the SDK tells a model as a text."""

    word: str


@pytest.mark.parametrize(
    ("value", "recorded"),
    [
        ({"a": [1, None]}, {"a": [1, None]}),
        (agents.ToolOutputText(text="t"), {"type": "text", "text": "t"}),
        ([agents.ToolOutputText(text="t")], [{"type": "text", "text": "t"}]),
        (Written(word="w"), "word='w'"),
        ((1, 2), "(1, 2)"),
        (float("nan"), "nan"),
        (None, None),
    ],
)
def test_a_result_is_recorded_in_the_form_that_a_model_is_told(value: Any, recorded: Any) -> None:
    @function_tool
    def find() -> Any:
        """Find it."""
        return value

    desk = Desk(clerk=(function_call("find", {}, call_id="c3"), assistant_message("Found.")), tools=[find])
    result = desk.run()
    assert (result.output, result.steps["triage[1]/find"].output) == (
        ["Found.", "clerk"],
        {"value": recorded},
    )


async def test_viewers_see_the_text_of_a_streamed_answer_while_it_arrives() -> None:
    registry, text = Registry(), "".join(f"word{number} " for number in range(10))
    add_operations(registry)

    class Slow(ScriptedModel):
        async def stream_response(self, *args: Any, **options: Any) -> Any:
            async for event in super().stream_response(*args, **options):
                if event.type == "response.output_text.delta":
                    for number in range(0, len(text), 6):
                        await asyncio.sleep(1)
                        yield event.model_copy(update={"delta": text[number : number + 6]})
                else:
                    yield event

    poet = Agent(name="poet", model=Slow([[assistant_message(text)]]))

    @workflow("poem", registry=registry)
    async def poem(context: WorkflowContext) -> Any:
        stream = Runner.run_streamed(poet, "write")
        async for _ in stream.stream_events():
            pass
        return stream.final_output

    world = World(registry, timeout_s=60)
    world.switch_on()
    await world.service().register(json.dumps(document_of(registry["poem"])), json_only=False)
    view, _ = await world.service().start("poem", {}, "key")
    seen = set[str]()
    for _ in range(14):
        seen |= {one["text"] for one in (await world.queries().live(view["id"]))["texts"]}
        await asyncio.sleep(1)
    await world.settle()
    assert len(seen) >= 5, seen
    assert (await world.queries().show(view["id"]))["result"] == text


def test_an_agent_as_a_tool_has_operations_of_its_own() -> None:
    desk = Desk(approves=False)
    pays = (function_call("refund", {"order": "o1"}, call_id="c3"), assistant_message("Paid."))
    payer = Agent(name="payer", tools=desk.clerk.tools, model=Scripted(desk, "payer", *pays))
    asks = (function_call("ask_payer", {"input": "money"}, call_id="c8"), assistant_message("Settled."))
    boss = Agent(
        name="boss",
        tools=[payer.as_tool("ask_payer", "Asks the payer")],
        model=Scripted(desk, "boss", *asks),
    )

    @workflow("boss", registry=desk.registry)
    async def ask(message: str, context: WorkflowContext) -> Any:
        return (await Runner.run(boss, message)).final_output

    result = desk.run(ask)
    names = ("model", "model#2", "refund", "model#3", "model#4")
    assert (result.output, result.way) == ("Settled.", [f"boss[1]/{one}" for one in names]), result


# ---- money


class Provider(agents.ModelProvider):
    """Makes the models that agents name."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def get_model(self, model_name: str | None) -> Model:
        return Scripted(self._desk, str(model_name), assistant_message("I see."))


@pytest.mark.parametrize(("limit", "status", "requests"), [(0.1, "failed", []), (0.5, "completed", ["m 0"])])
def test_no_request_is_made_that_the_saga_has_no_money_for(
    limit: float, status: str, requests: list[str]
) -> None:
    desk = Desk()
    talker = Agent(name="talker", model="m")

    @workflow("talk", registry=desk.registry, limits={"cost_usd": limit})
    async def talk(message: str, context: WorkflowContext) -> Any:
        config = RunConfig(model_provider=Provider(desk))
        return (await Runner.run(talker, message, run_config=config)).final_output

    result = desk.run(talk)
    assert (result.status, desk.requests) == (status, requests), result
    assert result.spent_usd == pytest.approx(0.0002 * len(requests))


# ---- mistakes


def test_what_the_sdk_calls_a_mistake_of_its_user_parks_the_saga() -> None:
    desk = Desk()

    @workflow("wrong", registry=desk.registry)
    async def wrong(message: str, context: WorkflowContext) -> Any:
        return await Runner.run(desk.triage, message, session=SagaSession(), conversation_id="c")

    result = desk.run(wrong)
    assert (result.status, desk.requests) == ("parked", [])
    assert "function_defect" in repr(result)


def test_an_error_that_a_tool_lets_through_is_that_of_its_call() -> None:
    @function_tool(failure_error_function=None)
    def find() -> str:
        """Find it."""
        raise StepFailure("not_found", "gone", kind="permanent")

    desk = Desk(clerk=(function_call("find", {}, call_id="c3"), assistant_message("Found.")), tools=[find])
    assert desk.run().error == "not_found: gone"


# ---- in a tool, and outside of sagas


@pytest.mark.simulation
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


def test_outside_of_sagas_the_same_code_runs_plainly(traces: list[Any]) -> None:
    desk = Desk(approves=False)
    result = asyncio.run(Runner.run(desk.triage, "Hello"))
    assert traces
    assert (result.final_output, desk.refunds) == ("It is done.", ["refunded c3"])
    steps, keys = _with_steps(approves=False)
    assert Runner.run_sync(steps.triage, "Hello").final_output == "It is done."
    assert keys == ["c3"]


def test_a_plain_agent_is_refused_before_it_asks_a_model() -> None:
    desk = Desk()
    plain = agents.Agent(name="plain", tools=desk.clerk.tools, model="m")

    @workflow("plain", registry=desk.registry)
    async def asks(message: str, context: WorkflowContext) -> Any:
        return (await Runner.run(plain, message)).final_output

    result = desk.run(asks)
    assert (result.status, desk.requests) == ("parked", [])
    assert "function_defect" in repr(result)


# ---- the SDK itself


@pytest.mark.parametrize("streams", [False, True])
def test_the_client_of_the_sdk_asks_a_provider(monkeypatch: pytest.MonkeyPatch, streams: bool) -> None:
    registry, asked = Registry(), list[int]()
    add_operations(registry)

    @function_tool
    def price(quantity: int) -> int:
        """Return the price of so many teas."""
        asked.append(quantity)
        return 350 * quantity

    clerk = Agent(name="clerk", model="gpt-5-mini", tools=[price])

    @workflow("talk", registry=registry, limits={"cost_usd": 1})
    async def talk(message: str, context: WorkflowContext) -> Any:
        if not streams:
            return (await Runner.run(clerk, message)).final_output
        stream = Runner.run_streamed(clerk, message)
        assert len([event async for event in stream.stream_events()]) > 2
        return stream.final_output

    with served() as provider:
        replies = [Reply(calls=[("price", {"quantity": 3})]), Reply("$10.50")]
        provider.script = lambda _: replies.pop(0)
        client = openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="k-1")
        agents.set_default_openai_client(client, use_for_tracing=False)
        monkeypatch.setenv("OPENAI_API_KEY", "k-1")
        agents.set_default_openai_api("chat_completions")
        result = run(talk, MESSAGE, tools=registry, models="real")
        agents.set_default_openai_api("responses")
    assert (result.status, result.output, asked) == ("completed", "$10.50", [3]), result
    assert 0 < result.spent_usd < 0.01


def test_a_worker_without_agents_imports_nothing_of_the_sdk() -> None:
    program = "import sys, baton, baton.wiring, baton.runtime.worker.worker, baton.tools.functions.run\nprint('agents' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        == "False\n"
    )


def test_it_uses_public_names_of_the_sdk_only() -> None:
    """So that a newer minor works: what its modules and its pages name stays."""
    code = ast.parse(Path(openai_agents.__file__).read_text())
    named = [
        one
        for one in ast.walk(code)
        if isinstance(one, ast.ImportFrom) and str(one.module).startswith("agents")
    ]
    assert named
    for one in named:
        for name in one.names:
            assert not any(part.startswith("_") for part in f"{one.module}.{name.name}".split("."))
            assert hasattr(importlib.import_module(str(one.module)), name.name)
    assert RunConfig().tracing_disabled is False
