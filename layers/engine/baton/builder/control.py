"""Continuation after a node, conditions for its start, and limits, in Python.

Contains `branch`, `choose`, `loop`, `join`, and the types of `limits` and `guardrails`. The compiler
validates names of nodes and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, NotRequired, TypedDict

from baton.builder.conditions import (
    DocumentObject,
    Holds,
    Writer,
    condition,
    list_of,
    only,
    present_fields,
    write_object,
)
from baton.builder.values import Collector, Duration, Node, Nodes, Reference
from baton.core.expressions import escape

Pause = Duration | Reference | Mapping[str, Any]
"""Delay between two rounds: a duration, a reference to one, or `{"first": …, "factor": …, "most": …}`."""


class Rule(DocumentObject):
    """One rule of a branch, created by `rule`."""


class Branch(DocumentObject):
    """A choice of the next nodes, created by `branch` and `choose`."""


class Loop(DocumentObject):
    """A loop, created by `loop`."""


class Poll(DocumentObject):
    """Repetition of a task's tool, created by `poll`."""


class Join(DocumentObject):
    """Condition for the start of a node with several predecessors, created by `join`."""


def rule(if_: Holds, then: Nodes) -> Rule:
    """Return a rule: if the condition holds, continue with a node, or with each of a list."""
    return Rule((("if", condition, if_), ("then", Collector.nodes, then)))


def branch(*rules: Rule, default: Nodes | None = None) -> Branch:
    """Return a branch: the first rule that holds selects the next nodes. If none holds, continue with
    `default`, or with none of the named nodes.
    """
    rule_list = list_of(only(Rule, "a rule", "write rule(condition, node)"))
    return Branch((("rules", rule_list, rules), *present_fields(("default", Collector.nodes, default))))


def choose(value: Reference | str, among: Nodes, default: Nodes | None = None) -> Branch:
    """Return a branch whose value names the next node or nodes, all of them in `among`. Null or an empty list
    selects `default`.
    """
    return Branch(
        (
            ("choose", Collector.value, value),
            ("among", Collector.nodes, among),
            *present_fields(("default", Collector.nodes, default)),
        )
    )


def loop(
    while_: Holds,
    *,
    max_iterations: int | None = None,
    back_to: Node | str | None = None,
    break_path: Nodes | None = None,
    timeout_path: Nodes | None = None,
    pause: Pause | None = None,
    initial: Any = None,
) -> Loop:
    """Return a loop that starts another round while the condition holds, from `back_to`, an earlier node, or
    of this node alone.

    The saga continues with `break_path` if the condition does not hold, and with `timeout_path` if the rounds
    are exhausted. `pause` is the delay between rounds. In the first round, `previous` of the node is
    `initial`.
    """
    return Loop(
        (
            ("while", condition, while_),
            *present_fields(
                ("max_iterations", Collector.value, max_iterations),
                ("back_to", Collector.node, back_to),
                ("break_path", Collector.nodes, break_path),
                ("timeout_path", Collector.nodes, timeout_path),
                ("pause", _pause, pause),
                ("initial", Collector.value, initial),
            ),
        )
    )


def poll(
    until: Holds,
    every: Pause,
    *,
    tries: int | None = None,
    within: Duration | None = None,
    initial: Any = None,
) -> Poll:
    """Return a poll: the tool is called again after a pause until the condition holds, at most `tries` times
    and `within` a time.
    """
    return Poll(
        (
            ("until", condition, until),
            ("every", _pause, every),
            *present_fields(
                ("tries", Collector.value, tries),
                ("within", Collector.duration, within),
                ("initial", Collector.value, initial),
            ),
        )
    )


def _pause(made: Collector, path: str, value: Any) -> Any:
    """Write a pause: a duration, a reference or a text that yields one, or a growing pause."""
    if not isinstance(value, Mapping):
        return made.duration(path, value)
    return _by_writers(made, path, value, {"first": Collector.duration, "most": Collector.duration})


def _by_writers(
    made: Collector, path: str, value: Mapping[str, Any], writers: Mapping[str, Writer]
) -> dict[str, Any]:
    return {
        key: writers.get(key, Collector.value)(made, f"{path}/{escape(key)}", item)
        for key, item in value.items()
    }


def join(
    wait_for: Literal["all", "any"] | int | None = None,
    *,
    tolerated_failures: int | str | None = None,
    rest: Literal["cancel", "run"] | None = None,
) -> Join:
    """Return a join that waits for all predecessors, for any, or for a number of them. `tolerated_failures`
    is a number, or a share such as "25%".
    """
    return Join(
        present_fields(
            ("wait_for", Collector.value, wait_for),
            ("tolerated_failures", Collector.value, tolerated_failures),
            ("rest", Collector.value, rest),
        )
    )


def join_or_short(made: Collector, path: str, value: Any) -> Any:
    """Write a node's `join`, which may be just the value of `wait_for`."""
    if isinstance(value, (str, int, float)):
        return made.value(path, value)
    return only(Join, "a join", 'write "any", a number, or join(…)')(made, path, value)


# ---- how far -----------------------------------------------------------------------------------------------------


class Count(TypedDict):
    max: int
    then: NotRequired[Literal["terminate", "throttle"]]


class Bytes(TypedDict):
    max: int
    then: NotRequired[Literal["terminate", "throttle", "summarise"]]


class Time(TypedDict):
    max: Duration
    then: NotRequired[Literal["terminate"]]


class RetryCount(TypedDict):
    max: int
    then: NotRequired[Literal["terminate"]]


class Cost(TypedDict):
    max: float
    then: NotRequired[Literal["terminate", "throttle"]]


class Limits(TypedDict, total=False):
    """Limits by resource: a number alone, or with the action at the limit."""

    fan_out: int | Count
    hops: int | Count
    wall_time: Duration | Time
    bytes: int | Bytes
    cost_usd: float | Cost
    tokens: int | Count
    retries: int | RetryCount
    retry_time: Duration | Time


class Guardrails(TypedDict, total=False):
    """The only tools that may run, and for some nodes the only ones that may follow."""

    allowed_tools: str | Callable[..., Any] | Sequence[str | Callable[..., Any]]
    allowed_transitions: Mapping[str, Nodes]


def guardrails(made: Collector, path: str, value: Any) -> Any:
    """Write a document's `guardrails`."""
    if not isinstance(value, Mapping):
        return made.value(path, value)
    return _by_writers(
        made, path, value, {"allowed_tools": tools_writer, "allowed_transitions": _transitions}
    )


def tools_writer(made: Collector, path: str, value: Any) -> Any:
    """Write tools: names, patterns and `@tool` functions, one or a list."""
    is_list = isinstance(value, (list, tuple))
    return list_of(Collector.tool)(made, path, value) if is_list else made.tool(path, value)


def calls_writer(made: Collector, path: str, value: Any) -> Any:
    """Write the `tools` of an agent: tools, and objects that are its other calls."""
    is_list = isinstance(value, (list, tuple))
    return list_of(_call)(made, path, value) if is_list else _call(made, path, value)


def _call(made: Collector, path: str, value: Any) -> Any:
    return failure_fields(made, path, value) if isinstance(value, Mapping) else made.tool(path, value)


def _transitions(made: Collector, path: str, value: Any) -> Any:
    return made.members(path, value, Collector.nodes)


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
        "expires": Duration,
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


_INSIDE: Mapping[str, Writer] = {
    "if": condition,
    "node": Collector.nodes,
    "tool": tools_writer,
    "tools": tools_writer,
    "hint": tools_writer,
    "hints": tools_writer,
    "before_retry": tools_writer,
    "with": Collector.value,
    "parameters": Collector.value,
}
