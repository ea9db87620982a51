"""Continuation after a node, conditions for its start, and limits, in Python.

Contains `branch`, `choose`, `loop`, `join`, and the types of `limits` and `guardrails`. The compiler
validates names of nodes and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

from baton.builder.conditions import Holds, Part, condition, given, list_of, only
from baton.builder.references import Node, Reference
from baton.builder.values import Collector, Duration, Nodes
from baton.core.expressions import escape

Pause = Duration | Reference | Mapping[str, Any]
"""Delay between two rounds: a duration, a reference to one, or `{"first": …, "factor": …, "most": …}`."""


class Rule(Part):
    """One rule of a branch, created by `rule`."""


class Branch(Part):
    """A choice of the next nodes, created by `branch` and `choose`."""


class Loop(Part):
    """A loop, created by `loop`."""


class Poll(Part):
    """Repetition of a task's tool, created by `poll`."""


class Join(Part):
    """Condition for the start of a node with several predecessors, created by `join`."""


def rule(if_: Holds, then: Nodes) -> Rule:
    """Return a rule: if the condition holds, continue with a node, or with each of a list."""
    return Rule((("if", condition, if_), ("then", Collector.nodes, then)))


def branch(*rules: Rule, default: Nodes | None = None) -> Branch:
    """Return a branch: the first rule that holds selects the next nodes. If none holds, continue with
    `default`, or with none of the named nodes.
    """
    rule_list = list_of(only(Rule, "a rule", "write rule(condition, node)"))
    return Branch((("rules", rule_list, rules), *given(("default", Collector.nodes, default))))


def choose(value: Reference | str, among: Nodes, default: Nodes | None = None) -> Branch:
    """Return a branch whose value names the next node or nodes, all of them in `among`. Null or an empty list
    selects `default`.
    """
    return Branch(
        (
            ("choose", Collector.value, value),
            ("among", Collector.nodes, among),
            *given(("default", Collector.nodes, default)),
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
            *given(
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
            *given(
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
    writers = {"first": Collector.duration, "most": Collector.duration}
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
        given(
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


class Guardrails(TypedDict, total=False):
    """The only tools that may run, and for some nodes the only ones that may follow."""

    allowed_tools: str | Callable[..., Any] | Sequence[str | Callable[..., Any]]
    allowed_transitions: Mapping[str, Nodes]


def guardrails(made: Collector, path: str, value: Any) -> Any:
    """Write a document's `guardrails`."""
    if not isinstance(value, Mapping):
        return made.value(path, value)
    writers = {"allowed_tools": tools, "allowed_transitions": _transitions}
    return {
        key: writers.get(key, Collector.value)(made, f"{path}/{escape(key)}", item)
        for key, item in value.items()
    }


def tools(made: Collector, path: str, value: Any) -> Any:
    """Write tools: names, patterns and `@tool` functions, one or a list."""
    is_list = isinstance(value, (list, tuple))
    return list_of(Collector.tool)(made, path, value) if is_list else made.tool(path, value)


def _transitions(made: Collector, path: str, value: Any) -> Any:
    return made.members(path, value, Collector.nodes)
