"""The body with which a caller has a saga undone, back to a version or a step."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from baton.web.bodies.reading import Body, Plainly, whole

_TO_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "minLength": 1, "maxLength": 200}]
}


def _step_or_version(given: Any) -> int | str:
    """A version may be written as text, too: no node has a number for its name."""
    if isinstance(given, str) and 0 < len(given) <= 200:
        return int(given) if given.isdecimal() else given
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    raise ValueError("must be a version of the log or the name of a step")


class RollbackBody(Body):
    """What is to be undone."""

    to: Annotated[int | str, BeforeValidator(_step_or_version), WithJsonSchema(_TO_SCHEMA)] = Field(
        0,
        description="What was done up to this version of the log, or up to and with this step, stays; 0: everything is undone. Of a "
        "loop's node, `NODE@ROUND` is one round; the node alone is its last.",
    )
    version: Annotated[int, BeforeValidator(whole)] = Field(0, ge=0, description="As `to`, of a version.")
    reason: Annotated[str, Plainly] = Field("", max_length=500)
    parallel: bool = Field(False, description="Steps are undone side by side.")
    dry_run: bool = Field(False, description="Nothing is done; the answer says what would be.")

    @model_validator(mode="after")
    def _one(self) -> RollbackBody:
        if {"to", "version"} <= self.model_fields_set:
            raise ValueError("it goes back `to` a step or a version, or to a `version`, not both")
        return self

    @property
    def back_to(self) -> int:
        """The version; 0 also where a step is named."""
        return self.version or (self.to if isinstance(self.to, int) else 0)

    @property
    def step(self) -> str:
        return self.to if isinstance(self.to, str) else ""
