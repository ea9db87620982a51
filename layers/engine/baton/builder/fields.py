"""What nodes and documents can say besides what they are: the keywords of the builder's calls, and how each is written.

The calls are in workflow.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, cast

from baton.builder.conditions import Holds, condition
from baton.builder.control import Branch, Join, Limits, Loop, Poll, guardrails, join_or_short
from baton.builder.failing import Catch, Policies, Reactions, Retries, by_code, catch, compensation, said
from baton.builder.parts import Writer, only, schema, schema_by_name
from baton.builder.values import Collector, Duration, Nodes


class NodeFields(TypedDict, total=False):
    """What a node of any kind can have. None is the same as leaving it out."""

    after: Nodes | None
    when: Holds | None
    branch: Branch | None
    loop: Loop | None
    poll: Poll | None
    join: Join | Literal["all", "any"] | int | None
    map: Any
    catch: Catch | None
    output_schema: object
    limits: Limits | None
    description: str | None


class ChildFields(NodeFields, total=False):
    """What can be said of a child workflow, and of any node. `input`: all of its input, in place of `with_`; `cancel_on`: the name of a
    signal that cancels it."""

    input: object
    cancel_on: str | None
    timeout: Duration | None
    retry: Retries | None
    on_failure: Reactions | None
    compensate: str | None


OF_CHILD = ("input", "cancel_on", "timeout", "retry", "on_failure", "compensate")


def of_child(
    more: ChildFields, with_: Mapping[str, Any] | None
) -> tuple[NodeFields, Mapping[str, Any] | None, dict[str, Any]]:
    """What any node has of it, the input, and the rest."""
    said: dict[str, Any] = {**more}
    own = {name: said.pop(name) for name in OF_CHILD if name in said}
    return cast("NodeFields", said), with_, own


FIELDS: Mapping[str, Writer] = {
    "with": Collector.value,
    "input": Collector.value,
    "cancel_on": Collector.value,
    "after": Collector.nodes,
    "when": condition,
    "timeout": Collector.duration,
    "branch": only(Branch, "a branch", "write branch(rule(condition, node), …) or choose(value, among)"),
    "loop": only(Loop, "a loop", "write loop(condition, …)"),
    "poll": only(Poll, "a poll", "write poll(condition, every)"),
    "join": join_or_short,
    "map": Collector.value,
    "retry": said,
    "on_failure": by_code,
    "failover": said,
    "breaker": said,
    "replan": said,
    "compensate": compensation,
    "requires_approval": said,
    "catch": catch,
    "output_schema": schema,
    "limits": Collector.measures,
    "description": Collector.value,
}

HEAD: Mapping[str, Writer] = {
    "input": schema,
    "schemas": schema_by_name,
    "timeout": Collector.duration,
    "limits": Collector.measures,
    "guardrails": guardrails,
    "retry": said,
    "on_failure": by_code,
    "failover": said,
    "replan": said,
    "compensate": Collector.value,
    "risk": Collector.value,
    "failure_handler": said,
}


class Prices(TypedDict, total=False):
    """What a million tokens cost, in dollars."""

    input: float
    output: float
    cached: float


class Summaries(TypedDict, total=False):
    """Which model summarises what does not fit into a request of an agent, and in how many tokens."""

    model: str
    max_output: int


class Asking(NodeFields, total=False):
    """What can be said of the model that a node asks, and of any node. None is the same as leaving it out."""

    instructions: Any
    fallbacks: Sequence[str] | None
    max_output: int | None
    temperature: float | None
    corrections: int | None
    price: Prices | None
    background: bool | None
    timeout: Duration | None
    retry: Retries | None
    on_failure: Reactions | None
    failover: Policies | None
    breaker: str | None


OF_MODEL = frozenset(
    {"instructions", "fallbacks", "max_output", "temperature", "corrections", "price", "background"}
)
"""Of these, what stands with the model; the rest stands with the node."""


def check_said(said: Mapping[str, Any], known: type) -> None:
    """Raises `TypeError` for a keyword that a node of this kind has not."""
    for key in said.keys() - known.__annotations__.keys():
        from baton.core.expressions.spelling import nearest

        hint = nearest(key, known.__annotations__)
        raise TypeError(f"`{key}` cannot be said of this node{hint and f'; {hint}'}")
