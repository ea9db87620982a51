"""Models of answers about failures, questions, incidents, dead letters, rollbacks and explanations."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from baton.core.failures.policy import QUESTIONS
from baton.core.log.state import FINISHED, WAITING

STATUSES = ("pending", "running", *sorted(WAITING), *sorted(FINISHED))

Time = Annotated[
    str, WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-11-21T10:00:00.123Z"]})
]
Status = Annotated[str, WithJsonSchema({"type": "string", "enum": list(STATUSES)})]
Condition = Annotated[dict[str, Any], Field(description="Compiled condition. `is` names its kind.")]
Schema = Annotated[dict[str, Any], Field(description="A JSON Schema.")]
Cursor = Annotated[
    str | None, Field(description="Value of `cursor` for the next page. Null on the last page.")
]


class Answer(BaseModel):
    """An object with exactly these fields."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


LABEL = "Label of the item, such as `turn 2, call 1 (table.hold)`."
ITEM = "Item that the node processes, such as `t2-0` for the first call of an agent's second turn."


class SparseAnswer(BaseModel):
    """An object with no other fields than these. A field with a default can be absent."""

    model_config = ConfigDict(extra="forbid")


class OpenAnswer(BaseModel):
    """An object with these and further fields."""

    model_config = ConfigDict(extra="allow")


AskedFor = Annotated[
    Annotated[str, WithJsonSchema({"type": "string", "enum": list(QUESTIONS)})] | None,
    Field(
        description="For the type `error`: kind of answer that the person is asked for, which is the `question` "
        "of the workflow's rule for the failure. Null for other types."
    ),
]
_KINDS = "Class of the failure: transient, recoverable, user_resolvable, permanent, catastrophic or unknown."


class PlannedStep(Answer):
    """A step in a rollback."""

    step: str
    version: int = Field(ge=1)
    by: str | None = Field(
        description="Tool or child saga that undoes the step. Null if the step is irreversible."
    )
    doubtful: bool = Field(
        description="True if the outcome of the step is unknown. A person is asked before it is undone."
    )


class Plan(Answer):
    """Steps that a rollback undoes, newest first."""

    parent: str | None = Field(
        description="Parent saga. The rollback does not notify it, and the parent's own use of this saga's output"
        " is not undone."
    )
    undoable: int = Field(ge=0)
    doubtful: int = Field(
        ge=0, description="Number of steps with an unknown outcome. A person is asked about each."
    )
    lasting: int = Field(ge=0, description="Number of irreversible steps.")
    steps: list[PlannedStep] = Field(description="First 100 of these steps.")


class RollbackPlan(Answer):
    """Steps that a rollback would undo. The request changes nothing."""

    id: str
    status: Status
    version: int = Field(ge=1)
    plan: Plan


class RollbackAccepted(RollbackPlan):
    """The saga's log records the rollback, now or from an earlier request."""

    changed: bool
