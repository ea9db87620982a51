"""Approvals, audiences and escalations, as documents write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StrictBool, StringConstraints, model_validator
from pydantic.config import JsonDict

from baton.core.documents.parts.fields import (
    Defined,
    Duration,
    Given,
    Model,
    Reads,
    between,
    document_form,
    is_number,
    one_of,
    refuse,
)
from baton.core.effects.risk import ACTIONS, AMOUNT, CURRENCY, LEVELS, OTHER, Risk, RiskRule, mistake_of
from baton.core.expressions import nearest
from baton.core.limits import DAY_MS
from baton.errors import Problem

STARTER = "starter"
ROLES = ("answer", "operate")
"""Those that open the route for answers."""

Text = Annotated[str, StringConstraints(min_length=1)]


class AudienceModel(Model):
    """Audience besides operators: one user, the members of a group, or the callers with a role."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    user: Annotated[Text | None, Given] = Field(default=None, description="A user's name, as tokens have it.")
    group: Annotated[Text | None, Given] = Field(default=None, description="A group that tokens name.")
    role: Annotated[Literal["answer", "operate"] | None, one_of(*ROLES), Given] = Field(
        default=None, description="All callers with this role."
    )

    @model_validator(mode="after")
    def _one(self) -> AudienceModel:
        if len(self.model_fields_set) != 1:
            raise refuse("write exactly one of `user`, `group` and `role`, or the word `starter`")
        return self


def _audience(value: Any) -> Any:
    if value == STARTER:
        return None
    if not isinstance(value, dict):
        raise refuse("write `starter`, or an object with one of `user`, `group` and `role`")
    return value


Audience = Annotated[
    AudienceModel | None,
    Reads(_audience, lambda made: {"anyOf": [{"const": STARTER}, made]}),
    Defined("humanAudience"),
    Given,
]


MAX_STEPS = 5
MEANWHILE = "Actions while there is no answer, in the order of time."
FAMILIAR = "escalation escalations escalation_policy reminders remind on_timeout"
"""Words of other tools for it."""
SO_MANY: JsonDict = {"minItems": 1, "maxItems": MAX_STEPS}
"""Bounds of such a list in its JSON Schema."""


def _true(value: Any) -> Any:
    if value is not None and value is not True:
        raise refuse("must be `true`; leave the step out where there is to be none")
    return value


class EscalationModel(Model):
    """One action while there is no answer."""

    after: Duration = Field(description="Time from the question to this action.")
    remind: Annotated[Literal[True] | None, BeforeValidator(_true), Given] = Field(
        default=None, description="Notifies the audience again."
    )
    hand_on: Audience = Field(
        default=None, description="New audience, which is notified. The former one can no longer answer."
    )
    decide: Annotated[Text | None, Given] = Field(
        default=None, description="Answer that closes the question."
    )

    @model_validator(mode="after")
    def _one(self) -> EscalationModel:
        if len(self.model_fields_set - {"after"}) != 1:
            raise refuse("write `after`, and exactly one of `remind`, `hand_on` and `decide`")
        return self

    def said(self) -> dict[str, Any]:
        """Return the action as a graph has it; there may be expressions in it."""
        step = self.model_dump(exclude_unset=True)
        step["after_ms"] = step.pop("after")
        return step


def escalation_problems(
    place: str,
    steps: Sequence[EscalationModel],
    *,
    answers: Sequence[str],
    refused: Mapping[str, tuple[str, str]],
    expires: int = 0,
    expiry: str = "",
) -> Iterator[Problem]:
    """Yield the problems of the steps of a question that `expires` after so many milliseconds;
    `expiry` names the setting that decides that. With 0, the question waits for its steps.

    `answers`: those that need no data. `refused`: those of them that only a person may give, each with why
    not, and what
    to write instead.
    """
    if not 1 <= len(steps) <= MAX_STEPS:
        yield Problem(place, f"must be 1 to {MAX_STEPS} steps")
    before = 0
    for index, step in enumerate(steps):
        at = f"{place}/{index}"
        if step.after <= before:
            yield Problem(f"{at}/after", "must be later than the step before it")
        if expires and step.after >= expires:
            yield Problem(f"{at}/after", "must be before the question expires", expiry)
        before = step.after
        if step.decide is None:
            continue
        if index + 1 < len(steps):
            yield Problem(f"{at}/decide", "must be the last step: it closes the question")
        if step.decide not in answers:
            known = (
                f"must be one of {', '.join(answers)}" if answers else "an input has no answer without data"
            )
            yield Problem(f"{at}/decide", known, nearest(step.decide, answers))
        elif step.decide in refused:
            yield Problem(f"{at}/decide", *refused[step.decide])


DOLLARS = "USD"
MOST_RULES = 50
_MOST_PEOPLE = 1_000_000
_is_amount = re.compile(AMOUNT, re.ASCII).fullmatch


class ApprovalModel(Model):
    """Approval by a person before the tool acts: `true`, or the words of the question."""

    short: ClassVar[str] = "always"

    always: StrictBool = Field(
        default=True,
        description="Asks before every call. With `false`, only before calls of high or critical risk.",
    )
    title: Annotated[Text | None, Given] = Field(default=None, description="The question in a line.")
    message: Annotated[Text | None, Given] = Field(
        default=None, description="Information that the person needs. Without it, the risk and its reason."
    )
    to: Audience = Field(
        default=None,
        description="Audience that may answer besides operators. Without it, the user who started the saga.",
    )
    expires: Duration = Field(
        default=DAY_MS,
        description="Time until the question expires; without it, 24 hours. Then it is rejected.",
        json_schema_extra={"default": "24h"},
    )
    escalate: Annotated[list[EscalationModel] | None, Given] = Field(
        default=None, description=MEANWHILE, json_schema_extra=SO_MANY
    )

    def said(self) -> dict[str, Any]:
        """Return the fields that may have expressions, as a document has them."""
        said: dict[str, Any] = self.model_dump(include={"title", "message", "to"}, exclude_unset=True)
        said |= {"escalate": [step.said() for step in self.escalate]} if self.escalate else {}
        return {name: value for name, value in said.items() if value is not None}

    @property
    def expires_ms(self) -> int:
        """Milliseconds that are written; 0 without."""
        return self.expires if "expires" in self.model_fields_set else 0


def _amount(value: Any) -> Any:
    """Read digits, exactly as the document writes them."""
    text = f"{Decimal(repr(value)):f}" if is_number(value) else value
    if not isinstance(text, str) or not _is_amount(text):
        raise refuse(f"`{document_form(value)}` is not an amount; write for example 500 or '12.50'")
    return text


def _currency(value: Any) -> Any:
    if not isinstance(value, str) or not re.fullmatch(CURRENCY, value):
        raise refuse(
            f"`{document_form(value)}` is no currency; write three capital letters, such as {DOLLARS}"
        )
    return value


class RiskRuleModel(Model):
    """Rule for a level of risk. It is for the calls that fit all of its fields."""

    level: Annotated[str, one_of(*LEVELS), Given] = Field(
        description="`high` and `critical` ask a person first."
    )
    action: Annotated[str | None, one_of(*ACTIONS), Given] = Field(
        default=None, description="Only calls of tools that do this."
    )
    above: Annotated[
        str | None,
        Reads(_amount, {"type": ["number", "string"], "pattern": f"^{AMOUNT}$", "minimum": 0}),
        Given,
    ] = Field(default=None, description="Only amounts above this one.")
    currency: Annotated[str, Reads(_currency, {"type": "string", "pattern": f"^{CURRENCY}$"}), Given] = Field(
        default=DOLLARS, description="Currency of `above`: three capital letters of ISO 4217."
    )
    party_above: Annotated[int | None, between(0, _MOST_PEOPLE), Given] = Field(
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


_ARGUMENT = r"^(parameters|body)(\.[^.]+)+$"


def _argument(value: Any) -> Any:
    if not isinstance(value, str) or not re.fullmatch(_ARGUMENT, value):
        why = f"`{document_form(value)}` is no argument of an operation"
        raise refuse(why, "write a path below `parameters` or `body`, such as `body.total`")
    return value


Argument = Annotated[str | None, Reads(_argument, {"type": "string", "pattern": _ARGUMENT}), Given]


class CallRiskModel(Model):
    """Risk of the calls of an operation: a level, or what it does and which arguments say how much of it."""

    short: ClassVar[str] = "level"

    level: Annotated[str | None, one_of(*LEVELS), Given] = Field(
        default=None, description="The level of every call: `high` and `critical` ask a person first."
    )
    action: Annotated[str, one_of(*ACTIONS), Given] = Field(
        default=OTHER, description="The action of a call, for the rules under `risk` of the document."
    )
    amount: Argument = Field(
        default=None, description="The argument with the amount.", examples=["body.total"]
    )
    currency: Argument = Field(default=None, description="The argument with the currency of the amount.")
    currency_is: Annotated[
        str | None, Reads(_currency, {"type": "string", "pattern": f"^{CURRENCY}$"}), Given
    ] = Field(default=None, description="The currency of the amount, if no argument has it.")
    minor: StrictBool = Field(
        default=False, description="The amount counts the smallest unit, such as cents."
    )
    party: Argument = Field(default=None, description="The argument with the number of people.")

    @model_validator(mode="after")
    def _together(self) -> CallRiskModel:
        if self.level and len(self.model_fields_set) > 1:
            raise refuse("a `level` is that of every call", "leave out the other fields, or `level`")
        if mistake := mistake_of(self.risk):
            raise refuse(mistake)
        return self

    @property
    def risk(self) -> Risk:
        """The risk as a tool declares it."""
        return Risk(**self.model_dump(exclude_none=True))
