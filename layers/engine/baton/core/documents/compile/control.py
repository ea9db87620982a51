"""Checks of a document's edges, loops, joins and limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from baton.core.conditions import ConditionError, judge, names_of
from baton.core.conditions.model import AllOf, AnyOf, Condition, Matches, Not, Python
from baton.core.documents.compile.flow import (
    Flow,
    catch_targets,
    caught_ways,
    chosen,
    in_most,
    least_ways,
    left_by,
    listed_names,
    most_ways,
)
from baton.core.documents.compile.source import Source
from baton.core.expressions import Path, escape
from baton.core.graph.graph import graph_name
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.models import NodeModel


def check_bounds(source: Source) -> Iterator[Problem]:
    """Yield the violations of `guardrails.allowed_transitions`, an agent's `among` and `limits.fan_out`."""
    yield from _transitions(source)
    for name, node in source.nodes.items():
        if source.kinds[name].chooses and node.branch is not None and node.branch.choose is not None:
            yield from _outside_of_among(source, name, node)
        yield from _fan_out(source, name, node)


def _transitions(source: Source) -> Iterator[Problem]:
    nodes = source.nodes
    allowed = source.model.guardrails.allowed_transitions if source.model.guardrails is not None else {}
    for src, receivers in allowed.items():
        place = f"/guardrails/allowed_transitions/{src}"
        for where, name in ((place, src), *listed_names(place, receivers)):
            if name not in nodes:
                yield Problem(where, f"there is no node `{name}`", source.hint(name, nodes))
        if src not in nodes:
            continue
        taken = [(dst, source.edges.written[src, dst]) for dst in source.edges.after[src]]
        if (loop := nodes[src].loop) is not None:
            where = f"/nodes/{src}/loop" + ("/back_to" if loop.back_to is not None else "")
            taken.append((loop.back_to or src, where))
        for dst, where in taken:
            if dst not in receivers:
                message = (
                    f"`{src}` may not go on to `{dst}`: `guardrails.allowed_transitions` does not name it"
                )
                known = f"it may go on to {', '.join(map('`{}`'.format, receivers)) or 'no node'}"
                yield Problem(where, message, known)


def _outside_of_among(source: Source, name: str, node: NodeModel) -> Iterator[Problem]:
    """Yield a problem for an edge besides those of an agent that chooses where the saga goes on."""
    assert node.branch is not None
    named = {*node.branch.among, *node.branch.default}.union(*caught_ways(node))
    for dst in source.edges.after[name]:
        if dst not in named:
            message = (
                f"the {source.kinds[name].key} `{name}` goes on only to the nodes that its `branch` names"
            )
            hint = f"add `{dst}` to `among`, or let it come after another node"
            yield Problem(source.edges.written[name, dst], message, hint)


def _fan_out(source: Source, name: str, node: NodeModel) -> Iterator[Problem]:
    """Yield a problem for a node that sends on to more nodes than `fan_out` allows, whatever happens."""
    count = min(map(len, least_ways(node, source.edges.after[name])))
    for place, limits in ((f"/nodes/{name}/limits", node.limits), ("/limits", source.model.limits)):
        limit = limits.get("fan_out")
        if limit is not None and limit.then == "terminate" and count > limit.max:
            message = (
                f"`{name}` goes on to {count} nodes at once, and `fan_out` ends the saga beyond {limit.max}"
            )
            yield Problem(f"{place}/fan_out", message, f"allow {count}, or write `then: throttle`")
            return


def circular_graphs(graphs: Sequence[tuple[str, Source | None]]) -> Iterator[tuple[str, Problem]]:
    """Yield a problem for each circle of two graphs or more, at the first graph of it."""
    starts = {name: dict(_starts(source)) for name, source in graphs if name and source is not None}
    told = set[str]()
    for name in starts:
        circle = [] if name in told else _circle(starts, name)
        if len(circle) < 2:
            continue
        told |= {*circle}
        through = ", ".join(f"`{one}`" for one in circle[1:])
        message = f"every saga of this graph would start another one through {through}, without end"
        hint = "let `when` or a `branch` in one of these graphs decide whether it goes on"
        yield name, Problem(f"/nodes/{starts[name][circle[1]]}/graph", message, hint)


def _starts(source: Source) -> Iterator[tuple[str, str]]:
    """Yield the graphs that a document starts whatever happens, with the node that does."""
    for name, node in source.nodes.items():
        graph = graph_name(source.kinds[name].starts(node))
        if (
            graph
            and node.map is None
            and source.produced is not None
            and source.produced.has_at_every_end(name)
        ):
            yield graph, name


def circular_delegates(graphs: Sequence[tuple[str, Source | None]]) -> Iterator[tuple[str, Problem]]:
    """Yield a problem for each delegate of an agent that could start the agent's own graph again."""
    sources = {name: source for name, source in graphs if source is not None}
    starts: dict[str, dict[str, str]] = {name: {} for name in sources}
    delegated: list[tuple[str, str, str]] = []
    for name, source in sources.items():
        for at, node in source.nodes.items():
            starts[name] |= {graph_name(source.kinds[at].starts(node)): at}
            for below, reference in source.kinds[at].delegates(node):
                if graph := graph_name(reference):
                    starts[name][graph] = at
                    delegated.append((name, graph, f"/nodes/{at}{below}"))
    for name, graph, place in delegated:
        if name and (graph == name or _circle({**starts, name: {graph: ""}}, name)):
            message = f"agents of the graph `{name}` could start each other through `{graph}`, without end"
            yield name, Problem(place, message, "leave the call out of one of them")


def _circle(starts: Mapping[str, Mapping[str, str]], first: str) -> list[str]:
    """Return the shortest way from a graph back to itself; empty for none."""
    ways = [[first]]
    seen = set[str]()
    for way in ways:
        for graph in starts.get(way[-1], ()):
            if graph == first:
                return way
            if graph not in seen:
                seen.add(graph)
                ways.append([*way, graph])
    return []


def check_loops(source: Source) -> Iterator[Problem]:
    """Yield the problems of loops: their edges in and out, and loops without an end."""
    yield from source.loops.problems
    yield from _half_meant(source)
    flow = source.flow
    left = _left(flow)
    for last in flow.loops:
        name = flow.names[last]
        loop = source.nodes[name].loop
        assert loop is not None
        place = f"/nodes/{name}/loop/while"
        if not always_holds(source.condition(place)):
            continue
        if loop.timeout_path:
            yield from _not_stopped(source, last)
        elif not source.nodes[name].catch and last not in left:
            message = "the loop has no exit: its condition always holds, and its rounds end in a failure"
            hint = "write what ends it, a `timeout_path`, or a `branch` out of the loop"
            yield Problem(
                place, message, next((_to(source, name, join) for join in _joins(flow, last)), hint)
            )


def _not_stopped(source: Source, last: int) -> Iterator[Problem]:
    """Yield a problem per join that cannot stop an endless loop: the `timeout_path` leads elsewhere."""
    flow, name = source.flow, source.flow.names[last]
    loop = source.nodes[name].loop
    assert loop is not None
    for index in _joins(flow, last):
        join = flow.names[index]
        if join in loop.timeout_path or flow.leads_only_to(last, index):
            continue
        message = (
            f"`{join}` does not stop the loop: its `timeout_path` leads elsewhere; and as its condition always holds, "
            f"`{name}` never leads to `{join}`"
        )
        yield Problem(f"/nodes/{name}/loop/timeout_path", message, _to(source, name, index))


def _joins(flow: Flow, last: int) -> list[int]:
    """Return the joins behind the loop that stop what leads to them alone."""
    spot = flow.spots[last]
    handlers = {other for way in spot.caught for other in way}
    return [
        one for one in spot.after if one not in handlers and flow.spots[one].need and flow.spots[one].cancels
    ]


def _to(source: Source, name: str, index: int) -> str:
    """Say how to write it so that the loop leads to this join and nowhere else."""
    join = source.flow.names[index]
    is_after = name in source.nodes[join].after
    besides = f"take `{name}` out of `after` there" if is_after else f"name `{join}` nowhere else at `{name}`"
    return f"write `timeout_path: {join}` here, so that `{join}` stops the loop, and {besides}"


def _left(flow: Flow) -> set[int]:
    """Return the last nodes of the loops that another of their nodes may leave."""
    found: set[int] = set()
    for index, spot in enumerate(flow.spots):
        if spot.around:
            level = min(flow.going(index, way)[0] for way in (*spot.outcomes, *spot.caught))
            found.update(last for last in spot.around[level:] if last != index)
    return found


def _half_meant(source: Source) -> Iterator[Problem]:
    """Yield a problem for nodes that say they come after a loop,
    which then leads to them only when its rounds are used up.
    """
    for name, node in source.nodes.items():
        if node.loop is None:
            continue
        otherwise = {*node.loop.break_path, *(named for _, named in chosen(name, node))}
        for other in node.loop.timeout_path:
            follower = source.nodes.get(other)
            if follower is not None and name in follower.after and other not in otherwise:
                message = f"`{name}` leads here only when its rounds are used up, by its `timeout_path`"
                hint = f"take `{name}` out of `after`, or name `{other}` in its `break_path` too"
                yield Problem(f"/nodes/{escape(other)}/after", message, hint)


def always_holds(condition: Condition | None) -> bool:
    """Return true if the condition holds whatever the values are; false if it is None."""
    return condition is not None and _constant(condition) is True


def _constant(condition: Condition) -> bool | None:
    """Return the answer of a constant condition; None for one that depends on a value, or breaks."""
    if isinstance(condition, AllOf):
        return _of_all(map(_constant, condition.conditions))
    if isinstance(condition, AnyOf):
        return _not(_of_all(map(_not, map(_constant, condition.conditions))))
    if isinstance(condition, Not):
        return _not(_constant(condition.condition))
    if isinstance(condition, Matches) and (isinstance(condition.schema, bool) or condition.schema == {}):
        return (condition.schema is not False) != condition.invert
    if isinstance(condition, Python) or names_of(condition):
        return None
    try:
        return judge(condition, _NO_VALUES.__getitem__, {}, {})
    except ConditionError:
        return None


def _of_all(values: Iterable[bool | None]) -> bool | None:
    found = set(values)
    return False if False in found else None if None in found else True


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


_NO_VALUES: dict[Path, object] = {}


_MOST_NAMES = 20
_LONGEST = 56


def _handlers(source: Source, name: str, node: NodeModel) -> Iterator[Problem]:
    """Yield a problem for handlers to which the node leads besides, and for rules that are never asked."""
    otherwise = {to for _, to in (*chosen(name, node), *left_by(name, node))}
    for place, to in catch_targets(name, node):
        between = _free(f"to_{to}", source)
        value = (
            f"in `catch`, write `{between}` in place of `{to}`; add `{between}: {{value: null}}` to the nodes"
        )
        if to in otherwise:
            message = f"`{name}` leads to `{to}` when it is done, too, by its `branch` or `loop`"
            yield Problem(place, message, f"{value}, and `{between}` to `after` of `{to}`")
        elif to in source.nodes and name in source.nodes[to].after:
            message = f"`{name}` leads here only when it has failed, by its `catch`"
            hint = (
                f"take `{name}` out of `after`; or leave it there: {value}, and `{between}` to `after` here"
            )
            yield Problem(f"/nodes/{to}/after", message, hint)
    for index, rule in enumerate(node.catch[:-1]):
        if rule.fits_all:
            message = f"this rule is never asked: rule {index + 1} fits every failure"
            hint = "let the rule without `code`, `class` and `if` come last"
            yield Problem(f"/nodes/{name}/catch/{index + 1}", message, hint)
            return


def _free(name: str, source: Source) -> str:
    """Return an unused name for a new node."""
    names = (name[:_LONGEST] + f"_{number}" * (number > 1) for number in count(1))
    return next(one for one in names if one not in source.nodes)


def check_edges(source: Source) -> Iterator[Problem]:
    """Yield the problems of edges: unknown names, circles, and edges that mean something else."""
    nodes, edges = source.nodes, source.edges
    for name, node in nodes.items():
        named = [*listed_names(f"/nodes/{name}/after", node.after), *chosen(name, node), *left_by(name, node)]
        named += catch_targets(name, node)
        if node.loop is not None and node.loop.back_to is not None:
            named.append((f"/nodes/{name}/loop/back_to", node.loop.back_to))
        for place, other in named:
            if other not in nodes:
                yield Problem(place, f"there is no node `{other}`", source.hint(other, nodes))
        for place, other in listed_names(f"/nodes/{name}/after", node.after):
            if other in nodes and source.kinds[other].ends:
                message = f"the saga ends with `{other}`: nothing comes after it"
                yield Problem(place, message, f"take `{other}` out of `after`")
        if node.catch:
            yield from _handlers(source, name, node)
    yield from edges.problems
    if edges.circle:
        names = sorted(edges.circle)
        told = ", ".join(names[:_MOST_NAMES])
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        place = next(
            place for (src, dst), place in edges.written.items() if dst == names[0] and src in edges.circle
        )
        message = f"these nodes wait for each other and can never start: {told}{more}"
        yield Problem(place, message, "to go round again, write `loop` at the last of them")


def check_joins(source: Source) -> Iterator[Problem]:
    """Yield a problem for each join that waits for too much."""
    flow, ruled_out = source.flow, None
    for index, (name, spot) in enumerate(zip(flow.names, flow.spots, strict=True)):
        node, count = source.nodes[name], len(spot.before)
        if node.join is None or spot.need < 1 or node.join.wait_for == "any":
            continue
        place, wanted = f"/nodes/{name}/join", f"{spot.need} node{'s' * (spot.need > 1)}"
        if spot.need > count:
            message = f"this waits for {wanted}, and {count or 'none'} lead{'s' * (count < 2)} here: it can never fire"
            yield Problem(place, message, f"write at most {count}, or `all`" if count else "leave `join` out")
        elif spot.need > 1 and not source.edges.circle:
            ruled_out = ruled_out or _Exclusions(source.nodes, flow)
            found = ruled_out.most_alive(index)
            if found is not None and found[0] < spot.need:
                message = (
                    f"this waits for {wanted}, and `{found[1]}` chooses between them: at most {found[0]} can be "
                    "alive, so that it can never fire"
                )
                yield Problem(
                    place, message, "wait for `any` or for `all`: a way that is not taken counts there"
                )


class _Exclusions:
    """For each node, the outcome sets of branches that are not taken when it is ready, one bit each."""

    def __init__(self, nodes: dict[str, NodeModel], flow: Flow) -> None:
        self._flow = flow
        self._ways: dict[int, list[tuple[int, frozenset[int]]]] = {}
        next_bit = 1
        for index, name in enumerate(flow.names):
            ways = most_ways(nodes[name], (flow.names[other] for other in flow.spots[index].after))
            ways += caught_ways(nodes[name])
            if len(ways) > 1:
                self._ways[index] = []
                for way in ways:
                    self._ways[index].append(
                        (next_bit, frozenset(flow.at[other] for other in way if other in flow.at))
                    )
                    next_bit <<= 1
        self._not_taken: list[int] = []
        for index, spot in enumerate(flow.spots):
            masks = [self._along(before, index) for before in spot.before]
            self._not_taken.append(in_most(masks, max(1, len(masks) - max(spot.need, 1) + 1)))

    def _along(self, src: int, dst: int) -> int:
        mask = self._not_taken[src]
        for bit, way in self._ways.get(src, ()):
            if dst not in way:
                mask |= bit
        return mask

    def most_alive(self, index: int) -> tuple[int, str] | None:
        """Return the most edges that can be alive, and the node that limits them; None if none does."""
        masks = [self._along(before, index) for before in self._flow.spots[index].before]
        found = None
        for src, ways in self._ways.items():
            if self._flow.behind[index] >> src & 1:
                most = max(sum(not mask & bit for mask in masks) for bit, _ in ways)
                if most < len(masks) and (found is None or most < found[0]):
                    found = most, self._flow.names[src]
        return found
