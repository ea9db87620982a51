"""Agents of the OpenAI Agents SDK in sagas: tools, approvals, sessions, streams, money, and its own client."""

from __future__ import annotations

import ast
import asyncio
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import agents
import mcp_types
import openai
import pytest
from agents import (
    Model,
    ModelResponse,
    RunConfig,
    ToolCallOutputItem,
    function_tool,
)
from agents.mcp import MCPServer
from agents.testing import ScriptedModel, assistant_message, function_call
from pydantic import BaseModel

from baton import Context, StepFailure, WorkflowContext, tool, workflow
from baton.compat import openai_agents
from baton.compat.openai_agents import Agent, Runner, SagaSession, add_operations, step_tool
from baton.testing import run
from baton.tools.define import Registry
from baton.tools.functions.define import document_of
from examples.services.models import Reply
from tests.compat.returns_desk import MESSAGE, WAY, Desk, Scripted, Traces
from tests.kit.provider import served
from tests.kit.world import World


@pytest.fixture(autouse=True)
def traces() -> list[Any]:
    """Return what the SDK traces, in place of sending it."""
    return Traces.begin().sent


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


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('{"order": "o1", "name": "Ann"}', "mended o1 of Ann"),  # `name` is an option of `context.step`, too
        ('{"order": "o1", "colour": "red"}', "input_invalid: `mend`: at /colour"),
        ('{"order": ', "input_invalid: "),
    ],
)
def test_a_model_hears_what_is_wrong_with_the_arguments_of_a_step(written: str, told: str) -> None:
    desk = Desk()

    @tool("mend", registry=desk.registry)
    async def mend(order: str, name: str = "") -> str:
        return f"mended {order} of {name}"

    call = function_call("mend", {}, call_id="c1").model_copy(update={"arguments": written})
    model = Scripted(desk, "clerk", call, assistant_message("Done."))
    clerk = Agent(name="clerk", model=model, tools=[step_tool(mend)])

    @workflow("talk", registry=desk.registry, tools=["mend"])
    async def talk(message: str, context: WorkflowContext) -> Any:
        items = (await Runner.run(clerk, message)).new_items
        return [one.output for one in items if isinstance(one, ToolCallOutputItem)]

    result = desk.run(talk)
    assert result.status == "completed", result
    assert result.output[0].startswith(told)


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


@pytest.mark.parametrize("approves", [False, True])
def test_an_agent_as_a_tool_has_operations_of_its_own(approves: bool) -> None:
    desk = Desk(approves=approves)
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

    result = desk.run(ask, kills={"boss[1]/refund": "after"})
    names = ("model", "model#2", *["approve_refund"] * approves, "refund", "model#3", "model#4")
    assert (result.output, result.way) == ("Settled.", [f"boss[1]/{one}" for one in names]), result
    assert set(desk.refunds) == {"refunded c3"}


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


# ---- servers of tools, and outside of sagas


class Clock(MCPServer):
    """An MCP server in this process."""

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk

    @property
    def name(self) -> str:
        return "clock"

    async def connect(self) -> None:
        """It is here."""

    async def cleanup(self) -> None:
        """Nothing is open."""

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[Any]:
        return [mcp_types.Tool(name="tell", description="Tell the time.", input_schema={"type": "object"})]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> Any:
        self._desk.refunds.append(tool_name)
        return mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text="noon")])

    async def list_prompts(self) -> Any:
        raise NotImplementedError

    async def get_prompt(self, name: str, arguments: Any = None) -> Any:
        raise NotImplementedError


def test_calls_of_an_mcp_server_are_recorded_too() -> None:
    desk = Desk()
    asks = (function_call("tell", {}, call_id="c8"), assistant_message("It is noon."))
    teller = Agent(name="teller", mcp_servers=[Clock(desk)], model=Scripted(desk, "teller", *asks))

    @tool("time.tell", registry=desk.registry, cost_usd="0.000001")
    async def tell(message: str) -> Any:
        return (await Runner.run(teller, message)).final_output

    @workflow("time", registry=desk.registry)
    async def time(message: str, context: WorkflowContext) -> Any:
        return [await context.step(tell, message), (await Runner.run(teller, message)).final_output]

    result = desk.run(time, kills={"teller[1]/tell": "after", "tell": "after"})
    assert (result.output, result.way[-3:]) == (
        ["It is noon."] * 2,
        ["teller[1]/model", "teller[1]/tell", "teller[1]/model#2"],
    ), result


def test_outside_of_sagas_the_same_code_runs_plainly(traces: list[Any]) -> None:
    desk = Desk(approves=False)
    result = asyncio.run(Runner.run(desk.triage, "Hello"))
    assert traces
    assert (result.final_output, desk.refunds) == ("It is done.", ["refunded c3"])
    steps, keys = _with_steps(approves=False)
    assert Runner.run_sync(steps.triage, "Hello").final_output == "It is done."
    assert keys == ["c3"]


def _plain(model: Any, desk: Desk) -> agents.Agent[Any]:
    return agents.Agent(name="plain", tools=desk.clerk.tools, model=model)


@pytest.mark.parametrize("kind", ["by its name", "an object", "after a handoff", "the other runner"])
def test_an_agent_whose_work_would_not_be_recorded_is_refused_before_it_asks_a_model(kind: str) -> None:
    desk = Desk()
    scripted = ScriptedModel([[function_call("transfer_to_plain", {}, call_id="c1")]] * 9)
    of_baton = Agent(name="first", model=scripted, handoffs=[_plain(scripted, desk)])
    agent = {
        "by its name": _plain("m", desk),
        "an object": _plain(scripted, desk),
        "after a handoff": of_baton,
        "the other runner": Agent(name="first", model=scripted),
    }[kind]
    runner: Any = agents.Runner if kind == "the other runner" else Runner

    @workflow("plain", registry=desk.registry)
    async def asks(message: str, context: WorkflowContext) -> Any:
        return (await runner.run(agent, message)).final_output

    result = desk.run(asks)
    assert (result.status, desk.requests, len(scripted.calls)) == ("parked", [], kind == "after a handoff")
    assert "function_defect" in repr(result)
    assert "baton.compat.openai_agents" in str(result.error)


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


def test_a_deployment_without_a_key_parks_its_sagas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    registry = Registry()
    add_operations(registry)

    class Provider(agents.ModelProvider):
        def get_model(self, model_name: str | None) -> Model:
            return agents.OpenAIChatCompletionsModel("gpt-5-mini", openai.AsyncOpenAI())

    @workflow("keyless", registry=registry, on_failure="rollback")
    async def asks(context: WorkflowContext) -> Any:
        config = agents.RunConfig(model_provider=Provider())
        return (await Runner.run(Agent(name="a", model="gpt-5-mini"), "hi", run_config=config)).final_output

    found = run(asks, {}, tools=registry)
    assert (found.status, "OPENAI_API_KEY" in str(found.error)) == ("parked", True)


def test_a_worker_without_agents_of_others_imports_nothing_of_their_sdks() -> None:
    modules = "baton, baton.wiring, baton.runtime.worker.worker, baton.tools.functions.run"
    program = f"import sys, {modules}\nprint({{'agents', 'langgraph', 'openai', 'pydantic_ai'}} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


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
