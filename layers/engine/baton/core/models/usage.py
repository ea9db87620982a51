"""Tokens that a model has read and written, and what they cost, in whole micro-dollars.

Where prices come from is the deployment's.
"""

from __future__ import annotations

import msgspec

_PER = 1_000_000


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Tokens of one answer. `cached` are part of `input`, `reasoning` part of `output`. `cost` in micro-dollars, once it is known."""

    model: str = ""
    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    cost: int = 0


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """Micro-dollars for a million tokens, so that $0.25 for a million is 250,000. `cached`: of input that the provider still has."""

    input: int
    output: int
    cached: int | None = None


def cost_of(usage: Usage, price: Price) -> int:
    """Micro-dollars, rounded up."""
    cached = min(usage.cached, usage.input)
    rate = price.input if price.cached is None else price.cached
    total = (usage.input - cached) * price.input + cached * rate + usage.output * price.output
    return -(-total // _PER)


def most_of(price: Price, input_tokens: int, output_tokens: int) -> int:
    """The most that a request may cost, in micro-dollars: nothing of it is cached, and the whole output is written."""
    dearest = max(price.input, price.cached or 0)
    return -(-(input_tokens * dearest + output_tokens * price.output) // _PER)
