"""A workflow that is a Python function: it asks for operations, and goes on with their results.

The code runs outside of the core (runtime/worker/functions.py). The function's state and its events are in
core/log/functions.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from baton.core.failures.policy import ANY, FAIL, PolicyChange, RetryChange
from baton.core.graph.graph import FunctionParts, Node
from baton.core.log import events as ev
from baton.core.log.functions import FunctionCall, Heard, RunningFunction
from baton.core.log.work import Open
from baton.core.nodes.base import Activation, Done, Failed, Moved, Next, NodeContext, Opened, UnfitError
from baton.core.nodes.task import TaskKind

TOOL_NOT_LISTED = "tool_not_listed"
_RULES = {"callback": {ANY: PolicyChange(last=FAIL, retry=RetryChange(max_attempts=1))}}
"""Rules of operations without a tool, by kind: a reported failure is a result of the function."""


class FunctionKind(TaskKind):
    """A function, whose items are the operations that it asks for: calls of tools, and nodes of other kinds.

    The failure of an operation is its result: the function goes on with it.
    """

    name = "function"
    is_of_saga = True

    def part(self, node: Node, work: Open | None, item: str) -> Node:
        asked = work.asked.get(item) if isinstance(work, RunningFunction) else None
        if asked is None:
            return node
        if asked.node:
            part = convert({"name": node.name, **asked.node}, Node)
            return replace(part, failures=_RULES[part.kind]) if part.kind in _RULES else part
        call = _parts(node).call(asked.tool)
        if call is None:  # a graph that was edited at a fork may not name it any more
            return node
        if asked.attempts:
            rule = PolicyChange(last=FAIL, retry=RetryChange(max_attempts=asked.attempts))
            call = replace(call, failures={ANY: rule})
        return replace(call, timeout_ms=asked.timeout_ms) if asked.timeout_ms else call

    def keeps_failure(self, item: str) -> bool:
        return bool(item)

    def begin(self, at: Activation, context: NodeContext) -> Next | None:
        if at.place.item:
            work = context.state.open[at.place.owner]
            assert isinstance(work, RunningFunction), "nothing else has operations"
            if at.node.function is None:
                if work.asked[at.place.item].in_memory:
                    context.ran(_call(context.function(at), at.place.owner, work, context))
                return super().begin(at, context)
            raise UnfitError(_not_listed(_parts(at.node), work.asked[at.place.item].tool))
        given, build = context.value(at), _parts(at.node).build
        return Opened(ev.FunctionBegan(**at.place.fields, given=given, at=context.now, build=build))

    def gives(self, at: Activation, context: NodeContext) -> Mapping[str, Any] | None:
        """Return the arguments of an operation."""
        work = context.state.open[at.place.owner]
        assert isinstance(work, RunningFunction), "nothing else has operations"
        asked = work.asked[at.place.item]
        return {} if asked.given is None else context.content(at, asked.given)

    def resume(self, at: Activation, work: Open, context: NodeContext) -> Next | None:
        if not isinstance(work, RunningFunction):
            return super().resume(at, work, context)
        if work.heard and not work.ended:
            return None
        items, parts = context.state.items, _parts(at.node)
        results = [
            Heard(
                item,
                work.asked[item].digest,
                0,
                items[f"{at.slot}#{item}"] or ev.Value(),
                failure,
                work.by.get(item, ""),
            )
            for item, failure in work.ended.items()
        ]
        progress, heard = context.ran(_call(parts, at.slot, work, context, results)), tuple(work.ended)
        if progress.failure is not None:
            return Failed(replace(progress.failure, node=at.node.name), is_attempt=True)
        if progress.output is not None:
            output = context.made(at, progress.output.v)
            return Done(ev.FunctionClosed(**at.place.fields, output=output, heard=heard))
        return Moved(
            ev.OperationsBegan(
                **at.place.fields,
                at=progress.at,
                heard=heard,
                operations=progress.operations,
                left=progress.left,
                segments=progress.segments,
                checkpoint=progress.checkpoint,
                checkpoints=progress.checkpoints,
                changes=progress.changes,
                published=progress.published,
            )
        )

    def node_view(self, node: Node) -> dict[str, Any]:
        parts = _parts(node)
        return {"function": parts.name, "tools": [call.tool for call in parts.calls]}

    def label(self, work: Open | None, item: str) -> str:
        asked = work.asked.get(item) if isinstance(work, RunningFunction) else None
        return (asked.label if asked is not None else "") or item

    def says(self, event: ev.Moving) -> tuple[str, str]:
        if not isinstance(event, ev.OperationsBegan):
            return "", ""
        names = ", ".join(f"`{one.label or one.item}`" for one in event.operations)
        return "", f"it asks for {names}" if names else "it waits for others"


def _call(
    parts: FunctionParts,
    slot: str,
    work: RunningFunction,
    context: NodeContext,
    results: Sequence[Heard] = (),
) -> FunctionCall:
    """Return the call of a function with these results; without any it only has to be in memory."""
    return FunctionCall(
        name=parts.name,
        slot=slot,
        branch=context.state.lineage.branch,
        version=context.state.version,
        now=context.now,
        work=work,
        results=tuple(results),
        calls=parts.calls,
    )


def _parts(node: Node) -> FunctionParts:
    assert node.function is not None, "the compiler gives it them"
    return node.function


def _not_listed(parts: FunctionParts, tool: str) -> ev.Failure:
    known = ", ".join(call.tool for call in parts.calls) or "none"
    text = f"`{parts.name}` may not call `{tool}`: the tools that its code names are {known}; "
    return ev.failed_with(TOOL_NOT_LISTED, f"{text}name others in `@workflow(…, tools=[…])`")
