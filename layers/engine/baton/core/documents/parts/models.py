"""What `model` and `agent` nodes say alike of the model that they ask.

What becomes of it is in core/nodes/agent.py and runtime/models/model_caller.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from baton.core.documents.parts.audience import Text
from baton.core.documents.parts.fields import (
    Given,
    Model,
    Value,
    between,
    counted,
    defined,
    is_number,
    refuse,
    shown,
)
from baton.core.failures.alternatives import Alternative, ways_of
from baton.core.failures.policy import Change
from baton.core.failures.retry import FIXED, RetryChange
from baton.core.graph.graph import CallbackTimes
from baton.core.models.tool import HANDOVER_MS, LONGEST_MS, MODEL, REFUSED, SHARE, SUMMARISE, model_tool

MOST_OUTPUT = 1_000_000
MOST_CORRECTIONS = 10
MODEL_NAME = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$"
_is_name = re.compile(MODEL_NAME).fullmatch


def _name(value: Any) -> Any:
    if isinstance(value, str) and not _is_name(value):
        raise refuse(
            f"`{shown(value)}` is no name of a model", "write it as in gpt-5-mini or openai/gpt-5-mini"
        )
    return value


ModelName = Annotated[str, BeforeValidator(_name), WithJsonSchema({"type": "string", "pattern": MODEL_NAME})]


def _dollars(value: Any) -> int:
    """Dollars for a million tokens, in millionths of a dollar."""
    if not is_number(value) or not 0 <= value <= 10_000:
        raise refuse(f"`{shown(value)}` is no price; write dollars for a million tokens, for example 0.25")
    return int((Decimal(repr(value)) * 1_000_000).to_integral_value())


def _temperature(value: Any) -> float:
    if not is_number(value) or not 0 <= value <= 2:
        raise refuse(f"`{shown(value)}` must be between 0 and 2")
    return float(value)


_HEAT: Any = {"type": "number", "minimum": 0, "maximum": 2}
Dollars = Annotated[int, BeforeValidator(_dollars)]


class PriceModel(Model):
    """What a million tokens cost, in dollars."""

    input: Dollars
    output: Dollars
    cached: Annotated[Dollars | None, Given] = None


_DOLLARS = {"type": "number", "minimum": 0, "maximum": 10_000}
PRICE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "input": {**_DOLLARS, "description": "Of the request."},
        "output": {**_DOLLARS, "description": "Of the answer, reasoning included."},
        "cached": {**_DOLLARS, "description": "Of what the provider still has of an earlier request."},
    },
    "required": ["input", "output"],
    "additionalProperties": False,
}
"""The definition that a price refers to."""


class SummaryModel(Model):
    """By which model older messages are summarised, and how briefly."""

    model: Annotated[ModelName | None, Given] = Field(
        default=None, description="The model; without it, the agent's own."
    )
    max_output: Annotated[int, between(1, MOST_OUTPUT), counted(1, MOST_OUTPUT)] = Field(
        default=1_024, description="The most tokens of a summary."
    )


def _said(value: Any) -> Any:
    """Something has to be said: a request without it is refused by providers, or answered at random."""
    if value in (None, {}, []) or (isinstance(value, str) and not value.strip()):
        raise refuse("it is empty", "write what the model is told: text, or a value that it gets as JSON")
    return value


class Asking(Model):
    """What is asked of which model."""

    fallbacks: Annotated[list[ModelName] | None, Given] = Field(
        default=None,
        description="Models that are asked in its place, in this order, when it cannot answer.",
        json_schema_extra={"minItems": 1, "maxItems": 10},
    )
    instructions: Annotated[Text | None, Given, BeforeValidator(_said)] = Field(
        default=None, description="What the model is to be, and the rules that it has to keep."
    )
    prompt: Annotated[Value, BeforeValidator(_said)] = Field(
        description="What is asked: text, or a value that the model gets as JSON."
    )
    max_output: Annotated[int, between(1, MOST_OUTPUT), counted(1, MOST_OUTPUT)] | None = Field(
        default=None, description="The most tokens of one answer, reasoning included; without it, 4,096."
    )
    temperature: Annotated[float | None, BeforeValidator(_temperature), WithJsonSchema(_HEAT)] = Field(
        default=None, description="From 0, always the likeliest word, to 2."
    )
    corrections: Annotated[int, between(0, MOST_CORRECTIONS), counted(0, MOST_CORRECTIONS)] = Field(
        default=3,
        description="How often an answer that is not as `output_schema` has it is asked for again. Then a person is asked.",
    )
    background: bool = Field(
        default=False,
        description="The provider works on a request while no worker waits, if it can; the answer has an hour, or the `timeout`.",
    )
    price: Annotated[PriceModel | None, Given, defined("modelPrice")] = Field(
        default=None,
        description="What the model costs, where the deployment does not know it; a known price that is higher counts.",
    )


def given(model: str, asking: Asking) -> dict[str, Any]:
    """What is rendered when the node is ready."""
    names = {"instructions", "prompt", "max_output", "temperature", "price"}
    said: dict[str, Any] = asking.model_dump(include=names, exclude_unset=True)
    return {"model": model, **{name: value for name, value in said.items() if value is not None}}


def spoken(key: str, asking: Asking) -> Iterator[tuple[str, Any]]:
    """What may have expressions in it, with its place below the node."""
    for name in ("instructions", "prompt"):
        if (value := getattr(asking, name)) is not None:
            yield f"/{key}/{name}", value


def shorter_turns(summary: SummaryModel | None) -> tuple[Alternative, ...]:
    """What a turn does about a transcript that does not fit, one after the other. The first cut has a `summary` where one is asked for."""
    words = {2: "newer half", 4: "newest quarter", 8: "newest eighth"}
    cuts = [
        Alternative(name=f"{what} of the transcript", hints=("truncate_context",), arguments={SHARE: share})
        for share, what in words.items()
    ]
    if summary is not None:
        cuts[0] = Alternative(
            name="summary and newer half of the transcript",
            hints=("summarise_context", "truncate_context"),
            arguments={SHARE: 2, SUMMARISE: summary.model_dump(exclude_none=True)},
        )
    return tuple(cuts)


def step_of(
    asking: Asking,
    timeout: int | None,
    attempts: Mapping[str, Any],
    *,
    context: str = "",
    ways: tuple[Alternative, ...] = (),
) -> dict[str, Any]:
    """The fields of the graph's node whose step asks the model. `context`: the argument that can be shortened."""
    spec = model_tool(tuple(asking.fallbacks or ()), context)
    elsewhere = {"callback": CallbackTimes(timeout_ms=timeout or LONGEST_MS)} if asking.background else {}
    ways = (*ways, *ways_of(MODEL, {MODEL: spec}))
    if asking.background:  # one handover has one answer
        ways, timeout = tuple(way for way in ways if not way.chunk), HANDOVER_MS
    again = Change(retry=RetryChange(max_attempts=asking.corrections + 1, backoff=FIXED, base_ms=0))
    return {
        "tool": MODEL,
        "tool_version": spec.version,
        "schema_hash": spec.schema_hash,
        "effect": spec.effect,
        "timeout_ms": timeout or 0,
        "domain": spec.domain,
        "cost": spec.cost,
        **attempts,
        "failures": {REFUSED: again, **attempts["failures"]},
        "ways": (*ways, *attempts["ways"]),
        **elsewhere,
    }
