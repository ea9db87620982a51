"""Syntax of a child workflow: the workflow to start, and its input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from baton.core.conditions.schemafaults import Schema, in_words
from baton.core.documents.nodes.base import COMPENSATE, MAP, Compiler, KnownInterfaces, NodeDocument
from baton.core.documents.nodes.undone import only_none
from baton.core.documents.parts.fields import Given, NodeName, WorkflowReference
from baton.core.documents.parts.node import MOST_CHILDREN
from baton.core.effects.toolspec import PURE, ToolSpec
from baton.core.failures.codes import ENGINE
from baton.core.failures.matrix import REPLAN, RETRY
from baton.core.graph.graph import WHOLE_INPUT, inner_name, started
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.parts.failing import ReactionModel
    from baton.core.documents.parts.node import NodeModel

TIMEOUT = "timeout"


class Child(NodeDocument):
    kind = "workflow"
    key = "workflow"
    title = "Child workflow"
    description = (
        "Starts a saga of another registered workflow and waits for its end. No invocation of "
        "this saga runs meanwhile. The output is the child's result. If the child fails, the "
        "node fails; `retry` and `on_failure` start another child. After `timeout`, the child is "
        "cancelled and undone. A signal of `cancel_on` cancels it."
    )
    icon = "◆"
    outline = ('[["', '"]]')
    most_items = MOST_CHILDREN
    own = ("with", "input", MAP, "cancel_on", "timeout", "retry", "on_failure", COMPENSATE)
    takes_signals = True
    example: ClassVar[Mapping[str, Any]] = {
        "workflow": "delivery@2",
        "with": {"items": ["Riesling"], "user": "${saga.user}"},
    }
    is_idle = True
    output: ClassVar[Mapping[str, Any]] = {
        "description": "The result of the child; what was done by then, where a signal called it off."
    }
    familiar = "child sub_workflow child_workflow saga"
    field = (
        Annotated[WorkflowReference | None, Given],
        Field(
            default=None,
            description=(
                "Name of the workflow to start: `NAME` for the newest version when the node starts, "
                "`NAME@VERSION` or `NAME@TAG`. It can be this workflow, if not every saga reaches the node."
            ),
            examples=["delivery", "delivery@2"],
        ),
    )

    def child(self, node: NodeModel) -> str:
        """Return the reference of the schema of the child's input."""
        return str(self.of(node))

    def taker(self, known: KnownInterfaces, node: NodeModel) -> ToolSpec | None:
        """Return the child's input as parameters, where it is known to be an object."""
        child = self.child(node)
        if not isinstance(schema := known.children.get(child), dict):
            return None
        wanted = Schema(schema, schema).resolved()
        properties = wanted.value.get("properties") if isinstance(wanted.value, dict) else None
        if "object" not in wanted.types() or not isinstance(properties, dict):
            return None
        required = wanted.value.get("required")
        return ToolSpec(
            name=str(self.of(node)),
            version="",
            effect=PURE,
            parameters={
                **wanted.value,
                "properties": {
                    key: value if isinstance(value, dict) else {} for key, value in properties.items()
                },
                "$defs": schema.get("$defs", {}),
                "required": [key for key in required if isinstance(key, str)]
                if isinstance(required, list)
                else [],
            },
            result={},
        )

    def starts(self, node: NodeModel) -> str:
        return self.child(node)

    def values(self, node: NodeModel) -> Iterator[tuple[str, Any]]:
        if "input" in node.model_fields_set:
            yield "/input", node.input

    def check(self, compiler: Compiler, name: str, node: NodeModel) -> Iterator[Problem]:
        """Yield the problems of inputs that the child misses or does not take,
        and of rules that are not for children.
        """
        yield from self.check_rules(name, node)
        if inner_name("", self.child(node)) in compiler.children:
            message = (
                f"`{self.of(node)}` is a graph of this document, and `{self.key}` names a workflow of its own"
            )
            hint = f"write `graph: {self.of(node)}`, or give the graph another name"
            yield Problem(f"/nodes/{name}/{self.key}", message, hint)
        child = self.child(node)
        if "input" in node.model_fields_set:
            if "with" in node.model_fields_set or node.with_:
                message = "`input` is the whole input of the child, and `with` makes one of its fields"
                yield Problem(f"/nodes/{name}/input", message, "leave out one of the two")
            return
        schema = compiler.children.get(child)
        types = Schema(schema, schema).resolved().types() if isinstance(schema, dict) else {"object"}
        if "object" not in types:
            message = (
                f"`{self.of(node)}` takes {in_words(frozenset(types))} as its input, and `with` is an object"
            )
            yield Problem(f"/nodes/{name}", message, "write `input` in place of `with`: it takes any value")
        elif (spec := self.taker(compiler, node)) is not None:
            yield from compiler.takes(name, spec)

    def check_rules(self, name: str, node: NodeModel) -> Iterator[Problem]:
        """Yield the problems of the rules about a failure of the child."""
        yield from only_none(
            f"/nodes/{name}/{COMPENSATE}", node.compensate, "the child undoes what it has done"
        )
        yield from _rules(f"/nodes/{name}/on_failure", node.on_failure)

    def never_fails_with(self, code: str) -> tuple[str, str] | None:
        """Return (message, suggestion) for codes with which something in the child may fail,
        and never the node that has started it.
        """
        if code in ENGINE or code == TIMEOUT:
            return None
        message = f"this never fits: a child that fails is `child_failed` here, also when a step of it failed with `{code}`"
        return message, "write `child_failed`, or catch it in the child"

    def signal(self, node: NodeModel) -> str:
        return node.cancel_on or ""

    def compile(self, compiler: Compiler, name: str, node: NodeModel) -> dict[str, Any]:
        is_whole = "input" in node.model_fields_set
        given = node.input if is_whole else node.with_
        called: dict[str, Any] = {"kind": self.kind, "workflow": self.of(node), "arguments": given}
        if node.timeout:
            called["timeout_ms"] = node.timeout
        if node.compensate is not None:
            called["stays"] = True
        return called | ({"signal": node.cancel_on} if node.cancel_on else {})

    def summary(self, node: Mapping[str, Any], span: Callable[[int | None], str]) -> str:
        return f"workflow {node.get('workflow', '')}"


def _rules(place: str, on_failure: Mapping[str, ReactionModel]) -> Iterator[Problem]:
    """Yield the problems of reactions to a failure that only a tool can have."""
    for code, reaction in on_failure.items():
        for field in ("hints", "before_retry"):
            if getattr(reaction, field):
                message = f"`{field}` is for the call of a tool, and a child workflow is none"
                yield Problem(f"{place}/{code}/{field}", message, "leave it out")
        said = reaction.ladder or ()
        if said in (RETRY, REPLAN) if isinstance(said, str) else REPLAN in said:
            message = "nothing else does the work of a child workflow"
            yield Problem(f"{place}/{code}/ladder", message, "let `catch` lead to what is done in its place")


class SubGraph(Child):
    kind = "subgraph"
    key = "graph"
    title = "Named graph"
    description = (
        "Runs a graph of the document as a child saga and waits for its end. The output is the "
        "graph's result. Without `with` or `input`, its input is that of this saga."
    )
    icon = "▣"
    example: ClassVar[Mapping[str, Any]] = {"map": "${input.cities}", "graph": "visit"}
    output: ClassVar[Mapping[str, Any]] = {
        "description": "The result of the graph; what was done by then, where a signal called it off."
    }
    familiar = "subgraph"
    field = (
        Annotated[NodeName | None, Given],
        Field(
            default=None,
            description="Name of a graph under `graphs`.",
            examples=["visit"],
        ),
    )

    def child(self, node: NodeModel) -> str:
        return inner_name("", str(self.of(node)))

    def check(self, compiler: Compiler, name: str, node: NodeModel) -> Iterator[Problem]:
        graph = str(self.of(node))
        if self.child(node) not in compiler.children:
            yield from compiler.no_such_graph(f"/nodes/{name}/{self.key}", graph)
            return
        if node.model_fields_set & {"with_", "input"}:
            yield from super().check(compiler, name, node)
        else:
            yield from self.check_rules(name, node)

    def compile(self, compiler: Compiler, name: str, node: NodeModel) -> dict[str, Any]:
        kept = super().compile(compiler, name, node)
        given = kept["arguments"] if node.model_fields_set & {"with_", "input"} else WHOLE_INPUT
        graph = inner_name(compiler.workflow, str(self.of(node)))
        return {**kept, "workflow": graph, "arguments": started(given, compiler.seen(name))}

    def summary(self, node: Mapping[str, Any], span: Callable[[int | None], str]) -> str:
        return f"graph {node.get('graph', '')}"
