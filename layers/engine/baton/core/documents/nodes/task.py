"""Syntax of a task: a tool, its arguments, and the reactions to a failed attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec.structs import replace
from pydantic import Field

from baton.core.documents.nodes.agent import approval_of, approval_problems, call_of, operations_argument
from baton.core.documents.nodes.base import (
    APPROVAL,
    COMPENSATE,
    FAILING,
    MAP,
    POLL,
    REPLAN,
    Compiler,
    KnownInterfaces,
    NodeDocument,
)
from baton.core.documents.nodes.undone import undo_problems, undos
from baton.core.documents.parts.failing import NONE
from baton.core.documents.parts.fields import Given
from baton.core.documents.parts.node import PERSON, ReplanModel
from baton.core.effects.operations import list_problems
from baton.core.effects.toolspec import ONCE, PURE, Approval
from baton.core.expressions import duration_text
from baton.core.failures.alternatives import misfit_of_result
from baton.core.failures.breakers import HOST
from baton.core.failures.policy import ANY, FAIL, FIXED, PolicyChange, RetryChange
from baton.core.graph.graph import CallbackTimes, Node, ReplanParts
from baton.core.limits import LONGEST_INVOCATION_MS
from baton.core.models.usage import REFUSED, TIMEOUT_MS, model_tool
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.parts.node import NodeModel
    from baton.core.effects.toolspec import ToolSpec

CORRECTIONS = 3


def replan_problems(compiler: Compiler, place: str, replan: ReplanModel, own: ToolSpec) -> Iterator[Problem]:
    """Yield the problems of a `replan` at a node whose tool is `own`."""
    problems = list(compiler.allows(f"{place}/tools", replan.tools))
    specs = compiler.matching(replan.tools)
    problems += list_problems(place, specs, replan.operations)
    yield from problems
    reasons = [why for spec in specs if (why := misfit_of_result(spec, own))]
    if not problems and len(reasons) == len(specs):
        why = f": {reasons[0]}" if reasons else ""
        yield Problem(
            f"{place}/tools",
            f"none of these tools can stand in for `{own.name}`{why}",
            "name one whose result is of the same kind",
        )


def replan_parts(
    compiler: Compiler, kind: str, name: str, replan: ReplanModel, own: ToolSpec, approval: Approval | None
) -> ReplanParts:
    """Return the parts of the graph for `replan`. `approval`: that of the step."""
    specs = compiler.matching(replan.tools)
    names = [spec.name for spec in specs]
    # Its failures ask no person: what is done about that of the step goes on.
    rule = PolicyChange(last=FAIL, retry=RetryChange(budget_ms=replan.within))
    again = PolicyChange(retry=RetryChange(max_attempts=CORRECTIONS + 1, backoff=FIXED, base_ms=0))
    asked = model_tool()
    said: dict[str, Any] = {
        "model": replan.model,
        "max_output": replan.max_output,
        "price": None if replan.price is None else replan.price.model_dump(exclude_none=True),
    }
    plan = Node(
        name=name,
        kind=kind,
        tool=asked.name,
        tool_version=asked.version,
        schema_hash=asked.schema_hash,
        effect=asked.effect,
        domain=asked.domain,
        cost=asked.cost,
        timeout_ms=min(replan.within, TIMEOUT_MS),
        arguments={
            **{key: value for key, value in said.items() if value is not None},
            "tool": own.name,
            "tools": names,
            **operations_argument(replan.operations),
            "alternatives": replan.alternatives,
            "steps": replan.steps,
        },
        output_schema=_answer(replan),
        failures={ANY: rule, REFUSED: again},
    )
    calls = []
    for spec in specs:
        call = call_of(compiler, kind, name, spec, replan.tools, replan.operations, failures={ANY: rule})
        # A registered alternative is no way around the list.
        ways = tuple(way for way in call.ways if not way.tool or way.tool in names)
        asks = call.approval if spec.effect == PURE else _asks(spec, own, approval)
        calls.append(replace(call, ways=ways, approval=asks))
    return ReplanParts(
        plan=plan,
        calls=tuple(calls),
        steps=replan.steps,
        within_ms=replan.within,
        repeatable=tuple(spec.name for spec in specs if spec.repeatable),
        by_person=replan.choose == PERSON,
    )


def _asks(spec: ToolSpec, own: ToolSpec, step: Approval | None) -> Approval:
    """Return the approval of a call in place of a step, which is as risky as the step for any tool."""
    step = step or Approval()
    return replace(
        step,
        by_tool=step.by_tool or spec.requires_approval,
        risk=step.risk or spec.risk,
        work_of=own.name,
    )


def _answer(replan: ReplanModel) -> dict[str, Any]:
    """Return the JSON Schema of the model's answer."""
    share = {"type": "number", "minimum": 0, "maximum": 1}
    ratio = {"type": "number", "minimum": 0}
    call = {"tool": {"type": "string"}, "arguments": {"type": "object"}}
    one = {
        "steps": {"type": "array", "minItems": 1, "maxItems": replan.steps, "items": _object(call)},
        "why": {"type": "string"},
        "trade_offs": {"type": "string"},
        "reliability": share,
        "cost": ratio,
        "latency": ratio,
        "fit": share,
        "preference": share,
    }
    many = {"type": "array", "minItems": 1, "maxItems": replan.alternatives, "items": _object(one)}
    return _object({"alternatives": many})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


_LONGER = "let a tool only start what takes longer, and let the node wait for its `callback`"


class Task(NodeDocument):
    kind = "task"
    key = "tool"
    title = "Task"
    description = (
        "Runs a tool (a Python function of the application) in a worker. The output is the "
        "tool's return value, or the output of its `callback`. `on_failure` decides what happens "
        "after a failed attempt. An attempt that the end of an invocation cuts off is tried "
        "again."
    )
    own = ("with", MAP, "timeout", "callback", "key", *FAILING, REPLAN, COMPENSATE, APPROVAL, POLL)
    example: ClassVar[Mapping[str, Any]] = {
        "tool": "table.hold",
        "with": {"party": 4, "user": "${saga.user}"},
        "timeout": "10s",
    }
    output: ClassVar[Mapping[str, Any]] = {
        "description": "Value that the tool returns, or that the callback brings."
    }
    familiar = "task tasks uses action func call run runs activity resource operator step lambda handler"
    field = (
        Annotated[str | None, Given],
        Field(default=None, description="Name of the tool to run.", examples=["table.hold"]),
    )

    def tool(self, node: NodeModel) -> str:
        return str(self.of(node))

    def taker(self, known: KnownInterfaces, node: NodeModel) -> ToolSpec | None:
        return known.tools.get(self.of(node))

    def gives(self, known: KnownInterfaces, node: NodeModel, declared: Any) -> Any:
        spec = None if node.callback else self.taker(known, node)
        return spec.result if declared is None and spec is not None else declared

    def values(self, node: NodeModel) -> Iterator[tuple[str, Any]]:
        if node.key is not None:
            yield "/key", node.key
        for name, value in (node.requires_approval.said() if node.requires_approval else {}).items():
            yield f"/requires_approval/{name}", value

    def check(self, compiler: Compiler, name: str, node: NodeModel) -> Iterator[Problem]:
        """Yield the problems of the node: a tool that does not exist or may not run, its arguments,
        and more time than any invocation has.
        """
        yield from compiler.exists(f"/nodes/{name}/tool", self.of(node))
        if node.poll is not None:
            yield from _poll_problems(name, node)
        if (spec := self.taker(compiler, node)) is None:
            return
        yield from compiler.takes(name, spec)
        if (node.callback or node.key) and not spec.sees_key:
            yield from _context_problems(name, node, spec)
        if node.breaker == HOST and "url" not in spec.parameters.get("properties", {}):
            message = f"`host` is that of the argument `url`, which `{spec.name}` does not have"
            yield Problem(f"/nodes/{name}/breaker", message, "write a name of your own, or `tool`")
        if node.replan is not None:
            yield from replan_problems(compiler, f"/nodes/{name}/{REPLAN}", node.replan, spec)
            if node.callback is not None:
                message = "a node whose tool hands its work over is done by that tool alone"
                yield Problem(f"/nodes/{name}/{REPLAN}", message, "leave out `replan`, or `callback`")
        yield from undo_problems(compiler, f"/nodes/{name}/{COMPENSATE}", node.compensate, spec)
        if node.requires_approval is not None:
            at = f"/nodes/{name}/requires_approval"
            yield from approval_problems(at, node.requires_approval, spec, compiler.risk_rules)
        if (node.timeout or spec.timeout_ms) > LONGEST_INVOCATION_MS:
            place, time = ("timeout", node.timeout) if node.timeout else ("tool", spec.timeout_ms)
            said = "" if node.timeout else f"; the timeout of `{spec.name}` is {duration_text(time)}"
            message = (
                f"no attempt can last longer than an invocation, {duration_text(LONGEST_INVOCATION_MS)}{said}"
            )
            yield Problem(f"/nodes/{name}/{place}", message, _LONGER)

    def compile(self, compiler: Compiler, name: str, node: NodeModel) -> dict[str, Any]:
        spec = compiler.tools[self.of(node)]
        asked = node.requires_approval
        approval = approval_of(asked, spec) if asked is not None or spec.may_ask else None
        replan = node.replan or (compiler.replan if node.callback is None else None)
        return {
            "kind": self.kind,
            "tool": spec.name,
            "tool_version": spec.version,
            "schema_hash": spec.schema_hash,
            "effect": spec.effect,
            "verified": spec.is_verified and node.callback is None,
            "arguments": {**node.with_, **compiler.among(spec)},
            "timeout_ms": node.timeout or spec.timeout_ms,
            "callback": _times(node),
            "key": node.key or "",
            "breaker": node.breaker or "",
            "domain": spec.domain,
            "cost": spec.cost,
            "approval": approval,
            "replan": replan and replan_parts(compiler, self.kind, name, replan, spec, approval),
            **(attempts := compiler.attempts(name, spec)),
            "undo": undos(
                compiler,
                self.kind,
                name,
                spec,
                node.compensate,
                (
                    *(way.tool for way in attempts["ways"] if way.tool and not way.first),
                    *compiler.stand_ins(name),
                ),
            ),
            "stays": node.compensate is not None and node.compensate.tool == NONE,
        }

    def summary(self, node: Mapping[str, Any], span: Callable[[int | None], str]) -> str:
        asks = {"always": ", asks first", "by_risk": ", asks by risk"}.get(str(node.get("approval")), "")
        return f"{node.get('tool') or self.kind}{asks}"


def _poll_problems(name: str, node: NodeModel) -> Iterator[Problem]:
    """Yield the problems of a node that is asked again."""
    if "loop" in node.model_fields_set:
        message = "a node that is asked again by `poll` is a loop by itself"
        yield Problem(f"/nodes/{name}/loop", message, "leave out one of the two")
    if node.map is not None:
        message = "`poll` asks for one answer, and `map` gives a list of them"
        hint = "give `map` to a node with `graph`, and `poll` to the task in that graph"
        yield Problem(f"/nodes/{name}/{POLL}", message, hint)


def _context_problems(name: str, node: NodeModel, spec: ToolSpec) -> Iterator[Problem]:
    """Yield the problems of a tool that takes no `Context`."""
    if node.callback is not None:
        message = f"`{spec.name}` takes no `Context`, so it cannot hand over the token of a callback"
        yield Problem(f"/nodes/{name}/callback", message, "give its function a parameter `context: Context`")
    if node.key is not None and spec.effect != ONCE:
        message = f"`{spec.name}` has no use for a key: its function takes no `Context`, and may act again"
        hint = f'give it a parameter `context: Context`, or `effect="{ONCE}"`'
        yield Problem(f"/nodes/{name}/key", message, hint)


def _times(node: NodeModel) -> CallbackTimes | None:
    given = node.callback
    return (
        None if given is None else CallbackTimes(timeout_ms=given.timeout, heartbeat_ms=given.heartbeat or 0)
    )
