"""How a task is written: a tool, its arguments, and what happens when an attempt fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from baton.core.documents.nodes.base import FAILING, Compiler, Known, NodeDocument
from baton.core.documents.parts.fields import Given
from baton.core.expressions.durations import lasting
from baton.core.limits import LONGEST_INVOCATION_MS
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.parts.node import NodeModel
    from baton.core.effects.toolspec import ToolSpec

_LONGER = "let a tool only start what takes longer, and `wait` for a `signal` of its end"


class Task(NodeDocument):
    kind = "task"
    key = "tool"
    title = "Task"
    description = (
        "Runs a tool, a Python function of the application, in a worker. Its output is what the tool "
        "returns. What is done when an attempt fails is on [failures.md](failures.md); an attempt cut off by the end of "
        "an invocation is tried again."
    )
    own = ("with", "timeout", *FAILING)
    example: ClassVar[Mapping[str, Any]] = {
        "tool": "table.hold",
        "with": {"party": 4, "user": "${saga.user}"},
        "timeout": "10s",
    }
    output: ClassVar[Mapping[str, Any]] = {"description": "What the tool returns."}
    familiar = (
        "task tasks uses action function func call run runs activity resource operator step lambda handler"
    )
    field = (
        Annotated[str | None, Given],
        Field(default=None, description="Name of the tool to run.", examples=["table.hold"]),
    )

    def tool(self, node: NodeModel) -> str:
        return str(self.of(node))

    def taker(self, known: Known, node: NodeModel) -> ToolSpec | None:
        return known.tools.get(self.of(node))

    def gives(self, known: Known, node: NodeModel, declared: Any) -> Any:
        spec = self.taker(known, node)
        return spec.result if declared is None and spec is not None else declared

    def values(self, node: NodeModel) -> Iterator[tuple[str, Any]]:
        yield from ()

    def check(self, compiler: Compiler, name: str, node: NodeModel) -> Iterator[Problem]:
        """A tool that does not exist or may not run, its arguments, and more time than any invocation has."""
        yield from compiler.exists(f"/nodes/{name}/tool", self.of(node))
        if (spec := self.taker(compiler, node)) is None:
            return
        yield from compiler.takes(name, spec)
        if (node.timeout or spec.timeout_ms) > LONGEST_INVOCATION_MS:
            place, time = ("timeout", node.timeout) if node.timeout else ("tool", spec.timeout_ms)
            said = "" if node.timeout else f"; the timeout of `{spec.name}` is {lasting(time)}"
            message = f"no attempt can last longer than an invocation, {lasting(LONGEST_INVOCATION_MS)}{said}"
            yield Problem(f"/nodes/{name}/{place}", message, _LONGER)

    def compile(self, compiler: Compiler, name: str, node: NodeModel) -> dict[str, Any]:
        spec = compiler.tools[self.of(node)]
        return {
            "kind": self.kind,
            "tool": spec.name,
            "tool_version": spec.version,
            "schema_hash": spec.schema_hash,
            "effect": spec.effect,
            "arguments": node.with_,
            "timeout_ms": node.timeout or spec.timeout_ms,
            "domain": spec.domain,
            "cost": spec.cost,
            **compiler.attempts(name, spec),
        }

    def summary(self, node: Mapping[str, Any], span: Callable[[int | None], str]) -> str:
        return str(node.get("tool") or self.kind)
