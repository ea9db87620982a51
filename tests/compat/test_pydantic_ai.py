"""Agents of pydantic-ai as they are, in workflow functions and in tools."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, ModelMessage, ModelResponse, RunContext, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from baton import Context, WorkflowContext, tool, workflow
from baton.compat.pydantic_ai import BatonDurability, idempotency_key
from baton.testing import run
from baton.tools.define import Registry


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

    async def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
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


@pytest.mark.parametrize("moment", ["before", "during", "after"])
@pytest.mark.parametrize(
    "place", ["support[1]/model", "support[1]/model#2", "support[1]/model#3", "balance", "refund"]
)
def test_a_worker_that_dies_at_an_operation_of_a_function(place: str, moment: str) -> None:
    bank = Bank()
    answers = {"approve_refund": "approve"}
    result = run(bank.support, REFUND, tools=bank.registry, answers=answers, kills={place: moment})
    assert (result.status, result.output) == ("completed", "refund: paid 7"), result.view.get("parked")
    assert len(set(bank.calls)) == 2, "a call that is made again has the same key"
