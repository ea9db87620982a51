"""The shop's orders, and a bank that does the same key once."""

from __future__ import annotations

from typing import Any

ORDERS: dict[int, dict[str, Any]] = {7: {"item": "vase", "cents": 12_000}}
paid: dict[str, int] = {}
"""Cents by idempotency key."""


def pay_back(number: int, cents: int, key: str) -> str:
    """Pay back once for each key; return the receipt."""
    paid.setdefault(key, cents)
    return f"receipt {number}-{paid[key]}"


def take_back() -> None:
    """Reverse all payments."""
    paid.clear()
