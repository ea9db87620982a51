"""Models of the API's answers, the source of the OpenAPI document.

Import them only to make that document: models slow a cold start. Tests compare real answers with the
document. core/read/views.py and runtime/requests/queries.py make the values. Further models are in graphs.py,
failures.py and events.py.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from baton.core.effects.risk import ACTIONS
from baton.core.effects.toolspec import EFFECTS
from baton.core.graph.graph import OVERLAPS
from baton.core.log.events import Event
from baton.core.nodes.registry import KINDS
from baton.core.schedules import FAILED, MISSED, REFUSED, SKIPPED, STARTED, TRIGGERED
from baton.web.bodies.failures import (
    ITEM,
    LABEL,
    Answer,
    Cursor,
    FailingStep,
    FailureHandler,
    OpenAnswer,
    ParkedAs,
    Question,
    Schema,
    SparseAnswer,
    Status,
    Time,
    Undoing,
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


class ActiveNode(SparseAnswer):
    """A node that has not ended."""

    node: str
    iteration: list[int]
    item: str = Field("", description=ITEM)
    label: str = Field("", description=LABEL)
    state: Annotated[str, WithJsonSchema({"type": "string", "enum": list(STATES)})]
    turn: int | None = Field(None, description="For a running agent: number of the current turn.")
    calls: int | None = Field(None, description="For a running agent: number of tool calls so far.")
    tokens: int | None = Field(
        None, description="For a running agent: tokens in its requests and answers so far."
    )
    alternative: int | None = Field(
        None, description="For a replanned step: number of the alternative in use."
    )
    signal: str | None = Field(None, description="Signal that the node waits for.")
    until: Time | None = Field(None, description="Time when the wait ends without a signal.")
    breaker: str = Field("", description="Open circuit breaker; `until` is the time of the next check.")
    limit: str = Field(
        "",
        description="Code of the limit of money whose rest others hold, such as `budget_saga`; `until` is the time"
        " when the node asks again.",
    )
    needs_usd: float = Field(0, description="Dollars of `limit` that the node needs.")
    callback: str = Field(
        "", description="Identifier of the callback that the node waits for. It is not the callback's token."
    )
    since: Time | None = Field(
        None,
        description="Time when the tool handed over its work, or when the circuit breaker or the limit last"
        " blocked the node.",
    )
    heard_at: Time | None = Field(
        None,
        description="Time of the last heartbeat. Before the first heartbeat: time when the tool handed over its "
        "work.",
    )
    heartbeat_by: Time | None = Field(None, description="Time when the next heartbeat is due.")
    payload: Schema | None = Field(None, description="JSON Schema of the signal's payload, if declared.")
    most_rounds: list[int] = Field(
        [], description="Maximum rounds of each enclosing loop. `iteration` counts them from 0."
    )
    saga: str = Field("", description="Child saga that the node waits for.")
    waits_for: list[str] = Field([], description="Nodes whose edges into this node are not decided.")


class SagaError(Answer):
    """Failure that ended a saga."""

    code: str
    message: str
    node: str
    kind: str = Field(
        description="Class of the failure: transient, recoverable, user_resolvable, permanent, catastrophic or "
        "unknown."
    )
    says: str = Field(description="Meaning of the code, as a sentence.")
    advice: str = Field(description="Recommended action.")


class LargeValue(Answer):
    """Reference to a value that is too large for the answer."""

    ref: str = Field(description="`cas://sha256/HEX`. `GET /sagas/{saga}/values/HEX` returns the value.")
    size: int = Field(ge=1, description="Size of the value's JSON in bytes.")


class LimitUse(SparseAnswer):
    """A limit and its use."""

    node: str | None = Field(description="Node that the limit applies to. Null if it applies to the saga.")
    limit: str
    most: float
    then: str = Field(description="Action at the limit: terminate, throttle or summarise.")
    used: float = Field(0, description="Amount used, in the unit of the limit.")
    until: Time | None = Field(None, description="Time when the saga's time limit is reached.")


class OnFailure(Answer):
    """Action after a step has failed permanently, that is, after its retries and alternatives."""

    steps: str = Field(description="Action for a step without rules of its own. Empty if there is none.")
    nodes: dict[str, str] = Field(description="Nodes with other actions, by name. Contains at most 20 nodes.")


class Saga(Answer):
    """The state of a saga, computed from its log."""

    id: str
    workflow: str
    graph: str
    status: Status
    reason: str | None = Field(
        description="Reason why the saga is parked, or children for which a saga that stops waits."
    )
    user: str = Field(description="User who started the saga.")
    labels: dict[str, str] = Field(description="Labels set at the start. `GET /sagas` filters by them.")
    version: int = Field(ge=1, description="Version of the saga's log.")
    branch: int = Field(ge=0)
    created_at: Time
    updated_at: Time
    ends_by: Time | None = Field(
        description="Time at which a saga that has not ended fails. Null if unlimited."
    )
    expires_at: Time | None = Field(
        description="Time when all data of the saga is deleted. Null if it is kept."
    )
    steps: int = Field(ge=0, description="Number of completed steps.")
    most_steps: int | None = Field(
        description="Maximum total number of steps. Null if a loop makes the number unknown, or if the saga "
        "starts no further steps."
    )
    active: list[ActiveNode]
    cancelling: bool
    result: Any = Field(description="Output after the end of the saga. Null before, and if it is large.")
    large_result: LargeValue | None = Field(description="Reference to an output that exceeds the size limit.")
    error: SagaError | None
    invocations: int = Field(ge=0)
    revivals: int = Field(ge=0)
    interruptions: int = Field(ge=0)
    spent_usd: float = Field(ge=0, description="Costs in US dollars reported by tools and children.")
    budget_usd: float | None = Field(
        description="Budget of the saga in US dollars, as set by an operator. Null if the default applies."
    )
    failing: list[FailingStep] = Field(description="Steps that are retried or that a question is about.")
    on_failure: OnFailure | None = Field(description="Action after a permanent failure. Null after the end.")
    questions: list[Question] = Field(description="Open questions of the saga.")
    parked: ParkedAs | None
    undo: Undoing | None = Field(
        description="Steps that can be undone, the progress of a rollback, and its result. Null if nothing in the"
        " saga can be undone."
    )
    parent: str | None = Field(None, description="Saga that waits for this saga.")
    handles: str | None = Field(None, description="For a failure handler: the saga that failed.")
    failure_handler: FailureHandler | None = Field(
        None,
        description="Failure handler that was started after the saga failed permanently. Null if none was "
        "started.",
    )
    limits: list[LimitUse] = Field([], description="Limits that apply to the saga, and their use.")


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


class DayBudget(Answer):
    """Spending and limit of one day (UTC)."""

    spent_usd: float = Field(ge=0)
    reserved_usd: float = Field(
        ge=0,
        description="Amount in US dollars that is reserved for running steps or allocated to users of the tenant.",
    )
    limit_usd: float | None = Field(description="Limit. Null if there is none; spending is then not counted.")
    left_usd: float | None
    blocked_until: Time | None = Field(description="For an exhausted limit: time when work can start again.")


class UserBudget(DayBudget):
    """Spending and limit of one user on one day (UTC)."""

    user: str
    blocked: bool = Field(description="True if an operator has blocked the user: nothing starts.")


class Budget(UserBudget):
    """Spending of a user's sagas on one day (UTC), and the limits that apply."""

    day: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    tenant: DayBudget | None = Field(
        description="Spending and limit of the whole tenant, as reported by its users' sagas. Null if the tenant has "
        "no limit."
    )
    saga_limit_usd: float | None = Field(description="Maximum cost of one saga. Null if there is no limit.")


class User(UserBudget):
    """Spending of a user today (UTC), and the operator's decision about the user."""

    state: Literal["open", "spent", "blocked"] = Field(
        description="`spent`: nothing further starts today. `blocked`: nothing starts until an operator unblocks "
        "the user."
    )
    own_limit_usd: float | None = Field(
        description="Daily limit of this user. Null: the limit of all users applies."
    )
    by: str | None = Field(description="Operator who made the last decision. Null if none has decided.")
    at: Time | None
    note: str | None


class UserPage(Answer):
    """A page of users.

    Contains users with sagas that have not ended or that ended today, and users about whom an operator has
    decided. A user can appear on several pages.
    """

    day: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    users: list[User]
    next: str | None


class CostRow(Answer):
    """Cost of the sagas of one workflow or user, or cost of one model."""

    key: str = Field(description="Name of the workflow, user or model.")
    sagas: int = Field(ge=0)
    input: int = Field(ge=0, description="Number of input tokens of models. 0 for costs of AWS.")
    output: int = Field(ge=0, description="Number of output tokens of models. 0 for costs of AWS.")
    usd: float = Field(ge=0)


class CostPage(Answer):
    """A page of the day's costs. A key can appear on several pages; add its sums."""

    # Only those of AWS have `left_out`.
    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    day: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    by: str
    costs: list[CostRow]
    looked_at: int = Field(ge=0, description="Number of sagas on this page.")
    next: str | None
    left_out: list[str] | None = Field(
        default=None,
        description="For costs of AWS: sagas whose logs could not be read within this request. `GET "
        "/sagas/{saga}/cost` returns the cost of each.",
    )


class Priced(Answer):
    """Prices used for the estimate."""

    region: str
    date: str


class Dollars(Answer):
    """Costs in US dollars."""

    total: float = Field(ge=0)
    aws: float = Field(ge=0)
    models: float = Field(ge=0)


class CostLine(BaseModel):
    """Quantity and cost of one item."""

    what: str
    quantity: float = Field(ge=0)
    unit: str
    usd: float = Field(ge=0)


class ModelLine(CostLine):
    """Use of one model by one node. `what` is the name of the model."""

    node: str
    requests: int = Field(ge=0)
    input: int = Field(ge=0, description="Number of input tokens.")
    cached: int = Field(
        ge=0,
        description="Number of input tokens that the provider served from its cache. `input` includes them.",
    )
    output: int = Field(ge=0, description="Number of output tokens, including reasoning.")


class Cost(Answer):
    """Estimated cost of a saga, computed from its log and dated prices."""

    saga: str
    status: Status
    estimated: Literal[True]
    priced: Priced
    usd: Dollars
    aws: list[CostLine]
    models: list[ModelLine]
    steps: int = Field(ge=0)
    agent_steps: int = Field(ge=0, description="Turns and tool calls of agents, which are part of `steps`.")
    invocations: int = Field(ge=0)
    usd_per_million_steps: float | None = Field(
        description="Estimated AWS cost in US dollars of one million steps of this mix, including steps of "
        "agents."
    )


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


class ErrorBudget(Answer):
    """Ended sagas of a workflow. Cancelled sagas are not counted."""

    key: str = Field(description="Name of the workflow.")
    completed: int = Field(ge=0)
    failed: int = Field(ge=0)
    allowed: int | None = Field(description="Number of sagas that may fail. Null without an error budget.")
    left: int | None = Field(
        description="Number of sagas that may still fail. Negative if more sagas have failed than the budget allows."
    )


class ErrorBudgetPage(Answer):
    """A page of the day's sagas. A workflow can appear on several pages; add its sums."""

    day: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    percent: float | None = Field(
        description="Percentage of sagas that may fail. Null without an error budget."
    )
    workflows: list[ErrorBudget]
    looked_at: int = Field(ge=0, description="Number of sagas on this page.")
    next: str | None


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
