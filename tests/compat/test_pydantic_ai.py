"""Agents of pydantic-ai as they are, in workflow functions and in tools."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import tomllib
from collections.abc import AsyncIterator
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import (
    Agent,
    ApprovalRequired,
    CallDeferred,
    FunctionToolset,
    ModelHTTPError,
    ModelMessage,
    ModelResponse,
    ModelRetry,
    RunContext,
    TextPart,
    Tool,
    ToolCallPart,
    UserError,
)
from pydantic_ai.durable_exec import BaseDurabilityCapability
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import DynamicToolset

from baton import Context, StepFailure, WorkflowContext, tool, workflow
from baton.compat import pydantic_ai as adapter
from baton.compat.pydantic_ai import BatonDurability, idempotency_key
from baton.core.limits import Limits
from baton.core.log.events import OperationsBegan
from baton.testing import run
from baton.tools.define import Registry
from baton.tools.functions.define import document_of
from tests.kit.faults import Plan, scripted
from tests.kit.scripted import Scripted, says
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

# `make soak` has all.
ALL = bool(os.environ.get("BATON_CRASH_POINTS"))


class Bank:
    """A support agent of a bank, whose shape is that of pydantic-ai's own example."""

    def __init__(self, **durability: Any) -> None:
        self.registry = Registry()
        self.requests: list[int] = []
        self.calls: list[tuple[str, str]] = []
        model = FunctionModel(self.answer, model_name="scripted")
        capability = BatonDurability(registry=self.registry, **durability)
        self.agent: Agent[int, str] = Agent(
            model, name="support", deps_type=int, instructions="Be kind.", capabilities=[capability]
        )

        @self.agent.tool
        async def balance(ctx: RunContext[int], pending: bool) -> str:
            """Return the balance."""
            self.calls.append(("balance", idempotency_key()))
            return f"${ctx.deps}.00"

        @self.agent.tool_plain(requires_approval=True)
        def refund(amount: int) -> str:
            """Pay an amount back."""
            self.calls.append(("refund", idempotency_key()))
            return f"paid {amount}"

        agent = self.agent

        @workflow("support", registry=self.registry)
        async def support(customer: int, question: str, context: WorkflowContext) -> str:
            result = await agent.run(question, deps=customer)
            return result.output

        @tool("support.answer", cost_usd="0.000001", timeout="5m", registry=self.registry)
        async def answer(customer: int, question: str, context: Context) -> str:
            result = await agent.run(question, deps=customer)
            return result.output

        self.support = support
        self.world: World
        self.script: Any = None

    async def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if self.script is not None:
            found: ModelResponse = await self.script(messages, info)
            return found
        turn = sum(isinstance(one, ModelResponse) for one in messages)
        self.requests.append(turn)
        said = str(messages[0].parts[-1].content)  # type: ignore[union-attr]
        if turn == 0:
            return ModelResponse(parts=[ToolCallPart("balance", {"pending": True})])
        if turn == 1 and "refund" in said:
            return ModelResponse(parts=[ToolCallPart("refund", {"amount": 7})])
        return ModelResponse(parts=[TextPart(f"{said}: {messages[-1].parts[0].content}")])  # type: ignore[union-attr]


DOCUMENT = """
name: w
input: {type: object, required: [customer, question], properties: {customer: {type: integer}, question: {type: string}}}
nodes: {ask: {tool: support.answer, with: {customer: "${input.customer}", question: "${input.question}"}}}
output: ${ctx.ask.output}
"""
GIVEN = {"customer": 9, "question": "how much"}


def test_an_agent_runs_plainly_without_a_saga() -> None:
    bank = Bank()
    assert bank.agent.run_sync("how much", deps=9).output == "how much: $9.00"
    assert bank.calls == [("balance", "")]


def test_an_agent_runs_in_a_function() -> None:
    bank = Bank()
    result = run(bank.support, GIVEN, tools=bank.registry)
    assert (result.status, result.output) == ("completed", "how much: $9.00"), result.view.get(
        "parked"
    ) or result.view.get("error")
    assert (bank.requests, len(bank.calls)) == ([0, 1], 1)


def test_an_agent_runs_in_a_tool() -> None:
    bank = Bank()
    result = run(DOCUMENT, GIVEN, tools=bank.registry)
    assert (result.status, result.output) == ("completed", "how much: $9.00"), result.view.get(
        "parked"
    ) or result.view.get("error")
    assert (bank.requests, len(bank.calls)) == ([0, 1], 1)


REFUND = {"customer": 9, "question": "refund"}


def test_a_call_that_needs_an_approval_is_a_question() -> None:
    bank = Bank(approval={"message": "Is it fair?"})
    result = run(bank.support, REFUND, tools=bank.registry, answers={"approve_refund": "approve"})
    assert (result.status, result.output) == ("completed", "refund: paid 7"), result.view.get("parked")
    assert [name for name, _ in bank.calls] == ["balance", "refund"]


@pytest.mark.parametrize("answer", ["reject", None])
def test_a_call_that_a_person_rejects_is_not_made(answer: str | None) -> None:
    bank = Bank()
    result = run(bank.support, REFUND, tools=bank.registry, answers={"approve_refund": answer})
    assert result.status == "completed", result.view.get("parked") or result.view.get("error")
    assert [name for name, _ in bank.calls] == ["balance"]


PLACES = ("support[1]/model", "support[1]/model#2", "support[1]/model#3", "balance", "refund")
DEATHS = [*product(PLACES, ("before", "during", "after"))]


@pytest.mark.parametrize(("place", "moment"), DEATHS if ALL else DEATHS[::4])
def test_a_worker_that_dies_at_an_operation_of_a_function(place: str, moment: str) -> None:
    bank = Bank()
    answers = {"approve_refund": "approve"}
    result = run(bank.support, REFUND, tools=bank.registry, answers=answers, kills={place: moment})
    assert (result.status, result.output) == ("completed", "refund: paid 7"), result.view.get("parked")
    assert len(set(bank.calls)) == 2, "a call that is made again has the same key"
    names = ["model", "balance", "model#2", "approve_refund", "refund", "model#3"]
    assert result.way == [f"support[1]/{name}" for name in names], "no operation is asked for twice"


async def lived(
    bank: Bank,
    plan: Plan | None = None,
    name: str = "support",
    known: tuple[str, ...] = ("scripted",),
    **world: Any,
) -> dict[str, Any]:
    """Return the view of a saga in a deployment with accounts, leases and faults."""
    models = Scripted(lambda *_: says("unused"), known=known)
    made = World(bank.registry, models=models, **world)
    made.switch_on()
    bank.world = made
    text = DOCUMENT if name == "w" else json.dumps(document_of(bank.registry[name]))
    await made.service().register(text, json_only=False)
    view, _ = await made.service().start(name, GIVEN, "key")
    made.plan = plan or made.plan
    await made.settle()
    return await made.queries_without_faults().show(view["id"])


@pytest.mark.parametrize("fate", ["crash after", "freeze"])
@pytest.mark.parametrize("name", ["support", "w"])
def test_no_answer_that_the_log_has_is_paid_twice(name: str, fate: str) -> None:
    """The worker dies behind each of its writes, or stands still there until it has lost its lease."""
    plan = scripted(())
    for write in range(1, 30, 1 if ALL else 2):
        if write > len(plan.writes) + 1:
            break
        bank, plan = Bank(), scripted((("write", write, fate),))
        view = run_virtual(lived(bank, plan, name))
        assert (view["status"], view["result"]) == ("completed", "how much: $9.00"), (write, view["parked"])
        assert len(set(bank.calls)) == 1, "a call that is made again has the same key"
        has_recorded = plan.writes[write - 1 :][:1] == ["append"] and fate == "crash after"
        assert bank.requests == [0, 1] or (len(bank.requests) == 3 and not has_recorded), write
        paid = sum(bank.world.budgets.spent().values())
        assert paid >= sum(COSTS[turn] for turn in bank.requests), "what was asked for in vain counts, too"


COSTS = (92, 134)  # micro-dollars of a request, by turn


def test_a_tool_of_the_application_keeps_its_effect_its_approval_and_its_inverse() -> None:
    registry, undone = Registry(), list[int]()

    async def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("charge", {"amount": 7, "name": "Ann"})])
        return ModelResponse(parts=[TextPart(str(messages[-1].parts[0].content))])  # type: ignore[union-attr]

    agent = Agent(FunctionModel(answer), name="shop", capabilities=[BatonDurability(registry=registry)])

    @tool("shop.give_back", registry=registry)
    async def give_back(amount: int) -> None:
        undone.append(amount)

    @agent.tool_plain
    @tool("shop.charge", undo="shop.give_back", requires_approval=True, registry=registry)
    async def charge(amount: int, name: str) -> str:  # an option of `context.step`, too
        """Charge an amount."""
        return f"charged {amount}"

    @workflow("shop", registry=registry)
    async def shop(fails: bool, context: WorkflowContext) -> str:
        result = await agent.run("buy")
        if fails:
            context.fail("sold_out", "nothing is left", kind="permanent")
        return result.output

    bought = run(shop, {"fails": False}, tools=registry, answers={"charge": "approve"})
    assert (bought.status, bought.output) == ("completed", "charged 7"), bought.view.get("parked")
    assert run(shop, {"fails": False}, tools=registry, answers={"charge": "reject"}).status == "completed"
    failed = run(shop, {"fails": True}, tools=registry, answers={"charge": "approve"})
    assert (failed.status, undone) == ("rolled_back", [7])


async def test_viewers_see_the_text_of_an_answer_while_it_arrives() -> None:
    registry, words = Registry(), [f"word{number} " for number in range(10)]

    async def answer(_: list[ModelMessage], __: AgentInfo) -> AsyncIterator[str]:
        for word in words:
            await asyncio.sleep(1)
            yield word

    model = FunctionModel(stream_function=answer, model_name="scripted")
    agent = Agent(model, name="poet", capabilities=[BatonDurability(registry=registry, live=True)])

    @workflow("poem", registry=registry)
    async def poem(context: WorkflowContext) -> str:
        return (await agent.run("write")).output

    world = World(registry, models=Scripted(lambda *_: says("unused"), known=("scripted",)), timeout_s=60)
    world.switch_on()
    await world.service().register(json.dumps(document_of(registry["poem"])), json_only=False)
    view, _ = await world.service().start("poem", {}, "key")
    seen = list[str]()
    for _ in range(14):
        seen += [one["text"] for one in (await world.queries().live(view["id"]))["texts"]]
        await asyncio.sleep(1)
    await world.settle()
    assert len(set(seen)) >= 5, seen
    assert (await world.queries().show(view["id"]))["result"] == "".join(words)


def test_a_failure_that_may_go_away_is_tried_again_and_a_mistake_is_told_to_the_model() -> None:
    bank, tries = Bank(), list[int]()

    @bank.agent.tool_plain(name="balance_of", retries=2)
    async def balance_of(pending: bool) -> str:
        tries.append(1)
        if len(tries) == 1:
            raise StepFailure("connection_failed", "the line is down")
        if len(tries) == 2:
            raise ModelRetry("say which one")
        return "$1.00"

    async def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if len(tries) < 3:
            return ModelResponse(parts=[ToolCallPart("balance_of", {"pending": True})])
        return ModelResponse(parts=[TextPart(f"{len(messages)} messages")])

    bank.script = answer
    result = run(bank.support, GIVEN, tools=bank.registry)
    assert (result.status, result.output, len(tries)) == ("completed", "5 messages", 3)


def test_an_agent_that_a_tool_of_an_agent_asks_has_units_of_its_own() -> None:
    bank, asked = Bank(), list[str]()

    async def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        asked.append("helper")
        return ModelResponse(parts=[TextPart("of gold")])

    capability = BatonDurability(registry=bank.registry)
    helper = Agent(FunctionModel(answer), name="helper", capabilities=[capability])

    @bank.agent.tool_plain
    async def ask(question: str) -> str:
        return (await helper.run(question)).output

    async def first(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("ask", {"question": "what"})])
        return ModelResponse(parts=[TextPart(str(messages[-1].parts[0].content))])  # type: ignore[union-attr]

    bank.script = first
    kills = {"support[1]/ask": "after"}
    result = run(bank.support, GIVEN, tools=bank.registry, kills=kills)
    assert (result.status, result.output) == ("completed", "of gold"), result.view["parked"]
    assert asked == ["helper"], "the call that is made again finds the answer in its journal"
    tries = list[int]()

    @tool("support.twice", cost_usd="0.000001", registry=bank.registry)
    async def twice() -> str:
        tries.append(1)
        found = (await bank.agent.run("what", deps=9)).output
        if len(tries) == 1:
            raise StepFailure("connection_failed", "the line is down")
        return found

    text = "name: x\nnodes: {a: {tool: support.twice}}\noutput: ${ctx.a.output}"
    in_tool = run(text, tools=bank.registry)
    assert (in_tool.output, len(tries), asked) == ("of gold", 2, ["helper"] * 2), in_tool.view["error"]


def test_a_request_for_which_there_is_no_money_parks_the_saga() -> None:
    for name in ("support", "w"):
        bank = Bank()
        view = run_virtual(lived(bank, None, name, limits=Limits(saga_budget_usd="0.05")))
        assert (view["status"], view["parked"]["code"], bank.requests) == ("parked", "budget_saga", [])


@pytest.mark.parametrize("in_stream", [False, True])
def test_an_answer_that_breaks_off_is_spent_and_a_refused_request_is_not(in_stream: bool) -> None:
    bank = Bank()

    async def answer(*_: Any) -> ModelResponse:
        raise ModelHTTPError(400, "scripted", in_stream=in_stream)

    bank.script = answer
    view = run_virtual(lived(bank, None, "support"))
    assert (view["status"], view["spent_usd"] > 0) == ("failed", in_stream), view


def test_a_model_without_a_price_is_refused() -> None:
    bank = Bank()
    view = run_virtual(lived(bank, None, "support", known=()))
    assert view["error"]["code"] == "model_unavailable"


def test_a_cancel_ends_the_wait_for_an_approval() -> None:
    bank = Bank()
    result = run(bank.support, REFUND, tools=bank.registry, answers={"approve_refund": None}, cancel="1h")
    assert (result.status, bank.requests) == ("cancelled", [0, 1])


async def test_a_fork_keeps_the_answers_before_it() -> None:
    bank = Bank()
    made = World(bank.registry, models=Scripted(lambda *_: says("unused"), known=("scripted",)))
    made.switch_on()
    await made.service().register(json.dumps(document_of(bank.registry["support"])), json_only=False)
    view, _ = await made.service().start("support", GIVEN, "key")
    await made.settle()
    asked = {
        one.item: entry.version
        for entry in made.entries(view["id"])
        for event in entry.events
        if isinstance(event, OperationsBegan)
        for one in event.operations
    }
    await made.service().fork(view["id"], asked["support-1--model-2"], "again")
    await made.settle()
    view = await made.queries().show(view["id"])
    assert (view["status"], view["result"]) == ("completed", "how much: $9.00")
    assert (bank.requests, len(bank.calls)) == ([0, 1, 1], 1)


async def test_the_attempts_of_a_saga_show_the_arguments_of_calls() -> None:
    bank = Bank()
    made = World(bank.registry, models=Scripted(lambda *_: says("unused"), known=("scripted",)))
    made.switch_on()
    await made.service().register(json.dumps(document_of(bank.registry["support"])), json_only=False)
    view, _ = await made.service().start("support", GIVEN, "key")
    await made.settle()
    steps = (await made.queries().steps(view["id"], 0, 10))["steps"]
    given = [one["input"]["arguments"] for one in steps if one["tool"] == "pydantic_ai.call"]
    assert given == [{"pending": True}]


def test_deferred_calls_and_found_tools_are_operations() -> None:
    bank = Bank()

    async def measure(room: str) -> str:
        raise CallDeferred

    async def pay(ctx: RunContext[int], cents: int) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"baton": {"title": "Is it dear?"}})
        return f"paid {cents}"

    def found(ctx: RunContext[int]) -> FunctionToolset[int]:
        return FunctionToolset([Tool(pay, takes_ctx=True)])

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert {one.name for one in info.function_tools} == {"measure", "pay"}
        if len(messages) == 1:
            calls = [ToolCallPart("measure", {"room": "a"}), ToolCallPart("pay", {"cents": 3})]
            return ModelResponse(parts=calls)
        return ModelResponse(parts=[TextPart(", ".join(str(one.content) for one in messages[-1].parts))])  # type: ignore[union-attr]

    agent = Agent(
        FunctionModel(answer),
        name="surveyor",
        deps_type=int,
        tools=[Tool(measure)],
        toolsets=[DynamicToolset(found, id="found")],
        capabilities=[BatonDurability(registry=bank.registry)],
    )

    @workflow("survey", registry=bank.registry)
    async def survey(context: WorkflowContext) -> str:
        return (await agent.run("go", deps=1)).output

    answers: dict[str, Any] = {"answer_measure": {"data": {"result": "3 m"}}, "approve_pay": "approve"}
    result = run(survey, tools=bank.registry, answers=answers)
    assert (result.status, result.output) == ("completed", "3 m, paid 3"), result.view["parked"]
    assert [one.removeprefix("surveyor[1]/") for one in result.way] == [
        *("get_tools", "model", "measure", "pay", "approve_pay", "answer_measure", "pay#2"),
        *("get_tools#2", "model#2"),
    ]


def test_the_adapter_uses_public_names_of_the_range_in_the_extra() -> None:
    tree = ast.parse(Path(adapter.__file__).read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("pydantic_ai"):
            module = import_module(str(node.module))
            names = {one.name for one in node.names}
            assert names <= set(getattr(module, "__all__", vars(module))), node.module
            assert not any(part.startswith("_") for part in (*names, *str(node.module).split(".")))
    own = {name for name in vars(BatonDurability) if name.startswith("_") and not name.startswith("__")}
    assert own.isdisjoint(vars(BaseDurabilityCapability).keys() - {"_abc_impl"}), (
        "nothing private is overridden"
    )
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    (extra,) = project["optional-dependencies"]["pydantic-ai"]
    assert extra == "pydantic-ai-slim>=2.68,<3"


@pytest.mark.parametrize("name", ["support", "w"])
def test_a_mistake_of_the_developer_parks_the_saga(name: str) -> None:
    bank = Bank()

    async def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        raise UserError("there is no such model")

    bank.script = answer
    view = run_virtual(lived(bank, None, name))
    assert view["status"] == "parked"


@pytest.mark.parametrize("kills", [{}, {"support[1]/model": "after"}])
@pytest.mark.parametrize("way", ["override", "argument"])
def test_a_run_has_a_model_of_its_own(way: str, kills: dict[str, Any]) -> None:
    bank = Bank()
    models = [FunctionModel(partial(_said, text), model_name="scripted") for text in ("one", "two")]

    async def ask(model: FunctionModel) -> str:
        if way == "argument":
            return (await bank.agent.run("hi", deps=1, model=model)).output
        with bank.agent.override(model=model):
            return (await bank.agent.run("hi", deps=1)).output

    @workflow("other", registry=bank.registry, tools=["pydantic_ai.request"])
    async def other(context: WorkflowContext) -> list[str]:
        return [await ask(models[0]), await ask(models[1])]

    result = run(other, tools=bank.registry, kills=kills)
    assert (result.output, bank.requests) == (["one", "two"], []), result


async def _said(text: str, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


def test_agents_that_run_at_once_in_a_tool_find_their_own_answers() -> None:
    bank, tries = Bank(), list[int]()

    @tool("support.both", cost_usd="0.000001", registry=bank.registry)
    async def both() -> list[str]:
        """Ask two agents; the second one begins first in the second attempt."""
        tries.append(1)
        asked = ["how much", "how many"][:: 1 if len(tries) == 1 else -1]
        answers = await asyncio.gather(*(bank.agent.run(one, deps=9) for one in asked))
        if len(tries) == 1:
            raise StepFailure("connection_failed", "the line is down")
        return sorted(one.output for one in answers)

    result = run("name: x\nnodes: {a: {tool: support.both}}\noutput: ${ctx.a.output}", tools=bank.registry)
    assert result.output == ["how many: $9.00", "how much: $9.00"], result.view["error"]
    assert (sorted(bank.requests), len(tries)) == ([0, 0, 1, 1], 2)


def test_a_plain_tool_with_a_loop_of_its_own_is_told_to_be_async() -> None:
    bank = Bank()

    @tool("support.plain", cost_usd="0.000001", registry=bank.registry)
    def plain() -> str:
        return bank.agent.run_sync("how much", deps=9).output

    result = run(
        "name: x\nnodes: {a: {tool: support.plain, on_failure: fail}}\noutput: ok", tools=bank.registry
    )
    assert (result.status, bank.requests) == ("parked", []), result.view["error"]


def test_a_deployment_without_a_key_parks_its_sagas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    registry = Registry()
    agent = Agent(
        "openai:gpt-5-mini",
        name="keyless",
        capabilities=[BatonDurability(registry=registry)],
        defer_model_check=True,
    )

    @workflow("keyless", registry=registry, on_failure="rollback")
    async def asks(context: WorkflowContext) -> str:
        return (await agent.run("hi")).output

    found = run(asks, {}, tools=registry)
    assert (found.status, "OPENAI_API_KEY" in str(found.error)) == ("parked", True)
