"""Why a slot did not run, and what it still waits for: followed through the log to where it began.

story.py gathers the facts; explain.py shows the causes.
"""

from __future__ import annotations

from dataclasses import dataclass

from baton.core.decide.readiness import FIRES, WAITS
from baton.core.log import events as ev
from baton.core.log.lost import unrescued
from baton.core.log.state import slot_of
from baton.core.read.attempt_history import is_asking, outlook
from baton.core.read.places import DROPPED, FAILED, SKIPPED, Arrival, End, Moment, Place
from baton.core.read.story import Story
from baton.core.read.wording import (
    condition_words,
    counted,
    held,
    listed,
    moved,
    opened,
    said,
    some,
    unhandled,
)
from baton.core.times import iso

READY, WAITING, CHILD, JOINING, UNREACHED = "ready", "waiting", "child", "joining", "unreached"
RETRYING, ASKING, RUNNING, HELD = "retrying", "asking", "running", "held"
_NO_TAILS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Cause:
    """Why something did not happen. `then`: the slot whose own cause is asked for next; empty: this is the root."""

    slot: str
    text: str
    when: Moment
    then: str = ""


def end_of(place: Place) -> End:
    """Of a slot that has ended."""
    assert place.end is not None, "it has ended"
    return place.end


class Reasons:
    """Questions about one story."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._program = story.program

    def stopped(self) -> Cause | None:
        """What ends the saga as a whole, or has ended it, and what it undoes then."""
        cause, undoing = self._stopped(), self._story.undoing
        if undoing is None:
            return cause
        event, when = undoing
        asked = f"`{event.by}` has the saga rolled back" + (f": {event.reason}" if event.reason else "")
        text = cause.text if cause is not None and (self._story.failed or self._story.cancelled) else asked
        return Cause("" if cause is None else cause.slot, f"{text}; {self._undone()}", when)

    def _undone(self) -> str:
        """How far the undoing is, or what came of it."""
        end = self._story.end
        if end is None or (found := end[0].undone) is None:
            return "it undoes what it has done"
        parts = [
            (found.done, "{} undone"),
            (found.fails, "{} could not be undone"),
            (found.lasts, "{} that nothing undoes"),
            (max(found.doubts, len(found.doubtful)), "{} in doubt"),
        ]
        return (
            some(words.format(counted(number, "step")) for number, words in parts if number)
            or "nothing was undone"
        )

    def _stopped(self) -> Cause | None:
        story = self._story
        if story.finished is not None:
            slot, when = story.finished
            return Cause(slot, f"the saga ended with `{slot}`{self._held_up()}", when)
        if story.cancelled is not None:
            event, when = story.cancelled
            reason = f": {event.reason}" if event.reason else ""
            return Cause("", f"the saga was cancelled by {event.by}{reason}{self._held_up()}", when)
        if story.failed is not None:
            slot, failed = story.failed.slot, said(story.failed.failure)
            text = f"the saga failed: {f'`{slot}`: ' if slot else ''}{failed}{self._held_up()}"
            return Cause(slot, text, story.failed.when)
        if story.end is not None:
            ended, when = story.end
            failure = f": {said(ended.failure)}" if ended.failure else ""
            return Cause("", f"the saga {ended.status}{failure}", when)
        return None

    def _held_up(self) -> str:
        """Why a saga that was stopped does not come to its end."""
        return f"; {_parked(self._story.state.parked)}" if self._story.state.parked is not None else ""

    # ---- what did not run

    def chain(self, place: Place) -> list[Cause]:
        """The shortest path from a slot that was skipped or dropped to its cause."""
        ways = [[cause] for cause in self.direct(place)]
        seen = {place.slot}
        while ways:
            further = []
            for chain in ways:
                then = chain[-1].then
                if not then:
                    return chain
                if then not in seen:
                    seen.add(then)
                    further += [[*chain, cause] for cause in self.direct(self._story.places[then])]
            ways = further
        return []

    def direct(self, place: Place) -> list[Cause]:
        """What a slot that was skipped or dropped is due to, at first hand."""
        end = end_of(place)
        if end.became == DROPPED:
            return [self.round_over(end.by)]
        if end.why == "when":
            when = self._program.nodes[place.node].when
            words = condition_words(when) if when is not None else ""
            text = "its `when` says no" + (f", {words}" if words else "") + self._left_by(place)
            return [Cause(place.slot, text, end.when)]
        if end.why:
            return [self._without(end.why.removeprefix("join "), place, end)]
        dead = [arrival for arrival in place.arrivals.values() if not arrival.late and not arrival.alive]
        return [self.dead(arrival) for arrival in self.lacking(place) or dead]

    def lacking(self, place: Place) -> list[Arrival]:
        """The edges because of which a join of all was skipped: those that have failed; else those that are lost."""
        join, ways, arrived = self._program.nodes[place.node].join, self._program.index, place.heard
        if join is not None and join.need:
            return []
        blamed = [
            (arrival, unrescued(ways, src, place.node, arrived, place.errors[src]))
            for src, arrival in place.arrivals.items()
            if src in place.errors and not arrival.alive
        ]
        failed = [arrival for arrival, left in blamed if any(not error.handled for error in left)]
        return failed or [arrival for arrival, left in blamed if left]

    def _without(self, join: str, place: Place, end: End) -> Cause:
        # A join that begins loops is heard from outside of them: in their first round.
        begins = len(self._program.index.tails_of.get(join, _NO_TAILS))
        around = len(self._program.nodes[join].loops) - begins
        slot = slot_of(join, place.iteration[:around] + (0,) * begins)
        fired = self._story.places[slot].fired
        by = f", with {listed(fired[0].by)}" if fired is not None and fired[0].by else ""
        when = fired[1] if fired is not None else end.when
        return Cause(slot, f"the join `{slot}` has fired without it{by}", when)

    def dead(self, arrival: Arrival) -> Cause:
        """Why an edge was not taken."""
        if arrival.errors:
            failure = arrival.errors[0]
            source = failure.node or arrival.src
            by = f" (it came by `{arrival.src}`)" if source != arrival.src else ""
            return Cause(
                source,
                f"`{source}` failed: {said(failure)}{self._handled(failure, arrival)}{by}",
                arrival.when,
            )
        if not arrival.cause:
            return Cause("", "the saga began without it", arrival.when)
        place = self._story.places[arrival.cause]
        end = end_of(place)
        around = "" if place.node == arrival.src else f"the loop around `{arrival.src}` ended with "
        if end.became == SKIPPED:
            text = f"{around}`{place.slot}`, which was skipped" if around else f"`{place.slot}` was skipped"
            return Cause(place.slot, text, end.when, then=place.slot)
        went = moved(self._program, place)
        text = f"{around}`{place.slot}`: {went}" if around else f"`{place.slot}` went another way: {went}"
        return Cause(place.slot, text, end.when)

    def _handled(self, failure: ev.Failure, arrival: Arrival) -> str:
        """What became of a failure that was caught: its handlers, or that their conditions have skipped them all."""
        if not failure.handled:
            return ""
        ways, cause = self._program.index, self._story.places[arrival.cause]
        source = failure.node
        known = cause.iteration[: ways.shared(cause.node, source)]
        names = listed(failure.handled)
        if any(ways.shared(source, name) > len(known) for name in failure.handled):
            return f", which is for {names}"  # in which round is not known
        slots = (slot_of(name, ways.arriving(source, name, known)) for name in failure.handled)
        is_skipped = unhandled(self._story.places, slots)
        return f", which is for {names}, whose `when` says no" if is_skipped else f", which {names} handles"

    def _left_by(self, place: Place) -> str:
        """What failures are handled by nothing, since this node and the other handlers were skipped."""
        places = self._story.places
        senders = [
            places[arrival.cause].node
            for arrival in place.arrivals.values()
            if arrival.alive and arrival.errors and unhandled(places, end_of(places[arrival.cause]).to)
        ]
        return f", and so nothing handles the failure of {listed(senders)}" if senders else ""

    def round_over(self, by: str) -> Cause:
        """The round that a slot was in has ended with another."""
        place = self._story.places[by]
        end = end_of(place)
        if end.became == SKIPPED:
            return Cause(by, f"the loop ended with `{by}`, which was skipped", end.when, then=by)
        if end.became == FAILED and end.failure is not None:
            text = f"the loop ended with the failure of `{by}`: {said(end.failure)}"
            return Cause(by, text, end.when)
        text = f"its round ended before its turn, with `{by}`: {moved(self._program, place)}"
        return Cause(by, text, end.when)

    def ended_round(self, place: Place) -> list[Cause]:
        """Why a slot that was never reached cannot be reached any more: its round is over. Empty if it goes on."""
        loops = self._program.nodes[place.node].loops
        for depth, tail in enumerate(loops, 1):
            by = self._story.over.get((tail, place.iteration[:depth]))
            if by is not None:
                cause = self.round_over(by)
                return [cause, *(self.chain(self._story.places[by]) if cause.then else ())]
        return []

    # ---- what is not over

    def state(self, place: Place) -> str:
        """What a slot that has not ended is doing."""
        if not place.arrivals:
            return UNREACHED
        if place.opened is not None:
            return self._program.kinds[self._program.doing(place.slot).kind].word(place.opened.work())
        if self.at_work(place):
            return RUNNING
        if place.held is not None:
            return HELD
        if place.attempts:
            return ASKING if is_asking(place) else RETRYING
        return JOINING if self._turn(place) == WAITS else READY

    def at_work(self, place: Place) -> list[str]:
        """What the items of a node are called that are not over."""
        return [one.label for one in self._story.items.get(place.slot, ()) if one.end is None]

    def doing(self, place: Place) -> str:
        """The same in words, of a saga that goes on."""
        if not place.arrivals:
            return "is not reached yet"
        if items := self.at_work(place):
            return f"waits for {some(items)}"
        if place.opened is not None:
            return f"waits for {opened(self._program, place)}"
        turn = self._turn(place)
        if turn == WAITS:
            return f"waits for its edges from {listed(self.missing(place))}"
        if place.held is not None and self._story.state.parked is None:
            return f"waits for {held(place.held)}"
        if place.attempts and (is_asking(place) or self._story.state.parked is None):
            return outlook(place)
        if self._story.state.parked is not None:
            return f"is ready, but {_parked(self._story.state.parked)}"
        if turn == FIRES:
            limits = "" if self._program.caps is None else ", and its limits allow it"
            return f"is ready: it runs, or will as soon as there is room{limits}"
        return "has heard from its edges; what becomes of it is written next"

    def was_doing(self, place: Place) -> str:
        """The same, of a saga that has stopped."""
        if not place.arrivals:
            return "was not reached"
        if items := self.at_work(place):
            return f"was waiting for {some(items)}"
        if place.opened is not None:
            return f"was waiting for {opened(self._program, place)}"
        if self._turn(place) == WAITS:
            return f"was waiting for its edges from {listed(self.missing(place))}"
        if place.held is not None:
            return f"was waiting for {held(place.held)}"
        failed = outlook(place)
        return f"{failed}; it was not done" if failed else "was not done"

    def had_turn(self, place: Place) -> bool:
        """Whether its edges let a slot run, which may have been stopped since."""
        return bool(place.arrivals) and self._turn(place) == FIRES

    def _turn(self, place: Place) -> str:
        return FIRES if place.item else self._program.turn_at(place.node, place.heard, place.errors)

    def missing(self, place: Place) -> list[str]:
        """The nodes whose edges have not arrived."""
        return [src for src in self._program.nodes[place.node].before if src not in place.arrivals]

    def held_up_by(self, place: Place) -> list[Place]:
        """The open slots, with something to do, that the edges which have not spoken come from."""
        nodes, ways = self._program.nodes, self._program.index
        around = nodes[place.node].loops
        names: dict[str, None] = {}
        todo = self.missing(place)
        while todo:
            name = todo.pop()
            if name not in names:
                names[name] = None
                todo += nodes[name].before
                # An edge out of a loop speaks when the loop is left, by whichever of its nodes.
                todo += (
                    inside for tail in nodes[name].loops if tail not in around for inside in ways.body[tail]
                )
        return [
            other
            for other in self._story.places.values()
            if other.end is None
            and other.node in names
            and self.state(other) != JOINING
            and all(
                mine == its
                for mine, its in zip(
                    place.iteration[: ways.shared(place.node, other.node)], other.iteration, strict=False
                )
            )
        ]


def _parked(parked: ev.Parked) -> str:
    until = f", until {iso(parked.until)}" if parked.until else ""
    return f"the saga is parked{until}: {parked.code}: {parked.message}"
