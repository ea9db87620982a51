"""What the outside sees of a saga: JSON made from state and entries. Times as ISO 8601, money in dollars."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from baton.core.events import Entry, Event
from baton.core.graph import Graph, Node
from baton.core.program import Program
from baton.core.state import State, node_of, status_of
from baton.core.toolspec import ToolSpec

_TIMES = frozenset({"at", "started_at", "ended_at", "until", "dead_until"})


def iso(milliseconds: int) -> str:
    """`2026-11-21T10:00:00.123Z`."""
    moment = datetime.fromtimestamp(milliseconds / 1_000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def saga_view(state: State, program: Program) -> dict[str, Any]:
    """What `GET /sagas/{id}` shows of a saga; `result` as the log has it: `v`, or `ref` and `size` of a blob."""
    return {
        "id": state.saga,
        "workflow": state.workflow,
        "graph": state.graph,
        "status": status_of(state, program.joins),
        "reason": _reason(state),
        "user": state.user,
        "version": state.version,
        "branch": state.branch,
        "created_at": iso(state.started_at),
        "updated_at": iso(state.last_at),
        "steps": state.steps,
        "active": [_active(state, program, slot) for slot in state.tokens],
        "cancelling": state.cancel is not None and state.ended is None,
        "result": msgspec.to_builtins(state.ended.output) if state.ended else None,
        "error": _error(state),
        "invocations": state.invocations,
        "revivals": state.revivals,
        "interruptions": state.interrupted,
    }


def _active(state: State, program: Program, slot: str) -> dict[str, Any]:
    node, iteration = node_of(slot)
    what = "joining"
    if slot in state.waits:
        what = "waiting"
    elif slot in state.children:
        what = "child"
    elif len(state.tokens[slot]) >= program.joins[node]:
        what = "ready"
    shown: dict[str, Any] = {"node": node, "iteration": list(iteration), "state": what}
    if slot in state.waits:
        wait = state.waits[slot]
        shown |= {"signal": wait.signal or None, "until": iso(wait.until) if wait.until is not None else None}
    if slot in state.children:
        shown["saga"] = state.children[slot].saga
    return shown


def _reason(state: State) -> str | None:
    if state.ended is None and state.parked is not None:
        return f"{state.parked.code}: {state.parked.message}"
    return None


def _error(state: State) -> dict[str, str] | None:
    failure = state.ended.failure if state.ended else state.failure
    if failure is None:
        return None
    return {"code": failure.code, "message": failure.message, "node": failure.node}


def graph_view(graph: Graph) -> dict[str, Any]:
    """A workflow's shape: what it takes, its nodes in an order in which they can run, and its edges."""
    return {
        "input": graph.input_schema,
        "nodes": [_node_view(node) for node in graph.nodes],
        "edges": [{"from": before, "to": node.name} for node in graph.nodes for before in node.before],
    }


def _node_view(node: Node) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": node.name, "kind": node.kind}
    if node.tool:
        shown |= {"tool": node.tool, "tool_version": node.tool_version, "effect": node.effect}
    if node.timeout_ms:
        shown["timeout_ms"] = node.timeout_ms
    if node.kind == "wait":
        shown |= {"wait_ms": node.wait_ms, "signal": node.signal or None}
    if node.workflow:
        shown["workflow"] = node.workflow
    return shown


def tool_view(spec: ToolSpec) -> dict[str, Any]:
    """A tool as `GET /tools` shows it; `timeout_ms` None: the engine's default."""
    return {
        "name": spec.name,
        "version": spec.version,
        "description": spec.description,
        "effect": spec.effect,
        "timeout_ms": spec.timeout_ms or None,
        "input": spec.parameters,
        "output": spec.result,
        "schema_hash": spec.schema_hash,
    }


def entry_view(entry: Entry) -> dict[str, Any]:
    """An entry as `GET /sagas/{id}/events` shows it; every field of the log, defaults included."""
    return {
        "format": entry.format,
        "version": entry.version,
        "branch": entry.branch,
        "at": iso(entry.at),
        "epoch": entry.epoch,
        "invocation": entry.invocation,
        "cold": entry.cold,
        "traceparent": entry.traceparent,
        "events": [_event_view(event) for event in entry.events],
    }


def _event_view(event: Event) -> dict[str, Any]:
    shown: dict[str, Any] = {"kind": event.__struct_config__.tag}
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if name in _TIMES and isinstance(value, int):
            shown[name] = iso(value)
        elif name == "emits":
            shown[name] = [
                {"from": token.src, "to": token.dst, "iteration": list(token.iteration), "alive": token.alive}
                for token in value
            ]
        else:
            plain = msgspec.to_builtins(value)
            shown[name] = list(plain) if isinstance(plain, tuple) else plain
    return shown
