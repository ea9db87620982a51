"""Models of answers about workflows and node kinds.

core/read/views.py, core/documents/schema.py and runtime/requests/queries.py make the values. Import these
models only to make the OpenAPI document; see answers.py.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from baton.web.bodies.failures import Answer, Condition, Cursor, OpenAnswer, Schema, Time


class WorkflowRule(BaseModel):
    """One rule of a branch."""

    if_: Condition = Field(alias="if")
    then: list[str]


class WorkflowBranch(BaseModel):
    """Nodes that follow a node: those of the first rule that holds, or those that an expression names."""

    rules: list[WorkflowRule]
    choose: str | None = Field(description="Expression whose value names nodes in `among`.")
    among: list[str]
    default: list[str]


class WorkflowCatch(BaseModel):
    """Continuation after a failure with one of these codes or classes. A catch without codes and classes
    applies to all failures.
    """

    code: list[str]
    class_: list[str] = Field(alias="class")
    if_: Condition | None = Field(alias="if")
    then: list[str]


class WorkflowLoop(BaseModel):
    """Loop that ends with this node: the condition for another round, the node to return to, and the nodes
    after the loop.
    """

    while_: Condition = Field(alias="while")
    max_iterations: int = Field(ge=1)
    back_to: str
    break_path: list[str]
    timeout_path: list[str]
    pause: Any = Field(
        None,
        description="Delay between rounds: a duration, an expression that yields one, or an object with `first`, "
        "`factor` and `most`.",
    )
    initial: Any = Field(None, description="Output of the last node before the first round.")
    within_ms: int | None = Field(None, description="For a `poll`: maximum duration in milliseconds.")


class WorkflowJoin(BaseModel):
    """Condition under which a node with several predecessors runs."""

    wait_for: Literal["all"] | int = Field(
        description="Number of live edges that the node waits for, or `all`."
    )
    tolerated_failures: int | None = Field(
        description="Number of predecessors that may fail. Null if the failure of one fails the saga."
    )
    rest: Literal["cancel", "run"]


class Limit(Answer):
    """A limit and the action when it is reached."""

    most: float = Field(ge=0)
    then: Literal["terminate", "throttle", "summarise"]


Limits = Annotated[
    dict[str, Limit], Field(description="Limits by name: fan_out, hops, bytes, wall_time_ms, cost_usd.")
]


class WorkflowNode(OpenAnswer):
    """A node of the compiled graph. Further fields depend on its kind; fields without a value are omitted."""

    name: str
    kind: str
    approval: Literal["always", "by_risk"] | None = Field(
        None,
        description="For a node that runs a tool: `always` if a person approves each call, `by_risk` if a person "
        "approves risky calls.",
    )
    action: str | None = Field(None, description="Action of the node's tool, if the tool declares a risk.")
    loops: list[str] = Field([], description="Last nodes of the enclosing loops, outermost first.")
    when: Condition | None = None
    join: WorkflowJoin | None = None
    branch: WorkflowBranch | None = None
    loop: WorkflowLoop | None = None
    catch: list[WorkflowCatch] = Field(
        [], description="Continuations after a failure. The first that applies to the failure is used."
    )
    output_schema: Any = None
    limits: Limits = Field({})


class Edge(Answer):
    """An edge of the graph: `to` follows `from`. An edge `again` leads to the next round of a loop."""

    from_: str = Field(alias="from")
    to: str
    kind: Literal["after", "branch", "catch", "break", "timeout", "again"] = Field(
        description="Condition under which the edge is taken. `after`: `from` ends. `branch`: the branch of "
        "`from` chooses it. `catch`: `from` fails and its catch chooses it. `break`: the loop ends. "
        "`timeout`: the loop ends because its rounds are exhausted. `again`: the loop begins another "
        "round."
    )


class Capabilities(Answer):
    """Capabilities of a node kind."""

    input: bool = Field(description="True if the node accepts values in `with`.")
    timeout: bool = Field(description="True if the node accepts a `timeout` of its own.")
    retry: bool = Field(description="True if the node accepts `retry`, `on_failure` and `failover`.")
    parked: bool = Field(description="True if no invocation runs while the node is open.")
    signals: bool = Field(description="True if the node can wait for signals.")


class NodeType(Answer):
    """A node kind. `runs` is false if this version recognizes the kind but cannot run it."""

    kind: str
    version: str = Field(
        description="Version of the kind. It changes when the meaning of existing documents with such nodes "
        "changes."
    )
    title: str = Field(description="Display name.")
    icon: str = Field(description="Character that represents the kind in drawings.")
    description: str
    runs: bool
    capabilities: Capabilities
    schema_: Schema = Field(alias="schema", description="JSON Schema of a complete node of this kind.")
    input: Schema | None = Field(description="JSON Schema of `with`. Null if the kind accepts no values.")
    output: Schema = Field(description="JSON Schema of the output.")
    example: dict[str, Any]


class NodeTypes(Answer):
    """All node kinds, and the JSON Schema of a workflow document."""

    node_types: list[NodeType]
    schema_: Schema = Field(alias="schema")


class WorkflowVersion(Answer):
    """One version of a workflow."""

    name: str
    version: int = Field(ge=1)
    graph: str = Field(description="Hash of the compiled graph.")
    created_at: Time
    by: str = Field(description="User who registered the version.")


class WorkflowPage(Answer):
    """A page of workflows with their newest versions, ordered by name."""

    workflows: list[WorkflowVersion]
    next: Cursor


class NamedGraph(Answer):
    """A graph that a document defines. Each saga of the graph is a child. `GET /workflows/NAME.GRAPH` returns
    its details.
    """

    name: str
    nodes: list[WorkflowNode]
    edges: list[Edge]


class HandlerOfFailures(Answer):
    """Workflow, or graph of the document, that is started when a saga fails permanently."""

    workflow: str | None
    graph: str | None
    on_cancel: bool = Field(description="True if the handler is also started for cancelled sagas.")


class Workflow(WorkflowVersion):
    """One version of a workflow, with its document and its graph."""

    document: str = Field(description="Text of the document as registered.")
    input: Schema | None
    nodes: list[WorkflowNode]
    edges: list[Edge]
    risk: list[str] = Field(
        description="Rules that determine the risk of calls, as text. Empty if no tool declares a risk."
    )
    limits: Limits
    graphs: list[NamedGraph] = Field([], description="Graphs that the document defines.")
    failure_handler: HandlerOfFailures | None = Field(
        None, description="Handler for permanent failures of sagas. Null if the workflow has none."
    )


class WorkflowWithVersions(Workflow):
    """The newest version of a workflow, and a list of its versions."""

    versions: list[WorkflowVersion] = Field(
        max_length=100, description="Versions, newest first. Contains at most 100."
    )


class Registered(Answer):
    """A registered version of a workflow."""

    name: str
    version: int = Field(ge=1)
    graph: str = Field(description="Hash of the compiled graph.")
    notes: list[str] = Field(
        [],
        max_length=100,
        description="Warnings for the author: steps that share an effect key, steps that are longer than an "
        "invocation, and children that are not registered or accept a different input.",
    )
