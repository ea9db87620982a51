"""LangGraph graphs as they are, in functions and as tools, in virtual time: what is recorded, asked, repeated and refused."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as chain_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt

from baton import StepFailure, WorkflowContext, tool, workflow
from baton.compat.langgraph import (
    BatonChatModel,
    GraphTool,
    call_key,
    graph_tool,
    record_tool_call,
    run_graph,
)
from baton.core.limits import Limits
from baton.core.log.events import UnitRecorded
from baton.core.log.questions import Answer
from baton.testing import Result, run
from baton.tools.define import Registry
from baton.tools.functions.define import document_of
from tests.kit.faults import CRASH_AFTER, FREEZE, STALL, Plan
from tests.kit.process import RUNS_IN, pause
from tests.kit.sentences import Says
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

ASKED = {"messages": [{"role": "user", "content": "Order 7 came broken."}]}


class Said(TypedDict):
    """State of graphs whose nodes say something, side by side."""

    said: Annotated[list[str], lambda left, right: sorted([*left, *right])]


@dataclass
class Shop:
    """What the agent acts on: the requests that its model has answered, and the refunds, by their keys."""

    asked: list[int] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    refunds: list[str] = field(default_factory=list)
    seconds: float = 0
    used: dict[str, int] = field(default_factory=lambda: {"input_tokens": 40, "output_tokens": 10})

    def tools(self) -> list[BaseTool]:
        @chain_tool
        async def find_order(number: int) -> str:
            """Find an order."""
            await pause(self.seconds)
            self.found.append(call_key())
            return f"order {number}: a vase, 120 USD"

        @chain_tool
        async def refund(number: int) -> str:
            """Pay an order back."""
            if not interrupt({"question": f"Pay order {number} back?"}):
                return "A person has refused it."
            await pause(self.seconds)
            self.refunds.append(call_key())
            return f"order {number} is paid back"

        return [find_order, refund]

    def graph(self, name: str = "") -> Any:
        """The agent of the tutorials: model, tools, model."""
        tools = self.tools()
        model = BatonChatModel(model=ShopModel(shop=self, model_name=name)).bind_tools(tools)

        async def agent(state: MessagesState) -> dict[str, Any]:
            return {"messages": [await model.ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("agent", agent)
        graph.add_node("tools", ToolNode(tools, awrap_tool_call=record_tool_call))
        graph.add_edge(START, "agent")
        graph.add_conditional_edges("agent", tools_condition)
        graph.add_edge("tools", "agent")
        return graph.compile()


class ShopModel(BaseChatModel):
    """A model that finds the order, pays it back, and says so."""

    shop: Shop
    model_name: str = ""

    @property
    def _llm_type(self) -> str:
        return "shop"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=[one.name for one in tools])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        await pause(self.shop.seconds)
        self.shop.asked.append(len(messages))
        assert kwargs["tools"] == ["find_order", "refund"]
        results = [str(one.content) for one in messages if isinstance(one, ToolMessage)]
        calls = ("find_order", "refund")[len(results) : len(results) + 1]
        message = AIMessage(
            "" if calls else f"Done: {results[-1]}",
            tool_calls=[{"name": one, "args": {"number": 7}, "id": f"call-{one}"} for one in calls],
            usage_metadata={**self.shop.used, "total_tokens": sum(self.shop.used.values())},  # type: ignore[typeddict-item]
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def declared(graph: Any, registry: Registry | None = None, **options: Any) -> tuple[Registry, Any, GraphTool]:
    """Declare a graph, and the function that runs it."""
    registry = registry or Registry()
    support = graph_tool("shop.support", graph, registry=registry, **options)

    @workflow("support", registry=registry, tools=[support])
    async def flow(input: dict[str, Any], context: WorkflowContext) -> Any:
        return await run_graph(context, support, input)

    return registry, flow, support


def served(shop: Shop, answer: str = "approve", **options: Any) -> Result:
    registry, flow, _ = declared(shop.graph())
    return run(flow, {"input": ASKED}, tools=registry, answers={"ask": answer}, **options)


def texts(output: Any) -> list[str]:
    return [one["content"] for one in output["messages"]]


def titles(result: Result) -> list[str]:
    events = [event for entry in result.entries for event in entry["events"]]
    return [event["ask"]["title"] for event in events if event["kind"] == "question_opened"]


def units(result: Result) -> list[str]:
    """The units of a run, as a test names them."""
    events = [event for entry in result.entries for event in entry["events"]]
    labels = {
        one["item"]: one.get("label") or one["item"]
        for event in events
        if event["kind"] == "operations_began"
        for one in event["operations"]
    }
    return [f"{labels[one['item']]}: {one['name']}" for one in events if one["kind"] == "unit_recorded"]


# ---- a graph runs unchanged


@pytest.mark.parametrize(
    ("answer", "said", "paid"),
    [("approve", "order 7 is paid back", 1), ("reject", "A person has refused it.", 0)],
)
def test_an_interrupt_is_a_question_and_its_answer_goes_back(answer: str, said: str, paid: int) -> None:
    result = served(shop := Shop(), answer)
    assert (result.status, result.way) == ("completed", ["support", "ask_person[1]/ask", "support#2"])
    assert texts(result.output) == [
        "Order 7 came broken.",
        "",
        "order 7: a vase, 120 USD",
        "",
        said,
        f"Done: {said}",
    ]
    assert (shop.asked, len(shop.refunds)) == ([1, 3, 5], paid)
    assert titles(result) == ["Pay order 7 back?"]


def test_its_units_have_the_names_of_nodes_calls_and_supersteps() -> None:
    named = [one.rpartition(" ")[0] for one in units(served(Shop())) if "checkpoint" not in one]
    assert named == [
        "support: agent/model 1",
        "support: tools/find_order 2",
        "support: agent/model 3",
        "support#2: tools/refund 4",
        "support#2: agent/model 5",
    ]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_worker_that_dies_at_any_unit_repeats_that_unit_alone(moment: str) -> None:
    for unit in units(served(Shop())):
        result = served(shop := Shop(), kills={unit: moment})
        assert (result.status, result.view["revivals"], len(result.output["messages"])) == ("completed", 1, 6)
        repeated = moment == "after"
        assert len(shop.asked) == 3 + (repeated and "/model" in unit), unit
        assert len(shop.found) == 1 + (repeated and "find_order" in unit), unit
        assert len(shop.refunds) == 1 + (repeated and "refund" in unit), unit
        assert len({*shop.refunds}) == len({*shop.found}) == 1, "a repeated call has its key"


def test_a_plain_node_that_invokes_a_model_is_recorded_from_its_thread() -> None:
    shop = Shop()
    model = BatonChatModel(model=ShopModel(shop=shop)).bind_tools(shop.tools())

    def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    async def blocks(state: MessagesState) -> dict[str, Any]:
        return agent(state)

    for node, status in ((agent, "completed"), (blocks, "parked")):
        graph = StateGraph(MessagesState).add_node("agent", node).add_edge(START, "agent").compile()
        registry, flow, _ = declared(graph)
        result = run(flow, {"input": ASKED}, tools=registry)
        assert result.status == status, result.error
        if node is agent:
            assert any(one.startswith("support: agent/model 1") for one in units(result))
    assert "ainvoke" in result.error
    assert shop.asked == [1]


# ---- interrupts


def test_several_interrupts_at_once_are_several_questions() -> None:
    def asks(title: str) -> Any:
        async def node(state: Said) -> dict[str, Any]:
            return {"said": [interrupt({"title": title, "options": ["approve", "later"]})]}

        return node

    async def twice(state: Said) -> dict[str, Any]:
        return {"said": [f"{interrupt('first?')} {interrupt('second?')}"]}

    graph = StateGraph(Said)
    for name, node in {"size": asks("Size?"), "hue": asks("Hue?"), "both": twice}.items():
        graph.add_node(name, node)
        graph.add_edge(START, name)
    registry, flow, _ = declared(graph.compile())
    answers = {"ask": ["approve", "approve", "approve", "reject"]}
    clean = run(flow, {"input": {"said": []}}, tools=registry, answers=answers)
    assert (clean.status, clean.output) == ("completed", {"said": ["True False", "approve", "approve"]}), clean
    for unit in units(clean):
        result = run(flow, {"input": {"said": []}}, tools=registry, answers=answers, kills={unit: "before"})
        assert (result.output, len(titles(result))) == (clean.output, 4), unit
