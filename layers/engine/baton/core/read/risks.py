"""What is risky in a workflow, in words: the rules that hold for it."""

from __future__ import annotations

from baton.core.effects.risk import DEFAULT_RULES, rule_in_words
from baton.core.graph.graph import Graph


def rules_of(graph: Graph) -> list[str]:
    """The document's own rules, or the default ones where a tool declares a risk; none where neither is."""
    declares = any(node.approval is not None and node.approval.risk is not None for node in graph.work)
    rules = graph.risk if graph.risk is not None else DEFAULT_RULES if declares else ()
    return [rule_in_words(rule) for rule in rules]
