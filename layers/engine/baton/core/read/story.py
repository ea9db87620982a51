"""Facts of a log about each slot: its arrivals and their causes, its end, and the edges taken.

The facts are gathered while the entries are folded; values are dropped, so that a long log fits.
log/folding/fold.py applies the entries, explain.py draws conclusions from the facts, places.py words them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from baton.core.decide.program import PENDING, Program
from baton.core.decide.program import READY as JOIN_READY
from baton.core.expressions import iso
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.folding.forks import fork_in, lineage_to, without_whole_saga_stops
from baton.core.log.records import Sent
from baton.core.log.scopes import Agent
from baton.core.log.slots import Slot, owner_of, slot_of
from baton.core.log.state import State, carriers, unrescued
from baton.core.nodes.base import Kind
from baton.core.read import places
from baton.core.read.places import (
    DROPPED,
    FAILED,
    SKIPPED,
    Arrival,
    Attempt,
    End,
    Moment,
    Place,
    SagaFailure,
    code_and_message,
    condition_words,
    counted,
    held_for,
    is_asking,
    names_in_words,
    onward_in_words,
    outlook,
    skipped_handlers,
    texts_in_words,
    wait_reason,
)
from baton.core.read.views import stopping_in_words

_Begins = ev.NodeBegan | ev.ItemsBegan | ev.OperationsBegan
_OfPlace = (
    ev.AttemptFailed
    | ev.StrategyChosen
    | ev.StepHeld
    | ev.QuestionClosed
    | ev.ReplanEnded
    | ev.QuestionEscalated
    | ev.QuestionClaimed
    | ev.UnitRecorded
)


_OfUndoing = ev.UndoBegan | ev.UndoStepBegan | ev.UndoPassed | ev.ChildUndone | ev.StepStopped


Ends = ev.Gives | ev.StepFailed | ev.AttemptFailed


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """End of an attempt at a slot, with the state before it."""

    event: Ends
    before: State
    when: Moment


def wants_nothing(_node: str, _version: int) -> bool:
    """Want no attempts of any node."""
    return False


class Story:
    """History of a saga, gathered while the entries of its lineage are folded in their order."""

    def __init__(self, program: Program, wants: Callable[[str, int], bool] = wants_nothing) -> None:
        self.program = self._newest = program
        self.runs: list[AttemptEnd] = []
        """Ends of the attempts that are wanted, by node and version."""
        self._wants = wants
        self.state = State()
        """State of the entries read, but for the saga's end: the end would remove its slots."""
        self.places: dict[str, Place] = {}
        self.ended: list[str] = []
        """The slots that are done, skipped, failed or dropped, in that order."""
        self.rounds: dict[str, dict[tuple[int, ...], None]] = {}
        """For each last node of a loop: the rounds that have begun."""
        self.items: dict[str, list[Place]] = {}
        """The items of nodes that do several things at once, by the slots of these."""
        self.over: dict[tuple[str, tuple[int, ...]], str] = {}
        """For each round of a loop that is over: the slot that ended it."""
        self.sent: Sent | None = None
        """The event from outside that has started it."""
        self.changed: dict[str, tuple[ev.ValueChanged, Moment]] = {}
        """By node, the outputs that forks have changed; an empty name: the saga's input."""
        self.version = 0
        self._come_to(0)

    def _come_to(self, branch: int) -> None:
        """Give a fresh start to what had stopped the saga as a whole, and to the step that did,
        as a fork does.
        """
        self._branch, self.state = branch, without_whole_saga_stops(self.state)
        self.failed: SagaFailure | None = None
        self.cancelled: tuple[ev.CancelRequested, Moment] | None = None
        self.finished: tuple[str, Moment] | None = None
        """The slot that has given the saga's result, if an end did."""
        self.end: tuple[ev.SagaEnded, Moment] | None = None
        self.undoing: tuple[ev.UndoBegan, Moment] | None = None
        self.reopened: list[tuple[Place, End]] = []
        """Slots that had ended and start afresh."""
        for slot in self.state.tokens:
            place = self.places.get(slot)
            if place is not None and place.end is not None:
                self.reopened.append((place, place.end))
                place.end = None
                self.ended.remove(slot)

    def agree_with(self, state: State) -> None:
        """Take over the facts that the entries alone do not give.

        They are the begin of a branch, and the children and work elsewhere that the branch no longer has.
        No entry can be added afterwards.
        """
        if state.lineage.branch != self._branch:
            self._come_to(state.lineage.branch)
        self.state, self.program = state, self._newest
        for slot, place in self.places.items():
            if place.opened is None or place.end is not None or slot in state.open:
                continue
            is_elsewhere = state.ended is None and isinstance(place.opened, ev.CallbackOpened)
            if place.opened.work().orphan is not None or is_elsewhere:
                place.opened = None

    def change(self, entry: ev.Entry) -> None:
        """Take in the changes of a fork, by its entry, which is no part of the lineage."""
        fork = fork_in(entry)
        if fork is None or fork.undo:
            return
        self._come_to(fork.branch)
        when = Moment(entry.version, entry.at)
        for event in entry.events[entry.events.index(fork) + 1 :]:
            self.state = apply(self.state, event)
            if isinstance(event, ev.ValueChanged):
                self.changed[event.node] = (event, when)

    def add(self, entry: ev.Entry) -> None:
        """Add the next entry of the lineage."""
        if entry.branch != self._branch:
            self._come_to(entry.branch)
        when = Moment(entry.version, entry.at)
        self.version, self.program = entry.version, self._newest.at(entry.version)
        for event in entry.events:
            if isinstance(event, ev.SagaEnded):
                self.end = (event, when)
            else:
                before, self.state = self.state, apply(self.state, event)
                if isinstance(event, Ends) and self._wants(event.node, when.version):
                    self.runs.append(AttemptEnd(event, before, when))
                if isinstance(event, _OfUndoing):
                    places.see_undo_event(self, event, when)
                    continue
                self._see(event, before, self.state, when)

    def _see(self, event: ev.Event, before: State, after: State, when: Moment) -> None:
        if isinstance(event, ev.Settles):
            if after.result is not before.result:
                self.finished = (Slot.parse(event.slot).owner, when)
            self._settle(event, before, when)
        elif isinstance(event, ev.SagaStarted):
            self.sent = event.sent
            self._hear(event.emits, "", when)
        elif isinstance(event, ev.JoinFired) and after is not before:
            self.places[slot_of(event.node, event.iteration)].fired = (event, when)
        elif isinstance(event, ev.Opens):
            # Also where the fold passes over it: which children a fork has left, it does not know here.
            self.places[event.slot].opened = event
        elif isinstance(event, _OfPlace):
            self._see_tried(event, before, after, when)
        elif isinstance(event, _Begins) and not after.items.keys() <= before.items.keys():
            self._begin(event, after, when)
        elif isinstance(event, ev.Moving):
            item, text = self._kind(event.node).says(event)
            if item:
                self.places[Slot.parse(event.slot).child(item).text].said = text
        elif isinstance(event, ev.CancelRequested):
            self.cancelled = self.cancelled or (event, when)
        elif isinstance(event, ev.LimitReached):
            self.failed = self.failed or SagaFailure("", event.failure, when)

    def _begin(self, event: _Begins, after: State, when: Moment) -> None:
        owner = Slot.parse(event.slot).owner
        for item in (event.item,) if isinstance(event, ev.NodeBegan) else event.items:
            slot = Slot.parse(owner).child(item).text
            place = self.place(slot, event.node, event.iteration, item)
            place.label = self._kind(event.node).label(after.open.get(owner), item)
            place.arrivals[event.node] = Arrival(event.node, True, (), owner, when, False)
            self.items.setdefault(owner, []).append(place)

    def _see_tried(self, event: _OfPlace, before: State, after: State, when: Moment) -> None:
        """Record an event of a step that has failed, of a question, or of a unit of work."""
        place = self.places.get(event.slot)
        if place is None:
            return
        place.held = event if isinstance(event, ev.StepHeld) else None
        if isinstance(event, ev.UnitRecorded):
            place.units.append(places.unit_of(event, when))
        elif isinstance(event, ev.ReplanEnded):
            place.opened = None
        elif isinstance(event, ev.QuestionEscalated | ev.QuestionClaimed):
            place.moves += [event] if after is not before else []
        elif (
            isinstance(event, ev.QuestionClosed)
            and place.slot in before.open
            and place.slot not in after.open
        ):
            place.opened = None  # what it asked for is approved: it goes on
        elif after.failing is not before.failing and not isinstance(event, ev.StepHeld):
            _try(place, event, when)
        elif place.opened is not None and isinstance(event, ev.QuestionClosed):
            place.answer = event

    def _kind(self, node: str) -> Kind:
        return self.program.kinds[self.program.nodes[node].kind]

    def place(self, slot: str, node: str, iteration: tuple[int, ...], item: str = "") -> Place:
        place = self.places.get(slot)
        if place is None:
            place = self.places[slot] = Place(node, iteration, item)
            for depth, tail in enumerate(self.program.nodes[node].loops[: len(iteration)], 1):
                self.rounds.setdefault(tail, {})[iteration[:depth]] = None
        return place

    def _hear(
        self,
        emits: Iterable[ev.Token],
        cause: str,
        when: Moment,
        blame: tuple[ev.Failure, ...] = (),
        carried_by: Collection[tuple[str, str]] = (),
    ) -> None:
        """Record that the tokens have arrived, or were absorbed."""
        for token in emits:
            slot = token.slot
            place = self.place(slot, token.dst, token.iteration)
            errors = blame if (token.src, token.dst) in carried_by else ()
            late = token.src not in self.state.tokens.get(slot, ())
            place.arrivals[token.src] = Arrival(token.src, token.alive, errors, cause, when, late)

    def is_open(self, place: Place) -> bool:
        """Return true if the work at a place goes on: once the saga is rolled back, nothing else does."""
        return place.end is None and (self.undoing is None or bool(Slot.parse(place.slot).scope))

    def _settle(self, event: ev.Settles, before: State, when: Moment) -> None:
        slot = event.slot
        if Slot.parse(slot).scope:
            places.settle_undo(self, event, event.became, event_failure(event), when)
            return
        if slot not in before.tokens or self.places[slot].end is not None:
            if isinstance(event, ev.MapEnded):
                self._drop((one.slot for one in self.items.get(slot, ())), slot, when)
                by = f", stopped by {event.why}" if event.why else ""
                self.places[slot].fate = f"the items that ran on beside what follows are over{by}"
            return  # what fails the saga leaves its tokens
        failure = event_failure(event)
        if event.item and event.emits:  # it has failed its node, which ends with it
            self.close(slot, End(event.became, when, failure=failure))
            event, slot = replace(event, item=""), owner_of(slot)
        self._hear(event.emits, slot, when, event.errors, carriers(event))
        ways: dict[bool, list[str]] = {True: [], False: []}
        for token in event.emits:
            if token.src == event.node:
                ways[token.alive].append(token.slot)
        loops = () if event.item else self.program.nodes[event.node].loops
        level = self._level(event) if loops else 0
        leaves = loops[level] if level < len(loops) else ""
        end = End(
            became=event.became,
            when=when,
            way=event.way,
            why=event.why if isinstance(event, ev.NodeSkipped) else "",
            to=tuple(ways[True]),
            not_to=tuple(ways[False]),
            leaves=leaves,
            failure=failure,
            closed_by=event.by,
            recorded=isinstance(event, ev.StepSucceeded) and event.recorded,
            blocked_ms=event.blocked_ms if isinstance(event, ev.StepSucceeded | ev.StepFailed) else 0,
            until=0 if event.paused is None else event.paused.until,
        )
        self.close(slot, end)
        is_told = isinstance(event, ev.StepFailed) and event.is_result
        if failure is not None and not event.emits and not is_told:
            self.failed = self.failed or SagaFailure(slot, failure, when)
        elif leaves:
            self.over[leaves, event.iteration[: level + 1]] = slot
        goes_on = isinstance(event, ev.MapClosed) and event.goes_on
        if goes_on:
            self.places[slot].fate = "its other items run on beside what follows"
        of_it = () if goes_on else (one.slot for one in self.items.get(slot, ()))
        self._drop((*event.drops, *of_it), slot, when)

    def _drop(self, slots: Iterable[str], by: str, when: Moment) -> None:
        """Close the slots that have not ended as dropped."""
        for slot in slots:
            if self.places[slot].end is None:
                self.close(slot, End(DROPPED, when, by=by))

    def close(self, slot: str, end: End) -> None:
        self.places[slot].end = end
        self.ended.append(slot)

    def _level(self, event: ev.Settles) -> int:
        """Return the number of loops around the next nodes in this round.

        The number is smaller than around the node itself if a loop is left.
        """
        node, shared = self.program.nodes[event.node], self.program.index.shared
        depth = len(node.loops) - (node.loop is not None)
        return min([depth, *[shared(token.src, token.dst) for token in event.emits]])


def event_failure(event: ev.Settles) -> ev.Failure | None:
    """Return the failure of a node, or the reason why the next nodes are unknown."""
    return event.failure if isinstance(event, ev.StepFailed) else event.fault


def _try(place: Place, event: ev.AttemptFailed | ev.StrategyChosen | ev.QuestionClosed, when: Moment) -> None:
    if isinstance(event, ev.AttemptFailed):
        lasted = event.ended_at - event.started_at
        if event.callback:  # it has gone on elsewhere, since its tool began
            began = place.opened if isinstance(place.opened, ev.CallbackOpened) else event
            lasted = event.ended_at - began.started_at
            place.opened = None
        place.attempts.append(
            Attempt(event.attempt, event.tool, event.failure, lasted, event.blocked_ms, when)
        )
    elif isinstance(event, ev.StrategyChosen):
        place.attempts[-1].then.append(replace(event, arguments=dict.fromkeys(event.arguments)))
    else:
        place.attempts[-1].answers[event.ask] = replace(event, arguments=dict.fromkeys(event.arguments))


def read_story(program: Program, state: State, entries: Iterable[ev.Entry]) -> Story:
    """Read the story of a saga's present branch, from all entries of its log."""
    story, segments = Story(program), lineage_to(state)
    for entry in entries:
        if any(part.branch == entry.branch and part.first <= entry.version <= part.last for part in segments):
            story.add(entry)
    story.agree_with(state)
    return story


READY, WAITING, CHILD, JOINING, UNREACHED = "ready", "waiting", "child", "joining", "unreached"
RETRYING, ASKING, RUNNING, HELD = "retrying", "asking", "running", "held"
_NO_TAILS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Cause:
    """Reason why something did not happen.

    `then`: the slot whose own cause comes next; empty: this is the root.
    """

    slot: str
    text: str
    when: Moment
    then: str = ""


def end_of(place: Place) -> End:
    """Return the end of a slot that has ended."""
    assert place.end is not None, "it has ended"
    return place.end


class Reasons:
    """Answers to why-questions about one story."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._program = story.program

    def stopped(self) -> Cause | None:
        """Return the cause that ends or has ended the saga as a whole, with the state of its rollback."""
        cause, undoing = self._stopped(), self._story.undoing
        if undoing is None:
            return cause
        event, when = undoing
        asked = f"`{event.by}` has the saga rolled back" + (f": {event.reason}" if event.reason else "")
        text = cause.text if cause is not None and (self._story.failed or self._story.cancelled) else asked
        return Cause("" if cause is None else cause.slot, f"{text}; {self._undone()}", when)

    def _undone(self) -> str:
        """Return the words for the progress or the result of the rollback."""
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
            texts_in_words(words.format(counted(number, "step")) for number, words in parts if number)
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
            slot, failed = story.failed.slot, code_and_message(story.failed.failure)
            text = f"the saga failed: {f'`{slot}`: ' if slot else ''}{failed}{self._held_up()}"
            return Cause(slot, text, story.failed.when)
        if story.end is not None:
            ended, when = story.end
            failure = f": {code_and_message(ended.failure)}" if ended.failure else ""
            return Cause("", f"the saga {ended.status}{failure}", when)
        return None

    def _held_up(self) -> str:
        """Return the reason why a stopped saga does not come to its end; empty if nothing holds it up."""
        state = self._story.state
        if state.parked is not None:
            return f"; {_parked(state.parked)}"
        waits = None if self._story.end is not None else stopping_in_words(state)
        return f"; {waits}" if waits else ""

    # ---- what did not run

    def chain(self, place: Place) -> list[Cause]:
        """Return the shortest path from a slot that was skipped or dropped to its cause."""
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
        """Return the direct causes of a skipped or dropped slot."""
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
        """Return the edges for which a join of all was skipped: failed edges, or else lost edges."""
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
        by = f", with {names_in_words(fired[0].by)}" if fired is not None and fired[0].by else ""
        when = fired[1] if fired is not None else end.when
        return Cause(slot, f"the join `{slot}` has fired without it{by}", when)

    def dead(self, arrival: Arrival) -> Cause:
        """Return the cause for which an edge was not taken."""
        if arrival.errors:
            failure = arrival.errors[0]
            source = failure.node or arrival.src
            by = f" (it came by `{arrival.src}`)" if source != arrival.src else ""
            return Cause(
                source,
                f"`{source}` failed: {code_and_message(failure)}{self._handled(failure, arrival)}{by}",
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
        went = onward_in_words(self._program, place)
        text = f"{around}`{place.slot}`: {went}" if around else f"`{place.slot}` went another way: {went}"
        return Cause(place.slot, text, end.when)

    def _handled(self, failure: ev.Failure, arrival: Arrival) -> str:
        """Return the words for the handlers of a caught failure, or for their conditions that skipped all.

        Empty if no rule caught the failure.
        """
        if not failure.handled:
            return ""
        ways, cause = self._program.index, self._story.places[arrival.cause]
        source = failure.node
        known = cause.iteration[: ways.shared(cause.node, source)]
        names = names_in_words(failure.handled)
        if any(ways.shared(source, name) > len(known) for name in failure.handled):
            return f", which is for {names}"  # in which round is not known
        slots = (slot_of(name, ways.arriving(source, name, known)) for name in failure.handled)
        is_skipped = skipped_handlers(self._story.places, slots)
        return (
            f", whose handler {names} is skipped by its `when`" if is_skipped else f", which {names} handles"
        )

    def _left_by(self, place: Place) -> str:
        """Return the words for failures left unhandled: this node and the other handlers were skipped."""
        places = self._story.places
        senders = [
            places[arrival.cause].node
            for arrival in place.arrivals.values()
            if arrival.alive and arrival.errors and skipped_handlers(places, end_of(places[arrival.cause]).to)
        ]
        return f", and so nothing handles the failure of {names_in_words(senders)}" if senders else ""

    def round_over(self, by: str) -> Cause:
        """Return the cause of a slot whose round has ended with another slot."""
        place = self._story.places[by]
        end = end_of(place)
        if end.became == SKIPPED:
            return Cause(by, f"the loop ended with `{by}`, which was skipped", end.when, then=by)
        if end.became == FAILED and end.failure is not None:
            text = f"the loop ended with the failure of `{by}`: {code_and_message(end.failure)}"
            return Cause(by, text, end.when)
        text = f"its round ended before its turn, with `{by}`: {onward_in_words(self._program, place)}"
        return Cause(by, text, end.when)

    def ended_round(self, place: Place) -> list[Cause]:
        """Return the causes that keep a never reached slot out of reach: its round is over.

        Empty if the round goes on.
        """
        loops = self._program.nodes[place.node].loops
        for depth, tail in enumerate(loops, 1):
            by = self._story.over.get((tail, place.iteration[:depth]))
            if by is not None:
                cause = self.round_over(by)
                return [cause, *(self.chain(self._story.places[by]) if cause.then else ())]
        return []

    # ---- what is not over

    def state(self, place: Place) -> str:
        """Return the word for the present state of a slot that has not ended."""
        if not place.arrivals:
            return UNREACHED
        if place.opened is not None:
            return place.opened.work().word
        if self.at_work(place):
            return RUNNING
        if place.held is not None:
            return HELD
        if place.attempts:
            return ASKING if is_asking(place) else RETRYING
        return JOINING if self._readiness(place) == PENDING else READY

    def at_work(self, place: Place) -> list[str]:
        """Return the labels of a node's items that have not ended."""
        return [one.label for one in self._story.items.get(place.slot, ()) if one.end is None]

    def doing(self, place: Place) -> str:
        """Return the state of a slot in words, for a saga that goes on."""
        if not place.arrivals:
            return "is not reached yet"
        if items := self.at_work(place):
            return f"waits for {texts_in_words(items)}"
        if place.opened is not None:
            work = self._story.state.open.get(place.slot)
            is_talking = isinstance(work, Agent) and work.until
            return "waits for a message" if is_talking else f"waits for {wait_reason(place)}"
        readiness = self._readiness(place)
        if readiness == PENDING:
            return f"waits for its edges from {names_in_words(self.missing(place))}"
        if place.held is not None and self._story.state.parked is None:
            return f"waits for {held_for(place.held)}"
        if place.attempts and (is_asking(place) or self._story.state.parked is None):
            return outlook(place)
        if self._story.state.parked is not None:
            return f"is ready, but {_parked(self._story.state.parked)}"
        if readiness == JOIN_READY:
            limits = "" if self._program.caps is None else ", and its limits allow it"
            return f"is ready: it runs, or will as soon as there is room{limits}"
        return "has heard from its edges; what becomes of it is written next"

    def was_doing(self, place: Place) -> str:
        """Return the state of a slot in words, for a saga that has stopped."""
        if not place.arrivals:
            return "was not reached"
        if items := self.at_work(place):
            return f"was waiting for {texts_in_words(items)}"
        if place.opened is not None:
            return f"was waiting for {wait_reason(place)}"
        if self._readiness(place) == PENDING:
            return f"was waiting for its edges from {names_in_words(self.missing(place))}"
        if place.held is not None:
            return f"was waiting for {held_for(place.held)}"
        failed = outlook(place)
        return f"{failed}; it was not done" if failed else "was not done"

    def had_turn(self, place: Place) -> bool:
        """Return true if its edges let the slot run. It may have been stopped since."""
        return bool(place.arrivals) and self._readiness(place) == JOIN_READY

    def _readiness(self, place: Place) -> str:
        return JOIN_READY if place.item else self._program.readiness_at(place.node, place.heard, place.errors)

    def missing(self, place: Place) -> list[str]:
        """Return the nodes whose edges have not arrived."""
        return [src for src in self._program.nodes[place.node].before if src not in place.arrivals]

    def held_up_by(self, place: Place) -> list[Place]:
        """Return the open slots with work from which the missing edges come."""
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
    if parked.is_pause:
        return f"the saga is paused by {parked.by}: {parked.message or parked.code}"
    return f"the saga is parked{until}: {parked.code}: {parked.message}"
