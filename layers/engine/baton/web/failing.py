"""Attempts that failed, what is done about them, questions to people, and incidents, as models.

The values are made in core/read/views.py, core/read/attempt_history.py and runtime/incidents.py.
Imported only where the OpenAPI document is made: see answers.py.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from baton.core.failures.policy import QUESTIONS, SEVERITIES
from baton.web.models import Answer, Cursor, Schema, Time

_KINDS = "transient, recoverable, user_resolvable, permanent, catastrophic or unknown."


class AttemptFailure(Answer):
    """Why an attempt failed, and what that means to a person."""

    code: str
    class_: str = Field(alias="class", description=_KINDS)
    message: str
    retryable: bool = Field(description="Whether trying again, and nothing else, may help.")
    says: str = Field(description="What the code means, in a sentence.")
    advice: str = Field(description="What to do about it.")


class FailingStep(AttemptFailure):
    """A step that is not done, some of whose attempts have failed; the failure is that of the last."""

    node: str
    iteration: list[int]
    attempts: int = Field(ge=1, description="How many have failed.")
    at: Time | None = Field(description="When the last of them failed.")
    strategy: str = Field(description="What is done about it: retry, replan, ask_user or escalate.")
    hint: str | None = Field(description="Of a replan: what it carries out.")
    way: str | None = Field(description="The other way that it goes now.")
    next_attempt_at: Time | None = Field(description="Not before then; null: it is not a matter of time.")


class Asked(Answer):
    """A question to a person about a failure."""

    id: str
    node: str
    iteration: list[int]
    kind: Annotated[str, WithJsonSchema({"type": "string", "enum": list(QUESTIONS)})]
    message: str
    options: list[str] = Field(description="The actions that an answer can name.")
    expires_at: Time | None = Field(description="Then it goes on without an answer; null: it waits.")


class Answerer(Answer):
    """A user, or a role of callers, whom a question is for."""

    kind: Literal["user", "role"]
    name: str


class Question(Asked):
    """A question that waits for an answer, which `POST /sagas/{saga}/answer` brings."""

    for_: list[Answerer] = Field(alias="for", description="Who may answer it; others are refused with 403.")
    arguments: Schema | None = Field(description="Of the arguments that an answer may change; null: none.")


class ParkedAs(Answer):
    """Why a saga is parked."""

    code: str
    message: str
    node: str | None
    until: Time | None = Field(description="Then it goes on by itself; null: a person has to decide.")


class Reaction(Answer):
    """One thing that was done about a failure."""

    strategy: str
    hint: str | None
    way: str | None
    policy: str | None = Field(description="The failover policy that says so.")
    why: list[str] = Field(description="Why the strategies before it were passed.")
    pause_ms: int | None = Field(ge=0, description="Of a retry: the time before it.")
    next_attempt_at: Time | None
    question: Asked | None
    answer: str | None = Field(description="retry, use, fail, or expired; null: none yet.")


class FailedAttempt(AttemptFailure):
    """An attempt that failed, but was not its step's last word."""

    attempt: int = Field(ge=1)
    tool: str
    version: int = Field(ge=1, description="Of the entry that says so.")
    at: Time
    lasted_ms: int
    then: list[Reaction]
    text: str = Field(description="All of it, for a person.")


class Incident(Answer):
    """Something that went wrong and needs a person. It is resolved once somebody has decided about its saga."""

    id: str
    status: Annotated[str, WithJsonSchema({"type": "string", "enum": ["open", "resolved"]})]
    saga: str
    node: str | None
    code: str
    message: str
    severity: Annotated[str, WithJsonSchema({"type": "string", "enum": list(SEVERITIES)})]
    opened_at: Time
    resolved_at: Time | None
    resolved_by: str | None = Field(description="Who answered, resumed, cancelled, forked or said so.")


class IncidentPage(Answer):
    """Incidents, the newest first."""

    incidents: list[Incident]
    next: Cursor
