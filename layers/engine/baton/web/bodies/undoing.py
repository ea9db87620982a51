"""What is shown of undoing, as models. The values are made in core/read/undo_views.py; imported only where the OpenAPI document is made."""

from __future__ import annotations

from pydantic import Field

from baton.web.bodies.models import Answer, Status, Time


class NotUndone(Answer):
    """A step that could not be undone."""

    step: str = Field(description="Its slot: the node, and the rounds of the loops around it.")
    version: int = Field(ge=1, description="The entry that says what it has done.")
    tool: str = Field(description="The tool that was to undo it.")
    code: str
    message: str


class UnderWay(Answer):
    """How far an undoing is."""

    since: Time
    reason: str
    by: str | None = Field(description="Who asked for it; null: the saga failed.")
    back_to: int | None = Field(
        description="What was done up to this version stays; null: everything is undone."
    )
    undone: int = Field(ge=0)
    failed: int = Field(ge=0)
    left: int = Field(ge=0)


class WasUndone(Answer):
    """What has come of the undoing with which a saga has ended."""

    undone: int = Field(ge=0, description="Steps that were undone.")
    failed: int = Field(ge=0, description="Steps that could not be undone.")
    lasting: int = Field(ge=0, description="Steps that nothing undoes.")
    stays: list[str] = Field(description="The first of those that nothing undoes.")
    back_to: int | None


class Undoing(Answer):
    """What of a saga could be undone, how far an undoing is, and what has come of it."""

    undoable: int = Field(ge=0, description="Steps that are done and would be undone.")
    lasting: int = Field(ge=0, description="Steps that are done and that nothing undoes.")
    failed: list[NotUndone] = Field(
        description="What could not be undone; another rollback takes it up again."
    )
    doubtful: list[str] = Field(
        description="Steps that may have happened. A rollback asks whether they have, of those that something undoes."
    )
    more_failed: int = Field(
        ge=0,
        description="More steps that could not be undone; entries `undo_set_aside` of the log name them.",
    )
    more_doubtful: int = Field(
        ge=0,
        description="More steps that may have happened; entries `step_failed` and `step_stopped` of the log name them.",
    )
    under_way: UnderWay | None
    done: WasUndone | None


class PlannedStep(Answer):
    """A step that a rollback comes to."""

    step: str
    version: int = Field(ge=1)
    by: str | None = Field(
        description="The tool that undoes it, or the child saga that does; null: nothing does."
    )
    doubtful: bool = Field(description="It may have happened: a person is asked before it is undone.")


class Plan(Answer):
    """What a rollback undoes, the newest first."""

    parent: str | None = Field(
        description="The saga that has started this one. It is not told: what it has made of this one's output stays."
    )
    undoable: int = Field(ge=0)
    doubtful: int = Field(ge=0, description="Steps that may have happened: a person is asked about each.")
    lasting: int = Field(ge=0, description="Steps that nothing undoes.")
    steps: list[PlannedStep] = Field(description="The first 100 of both.")


class RollbackPlan(Answer):
    """What a rollback would undo. Nothing was done."""

    id: str
    status: Status
    version: int = Field(ge=1)
    plan: Plan


class RollbackAccepted(RollbackPlan):
    """It is in the saga's log, now or since before."""

    changed: bool
