"""The answers of the API, as models: the OpenAPI document is made from them alone.

Imported only where that document is made, because models cost time at a cold start. That real answers are
so is held by the tests that compare them with the document. The values are made in core/read/views.py and
runtime/requests/queries.py. Others have files of their own: answers.py, graphs.py, failures.py, failures.py.
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
    """The table answers."""

    status: Literal["ok"]


class Description(OpenAnswer):
    """An OpenAPI document."""

    openapi: Literal["3.1.0"]
    info: dict[str, Any]
    paths: dict[str, Any]


class ProblemError(SparseAnswer):
    """One thing that is wrong with a document or an input."""

    path: str = Field(description="JSON Pointer to it; empty: the whole.")
    message: str
    suggestion: str = Field("", description="What may have been meant.")
    # Absent where the text is not known; a default would have to fit the schema.
    line: int = Field(default_factory=int, ge=1, description="Counted from 1.")
    column: int = Field(default_factory=int, ge=1, description="Counted from 1.")


class Problem(SparseAnswer):
    """A problem after RFC 9457."""

    type: str = Field(pattern="^urn:baton:problem:[a-z-]+$")
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    errors: list[ProblemError] = Field([], description="Every fault that was found, each with its place.")


class GatewayMessage(BaseModel):
    """What API Gateway says itself, before a request has reached Baton."""

    message: str


# ---- sagas


class SagaRow(Answer):
    """A saga in a list, as its last release left it: one that is being worked on is shown as it was taken."""

    id: str
    workflow: str
    status: Status
    user: str = Field(description="Who started it.")
    labels: dict[str, str]
    created_at: Time
    changed_at: Time = Field(
        description="When it last began to run, began to wait, or ended; not when one kind of waiting became another."
    )


class SagaPage(Answer):
    """Sagas, the latest change first.
    What begins or changes while pages are read is on none of the later ones.
    """

    sagas: list[SagaRow]
    next: Cursor


class Started(Answer):
    """A saga that has been started."""

    id: str
    status: Status
    workflow: str
    version: int = Field(ge=1, description="Version of its log.")


class Intended(Started):
    """A saga that has been started from words."""

    watch: str = Field(
        description="Where it is, and as the first of `questions` what it has understood and asks to be confirmed.",
        examples=["/sagas/k99d910e03abd9c92f2fd2481a"],
    )


class Accepted(Answer):
    """It is in the saga's log, now or since before."""

    id: str
    status: Status
    version: int = Field(ge=1, description="Version of its log.")
    changed: bool = Field(description="False: it was so before, and nothing was written.")


class Announced(Answer):
    """What became of an announcement."""

    woken: bool = Field(
        description="Whether a saga was woken by it; not by a repeated one, nor by one that no saga waits for."
    )


class CalledBack(Answer):
    """It was heard, now or before."""

    status: Literal["success", "failure", "heartbeat"]
    until: Time | None = Field(description="Of a heartbeat: when the callback itself is due.")
    heartbeat_by: Time | None = Field(
        description="Of a heartbeat: when the next one is due. Null: none is needed."
    )


class ActiveNode(SparseAnswer):
    """A node that is not done yet."""

    node: str
    iteration: list[int]
    item: str = Field("", description=ITEM)
    label: str = Field("", description=LABEL)
    state: Annotated[str, WithJsonSchema({"type": "string", "enum": list(STATES)})]
    turn: int | None = Field(None, description="Of an agent at work: the number of its turn.")
    calls: int | None = Field(None, description="Of an agent at work: the calls that it has made.")
    tokens: int | None = Field(
        None, description="Of an agent at work: those of its requests and answers so far."
    )
    alternative: int | None = Field(
        None, description="Of a step that is done as a model suggests: the number of the alternative."
    )
    signal: str | None = Field(None, description="The signal it waits for.")
    until: Time | None = Field(None, description="When its wait ends by itself.")
    breaker: str = Field(
        "", description="The open circuit breaker that it waits for; `until` is when it asks again."
    )
    callback: str = Field("", description="The callback it waits for, by an id that is no token.")
    since: Time | None = Field(
        None, description="When its work was handed over, or its circuit breaker last said no."
    )
    heard_at: Time | None = Field(
        None, description="The last heartbeat of its work, at first when it was handed over."
    )
    heartbeat_by: Time | None = Field(None, description="When the next heartbeat is due.")
    payload: Schema | None = Field(None, description="What the signal must bring, where the node says so.")
    most_rounds: list[int] = Field(
        [], description="How many rounds each loop around it may have; `iteration` counts them from 0."
    )
    saga: str = Field("", description="The child it waits for.")
    waits_for: list[str] = Field([], description="The nodes whose edges have not spoken.")


class SagaError(Answer):
    """Why a saga failed, and what that means."""

    code: str
    message: str
    node: str
    kind: str = Field(
        description="transient, recoverable, user_resolvable, permanent, catastrophic or unknown."
    )
    says: str = Field(description="What the code means, in a sentence for a person.")
    advice: str = Field(description="What to do about it.")


class LargeValue(Answer):
    """Where a value is that is not shown."""

    ref: str = Field(description="`cas://sha256/HEX`, which `GET /sagas/{saga}/values/HEX` answers with.")
    size: int = Field(ge=1, description="Bytes of its JSON.")


class LimitUse(SparseAnswer):
    """One limit, and what was used of it."""

    node: str | None = Field(description="The node whose limit it is; null: the saga's.")
    limit: str
    most: float
    then: str = Field(description="terminate, throttle or summarise.")
    used: float = Field(0, description="So much was used.")
    until: Time | None = Field(None, description="When the saga's time is over.")


class OnFailure(Answer):
    """What will happen when a step fails for good: after its retries and other ways."""

    steps: str = Field(
        description="What a step does that has no rules of its own; empty where there is none."
    )
    nodes: dict[str, str] = Field(description="Those that do something else, by name: the first 20.")


class Saga(Answer):
    """A saga, folded from its log."""

    id: str
    workflow: str
    graph: str
    status: Status
    reason: str | None = Field(description="Why it is parked.")
    user: str = Field(description="Who started it.")
    labels: dict[str, str] = Field(description="Given at the start; lists find it by them.")
    version: int = Field(ge=1, description="Version of its log.")
    branch: int = Field(ge=0)
    created_at: Time
    updated_at: Time
    ends_by: Time | None = Field(
        description="Until when it may last; it fails then. Null: as long as it takes."
    )
    expires_at: Time | None = Field(description="When all that is stored of it is deleted. Null: never.")
    steps: int = Field(ge=0, description="Steps that are done.")
    most_steps: int | None = Field(
        description="No more than so many will be done in all; null: a loop decides, or it starts none any more."
    )
    active: list[ActiveNode]
    cancelling: bool
    result: Any = Field(description="Its output once it has ended; null before, and for a large one.")
    large_result: LargeValue | None = Field(description="Of an output that no answer has room for.")
    error: SagaError | None
    invocations: int = Field(ge=0)
    revivals: int = Field(ge=0)
    interruptions: int = Field(ge=0)
    spent_usd: float = Field(ge=0, description="What its tools and its children said they had spent.")
    budget_usd: float | None = Field(
        description="What it may spend, as an operator has set it; null: the default."
    )
    failing: list[FailingStep] = Field(description="Steps that are tried again, or are asked about.")
    on_failure: OnFailure | None = Field(
        description="What happens when a step fails for good; null once it has ended."
    )
    questions: list[Question] = Field(description="What people are asked.")
    parked: ParkedAs | None
    undo: Undoing | None = Field(
        description="What could be undone, is, or was; null where nothing it does can be."
    )
    parent: str | None = Field(None, description="The saga that waits for it.")
    handles: str | None = Field(None, description="Of a failure handler: the saga that has failed.")
    failure_handler: FailureHandler | None = Field(
        None, description="What was started when it had failed for good; null where nothing was."
    )
    limits: list[LimitUse] = Field([], description="What it has used of its limits, where it has any.")


class LiveText(Answer):
    """What has come so far of the answer of a model; the end of it, where it is long."""

    node: str
    iteration: list[int]
    item: str = Field(description="Which turn of an agent, such as `t3`; empty for a node that asks once.")
    began_at: Time = Field(description="When the model was asked.")
    at: Time = Field(description="When the worker wrote this.")
    text: str


class LiveTexts(Answer):
    """What the models of a saga are writing. What has ended is not shown: it is in the log."""

    id: str
    watched_until: Time | None = Field(
        description="Until when viewers count as watching. Null: the saga has ended."
    )
    texts: list[LiveText]


class LoggedEvent(OpenAnswer):
    """An event; its other fields depend on its kind."""

    kind: Annotated[str, WithJsonSchema({"type": "string", "enum": list(KINDS_OF_EVENT)})]


class Entry(Answer):
    """What one append put into the log."""

    format: int
    version: int = Field(ge=1)
    branch: int = Field(ge=0)
    at: Time
    epoch: int = Field(ge=0, description="Of the lease under which a worker wrote; 0 for any other writer.")
    invocation: str
    cold: bool
    traceparent: str
    events: list[LoggedEvent]


class EventPage(Answer):
    """Entries in the order of their versions."""

    entries: list[Entry]
    next: int | None = Field(description="The `after` of the next page; null at the end.")


class StoredValue(Answer):
    """A value that the log names by `cas://sha256/…`: whole, or a part of
    its JSON where no answer has room for it.
    """

    ref: str = Field(description="Its name, which is the SHA-256 of its JSON.")
    size: int = Field(ge=1, description="Bytes of its JSON.")
    value: Any = Field(description="The value; null where it comes in parts.")
    part: str | None = Field(description="The next characters of its JSON, where it comes in parts.")
    next: int | None = Field(description="The `after` of the next part; null at the end.")


# ---- what workflows are made of


class ToolRisk(Answer):
    """What a tool does, and the paths of the arguments that say how much of it; empty where it has none."""

    action: Annotated[str, WithJsonSchema({"type": "string", "enum": list(ACTIONS)})]
    amount: str
    currency: str
    currency_is: str
    minor: bool = Field(description="The amount counts the smallest unit of the currency, such as cents.")
    party: str


class Tool(Answer):
    """A tool of the application."""

    name: str
    version: str
    description: str
    effect: Annotated[str, WithJsonSchema({"type": "string", "enum": list(EFFECTS)})]
    domain: str | None = Field(description="What it is about; null: it does not say.")
    cost_usd: float = Field(
        ge=0, description="Of one attempt, at most; 0: it costs nothing, or does not say."
    )
    timeout_ms: int | None = Field(description="Of one attempt; null: the engine's default.")
    input: Schema
    output: Schema | None
    schema_hash: str
    requires_approval: bool = Field(description="A person approves every call of it first.")
    risk: ToolRisk | None = Field(
        description="What it does, and which arguments say how much of it; null: it declares no risk."
    )
    undo: str | None = Field(
        description="The tool that takes back what a call of this one has done; null: none."
    )
    verify: str | None = Field(
        description="The tool that knows whether a call of this one has happened; null: none."
    )
    breaker: str | None = Field(description="The circuit breaker of its target; null: none.")


class Tools(Answer):
    """All tools by name."""

    tools: list[Tool]


class DayBudget(Answer):
    """What was spent on a day (UTC), and may be."""

    spent_usd: float = Field(ge=0)
    reserved_usd: float = Field(ge=0, description="Held for steps under way, or drawn by the tenant's users.")
    limit_usd: float | None = Field(description="Null: any amount, and nothing is counted.")
    left_usd: float | None
    blocked_until: Time | None = Field(description="When something can begin again, if it is all spent.")


class UserBudget(DayBudget):
    """Of one user."""

    user: str
    blocked: bool = Field(description="An operator has blocked the user: nothing begins, whatever is left.")


class Budget(UserBudget):
    """Spending of a user's sagas on a day (UTC), and its limits."""

    day: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    tenant: DayBudget | None = Field(description="Of all its users, as they have told. Null: no limit.")
    saga_limit_usd: float | None = Field(description="What one saga may spend. Null: any amount.")


class User(UserBudget):
    """Spending of a user today (UTC), and the operator's rule about the user."""

    state: Literal["open", "spent", "blocked"] = Field(
        description="`spent`: nothing more begins today. `blocked`: until an operator unblocks the user."
    )
    own_limit_usd: float | None = Field(description="What this user may spend on a day. Null: as all users.")
    by: str | None = Field(description="The operator who has decided last. Null: none has.")
    at: Time | None
    note: str | None


class UserPage(Answer):
    """A part of the users with sagas that have not ended, or ended today,
    and of those about whom an operator has decided.

    A user can be on several pages.
    """

    day: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    users: list[User]
    next: str | None


class CostRow(Answer):
    """What models or AWS have cost the sagas of a workflow or a user, or what one model has."""

    key: str = Field(description="The name of the workflow, of the user, or of the model.")
    sagas: int = Field(ge=0)
    input: int = Field(ge=0, description="Tokens that models have read; 0 of AWS.")
    output: int = Field(ge=0, description="Tokens that they have written.")
    usd: float = Field(ge=0)


class CostPage(Answer):
    """A part of a day's sagas. A key is on several pages: their sums add up."""

    # Only those of AWS have `left_out`.
    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    day: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    by: str
    costs: list[CostRow]
    looked_at: int = Field(ge=0, description="So many sagas this page was made of.")
    next: str | None
    left_out: list[str] | None = Field(
        default=None,
        description="Of AWS: sagas whose logs could not be read within this request. The cost of one saga says what each has cost.",
    )


class Priced(Answer):
    """Which prices were taken."""

    region: str
    date: str


class Dollars(Answer):
    """Sums in US dollars."""

    total: float = Field(ge=0)
    aws: float = Field(ge=0)
    models: float = Field(ge=0)


class CostLine(BaseModel):
    """So much of something."""

    what: str
    quantity: float = Field(ge=0)
    unit: str
    usd: float = Field(ge=0)


class ModelLine(CostLine):
    """What one model has read and written for one node; `what` is the model."""

    node: str
    requests: int = Field(ge=0)
    input: int = Field(ge=0, description="Tokens.")
    cached: int = Field(ge=0, description="Of these, what the provider still had.")
    output: int = Field(ge=0, description="Tokens, reasoning included.")


class Cost(Answer):
    """An estimate from the saga's log and dated prices."""

    saga: str
    status: Status
    estimated: Literal[True]
    priced: Priced
    usd: Dollars
    aws: list[CostLine]
    models: list[ModelLine]
    steps: int = Field(ge=0)
    agent_steps: int = Field(
        ge=0, description="Turns of agents, and the calls that they have made: steps within these steps."
    )
    invocations: int = Field(ge=0)
    usd_per_million_steps: float | None = Field(
        description="What AWS charges for a million steps of this mix, those of agents among them."
    )


State = Literal["closed", "open", "half_open"]


class BreakerFailure(Answer):
    """Failures of a target that one worker has reported together."""

    code: str
    count: int = Field(ge=1)
    calls: int = Field(ge=1, description="Of how many calls.")
    at: Time


class BreakerTransition(Answer):
    """A change of a breaker's state, and what caused it."""

    to: State
    at: Time
    why: str
    by: str = Field(description="The operator, or a worker.")


class Breaker(Answer):
    """The circuit breaker of a target."""

    name: str
    state: State
    since: Time | None = Field(description="Null: it was never open.")
    next_probe_at: Time | None = Field(
        description="Of an open one: when a call is let through. Null: when an operator has reset it."
    )
    opened: int = Field(ge=0, description="How often it has opened since it was last closed.")
    probes: int = Field(ge=0, description="Calls that are let through just now.")
    failures: list[BreakerFailure] = Field(description="The last ones, the newest first.")
    transitions: list[BreakerTransition] = Field(description="The last ones, the newest first.")


class BreakerPage(Answer):
    """Breakers of which something is known, by their names."""

    breakers: list[Breaker]
    next: Cursor


class ErrorBudget(Answer):
    """The sagas of a workflow that have come to an end. Those that were cancelled are not counted."""

    key: str = Field(description="The name of the workflow.")
    completed: int = Field(ge=0)
    failed: int = Field(ge=0)
    allowed: int | None = Field(description="So many of them may fail. Null: there is no error budget.")
    left: int | None = Field(description="So many more may fail; below 0, so many more have than may.")


class ErrorBudgetPage(Answer):
    """A part of a day's sagas. A workflow is on several pages: its sums add up."""

    day: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    percent: float | None = Field(description="Percentage that may fail. Null: there is no error budget.")
    workflows: list[ErrorBudget]
    looked_at: int = Field(ge=0, description="So many sagas this page was made of.")
    next: str | None


_WORDS = (STARTED, SKIPPED, MISSED, REFUSED, FAILED, TRIGGERED)


class TickCounts(Answer):
    """Ticks since the schedule was first registered."""

    started: int = Field(ge=0)
    skipped: int = Field(ge=0, description="A saga of the schedule was still at work.")
    missed: int = Field(ge=0, description="They were overdue after an outage, and more than `catch_up`.")
    refused: int = Field(
        ge=0, description="Their start was refused until the next tick had come, or for good."
    )


class Tick(Answer):
    """What became of a tick, or of several up to this one."""

    tick: Time
    what: str = Field(json_schema_extra={"enum": list(_WORDS)})
    saga: str | None = Field(description="That was started, or (`skipped`) that was at work.")
    why: str | None = Field(description="Of one that was refused or has failed.")
    count: int = Field(ge=1)


class ScheduleView(Answer):
    """The schedule of a workflow."""

    name: str = Field(description="The workflow's.")
    state: Literal["active", "paused"]
    version: int = Field(ge=1, description="The version of the document that it is in.")
    user: str = Field(description="Who has registered it; its sagas are this user's.")
    cron: str | None
    rate: str | None
    timezone: str
    overlap: str = Field(json_schema_extra={"enum": list(OVERLAPS)})
    catch_up: int = Field(ge=0)
    next_at: Time | None = Field(description="The next tick, or one that waits. Null: there is none.")
    starting_at: Time | None = Field(description="A tick whose saga is being started.")
    refused: str | None = Field(description="Why that start was refused; it is tried again every minute.")
    paused_at: Time | None
    paused_by: str | None
    ticks: TickCounts
    recent: list[Tick] = Field(description="The last ones, the newest first.")


class SchedulePage(Answer):
    """Schedules by the names of their workflows.
    A page may have fewer than asked for, and yet not be the last.
    """

    schedules: list[ScheduleView]
    next: Cursor
