"""What is done when a saga has failed for good: the shape of `failure_handler`."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, model_validator

from baton.core.documents.parts.fields import Given, Model, NodeName, Value, WorkflowReference, refuse


class HandlerModel(Model):
    """The workflow, or the graph of the document, that is started when a saga of this one has failed for good, and has undone what it can."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["workflow"]}, {"required": ["graph"]}]}
    )
    short: ClassVar[str] = "workflow"

    workflow: Annotated[WorkflowReference | None, Given] = Field(
        default=None,
        description="Name of the workflow, as of a child: `NAME` or `NAME@VERSION`. Another one than this.",
        examples=["tell-the-team"],
    )
    graph: Annotated[NodeName | None, Given] = Field(
        default=None,
        description="In its place, the name of a graph under `graphs` of this document.",
        examples=["tell"],
    )
    with_: Annotated[dict[str, Value] | None, Given] = Field(
        default=None,
        alias="with",
        description="What it gets: values in which `last_error` is the failure, and `ctx.NODE.output?` what a node gave. Without it, a workflow "
        "gets a report of the failure, and a graph the input of the saga.",
        examples=[{"order": "${input.order}", "why": "${last_error.message}"}],
    )
    on_cancel: bool = Field(
        default=False,
        description="Whether it is started for a saga that was cancelled, too.",
        examples=[True],
    )

    @property
    def called(self) -> str:
        """The workflow; empty for a graph."""
        return self.workflow or ""

    @model_validator(mode="after")
    def _one_of_two(self) -> HandlerModel:
        if (self.workflow is None) == (self.graph is None):
            raise refuse("a handler has exactly one of `workflow` and `graph`")
        return self
