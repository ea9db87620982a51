"""`Workflow`: a workflow document, built by calls.

It has one method per kind of node, and the fields of a document. Values and references inside fields are in
values.py, parts with a structure of their own in conditions.py and control.py. `compile`
calls the compiler with the text that would be registered. A worker may import modules with workflows, so this
module loads the compiler on first use only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, TypeVar, Unpack, cast

from baton.builder.conditions import (
    Holds,
    Writer,
    any_schema,
    condition,
    copy_finished,
    only,
    present_fields,
    raise_if,
    schema_by_name,
)
from baton.builder.control import (
    Branch,
    Catch,
    Compensation,
    Guardrails,
    Join,
    Limits,
    Loop,
    Policies,
    Poll,
    Reactions,
    Replan,
    Retries,
    by_code,
    calls_writer,
    catch,
    compensation,
    failure_fields,
    guardrails,
    join_or_short,
)
from baton.builder.values import Collector, Duration, Node, Nodes, Origin, Reference, Roots
from baton.core.expressions import escape, nearest
from baton.errors import InvalidDefinition, MalformedDocument

if TYPE_CHECKING:
    from baton.core.effects.toolspec import ToolSpec
    from baton.core.graph.graph import Graph
    from baton.tools.define import Registry


AgentCall = str | Callable[..., Any] | Mapping[str, Any]
"""An entry of an agent's `tools`."""


class GraphOfWorkflow(Protocol):
    """A workflow that another one uses as a graph."""

    name: str
    graphs: Any
    """Graphs that it starts, by name."""


N = TypeVar("N", bound=GraphOfWorkflow)


def graphs_of(
    made: Collector, graphs: Mapping[str, N], build: Callable[[N], tuple[Collector, dict[str, Any]]]
) -> dict[str, Any]:
    """Return the graphs of a document by name, including those that they start themselves. Faults are
    recorded at their paths.
    """
    found: dict[str, Any] = {}
    todo = list(graphs.values())
    while todo:
        graph = todo.pop(0)
        if graph.name in found:
            continue
        own, value = build(graph)
        place = f"/graphs/{graph.name}"
        made.problems += [replace(one, path=place + one.path) for one in own.problems]
        made.stand_ins |= {place + one for one in own.stand_ins}
        found[graph.name] = {key: item for key, item in value.items() if key != "name"}
        todo += graph.graphs.values()
    return found


class NodeFields(TypedDict, total=False):
    """Fields of a node of any kind. None is the same as omitting the field."""

    after: Nodes | None
    when: Holds | None
    branch: Branch | None
    loop: Loop | None
    poll: Poll | None
    join: Join | Literal["all", "any"] | int | None
    map: Any
    catch: Catch | None
    output_schema: object
    limits: Limits | None
    description: str | None


class ChildFields(NodeFields, total=False):
    """Fields of a node that starts a child, and of any node. `input` is the whole input, in place of `with_`.
    `cancel_on` is the name of a signal that cancels the child.
    """

    input: object
    cancel_on: str | None
    timeout: Duration | None
    retry: Retries | None
    on_failure: Reactions | None
    compensate: str | None


OF_CHILD = ChildFields.__annotations__.keys() - NodeFields.__annotations__.keys()


def of_child(
    more: ChildFields, with_: Mapping[str, Any] | None
) -> tuple[NodeFields, Mapping[str, Any] | None, dict[str, Any]]:
    """Return the fields of any node, the input, and the remaining fields."""
    said: dict[str, Any] = {**more}
    own = {name: said.pop(name) for name in OF_CHILD if name in said}
    return cast("NodeFields", said), with_, own


FIELDS: Mapping[str, Writer] = {
    "with": Collector.value,
    "input": Collector.value,
    "cancel_on": Collector.value,
    "after": Collector.nodes,
    "when": condition,
    "timeout": Collector.duration,
    "branch": only(Branch, "a branch", "write branch(rule(condition, node), …) or choose(value, among)"),
    "loop": only(Loop, "a loop", "write loop(condition, …)"),
    "poll": only(Poll, "a poll", "write poll(condition, every)"),
    "join": join_or_short,
    "map": Collector.value,
    "retry": failure_fields,
    "on_failure": by_code,
    "failover": failure_fields,
    "key": Collector.value,
    "breaker": failure_fields,
    "replan": failure_fields,
    "compensate": compensation,
    "requires_approval": failure_fields,
    "catch": catch,
    "output_schema": any_schema,
    "limits": Collector.measures,
    "description": Collector.value,
}

_OF_ASKED: Mapping[str, Writer] = {"tools": calls_writer, "requires_approval": failure_fields}

HEAD: Mapping[str, Writer] = {
    "input": any_schema,
    "schemas": schema_by_name,
    "timeout": Collector.duration,
    "limits": Collector.measures,
    "guardrails": guardrails,
    "retry": failure_fields,
    "on_failure": by_code,
    "failover": failure_fields,
    "replan": failure_fields,
    "compensate": Collector.value,
    "risk": Collector.value,
    "failure_handler": failure_fields,
}


class Prices(TypedDict, total=False):
    """Price of a million tokens, in US dollars."""

    input: float
    output: float
    cached: float


class Summaries(TypedDict, total=False):
    """Model that summarises messages that exceed a request of an agent, and the number of tokens."""

    model: str
    max_output: int


class ModelOptions(NodeFields, total=False):
    """Fields of a node that asks a model, and of any node. None is the same as omitting the field."""

    instructions: Any
    fallbacks: Sequence[str] | None
    max_output: int | None
    temperature: float | None
    thinking: str | int | None
    corrections: int | None
    price: Prices | None
    background: bool | None
    timeout: Duration | None
    retry: Retries | None
    on_failure: Reactions | None
    failover: Policies | None
    breaker: str | None


OF_MODEL = frozenset(
    {
        "instructions",
        "fallbacks",
        "max_output",
        "temperature",
        "thinking",
        "corrections",
        "price",
        "background",
    }
)
"""Fields that belong to the model. The others belong to the node."""


def check_said(said: Mapping[str, Any], known: type) -> None:
    """Raise `TypeError` for a keyword that a node of this kind does not have."""
    for key in said.keys() - known.__annotations__.keys():
        hint = nearest(key, known.__annotations__)
        raise TypeError(f"`{key}` cannot be said of this node{hint and f'; {hint}'}")


class Workflow(Roots):
    """A workflow document under construction.

    `input` and the values of `schemas` are pydantic models (or any types that pydantic describes) or JSON
    Schemas. Mistakes do not stop the construction: `document`, `to_yaml` and `compile` raise
    `InvalidDefinition` with all of them.
    """

    def __init__(
        # Objects, because for type checkers `int | None` and `Annotated[…]` are no types when they are values.
        self,
        name: str,
        *,
        description: str | None = None,
        owner: str | None = None,
        metadata: Mapping[str, str] | None = None,
        input: object = None,
        schemas: Mapping[str, object] | None = None,
        timeout: Duration | None = None,
        limits: Limits | None = None,
        guardrails: Guardrails | None = None,
        retry: Retries | None = None,
        on_failure: Reactions | None = None,
        failover: Policies | None = None,
        replan: Replan | None = None,
        compensate: str | None = None,
        risk: Sequence[Mapping[str, Any]] | None = None,
        failure_handler: str | Mapping[str, Any] | Workflow | None = None,
        schedule: str | Mapping[str, Any] | None = None,
        events: Mapping[str, Any] | None = None,
        mcp: bool | None = None,
    ) -> None:
        self.name = name
        self.graphs: dict[str, Workflow] = {}
        if isinstance(failure_handler, Workflow):
            failure_handler = {"graph": self._named(failure_handler)}
        self._origin = Origin(name)
        self._made = Collector(self._origin)
        fields: dict[str, Any] = {
            "name": name,
            "description": description,
            "owner": owner,
            "metadata": metadata,
            "input": input,
            "schemas": schemas,
            "timeout": timeout,
            "limits": limits,
            "guardrails": guardrails,
            "retry": retry,
            "on_failure": on_failure,
            "failover": failover,
            "replan": replan,
            "compensate": compensate,
            "risk": risk,
            "failure_handler": failure_handler,
            "schedule": schedule,
            "events": events,
            "mcp": mcp,
        }
        self._head = {
            key: HEAD.get(key, Collector.value)(self._made, f"/{key}", value)
            for key, value in fields.items()
            if value is not None
        }
        self._nodes: dict[str, dict[str, Any]] = {}
        self._output: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<workflow {self.name} with {len(self._nodes)} nodes>"

    # ---- nodes -----------------------------------------------------------------------------------------------

    def task(
        self,
        name: str,
        tool: str | Callable[..., Any],
        *,
        with_: Mapping[str, Any] | None = None,
        timeout: Duration | None = None,
        callback: Duration | Mapping[str, Duration] | None = None,
        retry: Retries | None = None,
        on_failure: Reactions | None = None,
        failover: Policies | None = None,
        key: str | Reference | None = None,
        breaker: str | None = None,
        replan: Replan | None = None,
        compensate: Compensation | None = None,
        requires_approval: bool | Mapping[str, Any] | None = None,
        **more: Unpack[NodeFields],
    ) -> Node:
        """Add a node that runs a tool, given by its name or as the function that `@tool` declared.

        `callback`: the tool hands over its work, and the node waits this long for the result; or `{"timeout":
        …, "heartbeat": …}`.
        """
        chosen = self._made.tool(f"{_place(name)}/tool", tool)
        own: dict[str, Any] = {"timeout": timeout, "retry": retry, "on_failure": on_failure}
        work: dict[str, Any] = {"tool": chosen}
        if callback is not None:
            times = callback if isinstance(callback, Mapping) else {"timeout": callback}
            place = f"{_place(name)}/callback"
            work["callback"] = {
                key: self._made.duration(f"{place}/{key}", time) for key, time in times.items()
            }
        own |= {"failover": failover, "key": key, "breaker": breaker, "replan": replan}
        own |= {"compensate": compensate, "requires_approval": requires_approval}
        return self._add(name, work, more, with_, own)

    def wait(
        self,
        name: str,
        for_: Duration | Reference | None = None,
        *,
        until: datetime | str | Reference | None = None,
        signal: str | None = None,
        timeout: Duration | None = None,
        fresh: bool | None = None,
        **more: Unpack[NodeFields],
    ) -> Node:
        """Add a node that waits `for_` a time, `until` a time, or for a `signal`, at most `timeout`. With
        `fresh`, earlier signals do not count.
        """
        wait: dict[str, Any] = {}
        fields: tuple[tuple[str, Writer, Any], ...] = (
            ("for", Collector.duration, for_),
            ("until", Collector.time, until),
            ("signal", Collector.value, signal),
            ("timeout", Collector.duration, timeout),
            ("fresh", Collector.value, fresh),
        )
        for key, write, value in present_fields(*fields):
            wait[key] = write(self._made, f"{_place(name)}/wait/{key}", value)
        return self._add(name, {"wait": wait}, more)

    def human(
        self,
        name: str,
        title: Any,
        *,
        type: str | None = None,
        message: Any = None,
        details: Any = None,
        options: Sequence[Mapping[str, Any]] | None = None,
        schema: Any = None,
        takeover: Mapping[str, Any] | None = None,
        to: str | Mapping[str, Any] | None = None,
        expires: Duration | None = None,
        risk: str | None = None,
        escalate: Sequence[Mapping[str, Any]] | None = None,
        **more: Unpack[NodeFields],
    ) -> Node:
        """Add a node that asks a person: for an approval, or for the answer that `options`, `schema` or
        `takeover` describe.
        """
        place = f"{_place(name)}/human"
        asks = {"title": title, "message": message, "details": details, "options": options}
        asks |= {"takeover": takeover, "to": to, "risk": risk}
        human = {
            key: self._made.value(f"{place}/{key}", value) for key, value in asks.items() if value is not None
        }
        if type is not None:
            human["type"] = type
        if schema is not None:
            human["schema"] = FIELDS["output_schema"](self._made, f"{place}/schema", schema)
        if expires is not None:
            human["expires"] = self._made.duration(f"{place}/expires", expires)
        if escalate is not None:
            human["escalate"] = failure_fields(self._made, f"{place}/escalate", escalate)
        return self._add(name, {"human": human}, more)

    def model(self, name: str, model: str, prompt: Any, **more: Unpack[ModelOptions]) -> Node:
        """Add a node that asks a model once. Its output is text, or conforms to `output_schema`."""
        return self._asked(name, "model", {"name": model, "prompt": prompt}, more)

    def agent(
        self,
        name: str,
        model: str,
        prompt: Any,
        *,
        tools: AgentCall | Sequence[AgentCall] | None = None,
        operations: Mapping[str, str | Sequence[str]] | None = None,
        requires_approval: Mapping[str, bool | Mapping[str, Any]] | None = None,
        risk: Mapping[str, str | Mapping[str, Any]] | None = None,
        signal: str | None = None,
        conversation: bool | Mapping[str, Any] | None = None,
        session: str | None = None,
        patch: str | Sequence[str] | None = None,
        turns: int | None = None,
        calls: int | None = None,
        calls_in_a_turn: int | None = None,
        tokens: int | None = None,
        summarise: Summaries | None = None,
        compensate: str | None = None,
        **more: Unpack[ModelOptions],
    ) -> Node:
        """Add an agent: a node that asks a model, executes its calls of `tools`, and repeats until the model
        answers.

        `tools` are names, patterns, `@tool` functions, and objects with its other calls. `operations` are
        those of APIs that `std.openapi` may call. `requires_approval` names calls that a person approves
        first, `risk` the risk of operations. `signal` names the signal with messages of the agent's user. In
        a `conversation`, the agent waits for the next message after an answer; a `session` goes on with what
        was said in it before. `patch` names what it may patch of this workflow. `turns`, `calls`,
        `calls_in_a_turn` and `tokens` are limits. With `summarise`, older messages that exceed a request are
        summarised.
        """
        fields = {"model": model, "prompt": prompt, "tools": tools, "operations": operations}
        fields |= {"requires_approval": requires_approval, "signal": signal, "summarise": summarise}
        fields |= {"conversation": conversation, "session": session, "risk": risk}
        fields |= {"patch": patch}
        limits = {"turns": turns, "calls": calls, "calls_in_a_turn": calls_in_a_turn, "tokens": tokens}
        return self._asked(name, "agent", {**fields, **limits}, more, {"compensate": compensate})

    def _asked(
        self,
        name: str,
        kind: str,
        fields: Mapping[str, Any],
        more: ModelOptions,
        also: Mapping[str, Any] | None = None,
    ) -> Node:
        check_said(more, ModelOptions)
        asked = {
            key: _OF_ASKED.get(key, Collector.value)(self._made, f"{_place(name)}/{kind}/{key}", value)
            for key, value in (*fields.items(), *more.items())
            if value is not None and (key in fields or key in OF_MODEL)
        }
        own = {key: value for key, value in more.items() if key not in OF_MODEL}
        return self._add(name, {kind: asked}, {}, own={**own, **(also or {})})

    def workflow(
        self,
        name: str,
        workflow: str | Workflow,
        *,
        with_: Mapping[str, Any] | None = None,
        **more: Unpack[ChildFields],
    ) -> Node:
        """Add a node that starts a saga of `NAME`, `NAME@VERSION`, `NAME@TAG`, or of a `Workflow`."""
        called = workflow.name if isinstance(workflow, Workflow) else workflow
        made = {"workflow": self._made.value(f"{_place(name)}/workflow", called)}
        return self._add(name, made, *of_child(more, with_))

    def graph(
        self,
        name: str,
        graph: str | Workflow,
        *,
        with_: Mapping[str, Any] | None = None,
        **more: Unpack[ChildFields],
    ) -> Node:
        """Add a node that runs a graph of this document. The `Workflow` contains its nodes, input
        and output.
        """
        named = self._named(graph) if isinstance(graph, Workflow) else graph
        made = {"graph": self._made.value(f"{_place(name)}/graph", named)}
        return self._add(name, made, *of_child(more, with_))

    def _named(self, graph: Workflow) -> str:
        if self.graphs.setdefault(graph.name, graph) is not graph:
            hint = "give one of them another name"
            self._made.note(f"/graphs/{graph.name}", f"there are two graphs `{graph.name}`", hint)
        return graph.name

    def function(
        self,
        name: str,
        function: str | Callable[..., Any],
        *,
        with_: Mapping[str, Any] | None = None,
        **more: Unpack[NodeFields],
    ) -> Node:
        """Add a node that runs a function under `@workflow`; without `with_`, its input is the saga's."""
        return self._add(
            name, {"function": self._made.tool(f"{_place(name)}/function", function)}, more, with_
        )

    def value(self, name: str, value: Any, **more: Unpack[NodeFields]) -> Node:
        """Add a node that yields a value made of other nodes' outputs, without running anything."""
        made = self._made.value(f"{_place(name)}/value", value)
        return self._add(name, {"value": made}, more)

    def fail(
        self,
        name: str,
        code: str,
        message: str | Reference,
        *,
        class_: str | None = None,
        **more: Unpack[NodeFields],
    ) -> Node:
        """Add a node that ends the saga as failed, with this code and message. No node follows it."""
        said = {"code": code, "message": message, "class": class_}
        made = {key: value for key, value in said.items() if value is not None}
        return self._add(name, {"fail": self._made.value(f"{_place(name)}/fail", made)}, more)

    def end(self, name: str, result: Any = None, **more: Unpack[NodeFields]) -> Node:
        """Add a node that completes the saga immediately, with this result. No node follows it."""
        made = {} if result is None else {"result": self._made.value(f"{_place(name)}/end/result", result)}
        return self._add(name, {"end": made}, more)

    def node(self, name: str, kind: str, fields: Mapping[str, Any], **more: Unpack[NodeFields]) -> Node:
        """Add a node of a kind that the application declares by `@node_kind`."""
        made = self._made.value(f"{_place(name)}/{escape(kind)}", fields)
        return self._add(name, {kind: made}, more)

    def output(self, value: Any) -> None:
        """Set the saga's result."""
        if self._output:
            self._made.note("/output", "the output is set twice")
        self._output["output"] = self._made.value("/output", value)

    def _add(
        self,
        name: str,
        node: dict[str, Any],
        more: NodeFields,
        with_: Mapping[str, Any] | None = None,
        own: Mapping[str, Any] | None = None,
    ) -> Node:
        check_said(more, NodeFields)
        fields: dict[str, Any] = {**more, "with": with_, **(own or {})}
        place = _place(name)
        for key, write in FIELDS.items():
            if fields.get(key) is not None:
                node[key] = write(self._made, f"{place}/{key}", fields[key])
        if node.get("after", ()) is None:
            del node["after"]  # the rest of a broken node can be checked better without
        if name in self._nodes:
            self._made.note(place, f"there are two nodes `{name}`", "give one of them another name")
        else:
            self._nodes[name] = node
        return Node(name, self._origin)

    # ---- the document ----------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """Return the document as a new JSON value. Raises `InvalidDefinition`."""
        made, value = self._build()
        raise_if(made.problems)
        return value

    def to_yaml(self) -> str:
        """Return the document as YAML for registration. Raises `InvalidDefinition`."""
        from baton.core.documents.text import write_yaml

        return write_yaml(self.document())

    def compile(self, tools: Mapping[str, ToolSpec] | Registry | None = None) -> Graph:
        """Return the graph that a registration of `to_yaml()` would create, by default with all imported
        tools.

        Raises `InvalidDefinition` with every problem of the construction and of the document.
        """
        from baton.core.documents.compile import compile_document, refusal_of
        from baton.core.documents.text import write_yaml
        from baton.tools import define
        from baton.tools.define import NODE_KINDS
        from baton.tools.standard import with_standard

        tools = with_standard(define.REGISTRY) if tools is None else tools
        specs = tools.specs() if isinstance(tools, define.Registry) else tools
        made, value = self._build()
        try:
            graph = compile_document(write_yaml(value), specs, kinds=NODE_KINDS)
        except (InvalidDefinition, MalformedDocument) as error:
            # Positions are those in a text that the author has never seen.
            found = (replace(problem, line=0, column=0) for problem in error.problems)
            new = [problem for problem in found if problem.path not in made.stand_ins]
            raise refusal_of([*made.problems, *new]) from error
        raise_if(made.problems)
        return graph

    def _build(self) -> tuple[Collector, dict[str, Any]]:
        """Return the document as far as it could be built, with all problems so far."""
        made, value = self._alone()
        return made, value | (
            {"graphs": graphs_of(made, self.graphs, Workflow._alone)} if self.graphs else {}
        )

    def _alone(self) -> tuple[Collector, dict[str, Any]]:
        """Return the document without the graphs that it names, with all problems so far."""
        made = Collector(self._origin)
        made.problems += self._made.problems
        made.stand_ins |= self._made.stand_ins
        # A copy, so that a caller who changes a document does not change the workflow.
        return made, copy_finished(made, "", {**self._head, "nodes": self._nodes, **self._output})


def _place(name: str) -> str:
    return f"/nodes/{escape(name)}"
