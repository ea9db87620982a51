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
    Cursor,
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


class LiveText(Answer):
    """The part of a model's answer that has arrived. A long text is cut at its beginning."""

    node: str
    iteration: list[int]
    item: str = Field(description="Turn of an agent, such as `t3`. Empty for a node with a single request.")
    began_at: Time = Field(description="Time of the request to the model.")
    at: Time = Field(description="Time when the worker stored this text.")
    text: str


class LiveTexts(Answer):
    """Texts that the saga's models are generating. Completed answers are in the saga's log."""

    id: str
    watched_until: Time | None = Field(
        description="Time until which viewers are registered. Null after the end."
    )
    texts: list[LiveText]


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


State = Literal["closed", "open", "half_open"]


class BreakerFailure(Answer):
    """Failures of a target that one worker reported together."""

    code: str
    count: int = Field(ge=1)
    calls: int = Field(ge=1, description="Number of calls, including the failed ones.")
    at: Time


class BreakerTransition(Answer):
    """A change of a circuit breaker's state, and its cause."""

    to: State
    at: Time
    why: str
    by: str = Field(description="Operator or worker who caused the change.")


class Breaker(Answer):
    """The circuit breaker of a target."""

    name: str
    state: State
    since: Time | None = Field(
        description="Time when the breaker entered this state. Null if it never opened."
    )
    next_probe_at: Time | None = Field(
        description="For an open breaker: time when it lets a probe through. Null if only an operator can close "
        "it."
    )
    opened: int = Field(ge=0, description="Number of times the breaker has opened since it was last closed.")
    probes: int = Field(ge=0, description="Number of probes in progress.")
    failures: list[BreakerFailure] = Field(description="Most recent failures, newest first.")
    transitions: list[BreakerTransition] = Field(description="Most recent transitions, newest first.")


class BreakerPage(Answer):
    """A page of circuit breakers with recorded state, ordered by name."""

    breakers: list[Breaker]
    next: Cursor
