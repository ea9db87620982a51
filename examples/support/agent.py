"""A support agent of a shop, written for pydantic-ai: it looks orders up by MCP, and its refund needs an approval.

Only the line with `BatonDurability` knows of Baton. `answer` is the workflow that asks the agent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models import Model

from baton import WorkflowContext, tool, workflow
from baton.compat.pydantic_ai import BatonDurability


@dataclass
class Shop:
    """Books of the shop: the orders by number, in cents, and what was paid back, by key."""

    orders: dict[int, int] = field(default_factory=lambda: {7: 4_200, 8: 900})
    refunds: dict[int, int] = field(default_factory=dict)


SHOP = Shop()


class Reply(BaseModel):
    """Answer to a customer."""

    text: str
    refunded_cents: int = 0


async def order(number: int) -> str:
    """Return what an order has cost."""
    cents = SHOP.orders.get(number)
    return f"there is no order {number}" if cents is None else f"{cents} cents"


orders = MCPServer("orders", log_level="WARNING")
"""Server of the shop's orders, in this process. A toolset names one elsewhere by its address."""
orders.add_tool(order)


@tool("support.charge_again")
async def charge_again(number: int, cents: int) -> None:
    """Take a refund back."""
    SHOP.refunds.pop(number, None)


@tool(
    "support.refund",
    undo="support.charge_again",
    requires_approval={"to": {"group": "support"}, "expires": "2h"},
)
async def refund(number: int, cents: int) -> str:
    """Pay an order back, once."""
    SHOP.refunds.setdefault(number, cents)
    return f"{cents} cents of order {number} are paid back"


def support_agent(model: Model | str) -> Agent[str, Reply]:
    """Return the agent; a test gives it a model of its own."""
    return Agent(
        model,
        name="support",
        deps_type=str,
        output_type=Reply,
        instructions="You answer customers of a shop. Look an order up before you refund it.",
        tools=[refund],
        toolsets=[MCPToolset(orders, id="orders")],
        capabilities=[BatonDurability()],
        defer_model_check=True,
    )


agent = support_agent("openai:gpt-5-mini")


@workflow("answer-customer")
async def answer(customer: str, question: str, context: WorkflowContext) -> Reply:
    """Answer a question of a customer."""
    result = await agent.run(question, deps=customer)
    return result.output
