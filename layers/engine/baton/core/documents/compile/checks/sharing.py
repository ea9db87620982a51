"""Which steps of a workflow share a key, so that one of them acts and the others are given its result.

It is known without running anything. Sharing is no mistake, so nothing here is a problem. What a key is made of is in
core/effects/keys/.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from baton.core.effects.keys import NODE, SAGA, KeyRule, canonical, names_of, parameters_of
from baton.core.effects.toolspec import PURE
from baton.core.expressions import expressions_in
from baton.core.expressions.durations import lasting

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.source import Tools
    from baton.core.effects.toolspec import ToolSpec
    from baton.core.graph.graph import Graph, Node


def shared_keys(graph: Graph, tools: Tools) -> Iterator[str]:
    """A sentence for each key that several steps of one saga have, whatever its values are."""
    groups: dict[bytes, list[Node]] = {}
    mapped = {node.name for node in graph.nodes if node.each is not None}
    for node in graph.work:
        spec = tools.get(node.tool)
        if spec is None or spec.effect == PURE or spec.key.strategy == NODE:
            continue
        rounds = (
            len(node.loops) if spec.key.strategy == SAGA else 0
        )  # the numbers of the rounds are in its keys
        same = [node.tool, rounds, _made_of(spec, node.arguments)]
        groups.setdefault(msgspec.json.encode(same, order="deterministic"), []).append(node)
    for nodes in groups.values():
        spec = tools[nodes[0].tool]
        if len(nodes) > 1:
            names = ", ".join(f"`{node.name}`" for node in nodes)
            yield f"{names} share a key of `{spec.name}` ({_words(spec.key)}): one acts, the others get its result"
        elif nodes[0].name in mapped and _is_same_for_each(spec, nodes[0]):
            name = f"all items of `{nodes[0].name}`"
            yield f"{name} share a key of `{spec.name}` ({_words(spec.key)}): one acts, the others get its result"
        elif _is_same_in_each_round(spec, nodes[0]):
            name = f"all rounds of `{nodes[0].name}`"
            yield f"{name} share a key of `{spec.name}` ({_words(spec.key)}): one acts, the others get its result"


def _made_of(spec: ToolSpec, arguments: Any) -> Any:
    """The templates of the values in the key."""
    parameters, names = parameters_of(spec.key, arguments, spec.parameters), names_of(spec.key)
    if names is None:
        return canonical(parameters)
    tops = {name.partition(".")[0] for name in names}
    return canonical({name: value for name, value in parameters.items() if name in tops})


def _is_same_in_each_round(spec: ToolSpec, node: Node) -> bool:
    if not node.loops or spec.key.strategy == SAGA:
        return False
    return not any(True for _ in expressions_in(_made_of(spec, node.arguments)))


def _is_same_for_each(spec: ToolSpec, node: Node) -> bool:
    if spec.key.strategy == SAGA:  # the index is in its keys
        return False
    roots = {getattr(path, "root", "") for _, path in expressions_in(_made_of(spec, node.arguments))}
    return roots.isdisjoint(("item", "index"))


def _words(rule: KeyRule) -> str:
    """The rule in short: how the author of the tool has begun it, and how long it holds."""
    times = [f"each {lasting(rule.window_ms)}"] if rule.window_ms else []
    times += [f"for {lasting(rule.keep_ms)}"] if rule.keep_ms else []
    return ", ".join((f"`Key.{rule.strategy}`", *times))
