"""Joins that can never fire: more live edges are waited for than there can be.

Which nodes are done by then is in analysis/must_run.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from baton.core.documents.compile.analysis.flow import Flow, caught_ways, in_most, most_ways
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.source import Source
    from baton.core.documents.definition import NodeModel


def check(source: Source) -> Iterator[Problem]:
    """Joins that wait for too much."""
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
    """For each node, which outcome sets of which branches are not taken when it is ready. One bit for each."""

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
        """How many edges can be alive at most, and because of which node; None when nothing is sure."""
        masks = [self._along(before, index) for before in self._flow.spots[index].before]
        found = None
        for src, ways in self._ways.items():
            if self._flow.behind[index] >> src & 1:
                most = max(sum(not mask & bit for mask in masks) for bit, _ in ways)
                if most < len(masks) and (found is None or most < found[0]):
                    found = most, self._flow.names[src]
        return found
