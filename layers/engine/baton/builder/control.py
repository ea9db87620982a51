"""Where it goes on from a node, what a node waits for, and how far it may go, as Python says them.

`branch`, `choose`, `loop`, `join`, and the types of `limits` and `guardrails`. The compiler checks that the
nodes
exist and that the numbers make sense.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

from baton.builder.conditions import Holds, Part, condition, given, list_of, only
from baton.builder.references import Node, Reference
from baton.builder.values import Collector, Duration, Nodes
from baton.core.expressions import escape

Pause = Duration | Reference | Mapping[str, Any]
"""Between two rounds: a duration, what gives one, or `{"first": …,
"factor": …, "most": …}` for one that grows.
"""


class Rule(Part):
    """One rule of a branch; made by `rule`."""


class Branch(Part):
    """Which of some nodes come next; made by `branch` and `choose`."""


class Loop(Part):
    """Whether a node goes round again; made by `loop`."""


class Poll(Part):
    """How the tool of a task is asked again; made by `poll`."""


class Join(Part):
    """What a node waits for; made by `join`."""


def rule(if_: Holds, then: Nodes) -> Rule:
    """When the condition holds, on to a node, or to each of a list."""
    return Rule((("if", condition, if_), ("then", Collector.nodes, then)))


def branch(*rules: Rule, default: Nodes | None = None) -> Branch:
    """The first rule that holds says where to go on; if none does,
    `default`, or none of the nodes named here.
    """
    rule_list = list_of(only(Rule, "a rule", "write rule(condition, node)"))
    return Branch((("rules", rule_list, rules), *given(("default", Collector.nodes, default))))


def choose(value: Reference | str, among: Nodes, default: Nodes | None = None) -> Branch:
    """A value names the next node or nodes, all of them `among` these; if
    it is null or an empty list, `default`.
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
    """Another round while the condition holds: `back_to` an earlier node, or of this node alone.

    It goes on to `break_path` when it does not hold any more, and to `timeout_path` when the rounds are
    used up. Between rounds there is a `pause`; in the first one, `previous` of the node is `initial`.
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
    """The tool is asked again after a pause, until the condition holds; at most so many times, and so long."""
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
    """The writer of a pause: a duration, a reference or a text that gives one, or one that grows."""
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
    """Wait for all nodes before, for any, or for so many, of which some may
    fail: a number, or a share such as "25%".
    """
    return Join(
        given(
            ("wait_for", Collector.value, wait_for),
            ("tolerated_failures", Collector.value, tolerated_failures),
            ("rest", Collector.value, rest),
        )
    )


def join_or_short(made: Collector, path: str, value: Any) -> Any:
    """The writer of a node's `join`, which may be just what it waits for."""
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
    """The most there may be of each thing: a number alone, or with what happens beyond it."""

    fan_out: int | Count
    hops: int | Count
    wall_time: Duration | Time
    bytes: int | Bytes
    cost_usd: float | Cost
    tokens: int | Count


class Guardrails(TypedDict, total=False):
    """The only tools that may run, and for some nodes the only ones that may come next."""

    allowed_tools: str | Callable[..., Any] | Sequence[str | Callable[..., Any]]
    allowed_transitions: Mapping[str, Nodes]


def guardrails(made: Collector, path: str, value: Any) -> Any:
    """The writer of a document's `guardrails`."""
    if not isinstance(value, Mapping):
        return made.value(path, value)
    writers = {"allowed_tools": tools, "allowed_transitions": _transitions}
    return {
        key: writers.get(key, Collector.value)(made, f"{path}/{escape(key)}", item)
        for key, item in value.items()
    }


def tools(made: Collector, path: str, value: Any) -> Any:
    """The writer of tools: names, patterns and functions below `@tool`, one or a list."""
    is_list = isinstance(value, (list, tuple))
    return list_of(Collector.tool)(made, path, value) if is_list else made.tool(path, value)


def _transitions(made: Collector, path: str, value: Any) -> Any:
    return made.members(path, value, Collector.nodes)
