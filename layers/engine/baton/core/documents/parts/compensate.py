"""How a node says what takes back what it has done: the shape of `compensate`.

What it becomes in a graph is in nodes/undone.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from baton.core.documents.parts.failing import Retry
from baton.core.documents.parts.fields import Duration, Given, Model, Value, refuse

NONE, SEQUENTIAL, PARALLEL = "none", "sequential", "parallel"


class CompensateModel(Model):
    """What takes back what a node has done."""

    short: ClassVar[str] = "tool"

    tool: Annotated[str | None, Given] = Field(
        default=None,
        description="The tool that takes it back, in place of the one that the node's own tool names; `none`: nothing does.",
    )
    with_: Annotated[dict[str, Value] | None, Given] = Field(
        default=None,
        alias="with",
        description="Its arguments, in which `${step.input}` and `${step.output}` are what the node got and gave, and `${step.key}` its idempotency key. Without it, each "
        "parameter gets the field of the same name of the output, else of the input.",
    )
    retry: Retry = Field(
        default=None,
        description="As of a node: at most 5 attempts within 10 minutes unless it says otherwise.",
    )
    timeout: Annotated[Duration | None, Given] = Field(
        default=None, description="The longest time for one attempt."
    )
    in_doubt: Annotated[Literal["call", "ask"] | None, Given] = Field(
        default=None,
        description="What is done where it is not known whether the node has acted: `call` it in any case, or `ask` a person. Without it, "
        "it is called where that [does no harm](failures.md#undoing).",
    )

    @model_validator(mode="after")
    def _nothing_else(self) -> CompensateModel:
        if self.tool == NONE and len(self.model_fields_set) > 1:
            raise refuse(
                "`tool: none` means that nothing is undone, so that nothing else can be said",
                "write `compensate: none`",
            )
        if not self.model_fields_set:
            raise refuse(
                "name the `tool`, or what is different from the tool's own inverse",
                "write `compensate: none` for nothing",
            )
        return self
