"""The written half of the toy kind: `each: {items: [...], tool: NAME}`, with or without a tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from baton.core.documents.nodes.base import FAILING, Compiler, NodeDocument, Words
from baton.core.documents.parts.fields import Given, Model, Value, document_form
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.parts.node import NodeModel


class EachModel(Model):
    """The items, and the tool that is called for each of them."""

    items: Annotated[Value, Given] = Field(description="The names of the items.", examples=[["ada", "bo"]])
    tool: Annotated[str | None, Given] = Field(default=None, description="Called for each item.")


class Each(NodeDocument):
    kind = "each"
    key = "each"
    title = "Each"
    description = "Calls a tool for each of several items, or waits for a signal of each."
    icon = "≡"
    outline = ("[[", "]]")
    own = ("with", *FAILING)
    refusal = "an `each` takes no `timeout`"
    example: ClassVar[Mapping[str, Any]] = {"each": {"items": ["ada", "bo"]}}
    output: ClassVar[Mapping[str, Any]] = {"type": "object", "description": "By item, what it gave."}
    familiar = "for_all"
    field = (Annotated[EachModel | None, Given], Field(default=None))
    model = EachModel
    inside = Words(keys={"items": "over list", "tool": "call"})

    def nearest_valid_form(self, value: Any) -> str:
        return f"write `each: {{items: {document_form(value)}}}`"

    def tool(self, node: NodeModel) -> str:
        return self.of(node).tool or ""

    def values(self, node: NodeModel) -> Iterator[tuple[str, Any]]:
        yield "/each/items", self.of(node).items

    def check(self, compiler: Compiler, name: str, node: NodeModel) -> Iterator[Problem]:
        if tool := self.tool(node):
            yield from compiler.exists(f"/nodes/{name}/each/tool", tool)

    def compile(self, compiler: Compiler, name: str, node: NodeModel) -> dict[str, Any]:
        fields = {"kind": self.kind, "value": self.of(node).items, "arguments": node.with_}
        if (spec := compiler.tools.get(self.tool(node))) is None:
            return fields
        called = {"tool": spec.name, "tool_version": spec.version, "schema_hash": spec.schema_hash}
        limits = {"effect": spec.effect, "timeout_ms": spec.timeout_ms}
        return {**fields, **called, **limits, **compiler.attempts(name, spec)}

    def summary(self, node: Mapping[str, Any], span: Callable[[int | None], str]) -> str:
        return f"each of {node['items']}"
