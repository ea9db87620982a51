"""What has ended before a node is ready, whose failure is tolerated, and which nodes may be stopped on the way.

Time and failure. Which nodes have given an output by then is in must_run.py and available_outputs.py.
"""

from __future__ import annotations

from baton.core.documents.compile.analysis.flow import Flow, Spot, in_most, members


class Ended:
    """Facts about every node of a flow, by its number."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self.tolerated = _tolerated(flow)
        """The nodes whose failure does not fail the saga."""
        self.before: list[int] = []
        """For each node: those that have ended for this round, one way or another, when it begins."""
        self._early: dict[int, int] = {}
        for index, spot in enumerate(flow.spots):
            by = [self.by(before) for before in spot.before]
            self.before.append(in_most(by, len(by) - spot.need + 1 if spot.need else 1))
            if self.can_fail_early(index):
                # It may also be the first node of a loop that goes round although it has failed.
                self._early[index] = self.before[index] = in_most(by, len(by))
        self.stopped_by = self._find_stopped_by()
        """For each node: the joins that may stop it before it has begun, or while it runs."""
        self.cut = self._find_cut()
        """For nodes in loops: the place, among those around it, of the innermost loop that may be left before the
        node has ended its part in the round."""

    def by(self, index: int) -> int:
        """The nodes that have ended when this one's tokens reach its receivers."""
        return self._early.get(index, self.before[index]) | 1 << index

    def can_fail_early(self, index: int) -> bool:
        """Whether it is a join that may fail before all edges have spoken, and the saga goes on."""
        spot = self._flow.spots[index]
        return spot.tolerated >= 0 and bool(spot.caught or self.tolerated >> index & 1)

    def _is_early(self, index: int, spot: Spot) -> bool:
        return (spot.need > 0 and spot.cancels) or self.can_fail_early(index)

    def _find_stopped_by(self) -> dict[int, tuple[int, ...]]:
        flow = self._flow
        joins = {index for index, spot in enumerate(flow.spots) if self._is_early(index, spot)}
        found: dict[int, tuple[int, ...]] = {}
        if not joins:
            return found
        leads_to: list[int] = [0] * len(flow.spots)
        for index in range(len(flow.spots) - 1, -1, -1):
            after = flow.spots[index].after
            if not after:
                continue
            mask = -1
            for other in after:
                mask &= leads_to[other] | (1 << other if other in joins else 0)
            leads_to[index] = mask
            stopped_by = tuple(join for join in members(mask) if not self.before[join] >> index & 1)
            if stopped_by:
                found[index] = stopped_by
        self._stop_loops(found)
        return found

    def _stop_loops(self, found: dict[int, tuple[int, ...]]) -> None:
        """A join that stops the last node of a loop ends the round, whatever else is under way in it."""
        for last, (_, body) in self._flow.loops.items():
            for join in found.get(last, ()):
                for index in members(body & ~self.before[join]):
                    found[index] = (*(one for one in found.get(index, ()) if one != join), join)

    def _find_cut(self) -> dict[int, int]:
        flow = self._flow
        safe = {last: self._ended_when_left(last) for last in flow.loops}
        found: dict[int, int] = {}
        for index, spot in enumerate(flow.spots):
            for place, last in enumerate(spot.around):
                if not safe[last] >> index & 1:
                    found[index] = place
        return found

    def _ended_when_left(self, last: int) -> int:
        """Which nodes of a loop have certainly ended when a round does."""
        flow = self._flow
        _, body = flow.loops[last]
        ended = self.by(last)
        for index in members(body ^ 1 << last):
            place = flow.spots[index].around.index(last)
            spot = flow.spots[index]
            if any(flow.going(index, way)[0] <= place for way in (*spot.ways, *spot.caught)):
                ended &= self.before[index] | 1 << index
        return ended


def _tolerated(flow: Flow) -> int:
    if all(spot.tolerated < 0 for spot in flow.spots):
        return 0
    found = leads = takes = 0  # as in core/graph/index.py
    for index in range(len(flow.spots) - 1, -1, -1):
        spot, bit = flow.spots[index], 1 << index
        is_counted = bool(spot.after) and all(leads >> other & 1 for other in spot.after)
        if is_counted and all(takes >> other & 1 for other in spot.after):
            found |= bit
        if is_counted or spot.tolerated >= 0:
            leads |= bit
        if spot.takes or found & bit:
            takes |= bit
    return found
