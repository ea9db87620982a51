"""Approvals before a tool acts, and the rules of risk, as documents write them.

What a tool says of itself is in tools/define.py; what the rules mean is in core/effects/risk.py.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, StrictBool, WithJsonSchema, model_validator

from baton.core.documents.parts.audience import Audience, Text
from baton.core.documents.parts.escalation import MEANWHILE, SO_MANY, EscalationModel
from baton.core.documents.parts.fields import (
    Duration,
    Given,
    Model,
    between,
    counted,
    is_number,
    one_of,
    refuse,
    shown,
    words,
)
from baton.core.effects.risk import ACTIONS, AMOUNT, CURRENCY, LEVELS, RiskRule
from baton.core.limits import DAY_MS

DOLLARS = "USD"
MOST_RULES = 50
_MOST_PEOPLE = 1_000_000
_is_amount = re.compile(AMOUNT, re.ASCII).fullmatch


class ApprovalModel(Model):
    """Whether a person is asked before the tool acts, and how: `true`, or the words of the question."""

    short: ClassVar[str] = "always"

    always: StrictBool = Field(
        default=True,
        description="Before every call. With `false`, only before those that the tool's risk asks for.",
    )
    title: Annotated[Text | None, Given] = Field(default=None, description="The question in a line.")
    message: Annotated[Text | None, Given] = Field(
        default=None, description="What the person has to know. Without it, the risk and its reason."
    )
    to: Audience = Field(
        default=None, description="Who may answer besides operators; else who has started the saga."
    )
    expires: Duration = Field(
        default=DAY_MS,
        description="How long the question waits; without it, 24 hours. Then it is rejected.",
        json_schema_extra={"default": "24h"},
    )
    escalate: Annotated[list[EscalationModel] | None, Given] = Field(
        default=None, description=MEANWHILE, json_schema_extra=SO_MANY
    )


def _amount(value: Any) -> Any:
    """Digits, exactly as the document writes them."""
    text = f"{Decimal(repr(value)):f}" if is_number(value) else value
    if not isinstance(text, str) or not _is_amount(text):
        raise refuse(f"`{shown(value)}` is not an amount; write for example 500 or '12.50'")
    return text


def _currency(value: Any) -> Any:
    if not isinstance(value, str) or not re.fullmatch(CURRENCY, value):
        raise refuse(f"`{shown(value)}` is no currency; write three capital letters, such as {DOLLARS}")
    return value


class RiskRuleModel(Model):
    """A level for the calls that fit all that it says."""

    level: Annotated[str, one_of(*LEVELS), words(*LEVELS), Given] = Field(
        description="`high` and `critical` ask a person first."
    )
    action: Annotated[str | None, one_of(*ACTIONS), words(*ACTIONS), Given] = Field(
        default=None, description="Only calls of tools that do this."
    )
    above: Annotated[
        str | None,
        BeforeValidator(_amount),
        Given,
        WithJsonSchema({"type": ["number", "string"], "pattern": f"^{AMOUNT}$", "minimum": 0}),
    ] = Field(default=None, description="Only amounts above this one: a number, or its digits as a text.")
    currency: Annotated[
        str, BeforeValidator(_currency), Given, WithJsonSchema({"type": "string", "pattern": f"^{CURRENCY}$"})
    ] = Field(default=DOLLARS, description="Of `above`: three capital letters of ISO 4217.")
    party_above: Annotated[int | None, between(0, _MOST_PEOPLE), counted(0, _MOST_PEOPLE), Given] = Field(
        default=None, description="Only parties of more people."
    )

    @model_validator(mode="after")
    def _of_an_amount(self) -> RiskRuleModel:
        if "currency" in self.model_fields_set and self.above is None:
            raise refuse("`currency` goes with `above`")
        return self

    def rule(self) -> RiskRule:
        return RiskRule(
            level=self.level,
            action=self.action or "",
            above=self.above or "",
            currency=self.currency if self.above else "",
            party_above=self.party_above,
        )
