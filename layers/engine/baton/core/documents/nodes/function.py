"""Syntax of a workflow function: the name of a Python function under `@workflow`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, StringConstraints

from baton.core.documents.nodes.agent import call_of
from baton.core.documents.nodes.base import MAP, Compiler, KnownInterfaces, NodeDocument
from baton.core.documents.parts.fields import Given
from baton.core.expressions import nearest
from baton.core.failures.policy import ANY, FAIL, PolicyChange
from baton.core.graph.graph import FUNCTION, WHOLE_INPUT, WORKFLOW_NAME, FunctionParts, inner_name
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.parts.node import NodeModel
    from baton.core.effects.toolspec import ToolSpec


class Function(NodeDocument):
    kind = FUNCTION
    key = "function"
    title = "Function"
    description = (
        "Runs a Python function under `@workflow`, and records its steps, waits, questions and children. "
        "The output is the function's result. Without `with`, it gets the input of the saga."
    )
    icon = "λ"
    outline = ("[[", "]]")
    own = ("with",)
    example: ClassVar[Mapping[str, Any]] = {
        "function": "order-fulfilment",
        "with": {"order": "${input.order}"},
    }
    takes_signals = True
    output: ClassVar[Mapping[str, Any]] = {"description": "The result of the function."}
    refusal = "a function limits its own time: write `asyncio.timeout` in it, or `@workflow(…, timeout=…)`"
    familiar = "python code"
    field = (
        Annotated[Annotated[str, StringConstraints(pattern=WORKFLOW_NAME)] | None, Given],
        Field(
            default=None,
            description="Name of a Python function under `@workflow`.",
            examples=["order-fulfilment"],
        ),
    )

    def refuses(self, names: Collection[str]) -> str:
        if MAP in names:
            return f"`{MAP}` goes with the workflow of a function: write `workflow` in place of `function`"
        return super().refuses(names)

    def taker(self, known: KnownInterfaces, node: NodeModel) -> ToolSpec | None:
        return known.tools.get(self.of(node)) if "with_" in node.model_fields_set else None

    def gives(self, known: KnownInterfaces, node: NodeModel, declared: Any) -> Any:
        spec = known.tools.get(self.of(node))
        return declared if declared is not None or spec is None else spec.result

    def check(self, compiler: Compiler, name: str, node: NodeModel) -> Iterator[Problem]:
        spec = compiler.tools.get(self.of(node))
        if spec is None or spec.calls is None:
            known = [one for one, tool in compiler.tools.items() if tool.calls is not None]
            hint = nearest(self.of(node), known) or "write `@workflow` above an `async` function"
            if spec is not None:
                hint = f"`{spec.name}` is a tool: write `tool: {spec.name}`"
            yield Problem(f"/nodes/{name}/function", f"there is no function `{self.of(node)}`", hint)
            return
        for agent in spec.agents:
            if inner_name("", agent) not in compiler.children:
                message = f"`{spec.name}` has the agent `{agent}`, which is a part of its own workflow"
                yield Problem(f"/nodes/{name}/function", message, f"write `workflow: {spec.name}`")
        for tool in spec.calls:
            yield from compiler.exists(f"/nodes/{name}/function", tool)
        if "with_" in node.model_fields_set:
            yield from compiler.takes(name, spec)

    def compile(self, compiler: Compiler, name: str, node: NodeModel) -> dict[str, Any]:
        spec = compiler.tools[self.of(node)]
        rule = {ANY: PolicyChange(last=FAIL)}
        calls = tuple(
            call_of(compiler, self.kind, name, compiler.tools[tool], spec.calls or (), {}, failures=rule)
            for tool in spec.calls or ()
        )
        given = node.with_ if "with_" in node.model_fields_set else WHOLE_INPUT
        return {
            "kind": self.kind,
            "arguments": given,
            "function": FunctionParts(name=spec.name, calls=calls),
        }

    def summary(self, node: Mapping[str, Any], span: Callable[[int | None], str]) -> str:
        return f"function {node.get('function', '')}"
