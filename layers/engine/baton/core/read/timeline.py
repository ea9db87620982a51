"""What a log says of each slot: what arrived there and why, what became of it, and which edges it went on by.

Facts, gathered entry by entry; values are let go, so that a long log fits. explain.py draws conclusions from them,
wording.py words them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.log import events as ev
from baton.core.log.forks import lineage_to
from baton.core.log.lost import carriers
from baton.core.log.state import State, item_of, node_of, slot_of

RAN, PASSED, WAITED, SKIPPED, FAILED, DROPPED = "ran", "passed", "waited", "skipped", "failed", "dropped"
BECAME = (RAN, PASSED, WAITED, SKIPPED, FAILED, DROPPED)


@dataclass(frozen=True, slots=True)
class Moment:
    """An entry of the log: its version, and when it was written."""

    version: int
    at: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """A token that came. `cause` is the slot that sent it, or that left a loop around the sender; empty: the start.

    `late`: the join had fired already, and it was absorbed.
    """

    src: str
    alive: bool
    errors: tuple[ev.Failure, ...]
    cause: str
    when: Moment
    late: bool


@dataclass(frozen=True, slots=True)
class End:
    """What became of a slot. `by` is the slot that ended the round of one that was dropped.

    `why` is that of a skipped node, `way` the log's word for what was chosen. `to` and `not_to` are the receivers of
    its own edges, `leaves` the loops whose rounds ended with it, by their tails. `closed_by` ended a wait. `recorded`:
    what may happen only once had happened before. `blocked_ms`: its last attempt held the event loop.
    """

    became: str
    when: Moment
    way: str = ""
    why: str = ""
    by: str = ""
    to: tuple[str, ...] = ()
    not_to: tuple[str, ...] = ()
    leaves: str = ""
    failure: ev.Failure | None = None
    closed_by: str = ""
    recorded: bool = False
    blocked_ms: int = 0


@dataclass(slots=True)
class Attempt:
    """An attempt that failed, but was not the step's last word. `lasted` and `blocked` (of the event loop, by it) in ms.

    `then` is what was done about it: more than one thing where a question was not answered. `answers`: what became of
    questions, by their ids.
    """

    number: int
    tool: str
    failure: ev.Failure
    lasted: int
    blocked: int
    when: Moment
    then: list[ev.StrategyChosen] = field(default_factory=list)
    answers: dict[str, ev.QuestionClosed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failed:
    """What the saga fails with: the slot's failure, or (no slot) a limit of the saga."""

    slot: str
    failure: ev.Failure
    when: Moment


@dataclass(slots=True)
class Place:
    """One slot, as far as the log was read. `opened` is the work that it began with.

    `attempts` are those that failed before the last.
    """

    node: str
    iteration: tuple[int, ...]
    item: str = ""
    arrivals: dict[str, Arrival] = field(default_factory=dict)
    fired: tuple[ev.JoinFired, Moment] | None = None
    opened: ev.Opens | None = None
    end: End | None = None
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def slot(self) -> str:
        return slot_of(self.node, self.iteration, self.item)

    @property
    def heard(self) -> dict[str, bool]:
        """What arrived before the join fired: sender to alive."""
        return {src: arrival.alive for src, arrival in self.arrivals.items() if not arrival.late}

    @property
    def errors(self) -> dict[str, tuple[ev.Failure, ...]]:
        """What came with it, by sender."""
        told = self.arrivals.items()
        return {src: arrival.errors for src, arrival in told if arrival.errors and not arrival.late}


class Story:
    """The history of a saga, told by the entries of its lineage in their order."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.places: dict[str, Place] = {}
        self.ended: list[str] = []
        """The slots that are done, skipped, failed or dropped, in that order."""
        self.rounds: dict[str, dict[tuple[int, ...], None]] = {}
        """For each last node of a loop: the rounds that have begun."""
        self.items: dict[str, list[Place]] = {}
        """The items of nodes that do several things at once, by the slots of these."""
        self.over: dict[tuple[str, tuple[int, ...]], str] = {}
        """For each round of a loop that is over: the slot that ended it."""
        self.version = 0
        self.parked: ev.Parked | None = None
        self._branch = 0
        self._begin_branch()

    def _begin_branch(self) -> None:
        """A fork forgets what had stopped the saga as a whole."""
        self.failed: Failed | None = None
        self.cancelled: tuple[ev.CancelRequested, Moment] | None = None
        self.end: tuple[ev.SagaEnded, Moment] | None = None
        for place in self.places.values():
            end = place.end
            if end is not None and end.failure is not None and not (end.to or end.not_to):
                place.end = None  # its tokens are still there: it runs again
                self.ended.remove(place.slot)

    def _come_to(self, branch: int) -> None:
        if branch != self._branch:
            self._branch = branch
            self._begin_branch()

    def agree_with(self, state: State) -> None:
        """What its entries alone do not say: that a branch has just begun, which children it has not any more, and
        whether the saga is parked.
        """
        self._come_to(state.lineage.branch)
        self.parked = state.parked
        for slot, place in self.places.items():
            is_child = place.opened is not None and place.opened.work().orphan is not None
            if is_child and place.end is None and slot not in state.open:
                place.opened = None

    def add(self, entry: ev.Entry) -> None:
        """The next entry of the lineage."""
        self._come_to(entry.branch)
        when = Moment(entry.version, entry.at)
        self.version = entry.version
        for event in entry.events:
            self._add(event, when)

    def _add(self, event: ev.Event, when: Moment) -> None:
        if isinstance(event, ev.SagaStarted):
            self._send(event.emits, "", when)
        elif isinstance(event, ev.Settles):
            self._settle(event, when)
        elif isinstance(event, ev.JoinFired):
            self._place(event.node, event.iteration).fired = (event, when)
        elif isinstance(event, ev.Opens):
            self._place(event.node, event.iteration, event.item).opened = event
        elif isinstance(event, ev.NodeBegan) and event.item:
            self._begin_item(event, when)
        elif isinstance(event, ev.AttemptFailed | ev.StrategyChosen | ev.QuestionClosed):
            place = self.places.get(slot_of(event.node, event.iteration, event.item))
            if place is not None and place.end is None:
                _try(place, event, when)
        elif isinstance(event, ev.LimitReached):
            self.failed = self.failed or Failed("", event.failure, when)
        elif isinstance(event, ev.CancelRequested):
            self.cancelled = self.cancelled or (event, when)
        elif isinstance(event, ev.SagaEnded):
            self.end = (event, when)

    def _begin_item(self, event: ev.NodeBegan, when: Moment) -> None:
        owner = self.places.get(slot_of(event.node, event.iteration))
        if owner is None or owner.end is not None:
            return  # the fold passes over it, too
        place = self._place(event.node, event.iteration, event.item)
        if not place.arrivals:
            self.items.setdefault(owner.slot, []).append(place)
        place.arrivals[event.node] = Arrival(event.node, True, (), owner.slot, when, False)

    def _place(self, node: str, iteration: tuple[int, ...], item: str = "") -> Place:
        slot = slot_of(node, iteration, item)
        if slot not in self.places:
            self.places[slot] = Place(node, iteration, item)
            for depth, tail in enumerate(self.program.nodes[node].loops[: len(iteration)], 1):
                self.rounds.setdefault(tail, {})[iteration[:depth]] = None
        return self.places[slot]

    def _send(
        self,
        emits: Sequence[ev.Token],
        cause: str,
        when: Moment,
        blame: tuple[ev.Failure, ...] = (),
        carried_by: Collection[tuple[str, str]] = (),
    ) -> None:
        for token in emits:
            errors = blame if (token.src, token.dst) in carried_by else ()
            place = self._place(token.dst, token.iteration)
            late = place.end is not None or (place.fired is not None and token.src in place.fired[0].unspoken)
            place.arrivals[token.src] = Arrival(token.src, token.alive, errors, cause, when, late)

    def _settle(self, event: ev.Settles, when: Moment) -> None:
        place = self.places.get(slot_of(event.node, event.iteration, event.item))
        if place is None or place.end is not None:
            return  # another event came first: the fold passes over this one, too
        slot = place.slot
        if event.item and event.emits:  # it has failed its node
            place.end = End(event.became, when, failure=failure_of(event))
            self.ended.append(slot)
            self._settle(replace(event, item=""), when)
            return
        self._send(event.emits, slot, when, event.errors, carriers(event))
        failure = failure_of(event)
        own = [token for token in event.emits if token.src == event.node]
        loops = self.program.nodes[event.node].loops
        level = len(loops) if event.item else self._level(event)
        place.end = End(
            became=event.became,
            when=when,
            way=event.way,
            why=event.why if isinstance(event, ev.NodeSkipped) else "",
            to=tuple(slot_of(token.dst, token.iteration) for token in own if token.alive),
            not_to=tuple(slot_of(token.dst, token.iteration) for token in own if not token.alive),
            leaves=loops[level] if level < len(loops) else "",
            failure=failure,
            closed_by=event.ended_by,
            recorded=isinstance(event, ev.StepSucceeded) and event.recorded,
            blocked_ms=event.blocked_ms if isinstance(event, ev.StepSucceeded | ev.StepFailed) else 0,
        )
        self.ended.append(slot)
        if failure is not None and not event.emits:
            self.failed = self.failed or Failed(slot, failure, when)
        elif place.end.leaves:
            self.over[place.end.leaves, event.iteration[: level + 1]] = slot
        for dropped in (*event.drops, *(one.slot for one in self.items.get(slot, ()))):
            other = self._place(*node_of(dropped), item_of(dropped))
            if other.end is None:
                other.end = End(DROPPED, when, by=slot)
                self.ended.append(dropped)

    def _level(self, event: ev.Settles) -> int:
        """How many loops are still around what comes after it in this round: fewer than around it, if one is left."""
        node = self.program.nodes[event.node]
        depth = len(node.loops) - (node.loop is not None)
        return min((depth, *(self.program.ways.shared(token.src, token.dst) for token in event.emits)))


def failure_of(event: ev.Settles) -> ev.Failure | None:
    """The failure of a node, or why the next nodes are unknown."""
    return event.failure if isinstance(event, ev.StepFailed) else event.fault


def _try(place: Place, event: ev.AttemptFailed | ev.StrategyChosen | ev.QuestionClosed, when: Moment) -> None:
    if isinstance(event, ev.AttemptFailed):
        lasted = event.ended_at - event.started_at
        place.attempts.append(
            Attempt(event.attempt, event.tool, event.failure, lasted, event.blocked_ms, when)
        )
    elif place.attempts and isinstance(event, ev.StrategyChosen):
        place.attempts[-1].then.append(replace(event, arguments=dict.fromkeys(event.arguments)))
    elif place.attempts and isinstance(event, ev.QuestionClosed):
        place.attempts[-1].answers[event.ask] = replace(event, arguments=dict.fromkeys(event.arguments))


def tell(program: Program, state: State, entries: Iterable[ev.Entry]) -> Story:
    """The story of a saga's present branch, from all entries of its log."""
    story, segments = Story(program), lineage_to(state)
    for entry in entries:
        if any(part.branch == entry.branch and part.first <= entry.version <= part.last for part in segments):
            story.add(entry)
    story.agree_with(state)
    return story
