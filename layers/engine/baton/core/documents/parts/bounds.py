"""Bounds of a saga: the shapes of `limits` and `guardrails`.

The actions at a limit are on docs/semantics.md. The compiler checks that the nodes of a guardrail exist.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from baton.core.documents.parts.fields import (
    MOST,
    Allowed,
    Duration,
    Given,
    Model,
    NodeName,
    ToolPatterns,
    between,
    between_schema,
    document_form,
    is_number,
    one_of,
    one_of_schema,
    refuse,
    schema_reference,
)

MICRO = 1_000_000
LEAST_USD, MOST_USD = 0.000001, MOST // MICRO


def _micro_dollars(value: Any) -> int:
    """Read dollars as the document spells them, in millionths; never by way of a multiplied float."""
    if not is_number(value):
        raise refuse(f"`{document_form(value)}` is not an amount of dollars; write for example 1.5")
    if not LEAST_USD <= value <= MOST_USD:
        raise refuse(f"`{document_form(value)}` must be between 0.000001 and {MOST_USD:,} dollars")
    amount = Decimal(repr(value)) * MICRO
    if amount != amount.to_integral_value():
        raise refuse(f"`{document_form(value)}` is finer than a millionth of a dollar")
    return int(amount)


def _why(do: str, goes_with: str) -> Any:
    return lambda value: f"`{do}` goes with {goes_with}" if value == do else ""


_TERMINATE, _THROTTLE, _SUMMARISE = "terminate", "throttle", "summarise"
_THEN = "Action at the limit: the saga or node fails (`terminate`)"
_SLOWED = "or what comes next waits its turn (`throttle`)"


class LimitModel(Model):
    """One limit: the most there may be (`max`), and what happens beyond it (`then`)."""

    short: ClassVar[str] = "max"

    max: int
    then: str = _TERMINATE


class CountModel(LimitModel):
    """The most there may be (`max`), and what happens beyond it (`then`)."""

    max: Annotated[int, between(1, MOST), between_schema(1, MOST), Given] = Field(
        description="The most there may be.", examples=[100]
    )
    then: Annotated[
        str,
        one_of(_TERMINATE, _THROTTLE, why=_why(_SUMMARISE, "`bytes`")),
        one_of_schema(_TERMINATE, _THROTTLE),
        Given,
    ] = Field(default=_TERMINATE, description=f"{_THEN}, {_SLOWED}.", examples=[_THROTTLE])


class BytesModel(LimitModel):
    """The most bytes (`max`), and what happens beyond them (`then`)."""

    max: Annotated[int, between(1, MOST), between_schema(1, MOST), Given] = Field(
        description="The most bytes.", examples=[1_000_000]
    )
    then: Annotated[
        str,
        one_of(_TERMINATE, _THROTTLE, _SUMMARISE),
        one_of_schema(_TERMINATE, _THROTTLE, _SUMMARISE),
        Given,
    ] = Field(
        default=_TERMINATE,
        description=f"{_THEN}, {_SLOWED}, or an output is replaced by a shorter one (`summarise`).",
        examples=[_SUMMARISE],
    )


class TimeModel(LimitModel):
    """The longest time (`max`), after which the saga or node fails."""

    max: Annotated[Duration, Given] = Field(description="The longest time.", examples=["2h"])
    then: Annotated[
        str, one_of(_TERMINATE, why=lambda _: "time cannot be held up"), one_of_schema(_TERMINATE), Given
    ] = Field(default=_TERMINATE, description=f"{_THEN}. There is no other way.", examples=[_TERMINATE])


class CostModel(LimitModel):
    """The most dollars (`max`), and what happens beyond them (`then`)."""

    max: Annotated[int, BeforeValidator(_micro_dollars), schema_reference("dollars"), Given] = Field(
        description="The most US dollars.", examples=[1.5]
    )
    then: Annotated[
        str,
        one_of(_TERMINATE, _THROTTLE, why=_why(_SUMMARISE, "`bytes`")),
        one_of_schema(_TERMINATE, _THROTTLE),
        Given,
    ] = Field(default=_TERMINATE, description=f"{_THEN}, {_SLOWED}.", examples=[_THROTTLE])


class LimitsModel(Model):
    """Limits of a saga or a node: each is a number or an object with `max` and `then`."""

    fan_out: Annotated[CountModel | None, Given] = Field(
        default=None,
        description="Number of nodes that one node starts at once.",
        examples=[20],
    )
    hops: Annotated[CountModel | None, Given] = Field(
        default=None,
        description="Number of runs, each round of a loop counted.",
        examples=[100, {"max": 100, "then": "throttle"}],
    )
    wall_time: Annotated[TimeModel | None, Given] = Field(
        default=None,
        description="Longest time of the saga, or of one run of this node, waiting included.",
        examples=["2h"],
    )
    bytes: Annotated[BytesModel | None, Given] = Field(
        default=None,
        description="Bytes of outputs.",
        examples=[{"max": 1_000_000, "then": "summarise"}],
    )
    cost: Annotated[CostModel | None, Given] = Field(
        default=None,
        alias="cost_usd",
        description="US dollars, to a millionth.",
        examples=[1.5],
    )
    tokens: Annotated[CountModel | None, Given] = Field(
        default=None,
        description="Tokens that models read and write.",
        examples=[20_000],
    )


def _limits(value: Any) -> Any:
    read = LimitsModel.model_validate(value)
    return {name: getattr(read, name) for name in LimitsModel.model_fields if getattr(read, name) is not None}


Limits = Annotated[dict[str, LimitModel], BeforeValidator(_limits), Given, schema_reference("limits")]


# ---- guardrails ------------------------------------------------------------------------------------------------


class GuardrailsModel(Model):
    """Tools that the saga may run, and transitions that it may take."""

    allowed_tools: Annotated[ToolPatterns | None, Given] = Field(
        default=None,
        description="Names of the only tools that may run; `*` stands for any text. Without it, all tools.",
        examples=[["table.search", "books.*"]],
    )
    allowed_transitions: dict[NodeName, Annotated[Allowed, Given]] = Field(
        default_factory=dict,
        description="For each node that it names, the only nodes that may come next.",
        examples=[{"plan": ["search", "book"]}],
    )
