"""Handling of failures in Python: `caught`, and the types of `retry`, `on_failure`, `failover` and `replan`.

The compiler validates words and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, TypedDict

from baton.builder.conditions import (
    DocumentObject,
    Holds,
    Writer,
    condition,
    list_of,
    present_fields,
    write_object,
)
from baton.builder.references import Node
from baton.builder.values import Collector, Duration, Nodes

Tool = str | Callable[..., Any]
Code = str | int


class Retry(TypedDict, total=False):
    """Retry policy: a preset, and the values that differ from it."""

    preset: str
    max_attempts: int
    backoff: str
    base: Duration
    multiplier: float
    max_delay: Duration
    jitter: float
    schedule: Sequence[Duration]
    budget: Duration
    on: Code | Sequence[Code]
    never: Code | Sequence[Code]


Reaction = TypedDict(
    "Reaction",
    {
        "class": str,
        "ladder": str | Sequence[str],
        "at_most": Mapping[str, int],
        "retry": str | Retry,
        "hints": Tool | Sequence[Tool],
        "before_retry": Tool | Sequence[Tool],
        "message": str,
        "question": str,
        "severity": str,
        "may_change": str | Sequence[str],
        "escalate": Sequence[Mapping[str, Any]],
    },
    total=False,
)
Match = TypedDict(
    "Match",
    {
        "node": Nodes,
        "tool": Tool | Sequence[Tool],
        "domain": str | Sequence[str],
        "code": Code | Sequence[Code],
        "class": str | Sequence[str],
        "attempt": int | Mapping[str, int],
        "time": Mapping[str, Any] | Sequence[Mapping[str, Any]],
        "parameters": Mapping[str, Any],
        "if": Holds,
    },
    total=False,
)
Action = TypedDict(
    "Action", {"strategy": str, "hint": Tool, "tool": Tool, "with": Mapping[str, Any]}, total=False
)


class _Named(TypedDict):
    name: str
    then: str | Action


class Policy(_Named, total=False):
    """Reaction to failures that match a description."""

    when: Match
    message: str
    at_most: int


class _Suggested(TypedDict):
    model: str
    tools: Tool | Sequence[Tool]


class Replan(_Suggested, total=False):
    """A model's suggestion of calls in place of a failed tool."""

    operations: Mapping[str, str | Sequence[str]]
    alternatives: int
    steps: int
    within: Duration
    choose: Literal["best", "person"]
    max_output: int
    price: Mapping[str, float]


_Compensation = TypedDict(
    "_Compensation",
    {"tool": Tool, "with": Mapping[str, Any], "retry": str | Retry, "timeout": Duration},
    total=False,
)
Compensation = Tool | _Compensation
"""Compensation of a node: a tool, or a tool with further fields, or `none`."""

Retries = str | Retry
Reactions = str | Sequence[str] | Mapping[str, str | Sequence[str] | Reaction]
Policies = Sequence[Policy]


class Caught(DocumentObject):
    """Continuation after some failures, created by `caught`."""


Catch = Node | str | Sequence[Node | str] | Caught | Sequence[Caught]


def caught(
    then: Nodes,
    *,
    code: Code | Sequence[Code] | None = None,
    class_: str | Sequence[str] | None = None,
    if_: Holds | None = None,
) -> Caught:
    """Return a rule: if the node fails with this code and class and the condition holds, continue with a
    node, or with each of a list.
    """
    return Caught(
        (
            *present_fields(
                ("code", Collector.value, code), ("class", Collector.value, class_), ("if", condition, if_)
            ),
            ("then", Collector.nodes, then),
        )
    )


# ---- writing them ------------------------------------------------------------------------------------------------


def catch(made: Collector, path: str, value: Any) -> Any:
    """Write a node's `catch`: nodes, or rules."""
    if isinstance(value, Caught):
        return [write_object(made, f"{path}/0", value)]
    if isinstance(value, (list, tuple)) and any(isinstance(one, Caught) for one in value):
        return list_of(_rule)(made, path, value)
    return made.nodes(path, value)


def _rule(made: Collector, path: str, value: Any) -> Any:
    if isinstance(value, Caught):
        return write_object(made, path, value)
    return made.replace(
        path, f"`{made.shown(value)}` is not a rule", "write caught(node, …), or nodes alone in the list"
    )


def failure_fields(made: Collector, path: str, value: Any) -> Any:
    """Write `retry`, `failover`, `replan`, `requires_approval` and `escalate`, with their contents."""
    if isinstance(value, timedelta):
        return made.duration(path, value)
    if isinstance(value, (list, tuple)):
        return list_of(failure_fields)(made, path, value)
    return made.members(path, value, _by_key)


def _by_key(made: Collector, path: str, value: Any) -> Any:
    """Write the value of the key that ends the path."""
    return _INSIDE.get(path.rpartition("/")[2], failure_fields)(made, path, value)


def compensation(made: Collector, path: str, value: Any) -> Any:
    """Write the field `compensate`."""
    return failure_fields(made, path, value) if isinstance(value, Mapping) else made.tool(path, value)


def by_code(made: Collector, path: str, value: Any) -> Any:
    """Write the field `on_failure`."""
    return made.members(path, value, failure_fields)


def _tools(made: Collector, path: str, value: Any) -> Any:
    is_list = isinstance(value, (list, tuple))
    return list_of(Collector.tool)(made, path, value) if is_list else made.tool(path, value)


_INSIDE: Mapping[str, Writer] = {
    "if": condition,
    "node": Collector.nodes,
    "tool": _tools,
    "tools": _tools,
    "hint": _tools,
    "hints": _tools,
    "before_retry": _tools,
    "with": Collector.value,
    "parameters": Collector.value,
}
