"""What is known of one slot of a saga: what arrived there, the attempts, and how it ended.

story.py gathers it from the log.
"""

from __future__ import annotations

from msgspec import Struct

from baton.core.log import events as ev
from baton.core.log.state import slot_of

RAN, PASSED, WAITED, ANSWERED = "ran", "passed", "waited", "answered"
SKIPPED, FAILED, DROPPED = "skipped", "failed", "dropped"
BECAME = (RAN, PASSED, WAITED, ANSWERED, SKIPPED, FAILED, DROPPED)


class Moment(Struct, frozen=True, gc=False):
    """An entry of the log: its version, and when it was written."""

    version: int
    at: int


class Arrival(Struct, frozen=True, gc=False):
    """A token that came. `cause` is the slot that sent it, or that left a loop around the sender; empty: the start.

    `late`: the join had fired already, and it was absorbed.
    """

    src: str
    alive: bool
    errors: tuple[ev.Failure, ...]
    cause: str
    when: Moment
    late: bool


class End(Struct, frozen=True, gc=False):
    """What became of a slot. `by` is the slot that ended the round of one that was dropped.

    `why` is that of a skipped node, `way` the log's word for what was chosen. `to` and `not_to` are the receivers of
    its own edges, `leaves` the loops whose rounds ended with it, by their tails. `closed_by` ended a wait. `recorded`:
    what may happen only once had happened before. `blocked_ms`: its last attempt held the event loop. `until`: when the next round of its loop begins, where that
    is not at once.
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
    until: int = 0


class Attempt(Struct, gc=False):
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
    then: list[ev.StrategyChosen] = []
    answers: dict[str, ev.QuestionClosed] = {}


class Failed(Struct, frozen=True, gc=False):
    """What the saga fails with: the slot's failure, or (no slot) a limit of the saga."""

    slot: str
    failure: ev.Failure
    when: Moment


class Place(Struct, gc=False):
    """One slot, as far as the log was read. `opened` is the work that it began with, `answer` that to its own question.

    `label`: what an item is called. `said`: what its node says of it. `fate`: what undoing made of it.

    `attempts` are those that failed before the last. `held`: the circuit breaker that it waits for now. `moves`: what has happened to a question besides its answer.
    """

    node: str
    iteration: tuple[int, ...]
    item: str = ""
    label: str = ""
    said: str = ""
    fate: str = ""
    arrivals: dict[str, Arrival] = {}
    fired: tuple[ev.JoinFired, Moment] | None = None
    opened: ev.Opens | None = None
    answer: ev.QuestionClosed | None = None
    end: End | None = None
    attempts: list[Attempt] = []
    held: ev.StepHeld | None = None
    moves: list[ev.QuestionEscalated | ev.QuestionClaimed] = []

    @property
    def slot(self) -> str:
        return slot_of(self.node, self.iteration, self.item)

    @property
    def name(self) -> str:
        """What it is called in a sentence."""
        return f"{self.label} of `{slot_of(self.node, self.iteration)}`" if self.label else f"`{self.slot}`"

    @property
    def heard(self) -> dict[str, bool]:
        """What arrived before the join fired: sender to alive."""
        return {src: arrival.alive for src, arrival in self.arrivals.items() if not arrival.late}

    @property
    def errors(self) -> dict[str, tuple[ev.Failure, ...]]:
        """What came with it, by sender."""
        told = self.arrivals.items()
        return {src: arrival.errors for src, arrival in told if arrival.errors and not arrival.late}
