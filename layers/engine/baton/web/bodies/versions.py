"""Bodies of requests about versions of workflows: their tags and patches."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue

from baton.web.bodies.requests import Body, Plainly


class TagBody(Body):
    """Version that a tag is to name, or none."""

    version: int | None = Field(ge=1, le=999_999_999, description="Null deletes the tag.", examples=[3])
    was: int | None = Field(
        None,
        ge=0,
        le=999_999_999,
        description="Version that the tag named when the caller looked, 0 for none. If it names another one now, the request is refused.",
    )
    reason: Annotated[str, Plainly] = Field("", max_length=200, description="Reason, for its history.")


class PatchWorkflowBody(Body):
    """JSON Patch (RFC 6902) of a workflow's document."""

    patch: list[dict[str, JsonValue]] = Field(
        min_length=1,
        max_length=1_000,
        description="Operations of the patch.",
        examples=[[{"op": "remove", "path": "/nodes/charge/retry"}]],
    )
    for_: int = Field(
        alias="for",
        ge=1,
        le=999_999_999,
        description="Version that the patch was made for. It must be the newest.",
        examples=[3],
    )
    description: Annotated[str, Plainly] = Field(
        "", max_length=500, description="Description of the change, which the new version keeps."
    )
    dry_run: bool = Field(False, description="True to compile the patched document without registering it.")
