"""How a child workflow is written: the workflow to start, and its input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from baton.core.conditions.schemapaths import Schema, in_words
from baton.core.documents.nodes.base import COMPENSATE, MAP, Compiler, Known, NodeDocument
from baton.core.documents.nodes.undone import only_none
from baton.core.documents.parts.fields import Given, WorkflowReference
from baton.core.documents.parts.many import MOST_CHILDREN
from baton.core.effects.toolspec import PURE, ToolSpec
from baton.core.failures.codes import ENGINE
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.parts.node import NodeModel


class Child(NodeDocument):
    kind = "workflow"
    key = "workflow"
    title = "Child workflow"
    description = (
        "Starts a saga of another registered workflow and waits for its end, however long it takes. No "
        "invocation of this saga runs meanwhile. Its output is the result of the child; a child that fails, fails it. With "
        "`cancel_on` a signal can call the child off."
    )
    icon = "◆"
    outline = ('[["', '"]]')
    most_items = MOST_CHILDREN
    own = ("with", MAP, "cancel_on", COMPENSATE)
    takes_signals = True
    refusal = "a child workflow takes no `timeout` of the node; its own steps and waits have theirs"
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
            description="Name of the workflow to start, `NAME` for the version that is the newest when the node is "
            "reached, or `NAME@VERSION`. Not this workflow itself.",
            examples=["delivery", "delivery@2"],
        ),
    )

    def taker(self, known: Known, node: NodeModel) -> ToolSpec | None:
        """The child's input as parameters, where it is known to be an object."""
        child = str(self.of(node))
        if not isinstance(schema := known.children.get(child), dict):
            return None
        wanted = Schema(schema, schema).resolved()
        properties = wanted.value.get("properties") if isinstance(wanted.value, dict) else None
        if "object" not in wanted.types() or not isinstance(properties, dict):
            return None
        required = wanted.value.get("required")
        return ToolSpec(
            name=child,
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

    def values(self, node: NodeModel) -> Iterator[tuple[str, Any]]:
        yield from ()

    def check(self, compiler: Compiler, name: str, node: NodeModel) -> Iterator[Problem]:
        """Problems: a workflow that starts itself, and inputs that the child misses or does not take."""
        child = str(self.of(node))
        yield from only_none(
            f"/nodes/{name}/{COMPENSATE}", node.compensate, "the child undoes what it has done"
        )
        if child.partition("@")[0] == compiler.workflow:
            hint = "go round again with a `loop`, or name another workflow that starts this one"
            yield Problem(f"/nodes/{name}/workflow", "a workflow cannot start itself", hint)
        schema = compiler.children.get(child)
        types = Schema(schema, schema).resolved().types() if isinstance(schema, dict) else {"object"}
        if "object" not in types:
            message = f"`{child}` takes {in_words(frozenset(types))} as its input, and `with` is an object"
            yield Problem(f"/nodes/{name}", message, "let the input of the child be an object")
        elif (spec := self.taker(compiler, node)) is not None:
            yield from compiler.takes(name, spec)

    def never_fails_with(self, code: str) -> tuple[str, str] | None:
        """Codes with which something in the child may fail, and never the node that has started it."""
        if code in ENGINE:
            return None
        message = f"this never fits: a child that fails is `child_failed` here, also when a step of it failed with `{code}`"
        return message, "write `child_failed`, or catch it in the child"

    def compile(self, compiler: Compiler, name: str, node: NodeModel) -> dict[str, Any]:
        called = {"kind": self.kind, "workflow": self.of(node), "arguments": node.with_}
        if node.compensate is not None:
            called["stays"] = True
        return called | ({"signal": node.cancel_on} if node.cancel_on else {})

    def summary(self, node: Mapping[str, Any], span: Callable[[int | None], str]) -> str:
        return f"workflow {node.get('workflow', '')}"
