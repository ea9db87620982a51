"""Structs for the OpenAPI document of answers that the code makes as dicts. Tests compare both."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, UnsetType

from baton.core.log.events import Event
from baton.core.read.answers import (
    Amount,
    Count,
    Cursor,
    OpenView,
    Schema,
    Status,
    Time,
    UnreadableEntries,
    Version,
    View,
)
from baton.core.read.left_effects import ForkPlan
from baton.runtime.requests.versions import WorkflowTag

KINDS_OF_EVENT = tuple(str(kind.__struct_config__.tag) for kind in get_args(Event))
Condition = Annotated[dict[str, Any], "Compiled condition. `is` names its kind."]


class Health(View):
    """The DynamoDB table answers."""

    status: Literal["ok"]


class Description(OpenView):
    """An OpenAPI document."""

    openapi: Literal["3.1.0"]
    info: dict[str, Any]
    paths: dict[str, Any]


class ProblemError(View):
    """A fault in a document or an input."""

    path: Annotated[str, "JSON Pointer to the fault. Empty for the whole document or input."]
    message: str
    suggestion: Annotated[str | UnsetType, "Suggested correction."] = UNSET
    line: Annotated[Version | UnsetType, "Counted from 1. Absent if the text is not available."] = UNSET
    column: Annotated[Version | UnsetType, "Counted from 1. Absent if the text is not available."] = UNSET


class Problem(View):
    """A problem as defined by RFC 9457."""

    type: Annotated[str, Meta(pattern="^urn:baton:problem:[a-z-]+$")]
    title: str
    status: Annotated[int, Meta(ge=400, le=599)]
    detail: str
    errors: Annotated[list[ProblemError] | UnsetType, "All faults, each with its location."] = UNSET


class GatewayMessage(OpenView):
    """Message of API Gateway for a request that does not reach Baton."""

    message: str


class Started(View):
    """A saga that a request has started."""

    id: str
    status: Status
    workflow: str
    version: Annotated[Version, "Version of the saga's log."]


class Intended(Started):
    """A saga started from a user's words."""

    watch: Annotated[
        Annotated[str, Meta(examples=["/sagas/k99d910e03abd9c92f2fd2481a"])],
        "Path of the saga. The first item of its `questions` contains the interpretation of the words and asks the user to confirm it.",
    ]


class Accepted(View):
    """The saga's log records the request, now or from an earlier request."""

    id: str
    status: Status
    version: Annotated[Version, "Version of the saga's log."]
    changed: Annotated[bool, "True if this request wrote an entry. False if nothing changed."]


class Signalled(Accepted):
    """The saga's log records the signal, now or from an earlier request."""

    key: Annotated[str, "Idempotency key of the signal. The same request with it returns the newest outcome."]
    outcome: Annotated[
        Literal["waiting", "taken", "answered", "lost", "ended"],
        "`waiting`: no wait has taken the signal yet. `taken`: one has. `answered`: a function has answered it. "
        "`lost`: no wait was open that takes it. `ended`: the saga has ended without an answer.",
    ]
    answer: Annotated[Any, "Answer of the function. Null unless `outcome` is `answered`."]


class Announced(View):
    """Result of an announcement."""

    woken: Annotated[
        bool,
        "True if the announcement woke a saga. False for a repeated announcement, and for one that no saga waits for.",
    ]


class CalledBack(View):
    """Baton accepted the message for the callback, now or earlier."""

    status: Literal["success", "failure", "heartbeat"]
    until: Annotated[Time | None, "For a heartbeat: time when the callback itself is due."]
    heartbeat_by: Annotated[
        Time | None, "For a heartbeat: time when the next heartbeat is due. Null if no heartbeat is required."
    ]


class LoggedEvent(OpenView):
    """An event. Its further fields depend on its kind."""

    kind: Annotated[str, Meta(extra_json_schema={"enum": list(KINDS_OF_EVENT)})]


class Entry(View):
    """An entry of the log: all events of one append."""

    format: int
    version: Version
    branch: Count
    at: Time
    epoch: Annotated[Count, "Epoch of the worker's lease. 0 if the writer held no lease."]
    invocation: str
    cold: bool
    traceparent: str
    events: list[LoggedEvent]


class EventPage(View):
    """A page of log entries, ordered by version."""

    entries: list[Entry]
    next: Annotated[int | None, "Value of `after` for the next page. Null on the last page."]
    unreadable: Annotated[
        list[UnreadableEntries] | UnsetType, "Entries among these that are missing or cannot be read."
    ] = UNSET


class PlannedStep(View):
    """A step in a rollback."""

    step: str
    version: Version
    by: Annotated[str | None, "Tool or child saga that undoes the step. Null if the step is irreversible."]
    doubtful: Annotated[
        bool, "True if the outcome of the step is unknown. A person is asked before it is undone."
    ]


class Plan(View):
    """Steps that a rollback undoes, newest first."""

    parent: Annotated[
        str | None,
        "Parent saga. The rollback does not notify it, and the parent's own use of this saga's output is not undone.",
    ]
    undoable: Count
    doubtful: Annotated[Count, "Number of steps with an unknown outcome. A person is asked about each."]
    lasting: Annotated[Count, "Number of irreversible steps."]
    steps: Annotated[list[PlannedStep], "First 100 of these steps."]


class RollbackPlan(View):
    """Steps that a rollback would undo. The request changes nothing."""

    id: str
    status: Status
    version: Version
    plan: Plan


class RollbackAccepted(RollbackPlan):
    """The saga's log records the rollback, now or from an earlier request."""

    changed: bool


class ForkPreview(View):
    """Plan of a fork. The request changes nothing."""

    id: str
    status: Status
    version: Version
    plan: ForkPlan


class ForkAccepted(Accepted):
    """The saga's log records the fork, now or from an earlier request."""

    plan: Annotated[
        ForkPlan | None,
        "Null for a repeated request, and if the log is too long to be searched within one request.",
    ]


class WorkflowRule(OpenView):
    """One rule of a branch."""

    if_: Condition
    then: list[str]


class WorkflowBranch(OpenView):
    """Nodes that follow a node: those of the first rule that holds, or those that an expression names."""

    rules: list[WorkflowRule]
    choose: Annotated[str | None, "Expression whose value names nodes in `among`."]
    among: list[str]
    default: list[str]


class WorkflowCatch(OpenView):
    """Continuation after a failure that matches these codes and classes. An empty list matches all."""

    code: list[str]
    class_: list[str]
    if_: Condition | None
    then: list[str]


class WorkflowLoop(OpenView):
    """Loop that ends with this node: the condition for another round, the node to return to, and the nodes
    after the loop.
    """

    while_: Condition
    max_iterations: Version
    back_to: str
    break_path: list[str]
    timeout_path: list[str]
    pause: Annotated[
        Any,
        "Delay between rounds: a duration, an expression that yields one, or an object with `first`, `factor` and `most`.",
    ] = UNSET
    initial: Annotated[Any, "Output of the last node before the first round."] = UNSET
    within_ms: Annotated[int | UnsetType | None, "For a `poll`: maximum duration in milliseconds."] = UNSET


class WorkflowJoin(OpenView):
    """Condition under which a node with several predecessors runs."""

    wait_for: Annotated[Literal["all"] | int, "Number of live edges that the node waits for, or `all`."]
    tolerated_failures: Annotated[
        int | None, "Number of predecessors that may fail. Null if the failure of one fails the saga."
    ]
    rest: Literal["cancel", "run"]


class Limit(View):
    """A limit and the action when it is reached."""

    most: Amount
    then: Literal["terminate", "throttle", "summarise"]


Limits = Annotated[
    dict[str, Limit],
    "Limits by name: fan_out, hops, bytes, wall_time_ms, cost_usd, tokens, retries, retry_time_ms.",
]


class WorkflowNode(OpenView):
    """A node of the compiled graph. Further fields depend on its kind; fields without a value are omitted."""

    name: str
    kind: str
    approval: Annotated[
        Literal["always", "by_risk"] | UnsetType | None,
        "For a node that runs a tool: `always` if a person approves each call, `by_risk` if a person approves risky calls.",
    ] = UNSET
    action: Annotated[str | UnsetType | None, "Action of the node's tool, if the tool declares a risk."] = (
        UNSET
    )
    loops: Annotated[list[str] | UnsetType, "Last nodes of the enclosing loops, outermost first."] = UNSET
    when: Condition | UnsetType | None = UNSET
    join: WorkflowJoin | UnsetType | None = UNSET
    branch: WorkflowBranch | UnsetType | None = UNSET
    loop: WorkflowLoop | UnsetType | None = UNSET
    catch: Annotated[
        list[WorkflowCatch] | UnsetType,
        "Continuations after a failure. The first that applies to the failure is used.",
    ] = UNSET
    output_schema: Any = UNSET
    limits: Limits | UnsetType = UNSET


class Edge(View):
    """An edge of the graph: `to` follows `from`. An edge `again` leads to the next round of a loop."""

    from_: str
    to: str
    kind: Annotated[
        Literal["after", "branch", "catch", "break", "timeout", "again"],
        "Condition under which the edge is taken. `after`: `from` ends. `branch`: the branch of `from` chooses it. `catch`: `from` fails and its catch chooses it. `break`: the loop ends. `timeout`: the loop ends because its rounds are exhausted. `again`: the loop begins another round.",
    ]


class Capabilities(View):
    """Capabilities of a node kind."""

    input: Annotated[bool, "True if the node accepts values in `with`."]
    timeout: Annotated[bool, "True if the node accepts a `timeout` of its own."]
    retry: Annotated[bool, "True if the node accepts `retry`, `on_failure` and `failover`."]
    parked: Annotated[bool, "True if no invocation runs while the node is open."]
    signals: Annotated[bool, "True if the node can wait for signals."]


class NodeType(View):
    """A node kind. `runs` is false if this version recognizes the kind but cannot run it."""

    kind: str
    version: Annotated[
        str, "Version of the kind. It changes when the meaning of existing documents with such nodes changes."
    ]
    title: Annotated[str, "Display name."]
    icon: Annotated[str, "Character that represents the kind in drawings."]
    description: str
    runs: bool
    capabilities: Capabilities
    schema_: Annotated[Schema, "JSON Schema of a complete node of this kind."]
    input: Annotated[Schema | None, "JSON Schema of `with`. Null if the kind accepts no values."]
    output: Annotated[Schema, "JSON Schema of the output."]
    example: dict[str, Any]


class NodeTypes(View):
    """All node kinds, and the JSON Schema of a workflow document."""

    node_types: list[NodeType]
    schema_: Schema


class WorkflowPause(View):
    """A pause with which new sagas of a workflow begin."""

    code: Annotated[str, Meta(extra_json_schema={"enum": ["workflow_paused", "tenant_paused"]})]
    by: Annotated[str, "Operator who paused the workflow, or all sagas of the tenant."]
    at: Time
    reason: str


class WorkflowVersion(View):
    """One version of a workflow."""

    name: str
    version: Version
    graph: Annotated[str, "Hash of the compiled graph."]
    created_at: Time
    by: Annotated[str, "User who registered the version."]
    pauses: Annotated[
        list[WorkflowPause], "Pauses of the workflow. Empty for a version that is not the newest."
    ]
    description: Annotated[str, "Description of the patch that made this version. Empty without one."]


class WorkflowPage(View):
    """A page of workflows with their newest versions, ordered by name."""

    workflows: list[WorkflowVersion]
    next: Cursor


class NamedGraph(View):
    """A graph that a document defines. Each saga of the graph is a child. `GET /workflows/NAME.GRAPH` returns
    its details.
    """

    name: str
    nodes: list[WorkflowNode]
    edges: list[Edge]


class HandlerOfFailures(View):
    """Workflow, or graph of the document, that is started when a saga fails permanently."""

    workflow: str | None
    graph: str | None
    on_cancel: Annotated[bool, "True if the handler is also started for cancelled sagas."]


class Workflow(WorkflowVersion):
    """One version of a workflow, with its document and its graph."""

    document: Annotated[str, "Text of the document as registered."]
    input: Schema | None
    nodes: list[WorkflowNode]
    edges: list[Edge]
    risk: Annotated[
        list[str], "Rules that determine the risk of calls, as text. Empty if no tool declares a risk."
    ]
    limits: Limits
    graphs: Annotated[list[NamedGraph], "Graphs that the document defines."]
    failure_handler: Annotated[
        HandlerOfFailures | None, "Handler for permanent failures of sagas. Null if the workflow has none."
    ]


class SagaWorkflow(View):
    """The graph that a saga runs, with its document."""

    saga: str
    at: Annotated[Version, "Version of the saga's log."]
    name: str
    version: Annotated[
        int | None, "Version of the workflow that has the graph, if it is among the newest 100."
    ]
    graph: Annotated[str, "Hash of the compiled graph."]
    document: Annotated[
        str | None, "Text of the document. Null if no registered version and no patch has it."
    ]
    input: Schema | None
    nodes: list[WorkflowNode]
    edges: list[Edge]
    risk: Annotated[
        list[str], "Rules that determine the risk of calls, as text. Empty if no tool declares a risk."
    ]
    limits: Limits
    graphs: Annotated[list[NamedGraph], "Graphs that the document defines."]
    failure_handler: Annotated[
        HandlerOfFailures | None, "Handler for permanent failures of sagas. Null if the workflow has none."
    ]


class WorkflowWithVersions(Workflow):
    """The newest version of a workflow, and lists of its versions and tags."""

    versions: Annotated[
        list[WorkflowVersion], Meta(max_length=100), "Versions, newest first. Contains at most 100."
    ]
    tags: Annotated[list[WorkflowTag], "Tags of the workflow that name a version, ordered by name."]


class Registered(View):
    """A registered version of a workflow."""

    name: str
    version: Version
    graph: Annotated[str, "Hash of the compiled graph."]
    notes: Annotated[
        list[str],
        Meta(max_length=100),
        "Warnings for the author: steps that share an effect key, steps that are longer than an invocation, and children that are not registered or accept a different input.",
    ]
