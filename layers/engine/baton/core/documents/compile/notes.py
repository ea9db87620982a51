"""Notes to the author: behaviour that may surprise, and facts that only the deployment knows.
None is a problem.

Problems, for which a document is refused, are elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import msgspec

from baton.core.effects.keys import NODE, SAGA, KeyRule, canonical, parameter_names, parameters_of
from baton.core.effects.toolspec import PURE
from baton.core.expressions import duration_text, expressions_in
from baton.core.failures.policy import ANY, FAIL
from baton.core.graph.graph import graph_name
from baton.core.read.places import names_in_words

if TYPE_CHECKING:
    from baton.core.documents.compile.source import Tools
    from baton.core.effects.toolspec import ToolSpec
    from baton.core.failures.policy import Rules
    from baton.core.graph.graph import Graph, Node


def shared_keys(graph: Graph, tools: Tools) -> Iterator[str]:
    """Yield a sentence for each key that several steps of one saga have, whatever its values are."""
    groups: dict[bytes, list[Node]] = {}
    mapped = {node.name for node in graph.nodes if node.each is not None}
    for node in graph.work:
        spec = tools.get(node.tool)
        if spec is None or node.key or spec.effect == PURE or spec.key.strategy == NODE:
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
    """Return the templates of the values in the key."""
    parameters, names = parameters_of(spec.key, arguments, spec.parameters), parameter_names(spec.key)
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
    """Return the rule in short: how the author of the tool has begun it, and how long it holds."""
    times = [f"each {duration_text(rule.window_ms)}"] if rule.window_ms else []
    times += [f"for {duration_text(rule.keep_ms)}"] if rule.keep_ms else []
    return ", ".join((f"`Key.{rule.strategy}`", *times))


MOST_NOTES = 100
_NEAR = 0.7


def notes_of(
    graph: Graph, tools: Tools, *, invocation_ms: int, unknown: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Return the notes on a graph, a sentence for each.
    `invocation_ms`: the time of an invocation of the worker. `unknown`: by reference, the note on children
    that do not exist.
    """
    said = unknown or {}
    found = list(_notes_of(graph, tools, invocation_ms, said))
    for name, inner in graph.graphs.items():
        found += (f"in the graph `{name}`: {note}" for note in _notes_of(inner, tools, invocation_ms, said))
    found += (f"no node starts the graph `{name}`" for name in _unused(graph))
    if graph.handler is not None and graph.handler.workflow in said:
        found.append(f"the failure handler is `{graph.handler.workflow}`: {said[graph.handler.workflow]}")
    return tuple(found[:MOST_NOTES])


def _notes_of(graph: Graph, tools: Tools, invocation_ms: int, said: Mapping[str, str]) -> Iterator[str]:
    yield from shared_keys(graph, tools)
    yield from _too_long(graph, invocation_ms)
    yield from _skippable(graph)
    yield from _left_standing(graph)
    for node in graph.nodes:
        for child in node.starts:
            if child in said:
                yield f"`{node.name}` starts `{child}`: {said[child]}"


def _unused(graph: Graph) -> Iterator[str]:
    """Yield the named graphs that nothing starts. The code of a function starts its agents."""
    if any(node.function for node in graph.nodes):
        return iter(())
    used = {name for one in (graph, *graph.graphs.values()) for node in one.nodes for name in node.starts}
    used |= set() if graph.handler is None else {graph.handler.workflow}
    return (name for name, inner in graph.graphs.items() if inner.name not in used)


def children_of(graph: Graph) -> tuple[str, ...]:
    """Return the registered workflows that a graph starts, as nodes refer to them, each once;
    those that its named graphs start, too.
    """
    handler = () if graph.handler is None else (graph.handler.workflow,)
    graphs = (graph, *graph.graphs.values()) if graph.graphs else (graph,)
    named = (*(name for one in graphs for node in one.nodes for name in node.starts), *handler)
    return tuple(dict.fromkeys(name for name in named if name and not graph_name(name)))


def no_such_child(reference: str, known: Collection[str]) -> str:
    """Return the note about a child whose name is not known."""
    near = get_close_matches(reference.partition("@")[0], known, n=1, cutoff=_NEAR)
    hint = f"did you mean `{near[0]}`?" if near else "register it before a saga comes there"
    return f"there is no workflow of that name; {hint}"


def _skippable(graph: Graph) -> Iterator[str]:
    """Yield failures without a handler when the conditions of their handlers do not hold."""
    asking = {node.name for node in graph.nodes if node.when is not None}
    for node in graph.nodes:
        for then in dict.fromkeys(rule.then for rule in node.catch):
            if asking.issuperset(then):
                yield (
                    f"`{node.name}` catches a failure with {names_in_words(then)}: if `when` says no there, nothing runs and the "
                    f"saga goes on. To let `{node.name}` fail then, write the condition as `if` in its `catch`; to handle "
                    "the failure all the same, add a handler without `when`"
                )


def _left_standing(graph: Graph) -> Iterator[str]:
    """Name the steps that something undoes, and that a saga that fails
    leaves as it is, because `on_failure: fail` says so.
    """
    undone = [node.name for node in graph.nodes if node.has_reversible]
    # A step that comes before all of them fails when there is nothing to undo.
    behind = [_before(graph, name) for name in undone]
    uncaught = [
        node
        for node in graph.nodes
        if (node.work.tool or node.work.workflow)
        and not any(rule.fits_all for rule in node.catch)
        and not all(node.name in one for one in behind)
    ]
    left = f"undoes nothing when the saga fails, though something undoes {names_in_words(undone)}: write `on_failure: rollback` to have that undone"
    if _fails(graph.failures) and any(not node.work.failures for node in uncaught):
        yield f"`on_failure: fail` of the document {left}"
    if names := [node.name for node in uncaught if _fails(node.work.failures)]:
        yield f"`on_failure: fail` of {names_in_words(names)} {left}"


def _before(graph: Graph, name: str) -> set[str]:
    """Return the nodes that are over when this one runs, and itself: its own failure leaves nothing of it."""
    before, found, left = {node.name: node.before for node in graph.nodes}, {name}, [name]
    while left:
        news = set(before[left.pop()]) - found
        found |= news
        left += news
    return found


def _fails(rules: Rules) -> bool:
    return ANY in rules and rules[ANY].last == FAIL


def _too_long(graph: Graph, invocation_ms: int) -> Iterator[str]:
    """Yield a sentence for each time that is too long: often it is that of one tool,
    which many nodes call.
    """
    by_timeout: dict[int, list[str]] = {}
    for node in graph.work:
        if node.timeout_ms > invocation_ms and not node.workflow:
            by_timeout.setdefault(node.timeout_ms, []).append(node.name)
    for timeout_ms, names in by_timeout.items():
        yield (
            f"{names_in_words(names)} may take {duration_text(timeout_ms)}, and an invocation of the worker lasts "
            f"{duration_text(invocation_ms)}: an attempt is cut off with it. Lower the timeout, or raise `WorkerTimeout`"
        )
