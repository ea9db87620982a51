"""Who may answer a question, as documents write it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, StringConstraints, model_validator

from baton.core.documents.parts.fields import Given, Model, defined, one_of, refuse

STARTER = "starter"
ROLES = ("answer", "operate")
"""Those that open the route for answers."""
_NAMED = {"type": "string", "minLength": 1}

Text = Annotated[str, StringConstraints(min_length=1)]


class AudienceModel(Model):
    """Who may answer besides operators: one user, the members of a group, or the callers with a role."""

    user: Annotated[Text | None, Given] = None
    group: Annotated[Text | None, Given] = None
    role: Annotated[Literal["answer", "operate"] | None, one_of(*ROLES), Given] = None

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


Audience = Annotated[AudienceModel | None, BeforeValidator(_audience), Given, defined("humanAudience")]
AUDIENCE: dict[str, Any] = {
    "anyOf": [
        {"const": STARTER},
        {
            "type": "object",
            "properties": {
                "user": {**_NAMED, "description": "A user's name, as tokens have it."},
                "group": {**_NAMED, "description": "A group that tokens name."},
                "role": {"enum": list(ROLES), "description": "All callers with this role."},
            },
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
        },
    ]
}
"""The definition that `Audience` refers to."""
