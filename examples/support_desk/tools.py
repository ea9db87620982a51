"""The tools of the desk, over the books of a shop."""

from __future__ import annotations

from baton import Context, tool

ORDERS = {7: 4_200, 8: 900}
"""Prices of orders, in cents."""
REFUNDS: dict[str, tuple[int, int]] = {}
"""Refunds: order and cents, by the key of the call."""
REQUESTS: list[str] = []
"""The keys of all requests for a refund."""


@tool("desk.order", effect="pure")
def find_order(order: int) -> str:
    """Say what an order has cost."""
    cents = ORDERS.get(order)
    return f"there is no order {order}" if cents is None else f"order {order}: {cents} cents, delivered"


@tool("desk.charge_again")
def charge_again(key: str) -> None:
    """Take a refund back."""
    REFUNDS.pop(key, None)


@tool("desk.refund", undo="desk.charge_again")
async def refund(order: int, cents: int, context: Context) -> dict[str, str]:
    """Pay an order back. The bank knows a repeated request by its key."""
    REQUESTS.append(context.idempotency_key)
    REFUNDS.setdefault(context.idempotency_key, (order, cents))
    return {"key": context.idempotency_key}
