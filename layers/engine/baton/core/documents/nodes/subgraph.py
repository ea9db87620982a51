"""Syntax of a graph of the same document as a node: like a child workflow, but for its definition's place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from baton.core.documents.nodes.base import Compiler
from baton.core.documents.nodes.child import Child
from baton.core.documents.parts.fields import Given, NodeName
from baton.core.graph.graph import WHOLE_INPUT, inner_name, started
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.parts.node import NodeModel


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
