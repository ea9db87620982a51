"""What `replan` of a task becomes in a graph, and what can be wrong with it. Its shape is in parts/replan.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from baton.core.documents.nodes.calls import call_of, listed
from baton.core.documents.parts.replan import PERSON, ReplanModel
from baton.core.effects.approvals import Approval
from baton.core.effects.operations import list_problems
from baton.core.effects.toolspec import PURE
from baton.core.failures.alternatives import misfit_of_result
from baton.core.failures.policy import ANY, FAIL, Change
from baton.core.failures.retry import FIXED, RetryChange
from baton.core.graph.graph import Node, ReplanParts
from baton.core.models.tool import REFUSED, TIMEOUT_MS, model_tool
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.nodes.base import Compiler
    from baton.core.effects.toolspec import ToolSpec

CORRECTIONS = 3


def replan_problems(compiler: Compiler, place: str, replan: ReplanModel, own: ToolSpec) -> Iterator[Problem]:
    """At a node whose tool is `own`."""
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
    """What stands for it in the graph. `approval`: that of the step."""
    specs = compiler.matching(replan.tools)
    names = [spec.name for spec in specs]
    # Its failures ask no person: what is done about that of the step goes on.
    rule = Change(last=FAIL, retry=RetryChange(budget_ms=replan.within))
    again = Change(retry=RetryChange(max_attempts=CORRECTIONS + 1, backoff=FIXED, base_ms=0))
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
            **listed(replan.operations),
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
    """What acts in place of a step is as risky as the step, whatever its tool says of itself."""
    step = step or Approval()
    return replace(
        step,
        by_tool=step.by_tool or spec.requires_approval,
        risk=step.risk or spec.risk,
        work_of=own.name,
    )


def _answer(replan: ReplanModel) -> dict[str, Any]:
    """The JSON Schema of what the model answers."""
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
