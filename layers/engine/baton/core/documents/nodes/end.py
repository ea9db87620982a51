"""Syntax of the end of a saga with a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from baton.core.documents.nodes.base import Compiler, NodeDocument, Words
from baton.core.documents.parts.failing import Class, Code
from baton.core.documents.parts.fields import Defined, Given, Model, Value, ref
from baton.core.failures.codes import CODES, PERMANENT, class_of
from baton.errors import Problem

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


class FailModel(Model):
    """Code and message of the failure."""

    code: Code = Field(
        description="Code: one of the engine's, or your own.",
        examples=["out_of_stock"],
    )
    message: Annotated[str, Defined("failMessage", {"type": "string", **ref("textValue")})] = Field(
        description="Message for people. Secrets in it are masked.",
        examples=["${ctx.find.output.name} is sold out"],
    )
    class_: Annotated[Class | None, Given] = Field(
        default=None,
        alias="class",
        description=(
            "Class of the failure. Without it, the class of the code, or `permanent` for your own code."
        ),
        examples=["permanent"],
    )


class Fail(NodeDocument):
    kind = "fail"
    key = "fail"
    title = "Fail"
    description = (
        "Fails the saga with this code and message. There are no retries and no questions. No "
        "node can come after it."
    )
    icon = "✗"
    outline = ("([", "])")
    refusal = "a `fail` ends the saga: it takes only `after`, `when`, `join` and `description`"
    example: ClassVar[Mapping[str, Any]] = {
        "fail": {"code": "out_of_stock", "message": "${input.wine} is sold out"}
    }
    output: ClassVar[Mapping[str, Any]] = {"not": {}, "description": "No output: the saga ends."}
    familiar = "raise throw abort error failure"
    ends = True
    field = (Annotated[FailModel | None, Given], Field(default=None))
    model = FailModel
    inside = Words(
        keys={
            "code": "error error_code name",
            "message": "cause reason text description",
            "class": "type kind",
        }
    )

    def nearest_valid_form(self, value: Any) -> str:
        return f"write `fail: {{code: {value}, message: …}}`" if isinstance(value, str) else ""

    def values(self, node: NodeModel) -> Iterator[tuple[str, Any]]:
        yield "/fail/message", self.of(node).message

    def check(self, compiler: Compiler, name: str, node: NodeModel) -> Iterator[Problem]:
        yield from compiler.fails_with(f"/nodes/{name}/fail/code", self.of(node).code)

    def compile(self, compiler: Compiler, name: str, node: NodeModel) -> dict[str, Any]:
        fail: FailModel = self.of(node)
        kind = fail.class_ or (class_of(fail.code) if fail.code in CODES else PERMANENT)
        return {"kind": self.kind, "value": {"code": fail.code, "message": fail.message, "class": kind}}

    def summary(self, node: Mapping[str, Any], span: Callable[[int | None], str]) -> str:
        return f"fail with {node['code']}" if "code" in node else self.key
