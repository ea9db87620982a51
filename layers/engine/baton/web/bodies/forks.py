"""Model of the body of a fork: where it begins, what it changes, and what it does about effects."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from baton.web.bodies.requests import Body, Plainly, whole_number

_MOST_STEPS = 20
_LONGEST_STEP = 200
_Step = Annotated[str, Field(min_length=1, max_length=_LONGEST_STEP)]


def _without_default(schema: dict[str, Any]) -> None:
    """Leave out the default: 0 stands for an absent version, and is none."""
    schema.pop("default", None)


class ForkBody(Body):
    """Request to continue a saga in a new branch. It begins at a `version`, `before` a step, or `at` the last
    stable version: exactly one of the three.
    """

    version: Annotated[int, BeforeValidator(whole_number)] = Field(
        0,
        ge=1,
        description="Version of the log at which the branch begins.",
        json_schema_extra=_without_default,
    )
    before: str = Field(
        "",
        max_length=_LONGEST_STEP,
        description="Step that runs again: the branch begins at the version before its first entry. `NODE@ROUND` names a "
        "round of a loop, and `NODE` its last round.",
        examples=["pay"],
    )
    at: Literal["", "stable"] = Field(
        "",
        description="`stable`: the last version at which a step has ended well or an answer was taken in, and nothing has failed.",
    )
    reason: Annotated[str, Plainly] = Field("", max_length=500)
    input: JsonValue = Field(
        None,
        description="Input with which the saga goes on, in place of its own. It must conform to the workflow's input schema.",
    )
    outputs: dict[str, JsonValue] = Field(
        default_factory=dict,
        max_length=_MOST_STEPS,
        description="By step that is over at that version: the output with which the saga goes on.",
        examples=[{"quote": {"price": 80}}],
    )
    workflow: str = Field(
        "",
        max_length=128,
        description="Version of the workflow with which the saga goes on: NAME, NAME@VERSION or NAME@TAG.",
        examples=["pay@3"],
    )
    repeat: list[_Step] = Field(
        default_factory=list,
        max_length=_MOST_STEPS,
        description="Steps that act again: their effects get new idempotency keys.",
    )
    as_: Literal["", "saga"] = Field(
        "",
        alias="as",
        description="`saga`: go on as a new saga, with a log that begins with copies of the entries up to there. The other one stays "
        "as it is. If omitted, the saga itself goes on.",
    )
    leave: bool = Field(
        False,
        description="True to leave effects as they are that the new branch may repeat, because a change may give their steps other "
        "idempotency keys.",
    )
    dry_run: bool = Field(
        False, description="True to return what the fork would leave behind, without forking."
    )

    @model_validator(mode="after")
    def _one(self) -> ForkBody:
        if [bool(self.version), bool(self.before), bool(self.at)].count(True) != 1:
            raise ValueError('give one of `version`, `before` (a step) and `at` ("stable")')
        return self

    @property
    def wanted(self) -> dict[str, Any]:
        """The fields of a `ForkRequest`."""
        said = self.model_dump(exclude={"at", "as_", "dry_run", "input"})
        said |= {"stable": bool(self.at), "repeat": tuple(self.repeat)}
        return said | ({"input": self.input} if "input" in self.model_fields_set else {})
