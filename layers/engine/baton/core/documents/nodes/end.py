"""Syntax of the end of a saga with a result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from baton.core.documents.nodes.base import Compiler, NodeDocument, Words
from baton.core.documents.parts.fields import Given, Model, Value

if TYPE_CHECKING:
    from baton.core.documents.parts.node import NodeModel


class EndModel(Model):
    """`{}`, or an object with the result."""

    result: Value = Field(
        default=None,
        description="The saga's result, in place of the document's `output`. Without it, the result is null.",
        examples=[{"table": "${ctx.hold.output}"}],
    )


class End(NodeDocument):
    kind = "end"
    key = "end"
    title = "End"
    description = (
        "Completes the saga at once with this result. Running steps are stopped, children "
        "cancelled, waits and questions dropped. No node can come after it."
    )
    icon = "■"
    outline = ("([", "])")
    own = ("output_schema",)
    refusal = (
        "an `end` ends the saga: it takes only `after`, `when`, `join`, `output_schema` and `description`"
    )
    example: ClassVar[Mapping[str, Any]] = {"end": {"result": {"booked": False, "city": "${input.city}"}}}
    output: ClassVar[Mapping[str, Any]] = {"description": "The saga's result."}
    familiar = "succeed success finish stop exit return_early terminal is_end"
    ends = True
    field = (Annotated[EndModel | None, Given], Field(default=None))
    model = EndModel
    inside = Words(keys={"result": "output value returns return with data"})

    def nearest_valid_form(self, value: Any) -> str:
        return "write `end: {result: …}`, or `end: {}` for an end without a result"

    def values(self, node: NodeModel) -> Iterator[tuple[str, Any]]:
        if (result := self.of(node).result) is not None:
            yield "/end/result", result

    def compile(self, compiler: Compiler, name: str, node: NodeModel) -> dict[str, Any]:
        return {"kind": self.kind, "value": self.of(node).result}
