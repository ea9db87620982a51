"""What a log says of each slot: what arrived there and why, what became of it, and which edges it went on by.

Facts, seen while the entries are folded; values are let go, so that a long log fits. What an entry changes is in
log/folding/fold.py, explain.py draws conclusions from the facts, wording.py words them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.folding.forks import afresh, lineage_to
from baton.core.log.lost import carriers
from baton.core.log.records import Sent
from baton.core.log.state import State, owner_of, slot_of
from baton.core.log.undos import is_undo
from baton.core.nodes.base import Kind
from baton.core.read.places import DROPPED, Arrival, Attempt, End, Failed, Moment, Place

_OfPlace = (
    ev.AttemptFailed
    | ev.StrategyChosen
    | ev.StepHeld
    | ev.QuestionClosed
    | ev.ReplanEnded
    | ev.QuestionEscalated
    | ev.QuestionClaimed
)


_OfUndoing = ev.UndoBegan | ev.UndoStepBegan | ev.UndoPassed | ev.ChildUndone | ev.StepStopped


class Story:
    """The history of a saga: what is seen while the entries of its lineage are folded in their order."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.state = State()
        """What was read comes to, but for the saga's end: with that its slots would be gone."""
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
        self.version = 0
        self._come_to(0)

    def _come_to(self, branch: int) -> None:
        """A fork gives a fresh start to what had stopped the saga as a whole, and to the step that did."""
        self._branch, self.state = branch, afresh(self.state)
        self.failed: Failed | None = None
        self.cancelled: tuple[ev.CancelRequested, Moment] | None = None
        self.finished: tuple[str, Moment] | None = None
        """The slot that has given the saga's result, if an end did."""
        self.end: tuple[ev.SagaEnded, Moment] | None = None
        self.undoing: tuple[ev.UndoBegan, Moment] | None = None
        self.reopened: list[tuple[Place, End]] = []
        """What had ended, and has a fresh start."""
        for slot in self.state.tokens:
            place = self.places.get(slot)
            if place is not None and place.end is not None:
                self.reopened.append((place, place.end))
                place.end = None
                self.ended.remove(slot)

    def agree_with(self, state: State) -> None:
        """What its entries alone do not say: that a branch has just begun, and which children and work elsewhere it has no more.

        No entry can be added after it.
        """
        if state.lineage.branch != self._branch:
            self._come_to(state.lineage.branch)
        self.state = state
        for slot, place in self.places.items():
            if place.opened is None or place.end is not None or slot in state.open:
                continue
            is_elsewhere = state.ended is None and bool(getattr(place.opened, "callback", ""))
            if place.opened.work().orphan is not None or is_elsewhere:
                place.opened = None

    def add(self, entry: ev.Entry) -> None:
        """The next entry of the lineage."""
        if entry.branch != self._branch:
            self._come_to(entry.branch)
        when = Moment(entry.version, entry.at)
        self.version = entry.version
        for event in entry.events:
            if isinstance(event, ev.SagaEnded):
                self.end = (event, when)
            else:
                before, self.state = self.state, apply(self.state, event)
                if isinstance(event, _OfUndoing):
                    from baton.core.read import undo_places

                    undo_places.see(self, event, when)
                    continue
                self._see(event, before, self.state, when)

    def _see(self, event: ev.Event, before: State, after: State, when: Moment) -> None:
        if isinstance(event, ev.Settles):
            if after.result is not before.result:
                self.finished = (slot_of(event.node, event.iteration), when)
            self._settle(event, before, when)
        elif isinstance(event, ev.SagaStarted):
            self.sent = event.sent
            self._hear(event.emits, "", when)
        elif isinstance(event, ev.JoinFired) and after is not before:
            self.places[slot_of(event.node, event.iteration)].fired = (event, when)
        elif isinstance(event, ev.Opens):
            # Also where the fold passes over it: which children a fork has left, it does not know here.
            self.places[slot_of(event.node, event.iteration, event.item)].opened = event
        elif isinstance(event, _OfPlace):
            self._see_tried(event, before, after, when)
        elif isinstance(event, ev.NodeBegan | ev.ItemsBegan) and len(after.items) > len(before.items):
            self._begin(event, after, when)
        elif isinstance(event, ev.Moving):
            item, text = self._kind(event.node).says(event)
            if item:
                self.places[slot_of(event.node, event.iteration, item)].said = text
        elif isinstance(event, ev.CancelRequested):
            self.cancelled = self.cancelled or (event, when)
        elif isinstance(event, ev.LimitReached):
            self.failed = self.failed or Failed("", event.failure, when)

    def _begin(self, event: ev.NodeBegan | ev.ItemsBegan, after: State, when: Moment) -> None:
        owner = slot_of(event.node, event.iteration)
        for item in (event.item,) if isinstance(event, ev.NodeBegan) else event.items:
            slot = slot_of(event.node, event.iteration, item)
            place = self.place(slot, event.node, event.iteration, item)
            place.label = self._kind(event.node).label(after.open.get(owner), item)
            place.arrivals[event.node] = Arrival(event.node, True, (), owner, when, False)
            self.items.setdefault(owner, []).append(place)

    def _see_tried(self, event: _OfPlace, before: State, after: State, when: Moment) -> None:
        """Of a step that has failed, or of a question."""
        place = self.places.get(slot_of(event.node, event.iteration, event.item))
        if place is None:
            return
        place.held = event if isinstance(event, ev.StepHeld) else None
        if isinstance(event, ev.ReplanEnded):
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
        """What was emitted has arrived, or was absorbed."""
        for token in emits:
            slot = slot_of(token.dst, token.iteration)
            place = self.place(slot, token.dst, token.iteration)
            errors = blame if (token.src, token.dst) in carried_by else ()
            late = token.src not in self.state.tokens.get(slot, ())
            place.arrivals[token.src] = Arrival(token.src, token.alive, errors, cause, when, late)

    def _settle(self, event: ev.Settles, before: State, when: Moment) -> None:
        slot = slot_of(event.node, event.iteration, event.item)
        if is_undo(slot):
            from baton.core.read import undo_places

            undo_places.settle(self, event, event.became, failure_of(event), when)
            return
        if slot not in before.tokens or self.places[slot].end is not None:
            if isinstance(event, ev.MapEnded):
                self._drop((one.slot for one in self.items.get(slot, ())), slot, when)
                by = f", stopped by {event.why}" if event.why else ""
                self.places[slot].fate = f"the items that ran on beside what follows are over{by}"
            return  # what fails the saga leaves its tokens
        failure = failure_of(event)
        if event.item and event.emits:  # it has failed its node, which ends with it
            self.close(slot, End(event.became, when, failure=failure))
            event, slot = replace(event, item=""), owner_of(slot)
        self._hear(event.emits, slot, when, event.errors, carriers(event))
        ways: dict[bool, list[str]] = {True: [], False: []}
        for token in event.emits:
            if token.src == event.node:
                ways[token.alive].append(slot_of(token.dst, token.iteration))
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
            closed_by=event.ended_by,
            recorded=isinstance(event, ev.StepSucceeded) and event.recorded,
            blocked_ms=event.blocked_ms if isinstance(event, ev.StepSucceeded | ev.StepFailed) else 0,
            until=0 if event.paused is None else event.paused.until,
        )
        self.close(slot, end)
        is_told = isinstance(event, ev.StepFailed) and event.is_result
        if failure is not None and not event.emits and not is_told:
            self.failed = self.failed or Failed(slot, failure, when)
        elif leaves:
            self.over[leaves, event.iteration[: level + 1]] = slot
        goes_on = isinstance(event, ev.MapClosed) and event.goes_on
        if goes_on:
            self.places[slot].fate = "its other items run on beside what follows"
        of_it = () if goes_on else (one.slot for one in self.items.get(slot, ()))
        self._drop((*event.drops, *of_it), slot, when)

    def _drop(self, slots: Iterable[str], by: str, when: Moment) -> None:
        """What has not ended stops there."""
        for slot in slots:
            if self.places[slot].end is None:
                self.close(slot, End(DROPPED, when, by=by))

    def close(self, slot: str, end: End) -> None:
        self.places[slot].end = end
        self.ended.append(slot)

    def _level(self, event: ev.Settles) -> int:
        """How many loops are still around what comes after it in this round: fewer than around it, if one is left."""
        node, shared = self.program.nodes[event.node], self.program.index.shared
        depth = len(node.loops) - (node.loop is not None)
        return min([depth, *[shared(token.src, token.dst) for token in event.emits]])


def failure_of(event: ev.Settles) -> ev.Failure | None:
    """The failure of a node, or why the next nodes are unknown."""
    return event.failure if isinstance(event, ev.StepFailed) else event.fault


def _try(place: Place, event: ev.AttemptFailed | ev.StrategyChosen | ev.QuestionClosed, when: Moment) -> None:
    if isinstance(event, ev.AttemptFailed):
        lasted = event.ended_at - event.started_at
        if event.callback:  # it has gone on elsewhere, since its tool began
            lasted = event.ended_at - getattr(place.opened, "started_at", event.started_at)
            place.opened = None
        place.attempts.append(
            Attempt(event.attempt, event.tool, event.failure, lasted, event.blocked_ms, when)
        )
    elif isinstance(event, ev.StrategyChosen):
        place.attempts[-1].then.append(replace(event, arguments=dict.fromkeys(event.arguments)))
    else:
        place.attempts[-1].answers[event.ask] = replace(event, arguments=dict.fromkeys(event.arguments))


def tell(program: Program, state: State, entries: Iterable[ev.Entry]) -> Story:
    """The story of a saga's present branch, from all entries of its log."""
    story, segments = Story(program), lineage_to(state)
    for entry in entries:
        if any(part.branch == entry.branch and part.first <= entry.version <= part.last for part in segments):
            story.add(entry)
    story.agree_with(state)
    return story
