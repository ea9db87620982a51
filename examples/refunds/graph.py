"""A support agent of LangGraph: a model, two tools, and a person who approves refunds.

It knows nothing of Baton but the two wrappers that record what is paid and done.
"""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt

from baton.compat.langgraph import BatonChatModel, idempotency_key, record_tool_call
from examples.refunds import bank

INSTRUCTIONS = SystemMessage("Help with an order. Look it up first. Pay back what has arrived broken.")


@tool
async def find_order(number: int) -> dict[str, Any]:
    """Return an order by its number."""
    return bank.ORDERS.get(number, {"error": "there is no such order"})


@tool
async def refund(number: int, cents: int) -> str:
    """Pay money back for an order."""
    if not interrupt({"question": f"Pay back {cents / 100:.2f} USD for order {number}?"}):
        return "refused"
    return bank.pay_back(number, cents, key=idempotency_key())


def make_graph(chat: BaseChatModel) -> Any:
    """Return the compiled agent over a chat model."""
    tools = [find_order, refund]
    model = BatonChatModel(model=chat).bind_tools(tools)

    async def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke([INSTRUCTIONS, *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("tools", ToolNode(tools, awrap_tool_call=record_tool_call))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile()
