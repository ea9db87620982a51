"""What a document says of the models that it asks: which, with how many tools, how far, and for how much.

Pure. Prices that only the deployment knows are not looked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from baton.words.text import counted

if TYPE_CHECKING:
    from baton.core.graph.graph import Graph, Node


def asked(graph: Graph) -> list[dict[str, Any]]:
    """For each node that asks a model, also of the graphs that the document names: `node`, `model`, `fallbacks`, `max_output`, the limits of an agent, and what it may cost.

    `replan`: it asks what could be done in its place.

    `answers_usd`: what all its answers cost at most by the price in the document, corrected ones included, None without one; `cost_usd`: its limit, or
    its document's.
    """
    from baton.core.models.tool import MODEL

    steps = [(node, node if node.agent is None else node.agent.turn) for node in graph.work]
    # When nothing else has helped.
    steps += [(node, node.replan.plan) for node in graph.nodes if node.replan is not None]
    own = [_asked(graph, node, step) for node, step in steps if step.tool == MODEL]
    return own + [one for inner in graph.graphs.values() for one in asked(inner)]


def _asked(graph: Graph, node: Node, step: Node) -> dict[str, Any]:
    from baton.core.models.tool import REFUSED
    from baton.core.models.usage import Price, most_of
    from baton.core.money import MICRO
    from baton.runtime.models.model_request import USUAL_OUTPUT

    given: Mapping[str, Any] = node.arguments if node.replan is None else step.arguments
    found: dict[str, Any] = {"node": node.name, "model": given["model"]}
    found["fallbacks"] = [way.arguments["model"] for way in step.ways if "model" in way.arguments]
    most = found["max_output"] = int(given.get("max_output") or USUAL_OUTPUT)
    turns = 1
    if (parts := node.agent) is not None:
        turns = parts.turns
        found |= {
            "tools": [call.tool for call in parts.calls],
            "turns": turns,
            "calls": parts.calls_in_all,
            "calls_in_a_turn": parts.calls_in_a_turn,
            "tokens": parts.tokens or None,
        }
    if node.replan is not None:
        found |= {"replan": True, "tools": [call.tool for call in node.replan.calls]}
    price, again = given.get("price"), step.failures[REFUSED].retry
    answers = turns * ((again.max_attempts if again is not None else 0) or 1)
    found["answers_usd"] = most_of(Price(**price), 0, answers * most) / MICRO if price else None
    caps = [its.limits["cost"].most / MICRO for its in (node, graph) if "cost" in its.limits]
    found["cost_usd"] = min(caps, default=None)
    return found


def told(one: Mapping[str, Any]) -> str:
    """A line about one of them."""
    from baton.core.money import usd

    models = ", else ".join([one["model"], *one["fallbacks"]])
    answers = f"{one['max_output']:,} tokens of an answer"
    said = [answers]
    if "turns" in one:
        calls = f"{counted(one['calls'], 'call')} ({one['calls_in_a_turn']} of one answer)"
        said = [counted(one["turns"], "turn"), calls, answers]
        said += [f"{one['tokens']:,} tokens in all"] if one["tokens"] else []
        models += f" with {counted(len(one['tools']), 'tool') if one['tools'] else 'no tools'}"
    parts = [f"{models}: at most {', '.join(said)}"]
    if one["answers_usd"] is not None:
        parts.append(f"its answers cost at most {usd(one['answers_usd'])}")
    if one["cost_usd"] is not None:
        parts.append(f"its limit is {usd(one['cost_usd'])}")
    when = ", when it has failed," if one.get("replan") else ""
    return f"`{one['node']}`{when} asks {'; '.join(parts)}"
