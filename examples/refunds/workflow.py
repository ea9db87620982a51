"""The agent as a workflow: its graph runs in steps, and its interrupts are questions."""

from __future__ import annotations

from typing import Any

from baton import WorkflowContext, tool, workflow
from baton.compat.langgraph import graph_tool, run_graph


def chat_model() -> Any:
    """Return the model; its package is in the application's layer."""
    from langchain_openai import ChatOpenAI  # type: ignore[import-not-found]

    return ChatOpenAI(model="gpt-5-mini", max_tokens=2_000)


def graph() -> Any:
    """Return the graph. LangGraph is imported where it runs, and nowhere else."""
    from examples.refunds.graph import make_graph

    return make_graph(chat_model())


@tool("refunds.reverse")
async def reverse() -> None:
    """Take back the refunds of an agent."""
    from examples.refunds.bank import take_back

    take_back()


agent = graph_tool("refunds.agent", graph, undo="refunds.reverse")


@workflow("refund-request", limits={"cost_usd": 0.5})
async def refund_request(message: str, context: WorkflowContext) -> str:
    """Answer a customer; a person approves each refund."""
    state = await run_graph(context, agent, {"messages": [{"role": "user", "content": message}]})
    return str(state["messages"][-1]["content"])
