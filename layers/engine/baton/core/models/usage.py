"""Tokens that a model has read and written, and what they cost, in whole micro-dollars.

Where prices come from is the deployment's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from baton.core.effects.toolspec import PURE, ToolSpec

_PER = 1_000_000
_ANY = 1_000_000
"""Tokens that any request may have used: providers add texts of their
own, and some pass the most that was asked for.
"""
_TIMES = 10


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Tokens of one answer. `cached` and `written` are part of `input`, `reasoning` part of `output`.

    `written`: input that the provider has begun to keep, which some charge more for. `cost`: micro-dollars,
    once it is known.
    """

    model: str = ""
    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    written: int = 0
    cost: int = 0


def tokens_of(usage: Iterable[Usage]) -> int:
    """Return the number of tokens read and written."""
    return sum(one.input + one.output for one in usage)


def most_used(model: str, read: int, written: int) -> Usage:
    """Return the largest possible usage: `read` tokens of the dearest input, `written` tokens of output."""
    return Usage(model=model, input=read, written=read, output=written)


def is_credible(usage: Usage, read: int, written: int) -> bool:
    """Return true if a request can have used this: some tokens, and no absurd amount.

    The request has up to `read` tokens, its answer up to `written`.
    """
    figures = (usage.input, usage.cached, usage.written, usage.output, usage.reasoning)
    if {*map(type, figures)} != {int} or min(figures) < 0 or not usage.input + usage.output:
        return False
    most_read, most_written = max(_ANY, _TIMES * read), max(_ANY, _TIMES * written)
    return max(figures[:3]) <= most_read and max(figures[3:]) <= most_written


class Price(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Micro-dollars for a million tokens, so that $0.25 for a million is 250,000.

    `cached`: of input that the provider still has, `written`: of input that it begins to keep; without them
    they cost what
    other input does. A request with more than `above` tokens of input pays `then`, for all its tokens.
    """

    input: int
    output: int
    cached: int | None = None
    written: int | None = None
    above: int = 0
    then: Price | None = None


def usage_cost(usage: Usage, price: Price) -> int:
    """Return the cost in micro-dollars, rounded up."""
    while price.then is not None and usage.input > price.above:
        price = price.then
    cached = min(usage.cached, usage.input)
    written = min(usage.written, usage.input - cached)
    total = (usage.input - cached - written) * price.input + usage.output * price.output
    total += cached * (price.input if price.cached is None else price.cached)
    total += written * (price.input if price.written is None else price.written)
    return -(-total // _PER)


def most_of(price: Price, input_tokens: int, output_tokens: int) -> int:
    """Return the maximum cost of a request, in micro-dollars: the dearest kind of input, the whole output."""
    dearest = max(price.input, price.cached or 0, price.written or 0)
    most = -(-(input_tokens * dearest + output_tokens * price.output) // _PER)
    if price.then is not None and input_tokens > price.above:
        return max(most, most_of(price.then, input_tokens, output_tokens))
    return most


class Allowance(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Tokens and turns of models that a saga may use of its caller's limits, or has used. 0: not counted."""

    tokens: int = 0
    turns: int = 0


MODEL: Final = "std.model"
DOMAIN: Final = "model_call"
REFUSED: Final = "answer_invalid"
"""The code of an answer that is not what was asked for."""
TIMEOUT_MS: Final = 300_000
"""Default milliseconds for an answer: a model that thinks takes longer than other tools."""
LONGEST_MS: Final = 3_600_000
"""The same of a request in the background, for which no worker waits."""
HANDOVER_MS: Final = 30_000
"""Milliseconds to hand over such a request, or to fetch its answer."""
USUAL_OUTPUT: Final = 4_096
"""Tokens that an answer has at most where the document does not say."""
THINKING: Final = ("low", "medium", "high")
LEAST_THINKING: Final = 1_024
"""The fewest tokens of thinking that a provider takes."""
LEAST_COST: Final = 1
"""Micro-dollars held for any request before more is known."""


SHARE: Final = "share"
"""Argument of a turn whose transcript is cut: only the last `1/share` stays."""
SUMMARISE: Final = "summarise"
"""Argument of a turn that summarises the part cut off: the `model`, and its tokens (`max_output`)."""


def model_tool(fallbacks: tuple[str, ...] = (), context: str = "") -> ToolSpec:
    """Return the description of the tool for models.

    `fallbacks` are the models after the first; `context` is the argument that can be shortened.
    """
    any_object: dict[str, Any] = {"type": "object", "properties": {"model": {"type": "string"}}}
    return ToolSpec(
        name=MODEL,
        version="1",
        # It may run again, and nothing outside is changed by it.
        effect=PURE,
        parameters=any_object,
        result={},
        domain=DOMAIN,
        cost=LEAST_COST,
        context=context,
        fallbacks={"model": fallbacks} if fallbacks else {},
        sees_key=False,
    )
