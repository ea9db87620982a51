"""Analysis of the nodes that have certainly given an output when a node is ready, on every path to that node.

What is known along the edges, from the first nodes to the last.
What follows forwards is in must_run.py; problems of an expression that
cannot count on its node are in expressions.py.

A node counts if it is sure to be done, whichever way led here, and has ended by then.
What may be cut off by the end of a round is never among what is sure: must_run.py leaves it out.
What is sure only because the saga ends otherwise depends on what has ended
before the reader begins: so there is one answer for each set of such nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import islice

from baton.core.documents.compile.flow import EndedBefore, Flow, in_most, members
from baton.core.documents.compile.must_run import LossCauses, MustRun

_MOST_TRIES = 3


class AvailableOutputs:
    """Outputs that each node of a flow without circles can read."""

    def __init__(self, flow: Flow, go_on: Callable[[], None]) -> None:
        """Prepare for a flow. `go_on` is called at each node, and raises when the analysis takes too long."""
        self._flow, self._go_on = flow, go_on
        self._ended = EndedBefore(flow)
        self._lost = LossCauses(flow, go_on, self._ended.tolerated)
        self._sure, self.lost = self._read(-1)
        self._knowing = {-1: OutputsAt(flow, self._ended, self.lost, self._sure, go_on)}
        self._doomed = 0
        """Nodes that have done something before the saga ends with what directly follows."""
        self._late: dict[int, int] = {}
        """The ends that wait for several edges: the nodes that have ended when the turn of each has come."""
        for index in members(self._sure.doomed):
            spot = flow.spots[index]
            if any(flow.spots[other].at_once for other in spot.after):
                self._doomed |= 1 << index
            if spot.ends and not spot.at_once:
                self._late[index] = sum(1 << other for other in spot.before)

    def _read(self, ended_by_then: int) -> tuple[MustRun, LossCauses]:
        """Find what is sure, and what may be lost, if of the nodes behind which
        the saga ends these have ended by then.

        A failure that is caught by what ends the saga loses nothing for those who are there afterwards.
        """
        lost = self._lost
        while True:
            sure = MustRun(self._flow, self._ended, lost, self._go_on, ended_by_then)
            fewer = lost.without(sure.ending)
            if fewer is lost:
                return sure, lost
            lost = fewer

    def has(self, reader: str, node: str, *, is_failed: bool = False) -> bool:
        """Return true if `node` has certainly given an output when `reader` is ready, or when `reader` has
        failed.
        """
        if reader in self._flow.ends:
            return self._at_ends.has(reader, node, is_failed=is_failed)
        by_then = self._ended.before[self._flow.at[reader]]
        # Few readers count on an end at all: the least and the most that may be known come first.
        return self._has(-1, reader, node, is_failed) and (
            not (self._doomed or self._late)
            or self._has(0, reader, node, is_failed)
            or self._has(self._ending_by(by_then), reader, node, is_failed)
        )

    def _ending_by(self, by_then: int) -> int:
        """Return, of the nodes behind which the saga ends and of the ends,
        those whose turn has come once these nodes have ended.
        """
        late = sum(1 << end for end, before in self._late.items() if not before & ~by_then)
        return self._doomed & by_then | late

    def _has(self, ended_by_then: int, reader: str, node: str, is_failed: bool) -> bool:
        """Return true if `reader` has the output of `node` when these nodes have ended,
        of those behind which the saga ends.
        """
        if ended_by_then not in self._knowing:
            sure, lost = self._read(ended_by_then)
            self._knowing[ended_by_then] = OutputsAt(self._flow, self._ended, lost, sure, self._go_on)
        at, known = self._flow.at, self._knowing[ended_by_then]
        found = known.when_failed(at[reader]) if is_failed else known.at[at[reader]]
        return bool(found & self._ended.before[at[reader]] & 1 << at[node])

    def awaited(self, reader: str, node: str) -> str:
        """Return a node that the reader would have to come after,
        so that it does not begin before the saga ends without `node`.

        Empty if there is none, or waiting for it does not help.
        """
        index = self._flow.at[reader]
        spot = self._flow.spots[index]
        can_wait = not (spot.need or spot.around or reader in self._flow.ends)
        if not can_wait or not self._has(-1, reader, node, is_failed=False):
            return ""
        by_then = self._ended.before[index]
        for other in islice(members(self._doomed & ~by_then), _MOST_TRIES):
            is_circle = other == index or self._flow.behind[other] >> index & 1
            ending = self._ending_by(by_then | self._ended.by(other))
            if not is_circle and self._has(ending, reader, node, is_failed=False):
                return self._flow.names[other]
        return ""

    @cached_property
    def _at_ends(self) -> AvailableOutputs:
        """Outputs that the ends themselves can read.

        For all other nodes, a saga that reaches an end does not go on.
        """
        return AvailableOutputs(self._flow.without_ends(), self._go_on)

    def has_at_the_end(self, node: str) -> bool:
        """Return true if `node` has certainly given an output in a saga that completes."""
        return bool(self._sure.start >> self._flow.at[node] & 1)

    def has_at_every_end(self, node: str) -> bool:
        """Return true if the node's output is there at the end,
        also of a saga that ends with an `end` or a `fail` of the document.
        """
        ends = self._flow.ends
        known = self._at_ends if ends else self
        return known.has_at_the_end(node) and all(known.has(end, node) for end in ends)

    def is_sure_edge(self, src: str, dst: str) -> bool:
        """Return true if the edge is alive whenever `src` is done, or nothing else leads to `dst`."""
        spot, receiver = self._flow.spots[self._flow.at[src]], self._flow.at[dst]
        return len(self._flow.spots[receiver].before) == 1 or all(receiver in way for way in spot.outcomes)

    def lost_by(self, node: str) -> tuple[str, bool]:
        """Return a node whose failure, once it is caught, keeps this one from running,
        and true if it always does.

        Empty if there is none.
        """
        found = self.lost.keeping(self._flow.at[node])
        return ("", False) if found is None else (self._flow.names[found[0]], found[1])


class OutputsAt:
    """Outputs that are certain at each node, from the facts along its edges."""

    def __init__(
        self, flow: Flow, ended: EndedBefore, lost: LossCauses, sure: MustRun, go_on: Callable[[], None]
    ) -> None:
        self._flow, self._ended, self._lost, self._sure = flow, ended, lost, sure
        self._firsts = frozenset(first for first, _ in flow.loops.values())
        self.at: list[int] = []
        """The sure facts when the node is ready."""
        self._at_failed: dict[int, int] = {}
        for index in range(len(flow.spots)):
            go_on()
            self.at.append(self._at(index))
            if ended.tolerated >> index & 1:
                self._at_failed[index] = self.at[index] & self._from_failed(index)

    def _at(self, index: int) -> int:
        """Return the sure facts when the node is ready."""
        spot = self._flow.spots[index]
        if not spot.before:
            return self._sure.start
        masks = [self._along(before, index) for before in spot.before]
        known = in_most(masks, max(1, len(masks) - max(spot.need, 1) + 1))
        if index in self._sure.calls:
            known = self._with_called(index, known, masks)
        may_be_failed = spot.tolerated > 0 and not spot.need
        if may_be_failed or (index in self._firsts and self._ended.tolerated >> index & 1):
            # A join that needs nothing but failures; or the first node of a loop, which came to its second round
            # because a later node of the first round needed nothing else.
            known &= self._from_failed(index)
        if may_be_failed and self._lost.into[index]:
            # Or only lost edges: then as much as is sure in any saga.
            known &= self._sure.start
        return known

    def _with_called(self, index: int, known: int, masks: list[int]) -> int:
        """Add the sure facts along the edges of called senders: the join waits for all; none has failed."""
        calls, before = self._sure.calls[index], self._flow.spots[index].before
        is_growing = True
        while is_growing:
            found = known
            for src, mask in zip(before, masks, strict=True):
                if known & calls[src]:
                    found |= mask
            is_growing, known = found != known, found
        return known

    def _from_failed(self, index: int) -> int:
        """Return the sure facts when any of the edges has failed, which is tolerated."""
        known = -1
        for before in self._flow.spots[index].before:
            if before in self._at_failed:
                known &= self._at_failed[before]
        return known

    def when_failed(self, index: int) -> int:
        """Return the sure facts when the node has failed.

        A join may have failed before it was ready, or because of lost edges.
        """
        spot = self._flow.spots[index]
        if spot.tolerated < 0:
            return self.at[index]
        is_lost = not spot.need and self._lost.into[index]
        return self.at[index] & self._from_failed(index) & (self._sure.start if is_lost else -1)

    def _along(self, src: int, dst: int) -> int:
        """Return the sure facts when an edge is alive."""
        spot = self._flow.spots[src]
        if any(dst in way for way in spot.caught):
            # The sender has failed.
            known = self.when_failed(src)
            return known | in_all([facts for way, facts in self._sure.handled[src] if dst in way])
        known = self.at[src] | self._sure.done[src]
        ways = [facts for way, facts in self._sure.along.get(src, ()) if dst in way]
        return known | in_all(ways)


def in_all(masks: list[int]) -> int:
    """Return the intersection of the sets; empty if there are none."""
    return in_most(masks, len(masks))
