"""What happens to a question while it has no answer, as documents write it: the list `escalate` of every kind of question.

What a step of it does is in core/log/escalation.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic.config import JsonDict

from baton.core.documents.parts.audience import Audience, Text
from baton.core.documents.parts.fields import Duration, Given, Model, refuse
from baton.core.expressions.spelling import nearest
from baton.errors import Problem

MAX_STEPS = 5
MEANWHILE = "What happens while there is no answer, in the order of time."
FAMILIAR = "escalation escalations escalation_policy reminders remind on_timeout"
"""What other tools call it."""
SO_MANY: JsonDict = {"minItems": 1, "maxItems": MAX_STEPS}
"""What the JSON Schema of such a list says besides."""


def _true(value: Any) -> Any:
    if value is not None and value is not True:
        raise refuse("must be `true`; leave the step out where there is to be none")
    return value


class EscalationModel(Model):
    """One thing that happens while there is no answer."""

    after: Duration = Field(description="When, from the asking on.")
    remind: Annotated[Literal[True] | None, BeforeValidator(_true), Given] = Field(
        default=None, description="Its audience is told again."
    )
    hand_on: Audience = Field(default=None, description="Who may answer from then on, in their place.")
    decide: Annotated[Text | None, Given] = Field(
        default=None, description="The answer that closes the question: one that needs no data."
    )

    @model_validator(mode="after")
    def _one(self) -> EscalationModel:
        if len(self.model_fields_set - {"after"}) != 1:
            raise refuse("write `after`, and exactly one of `remind`, `hand_on` and `decide`")
        return self

    def said(self) -> dict[str, Any]:
        """As a graph has it; there may be expressions in it."""
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
    """Problem of the steps of a question that `expires` after so many milliseconds; `expiry` names what decides that. 0: it waits
    for its steps.

    `answers`: those that need no data. `refused`: those of them that only a person may give, each with why not, and what
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
