"""Bodies of requests about versions of workflows: their tags and patches, and migrations of sagas."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue, StringConstraints, WithJsonSchema, model_validator

from baton.core.graph.graph import NODE_NAME, TAG_NAME
from baton.web.bodies.requests import Body, ManyBody, Plainly, whole_number


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


_MADE_FOR: Any = {"type": ["string", "integer"], "pattern": "^[0-9a-f]{8,64}$", "minimum": 1}


def _graph_or_version(value: Any) -> Any:
    value = whole_number(value)
    is_graph = isinstance(value, str) and re.fullmatch(_MADE_FOR["pattern"], value)
    if not is_graph and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ValueError("give the `graph` that `GET /sagas/{saga}` shows, or a version of the log")
    return value


class PatchSagaBody(Body):
    """Change of the graph of a saga: `patch`, or `undo`."""

    patch: list[dict[str, JsonValue]] = Field(
        [], max_length=1_000, description="Operations of a JSON Patch (RFC 6902) of the saga's own document."
    )
    made_for: Annotated[str | int, BeforeValidator(_graph_or_version), WithJsonSchema(_MADE_FOR)] = Field(
        alias="for",
        description="Graph, or version of the saga's log, that the patch was made for. If the saga runs another "
        "graph, the request is refused. Of a hash, the first 8 digits suffice.",
    )
    description: Annotated[str, Plainly] = Field("", max_length=500, description="Reason, for the log.")
    dry_run: bool = Field(False, description="True to return what would change, without changing it.")
    undo: bool = Field(False, description="True to go back to the graph before the last change.")

    @model_validator(mode="after")
    def _is_one(self) -> PatchSagaBody:
        if self.undo == bool(self.patch):
            raise ValueError("give either `patch` with at least one operation, or `undo`")
        return self


_Version = Annotated[int, Field(ge=1, le=999_999_999)]
_Node = Annotated[str, StringConstraints(pattern=NODE_NAME)]


class MigrateManyBody(ManyBody):
    """Sagas of a workflow to migrate to another version of it."""

    tenant: Literal[False] = False
    to: _Version | Annotated[str, StringConstraints(pattern=TAG_NAME)] = Field(
        description="Version to migrate to, or a tag that names it.", examples=[3]
    )
    map: dict[_Node, _Node] = Field(
        default_factory=dict, max_length=1_000, description="New names of nodes, by the names until now."
    )
    from_: list[_Version] = Field(
        default_factory=list,
        alias="from",
        max_length=100,
        description="Only sagas of these versions. Empty: of all other versions.",
    )
    labels: dict[str, str] = Field(default_factory=dict, description="Labels that a saga must have.")
