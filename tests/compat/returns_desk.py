"""A desk of agents of the OpenAI Agents SDK, of the shape of its public examples, and all that it does.

A triage agent with a guardrail, which asks an agent of its own, hands over to a clerk with tools; one of them needs an
approval. No assertions here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import agents
import msgspec
from agents import (
    GuardrailFunctionOutput,
    Model,
    ModelResponse,
    RunContextWrapper,
    Usage,
    function_tool,
    input_guardrail,
)
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext

from baton import WorkflowContext, workflow
from baton.compat.openai_agents import Agent, Runner, add_operations
from baton.testing import run
from baton.testing.result import Result
from baton.tools.define import Registry
from tests.kit.process import RUNS_IN, pause
from tests.kit.world import World

MESSAGE = {"message": "I want my money back."}
WAY = [
    "triage[1]/model",
    "polite[1]/model",
    *(
        f"triage[1]/{one}"
        for one in ("model#2", "find_order", "model#3", "approve_refund", "refund", "model#4")
    ),
]
REQUESTS = ["triage 0", "polite 0", "clerk 1", "clerk 2", "clerk 3"]


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
        options = {"answers": {"approve_refund": "approve"}, **options}
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

    @classmethod
    def begin(cls) -> Self:
        """Note them from now on."""
        made = cls()
        agents.set_trace_processors([made])
        return made

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
