"""Agents of the OpenAI Agents SDK in sagas, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from baton import WorkflowContext, workflow
from baton.compat.openai_agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    RunContextWrapper,
    Runner,
    Usage,
    function_tool,
    input_guardrail,
)
from baton.testing import run
from baton.testing.result import Result
from baton.tools.define import Registry
from agents.tool_context import ToolContext


class Desk:
    """A support desk of agents, with all that it did."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.refunds: list[str] = []
        use = Usage(requests=1, input_tokens=100, output_tokens=10, total_tokens=110)

        def model(name: str, *answers: Any) -> ScriptedModel:
            """Answers by the number of items after the last message of the user: a request may be repeated."""

            def answer(call: Any) -> Any:
                items = call.input if isinstance(call.input, list) else []
                done = sum(1 for one in items if one.get("type") == "function_call_output")
                self.requests.append(f"{name} {done}")
                return ModelStep(output=[answers[min(done, len(answers) - 1)]], usage=use)

            return ScriptedModel([ModelStep(responder=answer) for _ in range(50)])

        @function_tool
        def find_order(text: str) -> str:
            """Find the order that a text is about."""
            return "o1"

        @function_tool(needs_approval=True)
        async def refund(context: ToolContext[Any], order: str) -> str:
            """Give the money for an order back."""
            self.refunds.append(context.tool_call_id)
            return f"refunded {order}"

        polite = Agent(name="polite", model=model("polite", assistant_message("yes")))

        @input_guardrail
        async def is_polite(context: RunContextWrapper[Any], agent: Any, text: Any) -> GuardrailFunctionOutput:
            said = await Runner.run(polite, text, context=context.context)
            return GuardrailFunctionOutput(output_info=said.final_output, tripwire_triggered=said.final_output == "no")

        self.clerk = Agent(
            name="clerk",
            handoff_description="Gives money back",
            tools=[find_order, refund],
            model=model(
                "clerk",
                function_call("refund", {"order": "o1"}, call_id="c9"),
                function_call("find_order", {"text": "my order"}, call_id="c2"),
                function_call("refund", {"order": "o1"}, call_id="c3"),
                assistant_message("It is done."),
            ),
        )
        self.triage = Agent(
            name="triage",
            instructions="Send the customer to a colleague.",
            handoffs=[self.clerk],
            input_guardrails=[is_polite],
            model=model("triage", function_call("transfer_to_clerk", {}, call_id="c1")),
        )
        self.registry = Registry()
        triage = self.triage

        @workflow("support", registry=self.registry)
        async def support(message: str, context: WorkflowContext) -> Any:
            result = await Runner.run(triage, message)
            return [result.final_output, result.last_agent.name]

        self.support = support

    def run(self, **options: Any) -> Result:
        return run(self.support, {"message": "I want my money back."}, tools=self.registry, **options)


def test_x() -> None:
    desk = Desk()
    result = desk.run(answers={"approve": "approve"})
    print(result)
    print(desk.requests, desk.refunds, result.way)
    assert 0
