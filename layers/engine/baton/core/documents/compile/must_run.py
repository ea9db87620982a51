"""Analysis of the nodes that are sure to be done once a node is done, unless the saga fails (must-run).

Facts that follow forwards, along every path.
What has been before, and when, is in available_outputs.py.
Every approximation here is for the worse: what is not proved does not count.

A fact is a bit: that a node is done, in this round or, seen from outside of its loop, in every round of it.
Besides, for joins that count and for loops:

- a *voice*: that an edge into such a join is alive, or failed where that is tolerated; or that the join is
  over it;
- a *call*: the same of an edge into a join that waits for all, or that this join does not fire: it is alive
  if it does;
- an *end*: that a round of a loop ends with its last node done, or the loop is left by a branch or with one
  around it.

Where a node ends the saga, everything follows, since nothing of what begins later needs to be right.
That is so at once: the engine lets the end begin before anything else that its sender has made ready.
It is not so while a node still runs of which only the end is sure to follow: until then, other nodes begin.
For those, everything follows only if that node is among the ones that have ended by then (`ended_by_then`).
A node that has another way is no such node: for what has ended before it chooses,
it may yet choose the other way, and whatever is sure is sure by that way.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator

from baton.core.documents.compile.flow import EndedBefore, Flow, FlowNode, in_most, members


class LossCauses:
    """Causes, by node of a flow and its number, that may be on the node's edges.
    A cause is a rule of a node's `catch`, as a bit.

    A cause is a rule of a node's `catch`, as a bit.
    A flow without handlers has none.
    `tolerated`: the nodes whose failure does not fail the saga.
    `go_on` is asked before each piece of work as long as the document, and raises when it takes too long.
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
        """Causes that may be on an edge into each node."""
        self._rescuing: dict[int, int] = {}
        self._behind: dict[tuple[int, bool], int] = {}
        self._following: dict[int, int] = {}
        self._other_ways: dict[tuple[int, int], int] = {}
        if self.causes:
            for index in range(len(flow.spots)):
                for src in flow.spots[index].before:
                    self.into[index] |= self._along(src, index)

    def without(self, ending: int) -> LossCauses:
        """Return the facts in which these causes lose nothing either; itself, if they lose nothing anyway."""
        lossy = in_most(self._own, 1) & ending
        return LossCauses(self._flow, self._go_on, self._tolerated, self._ending | lossy) if lossy else self

    def _along(self, src: int, dst: int) -> int:
        """Return the causes that may be on the edge."""
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
        """Return the causes for which the node may be skipped and that it then passes on."""
        spot, found = self._flow.spots[index], self.into[index]
        if spot.tolerated >= 0 and not spot.need:
            return 0
        if found and not spot.need and len(spot.before) > 1:
            for cause in members(found):
                if self._is_always_rescued(cause, index):
                    found ^= 1 << cause
        return found

    def _is_always_rescued(self, cause: int, index: int) -> bool:
        """Return true if the cause always leaves the node a live edge.

        The edge comes from a handler of the cause, or from a node that simply follows.
        """
        follows = self._follows(cause)
        return any(
            follows >> src & 1 and self._is_plain(src, index) for src in self._flow.spots[index].before
        )

    def _follows(self, cause: int) -> int:
        """Return the nodes that are sure to be done if the saga goes on after this cause: handlers,
        and nodes that simply follow.
        """
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
        """Return true if the node is a handler of all nodes before it.

        Then nothing that is lost or not chosen keeps the node from running.
        """
        spot = self._flow.spots[index]
        is_handler = all(index in self._handlers.get(src, ()) for src in spot.before)
        is_inside = all(self._flow.spots[src].around == spot.around for src in spot.before)
        return is_handler and is_inside and spot.need <= 1 and spot.tolerated < 0

    def _is_plain(self, src: int, dst: int) -> bool:
        """Return true if the edge is alive whenever its sender is done, and leads out of no loop."""
        sender, receiver = self._flow.spots[src], self._flow.spots[dst]
        is_inside = sender.around == receiver.around and not sender.is_tail
        return is_inside and all(dst in way for way in sender.outcomes)

    def is_sure(self, src: int, dst: int) -> bool:
        """Return true if no lost edge can keep the node from running when the edge from `src` is alive."""
        spot = self._flow.spots[dst]
        if spot.need or len(spot.before) < 2 or not self.into[dst]:
            return True
        return all(
            self._is_harmless(cause, src, dst) or self._is_always_rescued(cause, dst)
            for cause in members(self.into[dst])
        )

    def _is_harmless(self, cause: int, src: int, dst: int) -> bool:
        """Return true if the cause has not happened when this edge is alive, or is rescued at the node."""
        failed, handlers = self.causes[cause]
        return (
            src == failed
            or dst in handlers
            or dst in self._handlers.get(src, ())
            or bool(self._from_handlers(cause) >> src & 1)
            or bool(self._only_behind(failed) >> src & 1)
            or bool(self._not_chosen(src, dst) >> failed & 1)
            or bool(src in self._handlers and self._only_behind(src, has_failed=True) >> failed & 1)
        )

    def keeping(self, index: int) -> tuple[int, bool] | None:
        """Return a node whose caught failure keeps this one from running, and true if it always does.

        Return None if no node does.
        """
        spot = self._flow.spots[index]
        if spot.tolerated >= 0 and not spot.need:
            return None
        for cause in members(self.into[index]):
            if not self._is_always_rescued(cause, index):
                may_go_on = spot.need or any(self._from_handlers(cause) >> src & 1 for src in spot.before)
                return self.causes[cause][0], not may_go_on
        return None

    def _from_handlers(self, cause: int) -> int:
        """Return the handlers, and the nodes to which a path leads from one of them."""
        if cause not in self._rescuing:
            self._go_on()
            _, handlers = self.causes[cause]
            found = sum(1 << index for index in handlers)
            for index, behind in enumerate(self._flow.behind):
                found |= bool(behind & found) << index
            self._rescuing[cause] = found
        return self._rescuing[cause]

    def _not_chosen(self, src: int, dst: int) -> int:
        """Return the nodes in the same loops that do not become ready where this edge is alive:
        another choice leads to them.
        """
        if (src, dst) not in self._other_ways:
            flow, found = self._flow, 0
            sender = flow.spots[src]
            beside = {other for way in sender.outcomes if dst in way for other in way}
            chosen = {other for way in sender.outcomes for other in way} - beside
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
    def _can_begin_without(spot: FlowNode) -> bool:
        """Tell if it can become ready, or fail, although nothing leads to it:
        by what is lost, where it tolerates failures.
        """
        return not spot.before or (spot.tolerated >= 0 and (not spot.need or bool(spot.caught)))

    def _only_behind(self, index: int, *, has_failed: bool = False) -> int:
        """Return the nodes that become ready, or fail, only if the node was done:
        every path to them leads through its success.

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
        """Yield sender and receiver of edges that are sure to be lost by a cause,
        and not to be rescued where they lead to.

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
        """Return the node's own edges, or all that lead out of a loop that is left."""
        flow, (failed, level) = self._flow, (self.causes[cause][0], self._levels[cause])
        around = flow.spots[failed].around
        if level == len(around):
            return self._inside(failed)
        _, body = flow.loops[around[level]]
        return [(src, dst) for src in members(body) for dst in flow.spots[src].after if not body >> dst & 1]

    def _inside(self, src: int) -> list[tuple[int, int]]:
        """Return the node's edges that lead out of no loop."""
        flow = self._flow
        return [
            (src, dst)
            for dst in flow.spots[src].after
            if flow.shared(src, dst) == len(flow.spots[src].around)
        ]

    def _is_lost_for_good(self, cause: int, src: int, dst: int) -> bool:
        if dst in self._handlers.get(src, ()) or dst in self.causes[cause][1]:
            return False
        rescuing = self._from_handlers(cause)
        return not any(
            rescuing >> one & 1 or dst in self._handlers.get(one, ()) for one in self._flow.spots[dst].before
        )


# What follows from something that cannot happen: everything.
_NEVER = -1


class MustRun:
    """Facts that follow once a node is done, by the node's number."""

    def __init__(
        self,
        flow: Flow,
        ended: EndedBefore,
        lost: LossCauses,
        go_on: Callable[[], None],
        ended_by_then: int = -1,
    ) -> None:
        """Prepare the facts. `ended_by_then`: the nodes that have ended when the facts are asked for.

        All nodes (-1) have ended when the saga is complete.
        """
        self._flow, self._ended, self._lost, self._ended_by_then = flow, ended, lost, ended_by_then
        count = len(flow.spots)
        self._next_bit = count
        self._voice: dict[tuple[int, int], int] = {}
        self._voices: dict[int, int] = {}
        self._all_voices = 0
        for index, spot in enumerate(flow.spots):
            if spot.need > 1 or spot.tolerated >= 0:
                self._give_voices(index, spot)
        self.calls: dict[int, dict[int, int]] = {}
        """For joins that fire only if no edge has failed or is lost: the bit of the call of each sender."""
        self._calls_in = dict.fromkeys(flow.loops, 0)
        for index, spot in enumerate(flow.spots):
            is_strict = spot.tolerated == 0 or (spot.tolerated < 0 and bool(ended.tolerated >> index & 1))
            if (
                spot.need == 0
                and len(spot.before) > 1
                and (
                    is_strict
                    or (spot.tolerated < 0 and (spot.around or lost.into[index] or index in ended.stopped_by))
                )
            ):
                self.calls[index] = {before: self._new_bit() for before in spot.before}
                for last in spot.around:
                    self._calls_in[last] |= _union(self.calls[index].values())
        self._calls_stopped: dict[int, int] = {}
        """By join, the calls of the joins that do not fire any more once it has."""
        for index, calls in self.calls.items():
            for join in ended.stopped_by.get(index, ()):
                self._calls_stopped[join] = self._calls_stopped.get(join, 0) | _union(calls.values())
        self._may_be_stopped = ended.stopped_by.keys() | ended.cut.keys()
        self._end = {last: self._new_bit() for last in flow.loops}
        self._left = dict.fromkeys(flow.loops, -1)
        self._firsts: dict[int, list[int]] = {}
        for last, (first, _) in sorted(flow.loops.items(), key=lambda loop: loop[1][1].bit_count()):
            self._firsts.setdefault(first, []).append(last)
        self.done = [0] * count
        """Facts that follow once a node is done; for the last node of a loop, once the loop is left too."""
        self.along: dict[int, list[tuple[tuple[int, ...], int]]] = {}
        """For nodes with several outcome sets: each, and what follows from its being taken."""
        self.handled: dict[int, list[tuple[tuple[int, ...], int]]] = {}
        """For nodes that catch their failures: each set of handlers, and what follows from its being taken.
        """
        self.doomed = 0
        """The nodes behind which, whatever they choose, the saga ends."""
        self.ending = 0
        """The causes (must_run.py) with which, whatever comes after them, the saga ends."""
        self._called = [0] * count
        self._called_failed: dict[int, int] = {}
        for index in range(count - 1, -1, -1):
            go_on()
            self._look_at(index, flow.spots[index])
        self.start = self._closed(
            _union(self._if_alive(index) for index, spot in enumerate(flow.spots) if not spot.before)
        )
        """Facts that are sure in every saga that completes."""

    def _new_bit(self) -> int:
        self._next_bit += 1
        return 1 << self._next_bit - 1

    def _give_voices(self, index: int, spot: FlowNode) -> None:
        self._voices[index] = 0
        for before in spot.before:
            self._voice[before, index] = bit = self._new_bit()
            self._voices[index] |= bit
            self._all_voices |= bit

    def _look_at(self, index: int, spot: FlowNode) -> None:
        ways = [self._flow.going(index, way) for way in spot.outcomes]
        facts = [self._way(index, level, going) for level, going in ways]
        after = _NEVER if spot.ends else 0 if spot.is_endless else in_most(facts, len(facts))
        if len(ways) > 1:
            self.along[index] = [(going, known) for (_, going), known in zip(ways, facts, strict=True)]
        self.done[index] = 1 << index | after
        if after == _NEVER:
            self.doomed |= 1 << index
            if not self._ended_by_then >> index & 1:
                facts = [self._way(index, level, going, is_ending=False) for level, going in ways]
                after = in_most(facts, len(facts))
        # The last node of a loop leaves its own with every outcome set; one that leads further leaves more.
        if spot.is_endless:
            self._left[index] &= ~self._inside(index)
        for (level, _), known in () if spot.is_endless else zip(ways, facts, strict=True):
            for last in spot.around[level:]:
                self._left[last] &= known | 1 << index
        done = 1 << index | after
        passed_on = self._failed(index) if self._ended.tolerated >> index & 1 else _NEVER
        failed = self._caught(index, spot) & (_NEVER if spot.catches_all else passed_on)
        if spot.is_tail:
            self._left[spot.around[-1]] &= passed_on & failed
        begun = self._begun(index, spot, done, is_done=True)
        self.done[index] |= begun
        begun &= self._begun(index, spot, failed)
        if self._ended.tolerated >> index & 1:
            passed_on = self._begun(index, spot, passed_on)
            is_passed_on = not spot.need
            self._called_failed[index] = self._kept(
                index, passed_on if is_passed_on else 0 if spot.asks else begun & passed_on
            )
        self._called[index] = 0 if spot.asks else self._kept(index, begun)

    def _inside(self, last: int) -> int:
        """Return the facts about one round of a loop; they say nothing of other rounds or the whole loop."""
        body = self._flow.loops[last][1]
        found = body | self._calls_in[last] | self._end[last]
        for index in members(body):
            found |= self._voices.get(index, 0) | self._end.get(index, 0)
        return found

    def _caught(self, index: int, spot: FlowNode) -> int:
        """Return the facts that follow when the node fails and a rule of its `catch` fits."""
        after = _NEVER
        for rule, way in enumerate(spot.caught):
            level, going = self._flow.going(index, way)
            facts = self._way(index, level, going, self._losing(index, rule))
            after &= facts
            if facts == _NEVER:
                self.ending |= 1 << self._lost.first_of[index] + rule
            self.handled.setdefault(index, []).append((going, facts))
            for last in spot.around[level:]:
                self._left[last] &= facts
        return after

    def _begun(self, index: int, spot: FlowNode, facts: int, *, is_done: bool = False) -> int:
        """Return the facts that follow once the node has begun, given `facts` that follow its end."""
        if facts == _NEVER:
            return facts
        if spot.is_tail:
            own = spot.around[-1]
            if is_done:
                facts = 1 << index | self._end[own]
            elif self._flow.loops[own][0] != index:
                facts = self._end[own]
        for last in self._firsts.get(index, ()):
            if facts & self._end[last]:
                facts |= self._out_of(last)
        return facts

    def _call(self, src: int, dst: int) -> int:
        return self.calls[dst].get(src, 0) if dst in self.calls else 0

    def _losing(self, index: int, rule: int) -> int:
        """Return the facts that follow from the lost edges when this rule of the node's `catch` fits."""
        facts, cause = 0, self._lost.first_of[index] + rule
        for src, dst in self._lost.losing(cause, self._may_be_stopped):
            spot = self._flow.spots[dst]
            if spot.tolerated >= 0 and not spot.need:
                facts |= self._voice[src, dst]
            facts |= self._call(src, dst)
        return facts

    def _if_alive(self, index: int, *, is_ending: bool = True) -> int:
        """Return the facts that follow when an edge to the node is alive, or the node has none.

        The node needs no more than that.
        """
        return _NEVER if is_ending and self._flow.spots[index].at_once else self._called[index]

    def _way(
        self, index: int, level: int, going: tuple[int, ...], facts: int = 0, *, is_ending: bool = True
    ) -> int:
        """Return `facts` and those that follow when these receivers get a live token.

        Without `is_ending`, no receiver counts as one that ends the saga.
        """
        for other in going:
            if self._flow.spots[other].need <= 1 and self._lost.is_sure(index, other):
                facts |= self._if_alive(other, is_ending=is_ending)
            facts |= self._voice.get((index, other), 0) | self._call(index, other)
        for last in self._flow.spots[index].around[level : self._flow.level(index)]:
            facts |= self._end[last] | self._calls_to_come(index, last)
        return self._closed(facts)

    def _calls_to_come(self, index: int, last: int) -> int:
        """Return the calls of joins in a loop that cannot have fired before the node ended,
        and never will in this round.
        """
        body, before = self._flow.loops[last][1], self._ended.before
        return _union(
            _union(calls.values())
            for join, calls in self.calls.items()
            if body >> join & 1 and before[join] >> index & 1
        )

    def _failed(self, index: int) -> int:
        """Return the facts that follow when the node fails, or passes a failure on.

        The edges out of a loop are its last node's.
        """
        flow, facts = self._flow, 0
        level = flow.level(index)
        for other in flow.spots[index].after:
            if flow.shared(index, other) == level:
                is_tolerant = flow.spots[other].tolerated >= 0
                # A join that passes nothing on, since that would fail the saga, is as good as called.
                called = self._called_failed.get(other, self._called[other])
                facts |= self._voice[index, other] if is_tolerant else called
                facts |= self._call(index, other)
        return self._closed(facts)

    def _out_of(self, last: int) -> int:
        """Return the facts that follow when a loop is left on any way, or stopped by a join behind it."""
        facts = self._left[last]
        body = self._flow.loops[last][1]
        for index in members(body):
            for join in self._ended.stopped_by.get(index, ()):
                if not body >> join & 1:
                    facts &= self._called[join] | self._voices.get(join, 0)
        return facts

    def _kept(self, index: int, facts: int) -> int:
        """Return the facts that still hold if a node is only known to have been called:
        it may yet be stopped.
        """
        around = self._flow.spots[index].around
        for join in self._ended.stopped_by.get(index, ()):
            instead = self._called[join] | self._voices.get(join, 0) | self._calls_stopped.get(join, 0)
            for last in around:
                if not self._flow.loops[last][1] >> join & 1:
                    instead |= self._end[last]
            facts &= instead
        if index in self._ended.cut:
            left = around[self._ended.cut[index] :]
            facts &= _union(self._end[last] for last in left) | self._calls_in[left[0]]
        return facts

    def _closed(self, facts: int) -> int:
        """Return the facts, with the joins that have enough voices."""
        is_growing = bool(facts & self._all_voices)
        while is_growing:
            is_growing = False
            for join, voices in self._voices.items():
                spot = self._flow.spots[join]
                enough = (facts & voices).bit_count() >= (spot.need or len(spot.before))
                if enough and self._called[join] & ~facts:
                    facts |= self._called[join]
                    is_growing = True
        return facts


def _union(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found
