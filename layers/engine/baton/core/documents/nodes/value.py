"""Syntax of a value: any JSON value, with expressions. Graphs and logs call it `pass`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from baton.core.documents.nodes.base import MAP, Compiler, NodeDocument
from baton.core.documents.parts.fields import Value

if TYPE_CHECKING:
    from baton.core.documents.parts.node import NodeModel


class ValueNode(NodeDocument):
    kind = "pass"
    key = "value"
    title = "Value"
    description = "Builds a value from other nodes' outputs. No tool runs."
    icon = "◇"
    outline = ('("', '")')
    own = (MAP,)
    refusal = "a `value` takes neither `with` nor `timeout`; write what it gives under `value`"
    example: ClassVar[Mapping[str, Any]] = {"value": {"city": "${input.city}", "rounds": 0}}
    output: ClassVar[Mapping[str, Any]] = {"description": "The value, with its expressions replaced."}
    familiar = "set assign constant"
    written = True
    field = (
        Value,
        Field(
            default=None,
            description="Output of the node: any JSON value, with expressions.",
            examples=["${ctx.search.output.tables[0]}", {"tables": "${ctx.search.output?}", "rounds": 0}],
        ),
    )

    def values(self, node: NodeModel) -> Iterator[tuple[str, Any]]:
        if (value := self.of(node)) is not None:
            yield "/value", value

    def compile(self, compiler: Compiler, name: str, node: NodeModel) -> dict[str, Any]:
        return {"kind": self.kind, "value": self.of(node)}
