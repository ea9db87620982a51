"""What models of answers have in common: their root, and the types of single values.

No answer here: see answers.py.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from baton.core.log.status import FINISHED, WAITING

STATUSES = ("pending", "running", *sorted(WAITING), *sorted(FINISHED))

Time = Annotated[
    str, WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-11-21T10:00:00.123Z"]})
]
Status = Annotated[str, WithJsonSchema({"type": "string", "enum": list(STATUSES)})]
Condition = Annotated[
    dict[str, Any], Field(description="A condition as it was compiled; `is` says of which kind.")
]
Schema = Annotated[dict[str, Any], Field(description="A JSON Schema.")]
Cursor = Annotated[str | None, Field(description="The `cursor` of the next page; null at the end.")]


class Answer(BaseModel):
    """Exactly these fields."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


LABEL = "What the item is called, such as `turn 2, call 1 (table.hold)`."
ITEM = "Which of the things that the node does at once or in turn, such as `t2-0`, the first call of an agent's second turn."


class SparseAnswer(BaseModel):
    """No other fields than these; one that has a default may be absent."""

    model_config = ConfigDict(extra="forbid")


class OpenAnswer(BaseModel):
    """These fields and others."""

    model_config = ConfigDict(extra="allow")
