"""How workflows and the kinds of their nodes are described to the outside, as models.

The values are made in core/read/views.py, core/documents/schema.py and runtime/requests/queries.py.
Imported only where the OpenAPI document is made: see answers.py.
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
    """Where a node goes on: the first rule that holds, or what an expression names."""

    rules: list[WorkflowRule]
    choose: str | None = Field(description="An expression whose value names nodes among `among`.")
    among: list[str]
    default: list[str]


class WorkflowCatch(BaseModel):
    """One way on from a failure: for these codes and classes, none of them for all."""

    code: list[str]
    class_: list[str] = Field(alias="class")
    if_: Condition | None = Field(alias="if")
    then: list[str]


class WorkflowLoop(BaseModel):
    """Of the last node of a loop: when it goes back to which node, and where it leaves to."""

    while_: Condition = Field(alias="while")
    max_iterations: int = Field(ge=1)
    back_to: str
    break_path: list[str]
    timeout_path: list[str]
    pause: Any = Field(
        None,
        description="Between its rounds: a duration, an expression that gives one, or `first`, `factor` and `most`.",
    )
    initial: Any = Field(None, description="What its last node has given before the first round.")
    within_ms: int | None = Field(None, description="Of a `poll`: how long it goes round at most.")


class WorkflowJoin(BaseModel):
    """What a node waits for."""

    wait_for: Literal["all"] | int = Field(description="So many live edges, or all edges.")
    tolerated_failures: int | None = Field(description="Null: a failure is one of the saga.")
    rest: Literal["cancel", "run"]


class Limit(Answer):
    """The most there may be of something, and what happens beyond it."""

    most: float = Field(ge=0)
    then: Literal["terminate", "throttle", "summarise"]


Limits = Annotated[
    dict[str, Limit], Field(description="By name: fan_out, hops, bytes, wall_time_ms, cost_usd.")
]


class WorkflowNode(OpenAnswer):
    """A node of the compiled graph; other fields depend on its kind. What it has not is left out."""

    name: str
    kind: str
    approval: Literal["always", "by_risk"] | None = Field(
        None,
        description="Of a node that runs a tool: whether a person approves its calls, all or the risky ones.",
    )
    action: str | None = Field(None, description="What its tool does, where it declares a risk.")
    loops: list[str] = Field([], description="The last nodes of the loops around it, outermost first.")
    when: Condition | None = None
    join: WorkflowJoin | None = None
    branch: WorkflowBranch | None = None
    loop: WorkflowLoop | None = None
    catch: list[WorkflowCatch] = Field([], description="The first that fits a failure is taken.")
    output_schema: Any = None
    limits: Limits = Field({})


class Edge(Answer):
    """`to` comes after `from`; of `again`, in the next round."""

    from_: str = Field(alias="from")
    to: str
    kind: Literal["after", "branch", "catch", "break", "timeout", "again"] = Field(
        description="Whether it is taken: whenever `from` is done; when its branch chooses it; when it failed and its catch chooses it; when its loop is left, "
        "or left because its rounds are used up; when its loop goes round again."
    )


class Capabilities(Answer):
    """What a node of a kind can do."""

    input: bool = Field(description="It is given values under `with`.")
    timeout: bool = Field(description="It may have a `timeout` of its own.")
    retry: bool = Field(description="What it does can be tried again: `retry`, `on_failure`, `failover`.")
    parked: bool = Field(description="No invocation runs while it is open.")
    signals: bool = Field(description="It can wait for signals.")


class NodeType(Answer):
    """A kind of node. `runs` is false for one that this version knows and cannot run."""

    kind: str
    version: str = Field(
        description="Changes when a document with such a node means something else than before."
    )
    title: str = Field(description="What it is called where people see it.")
    icon: str = Field(description="A character that it is drawn as.")
    description: str
    runs: bool
    capabilities: Capabilities
    schema_: Schema = Field(alias="schema", description="Of a whole node of this kind.")
    input: Schema | None = Field(
        description="Of every `with` of such a node; null for a kind that takes none."
    )
    output: Schema = Field(description="Of every output of such a node.")
    example: dict[str, Any]


class NodeTypes(Answer):
    """All kinds of nodes, and the JSON Schema of a whole document."""

    node_types: list[NodeType]
    schema_: Schema = Field(alias="schema")


class WorkflowVersion(Answer):
    """One version of a workflow."""

    name: str
    version: int = Field(ge=1)
    graph: str = Field(description="Hash of the compiled graph.")
    created_at: Time
    by: str = Field(description="Who registered it.")


class WorkflowPage(Answer):
    """Workflows by name, each with its newest version."""

    workflows: list[WorkflowVersion]
    next: Cursor


class NamedGraph(Answer):
    """A graph that a document names: each saga of it is a child.
    `GET /workflows/NAME.GRAPH` shows the rest of it.
    """

    name: str
    nodes: list[WorkflowNode]
    edges: list[Edge]


class HandlerOfFailures(Answer):
    """What is started when a saga has failed for good: a workflow, or a graph of the document."""

    workflow: str | None
    graph: str | None
    on_cancel: bool = Field(description="Whether it is started for a saga that was cancelled, too.")


class Workflow(WorkflowVersion):
    """One version of a workflow, with its document and its shape."""

    document: str = Field(description="The text that was registered.")
    input: Schema | None
    nodes: list[WorkflowNode]
    edges: list[Edge]
    risk: list[str] = Field(
        description="The rules by which calls are risky, in words; empty where no tool declares a risk."
    )
    limits: Limits
    graphs: list[NamedGraph] = Field([], description="Those that its document names.")
    failure_handler: HandlerOfFailures | None = Field(
        None, description="Null where nothing is started when a saga has failed for good."
    )


class WorkflowWithVersions(Workflow):
    """The newest version of a workflow, and the versions there are."""

    versions: list[WorkflowVersion] = Field(max_length=100, description="Newest first, at most 100.")


class Registered(Answer):
    """What was registered."""

    name: str
    version: int = Field(ge=1)
    graph: str = Field(description="Hash of the compiled graph.")
    notes: list[str] = Field(
        [],
        max_length=100,
        description="What the author may not expect: steps that share a key, steps longer than an invocation, children "
        "that are not registered or take something else.",
    )
