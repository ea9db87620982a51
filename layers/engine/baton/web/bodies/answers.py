"""Models of answers that are not yet structs of core/read, for the OpenAPI document only.

Import them only to make that document: models slow a cold start. Tests compare real answers with it. More of
them are in failures.py and events.py.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field, WithJsonSchema

from baton.core.log.events import Event
from baton.core.nodes.registry import KINDS
from baton.web.bodies.failures import (
    Answer,
    OpenAnswer,
    SparseAnswer,
    Status,
    Time,
)

STATES = dict.fromkeys(
    (
        *("joining", "waiting", "ready", "held", "retrying", "asking", "running"),
        *(kind.active for kind in KINDS.values()),
    )
)
KINDS_OF_EVENT = tuple(str(kind.__struct_config__.tag) for kind in get_args(Event))

# ---- the service itself


class Health(Answer):
    """The DynamoDB table answers."""

    status: Literal["ok"]


class Description(OpenAnswer):
    """An OpenAPI document."""

    openapi: Literal["3.1.0"]
    info: dict[str, Any]
    paths: dict[str, Any]


class ProblemError(SparseAnswer):
    """A fault in a document or an input."""

    path: str = Field(description="JSON Pointer to the fault. Empty for the whole document or input.")
    message: str
    suggestion: str = Field("", description="Suggested correction.")
    # Absent where the text is not known; a default would have to fit the schema.
    line: int = Field(
        default_factory=int, ge=1, description="Counted from 1. Absent if the text is not available."
    )
    column: int = Field(
        default_factory=int, ge=1, description="Counted from 1. Absent if the text is not available."
    )


class Problem(SparseAnswer):
    """A problem as defined by RFC 9457."""

    type: str = Field(pattern="^urn:baton:problem:[a-z-]+$")
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    errors: list[ProblemError] = Field([], description="All faults, each with its location.")


class GatewayMessage(BaseModel):
    """Message of API Gateway for a request that does not reach Baton."""

    message: str


# ---- sagas


class Started(Answer):
    """A saga that a request has started."""

    id: str
    status: Status
    workflow: str
    version: int = Field(ge=1, description="Version of the saga's log.")


class Intended(Started):
    """A saga started from a user's words."""

    watch: str = Field(
        description="Path of the saga. The first item of its `questions` contains the interpretation of the words"
        " and asks the user to confirm it.",
        examples=["/sagas/k99d910e03abd9c92f2fd2481a"],
    )


class Accepted(Answer):
    """The saga's log records the request, now or from an earlier request."""

    id: str
    status: Status
    version: int = Field(ge=1, description="Version of the saga's log.")
    changed: bool = Field(description="True if this request wrote an entry. False if nothing changed.")


class Announced(Answer):
    """Result of an announcement."""

    woken: bool = Field(
        description="True if the announcement woke a saga. False for a repeated announcement, and for one that no"
        " saga waits for."
    )


class CalledBack(Answer):
    """Baton accepted the message for the callback, now or earlier."""

    status: Literal["success", "failure", "heartbeat"]
    until: Time | None = Field(description="For a heartbeat: time when the callback itself is due.")
    heartbeat_by: Time | None = Field(
        description="For a heartbeat: time when the next heartbeat is due. Null if no heartbeat is required."
    )


class LoggedEvent(OpenAnswer):
    """An event. Its further fields depend on its kind."""

    kind: Annotated[str, WithJsonSchema({"type": "string", "enum": list(KINDS_OF_EVENT)})]


class Entry(Answer):
    """An entry of the log: all events of one append."""

    format: int
    version: int = Field(ge=1)
    branch: int = Field(ge=0)
    at: Time
    epoch: int = Field(ge=0, description="Epoch of the worker's lease. 0 if the writer held no lease.")
    invocation: str
    cold: bool
    traceparent: str
    events: list[LoggedEvent]


class EventPage(Answer):
    """A page of log entries, ordered by version."""

    entries: list[Entry]
    next: int | None = Field(description="Value of `after` for the next page. Null on the last page.")


# ---- what workflows are made of
