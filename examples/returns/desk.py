"""The agents of the desk, and the workflow that lets them speak with a customer."""

from __future__ import annotations

from typing import Any

from agents import (
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    RunContextWrapper,
    function_tool,
    input_guardrail,
)
from pydantic import BaseModel

from baton import Context, WorkflowContext, tool, workflow
from baton.compat.openai_agents import Agent, Runner, SagaSession, step_tool

MODEL = "gpt-5-mini"


class Verdict(BaseModel):
    """Word of the guard."""

    is_about_an_order: bool


@function_tool
async def find_order(text: str) -> str:
    """Find the order that a text is about."""
    return f"order {text.split()[-1]}, 42.00 dollars"


@tool("returns.charge")
async def charge(order: str, cents: int) -> None:
    """Take the money of a refund back."""


@tool("returns.refund", undo="returns.charge")
async def refund(order: str, cents: int, context: Context) -> str:
    """Give the money for an order back. The bank recognises a repeated call by the key."""
    return f"refunded {cents} cents as {context.idempotency_key[:8]}"


guard = Agent(name="guard", model=MODEL, instructions="Is it about an order?", output_type=Verdict)


@input_guardrail
async def about_an_order(context: RunContextWrapper[Any], agent: Any, text: Any) -> GuardrailFunctionOutput:
    """Let no other matter through."""
    verdict = (await Runner.run(guard, text)).final_output
    return GuardrailFunctionOutput(verdict, tripwire_triggered=not verdict.is_about_an_order)


clerk = Agent(
    name="clerk",
    model=MODEL,
    instructions="Find the order, and refund it.",
    handoff_description="Gives money back.",
    tools=[find_order, step_tool(refund, needs_approval=True)],
)
triage = Agent(
    name="triage",
    model=MODEL,
    instructions="Hand a customer who wants money back over to the clerk.",
    handoffs=[clerk],
    input_guardrails=[about_an_order],
)


@workflow("return-order", limits={"cost_usd": 2}, tools=[refund])
async def serve(message: str, context: WorkflowContext) -> list[str]:
    """Speak with a customer until an hour has passed without a message; returns the answers."""
    session, answers = SagaSession(), list[str]()
    agent: Any = triage
    approval = {"to": {"group": "support"}, "expires": "2d", "risk": "high"}
    while True:
        try:
            result = await Runner.run(agent, message, session=session, ask=approval)
        except InputGuardrailTripwireTriggered:
            return [*answers, "We answer questions about orders only."]
        agent = result.last_agent
        answers.append(str(result.final_output))
        context.publish("answer", answers[-1])
        try:
            message = await context.signal("message", schema=str, timeout="1h")
        except TimeoutError:
            return answers
