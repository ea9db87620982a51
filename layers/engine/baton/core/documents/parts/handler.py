"""What is done when a saga has failed for good: the shape of `failure_handler`."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from baton.core.documents.parts.fields import Given, Model, Value, WorkflowReference


class HandlerModel(Model):
    """The workflow that is started when a saga of this one has failed for good, and has undone what it can."""

    short: ClassVar[str] = "workflow"

    workflow: WorkflowReference = Field(
        description="Name of the workflow, as of a child: `NAME` or `NAME@VERSION`. Another one than this.",
        examples=["tell-the-team"],
    )
    with_: Annotated[dict[str, Value] | None, Given] = Field(
        default=None,
        alias="with",
        description="What it gets: values in which `last_error` is the failure. Without it, a report of the failure.",
        examples=[{"order": "${input.order}", "why": "${last_error.message}"}],
    )
    on_cancel: bool = Field(
        default=False,
        description="Whether it is started for a saga that was cancelled, too.",
        examples=[True],
    )
