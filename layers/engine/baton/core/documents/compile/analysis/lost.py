"""Which edges may be lost: by a failure that is caught, at its sender or before it; and what then does not run.

What a join can count on when something before it is caught. Failures that a join tolerates are in ended.py. Every
approximation here is for the worse: what may be lost is lost, what is not sure to be rescued is not.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from baton.core.documents.compile.analysis.flow import Flow, Spot, in_most, members


class Lost:
    """For each node of a flow, by its number: the *causes* that may be on its edges.

    A cause is a rule of a node's `catch`, as a bit. A flow without handlers has none. `tolerated`: the nodes whose failure
    does not fail the saga. `go_on` is asked before each piece of work as long as the document, and raises when it takes too long.
    `ending`: causes with which the saga ends before anything that is asked about: they lose nothing.
    """

    def __init__(self, flow: Flow, go_on: Callable[[], None], tolerated: int, ending: int = 0) -> None:
        self._flow, self._go_on = flow, go_on
        self._tolerated, self._ending = tolerated, ending
        self.first_of: dict[int, int] = {}
        """For each node with handlers: the first of its causes; one more for each further rule."""
        self.causes: list[tuple[int, frozenset[int]]] = []
        """For each cause: the node that failed, and the handlers that are chosen then."""
        self._levels: list[int] = []
        """For each cause: how many loops are still around what follows."""
        self._own = [0] * len(flow.spots)
        self._handlers: dict[int, frozenset[int]] = {}
        for index, spot in enumerate(flow.spots):
            if spot.caught:
                self.first_of[index] = len(self.causes)
                self._handlers[index] = frozenset(other for way in spot.caught for other in way)
            for way in spot.caught:
                level, going = flow.going(index, way)
                bit = 1 << len(self.causes)
                if not ending & bit and not any(flow.spots[other].at_once for other in going):
                    self._own[index] |= bit
                self.causes.append((index, frozenset(going)))
                self._levels.append(level)
        self.into = [0] * len(flow.spots)
        """What may be on an edge into the node."""
        self._through: dict[int, int] = {}
        self._behind: dict[tuple[int, bool], int] = {}
        self._following: dict[int, int] = {}
        self._other_ways: dict[tuple[int, int], int] = {}
        if self.causes:
            for index in range(len(flow.spots)):
                for src in flow.spots[index].before:
                    self.into[index] |= self._along(src, index)

    def without(self, ending: int) -> Lost:
        """The same, where these causes lose nothing either; itself, if they lose nothing anyway."""
        lossy = in_most(self._own, 1) & ending
        return Lost(self._flow, self._go_on, self._tolerated, self._ending | lossy) if lossy else self

    def _along(self, src: int, dst: int) -> int:
        """What may be on the edge."""
        flow = self._flow
        if dst in self._handlers.get(src, ()):
            return 0
        found = self._own[src] | self._passed_on(src)
        around = flow.spots[src].around
        level = min(flow.shared(src, dst), flow.level(src))
        if level < len(around):
            # Whatever leaves the loop speaks for the edge. All that is in it came in by its first node.
            first, body = flow.loops[around[level]]
            found |= self.into[first]
            for index in members(body):
                found |= self._own[index]
        return found

    def _passed_on(self, index: int) -> int:
        """What the node may be skipped for, and sends on then."""
        spot, found = self._flow.spots[index], self.into[index]
        if spot.tolerated >= 0 and not spot.need:
            return 0
        if found and not spot.need and len(spot.before) > 1:
            for cause in members(found):
                if self._is_always_rescued(cause, index):
                    found ^= 1 << cause
        return found

    def _is_always_rescued(self, cause: int, index: int) -> bool:
        """Whether the node has a live edge from the handlers, or from nodes that simply follow, once this has happened."""
        follows = self._follows(cause)
        return any(
            follows >> src & 1 and self._is_plain(src, index) for src in self._flow.spots[index].before
        )

    def _follows(self, cause: int) -> int:
        """Nodes that are sure to be done if the saga goes on once this has happened: handlers, and nodes that simply follow."""
        if cause not in self._following:
            self._go_on()
            failed, handlers = self.causes[cause]
            found, around = 0, self._flow.spots[failed].around
            for index in range(failed + 1, len(self._flow.spots)):
                spot = self._flow.spots[index]
                is_next = index in handlers and (spot.before == (failed,) or self._is_shared(index))
                is_behind = bool(spot.before) and all(
                    found >> src & 1 and self._is_plain(src, index) for src in spot.before
                )
                is_done = not (spot.asks or spot.caught or self._tolerated >> index & 1)
                if (is_next or is_behind) and is_done and spot.around == around:
                    found |= 1 << index
            self._following[cause] = found
        return self._following[cause]

    def _is_shared(self, index: int) -> bool:
        """Whether the node is a handler of all nodes before it: nothing lost or not chosen keeps it from running."""
        spot = self._flow.spots[index]
        is_handler = all(index in self._handlers.get(src, ()) for src in spot.before)
        is_inside = all(self._flow.spots[src].around == spot.around for src in spot.before)
        return is_handler and is_inside and spot.need <= 1 and spot.tolerated < 0

    def _is_plain(self, src: int, dst: int) -> bool:
        """Whether the edge is alive whenever its sender is done, and leads out of no loop."""
        sender, receiver = self._flow.spots[src], self._flow.spots[dst]
        is_inside = sender.around == receiver.around and not sender.is_tail
        return is_inside and all(dst in way for way in sender.ways)

    def is_sure(self, src: int, dst: int) -> bool:
        """Whether the node runs when the edge from `src` is alive, as far as nothing lost can keep it from that."""
        spot = self._flow.spots[dst]
        if spot.need or len(spot.before) < 2 or not self.into[dst]:
            return True
        return all(
            self._is_harmless(cause, src, dst) or self._is_always_rescued(cause, dst)
            for cause in members(self.into[dst])
        )

    def _is_harmless(self, cause: int, src: int, dst: int) -> bool:
        """Whether the cause has not happened if this edge is alive, or is rescued at the node."""
        failed, handlers = self.causes[cause]
        return (
            src == failed
            or dst in handlers
            or dst in self._handlers.get(src, ())
            or bool(self.through(cause) >> src & 1)
            or bool(self._only_behind(failed) >> src & 1)
            or bool(self._not_chosen(src, dst) >> failed & 1)
            or bool(src in self._handlers and self._only_behind(src, has_failed=True) >> failed & 1)
        )

    def keeping(self, index: int) -> tuple[int, bool] | None:
        """A node whose failure, once it is caught, keeps this one from running, and whether it always does."""
        spot = self._flow.spots[index]
        if spot.tolerated >= 0 and not spot.need:
            return None
        for cause in members(self.into[index]):
            if not self._is_always_rescued(cause, index):
                may_go_on = spot.need or any(self.through(cause) >> src & 1 for src in spot.before)
                return self.causes[cause][0], not may_go_on
        return None

    def through(self, cause: int) -> int:
        """The handlers, and the nodes that are reached only through them once the node has failed."""
        if cause not in self._through:
            self._go_on()
            failed, handlers = self.causes[cause]
            found, others, spared = 0, 0, self._spared_by(failed)
            for index, spot in enumerate(self._flow.spots):
                if index in handlers:
                    found |= 1 << index
                elif not spot.before or any(
                    others >> one & 1 and not (spared >> one & 1 and index in self._handlers[one])
                    for one in spot.before
                    if one != failed
                ):
                    others |= 1 << index
                elif any(found >> one & 1 for one in spot.before):
                    found |= 1 << index
            self._through[cause] = found
        return self._through[cause]

    def _spared_by(self, failed: int) -> int:
        """Earlier nodes with handlers, none of which can have been chosen if the node was ready."""
        flow, needed = self._flow, 1 << failed
        behind, around = flow.behind[failed] | needed, flow.spots[failed].around
        for index in range(failed, -1, -1):
            spot = flow.spots[index]
            if needed >> index & 1 and not spot.need and spot.tolerated < 0:
                for src in spot.before:
                    if flow.spots[src].around == around and index not in self._handlers.get(src, ()):
                        needed |= 1 << src
        found = 0
        for index in members(needed ^ 1 << failed):
            if index in self._handlers and not any(behind >> one & 1 for one in self._handlers[index]):
                found |= 1 << index
        return found

    def _not_chosen(self, src: int, dst: int) -> int:
        """The nodes in the same loops that do not become ready where this edge is alive: another choice leads to them."""
        if (src, dst) not in self._other_ways:
            flow, found = self._flow, 0
            sender = flow.spots[src]
            beside = {other for way in sender.ways if dst in way for other in way}
            chosen = {other for way in sender.ways for other in way} - beside
            if chosen and sender.exact and sender.around == flow.spots[dst].around and not sender.is_tail:
                self._go_on()
                for number in range(src + 1, len(flow.spots)):
                    spot = flow.spots[number]
                    if not self._can_begin_without(spot) and all(
                        found >> one & 1 or (one == src and number in chosen) for one in spot.before
                    ):
                        found |= 1 << number
            found = sum(1 << one for one in members(found) if flow.spots[one].around == sender.around)
            self._other_ways[src, dst] = found
        return self._other_ways[src, dst]

    @staticmethod
    def _can_begin_without(spot: Spot) -> bool:
        """Tell if it can become ready, or fail, although nothing leads to it: by what is lost, where it tolerates failures."""
        return not spot.before or (spot.tolerated >= 0 and (not spot.need or bool(spot.caught)))

    def _only_behind(self, index: int, *, has_failed: bool = False) -> int:
        """The nodes that become ready, or fail, only if the node was done: every path to them leads through its success.

        `has_failed`: or through its failure.
        """
        if (index, has_failed) not in self._behind:
            self._go_on()
            found, handlers = 0, self._handlers[index]
            for number in range(index + 1, len(self._flow.spots)):
                spot = self._flow.spots[number]
                if not self._can_begin_without(spot) and all(
                    found >> one & 1 or (one == index and (number in handlers) == has_failed)
                    for one in spot.before
                ):
                    found |= 1 << number
            self._behind[index, has_failed] = found
        return self._behind[index, has_failed]

    def losing(self, cause: int, can_be_stopped: Container[int]) -> Iterator[tuple[int, int]]:
        """Sender and receiver of edges that are sure to be lost by a cause, and not to be rescued where they lead to.

        Those of nodes that may be stopped before they say so are left out.
        """
        flow, failed = self._flow, self.causes[cause][0]
        seen, todo = {failed}, self._first_lost(cause)
        self._go_on()
        while todo:
            src, dst = todo.pop()
            if self._is_lost_for_good(cause, src, dst):
                yield src, dst
                spot = flow.spots[dst]
                if not spot.need and spot.tolerated < 0 and dst not in can_be_stopped and dst not in seen:
                    seen.add(dst)
                    todo += self._inside(dst)

    def _first_lost(self, cause: int) -> list[tuple[int, int]]:
        """The node's own edges, or all that lead out of a loop that is left."""
        flow, (failed, level) = self._flow, (self.causes[cause][0], self._levels[cause])
        around = flow.spots[failed].around
        if level == len(around):
            return self._inside(failed)
        _, body = flow.loops[around[level]]
        return [(src, dst) for src in members(body) for dst in flow.spots[src].after if not body >> dst & 1]

    def _inside(self, src: int) -> list[tuple[int, int]]:
        """Its edges that lead out of no loop."""
        flow = self._flow
        return [
            (src, dst)
            for dst in flow.spots[src].after
            if flow.shared(src, dst) == len(flow.spots[src].around)
        ]

    def _is_lost_for_good(self, cause: int, src: int, dst: int) -> bool:
        if dst in self._handlers.get(src, ()) or dst in self.causes[cause][1]:
            return False
        through = self.through(cause)
        return not any(
            through >> one & 1 or dst in self._handlers.get(one, ()) for one in self._flow.spots[dst].before
        )
