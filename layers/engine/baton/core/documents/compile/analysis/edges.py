"""The edges of a document, each once, and an order of its nodes.

What flows along the edges is in flow.py; names that lead nowhere and circles are in checks/control.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from baton.core.documents.parts.failing import HandlersModel
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.read import NodeModel


def listed_names(place: str, names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield (JSON Pointer, name) of a field that is one name or a list of them."""
    for index, name in enumerate(names):
        yield (f"{place}/{index}" if len(names) > 1 else place), name


def chosen(name: str, node: NodeModel) -> Iterator[tuple[str, str]]:
    """Yield (JSON Pointer, name) of every node that a `branch` names."""
    if node.branch is not None:
        place = f"/nodes/{name}/branch"
        for index, rule in enumerate(node.branch.rules):
            yield from listed_names(f"{place}/rules/{index}/then", rule.then)
        yield from listed_names(f"{place}/default", node.branch.default)
        yield from listed_names(f"{place}/among", node.branch.among)


def left_by(name: str, node: NodeModel) -> Iterator[tuple[str, str]]:
    """Yield (JSON Pointer, name) of every node that `break_path` and `timeout_path` name."""
    if node.loop is not None:
        yield from listed_names(f"/nodes/{name}/loop/break_path", node.loop.break_path)
        yield from listed_names(f"/nodes/{name}/loop/timeout_path", node.loop.timeout_path)


def catch_targets(name: str, node: NodeModel) -> Iterator[tuple[str, str]]:
    """Yield (JSON Pointer, name) of every node that a `catch` names."""
    for index, rule in enumerate(node.catch):
        is_short = isinstance(rule, HandlersModel)
        place = f"/nodes/{name}/catch" if is_short else f"/nodes/{name}/catch/{index}/then"
        yield from listed_names(place, rule.then)


class Edges:
    """Forward edges between existing nodes; the back edge of a loop is none of them.

    Edges that can only be meant as something else are in `problems` and nowhere else.
    """

    def __init__(self, nodes: Mapping[str, NodeModel]) -> None:
        self._nodes = nodes
        self.problems: list[Problem] = []
        self.written: dict[tuple[str, str], str] = {}
        """Place where each edge, (sender, receiver), is first written."""
        exits: dict[tuple[str, str], str] = {}
        for name, node in nodes.items():
            for place, before in listed_names(f"/nodes/{name}/after", node.after):
                if self._is_way_back(before, name):
                    self._refuse_way_back(place, before, name)
                elif before in nodes:
                    self.written.setdefault((before, name), place)
            if node.branch is not None:
                for place, to in chosen(name, node):
                    if to in nodes:
                        self.written.setdefault((name, to), place)
            for place, to in (*left_by(name, node), *catch_targets(name, node)):
                if to in nodes and (name, to) not in self.written:
                    exits[name, to] = self.written[name, to] = place
        self._link()
        if self.circle and exits:
            self._drop_exits_that_lead_back(exits)

    def _is_way_back(self, tail: str, header: str) -> bool:
        node = self._nodes.get(tail)
        return node is not None and node.loop is not None and (node.loop.back_to or tail) == header

    def _refuse_way_back(self, place: str, tail: str, header: str) -> None:
        message = f"the loop at `{tail}` comes back here by itself"
        self.problems.append(Problem(place, message, f"take `{tail}` out of the `after` of `{header}`"))

    def _link(self) -> None:
        before: dict[str, list[str]] = {name: [] for name in self._nodes}
        after: dict[str, list[str]] = {name: [] for name in self._nodes}
        for src, dst in self.written:
            before[dst].append(src)
            after[src].append(dst)
        self.before = {name: tuple(sorted(names)) for name, names in before.items()}
        self.after = {name: tuple(sorted(names)) for name, names in after.items()}
        self.order, self.circle = self._ordered()

    def _ordered(self) -> tuple[list[str], set[str]]:
        """Return node names in the one topological order that is the same for every spelling of a document,
        and those that stand on a circle or behind one.
        """
        missing = {name: len(names) for name, names in self.before.items()}
        ready = [name for name, count in missing.items() if not count]
        heapify(ready)
        order: list[str] = []
        while ready:
            name = heappop(ready)
            order.append(name)
            for follower in self.after[name]:
                missing[follower] -= 1
                if not missing[follower]:
                    heappush(ready, follower)
        return order, missing.keys() - set(order)

    def _drop_exits_that_lead_back(self, exits: Mapping[tuple[str, str], str]) -> None:
        """Drop exits of loops and handlers that lead back, each with a problem of its own."""
        wrong = [(src, dst) for src, dst in exits if self._leads_to(dst, src, exits)]
        for src, dst in wrong:
            place = self.written.pop((src, dst))
            if place.startswith(f"/nodes/{src}/catch"):
                message = (
                    f"`{dst}` is `{src}` itself, or comes before it: a failure is handled by what comes after"
                )
                hint = "to try the same again write `retry`; to go round again, `loop`"
            else:
                message = f"`{dst}` is in the loop that this should lead out of, or comes before it"
                hint = "name a node that comes after the loop; the way back is `back_to`"
            self.problems.append(Problem(place, message, hint))
        if wrong:
            self._link()

    def _leads_to(self, first: str, last: str, without: Mapping[tuple[str, str], str]) -> bool:
        seen, look_at = {first}, [first]
        while look_at and last not in seen:
            name = look_at.pop()
            new = [other for other in self.after[name] if other not in seen and (name, other) not in without]
            seen.update(new)
            look_at += new
        return last in seen
