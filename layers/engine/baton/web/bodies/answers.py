"""Models of answers that are not yet structs of core/read, for the OpenAPI document only.

Import them only to make that document: models slow a cold start. Tests compare real answers with it. More of
them are in failures.py and events.py.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field, WithJsonSchema

from baton.core.effects.risk import ACTIONS
from baton.core.effects.toolspec import EFFECTS
from baton.core.graph.graph import OVERLAPS
from baton.core.log.events import Event
from baton.core.nodes.registry import KINDS
from baton.core.schedules import FAILED, MISSED, REFUSED, SKIPPED, STARTED, TRIGGERED
from baton.web.bodies.failures import (
    Answer,
    Cursor,
    OpenAnswer,
    Schema,
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


class SagaRow(Answer):
    """A saga in a list. The values are those of the saga's last release by a worker; a saga that a worker
    holds appears with the values from before the worker took it.
    """

    id: str
    workflow: str
    status: Status
    user: str = Field(description="User who started the saga.")
    labels: dict[str, str]
    created_at: Time
    changed_at: Time = Field(
        description="Time when the saga last began to run, began to wait, or ended. A change from one kind of "
        "waiting to another does not count."
    )


class SagaPage(Answer):
    """A page of sagas, ordered by latest change first. Sagas that start or change while a client reads pages
    do not appear on later pages.
    """

    sagas: list[SagaRow]
    next: Cursor


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


class StoredValue(Answer):
    """A value referred to in the log as `cas://sha256/…`. A value that is too large for one answer is
    returned in parts of its JSON.
    """

    ref: str = Field(description="SHA-256 digest of the value's JSON, which identifies the value.")
    size: int = Field(ge=1, description="Size of the value's JSON in bytes.")
    value: Any = Field(description="The value. Null if the value is returned in parts.")
    part: str | None = Field(description="Next part of the JSON, if the value is returned in parts.")
    next: int | None = Field(description="Value of `after` for the next part. Null for the last part.")


# ---- what workflows are made of


class ToolRisk(Answer):
    """Risk that a tool declares: its action, and the paths of the arguments that determine the extent. A path
    is empty if the tool has no such argument.
    """

    action: Annotated[str, WithJsonSchema({"type": "string", "enum": list(ACTIONS)})]
    amount: str
    currency: str
    currency_is: str
    minor: bool = Field(description="True if the amount is in the smallest currency unit, such as cents.")
    party: str


class Tool(Answer):
    """A tool of the application."""

    name: str
    version: str
    description: str
    effect: Annotated[str, WithJsonSchema({"type": "string", "enum": list(EFFECTS)})]
    domain: str | None = Field(description="Domain of the tool. Null if the tool declares none.")
    cost_usd: float = Field(
        ge=0,
        description="Maximum cost of one attempt in US dollars. 0 if the tool is free or declares no cost.",
    )
    timeout_ms: int | None = Field(description="Timeout of one attempt. Null: the engine's default applies.")
    input: Schema
    output: Schema | None
    schema_hash: str
    requires_approval: bool = Field(description="True if a person must approve each call.")
    risk: ToolRisk | None = Field(
        description="Action of the tool, and the arguments that determine its extent. Null if the tool declares "
        "no risk."
    )
    undo: str | None = Field(description="Tool that undoes a call of this tool. Null if none exists.")
    verify: str | None = Field(
        description="Tool that verifies whether a call took effect. Null if none exists."
    )
    breaker: str | None = Field(description="Circuit breaker of the tool's target. Null if it has none.")


class Tools(Answer):
    """All tools, ordered by name."""

    tools: list[Tool]


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


_WORDS = (STARTED, SKIPPED, MISSED, REFUSED, FAILED, TRIGGERED)


class TickCounts(Answer):
    """Numbers of ticks since the schedule was first registered."""

    started: int = Field(ge=0)
    skipped: int = Field(ge=0, description="Number of ticks skipped because a saga was running.")
    missed: int = Field(ge=0, description="Ticks dropped after an outage because they exceeded `catch_up`.")
    refused: int = Field(
        ge=0, description="Ticks whose start was refused permanently or until the next tick."
    )


class Tick(Answer):
    """Result of a tick, or of several consecutive ticks up to this one."""

    tick: Time
    what: str = Field(json_schema_extra={"enum": list(_WORDS)})
    saga: str | None = Field(description="Saga that was started. For `skipped`: the saga that was running.")
    why: str | None = Field(description="Reason of a refused or failed tick.")
    count: int = Field(ge=1)


class ScheduleView(Answer):
    """The schedule of a workflow."""

    name: str = Field(description="Name of the workflow.")
    state: Literal["active", "paused"]
    version: int = Field(ge=1, description="Version of the workflow whose document contains the schedule.")
    user: str = Field(description="User who registered the document and owns the schedule's sagas.")
    cron: str | None
    rate: str | None
    timezone: str
    overlap: str = Field(json_schema_extra={"enum": list(OVERLAPS)})
    catch_up: int = Field(ge=0)
    next_at: Time | None = Field(description="Time of the next or a waiting tick. Null if no tick follows.")
    starting_at: Time | None = Field(description="Tick whose saga is being started.")
    refused: str | None = Field(description="Reason of the refused start. It is retried every minute.")
    paused_at: Time | None
    paused_by: str | None
    ticks: TickCounts
    recent: list[Tick] = Field(description="Most recent ticks, newest first.")


class SchedulePage(Answer):
    """A page of schedules, ordered by workflow name. A page can be shorter than `limit` without being the
    last.
    """

    schedules: list[ScheduleView]
    next: Cursor
