"""Facts about one slot of a saga: its arrivals, its attempts, and its end.

story.py gathers them from the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from baton.core.conditions.model import Cel, Compare, Condition, JsonPath
from baton.core.decide.program import Program
from baton.core.expressions import duration_text, iso
from baton.core.failures.codes import advice_for
from baton.core.failures.strategies.base import StrategyWords
from baton.core.failures.strategies.registry import of
from baton.core.log import events as ev
from baton.core.log.questions import GIVE_UP, TRY_AGAIN, USE
from baton.core.log.records import Sent
from baton.core.log.slots import Slot, owner_of, slot_of
from baton.core.log.state import UNKNOWN_OUTCOME
from baton.core.money import dollars
from baton.core.read.answers import Asked, AttemptFailure, Count, Time, Version, View
from baton.core.read.views import of_failure, question_view

RAN, PASSED, WAITED, ANSWERED = "ran", "passed", "waited", "answered"
SKIPPED, FAILED, DROPPED = "skipped", "failed", "dropped"
BECAME = (RAN, PASSED, WAITED, ANSWERED, SKIPPED, FAILED, DROPPED)


class Moment(Struct, frozen=True, gc=False):
    """An entry of the log: its version, and when it was written."""

    version: int
    at: int


class Arrival(Struct, frozen=True, gc=False):
    """Token that arrived.

    `cause`: the slot that sent the token, or that left a loop around the sender; empty: the start.
    `late`: true if the join had fired already and absorbed the token.
    """

    src: str
    alive: bool
    errors: tuple[ev.Failure, ...]
    cause: str
    when: Moment
    late: bool


class End(Struct, frozen=True, gc=False):
    """End of a slot.

    `by`: the slot that ended the round of a dropped slot.
    `why`: the reason of a skipped node.
    `way`: the log's word for the choice of edges.
    `to` and `not_to`: receivers of the slot's own edges, taken and not taken.
    `leaves`: the loops whose rounds ended with the slot, by their tails.
    `closed_by`: key of the outside event that ended a wait, or `time`.
    `recorded`: true if a tool that may act only once had acted before.
    `blocked_ms`: milliseconds for which the last attempt held the event loop.
    `until`: begin of the next round of the slot's loop, if that is not at once.
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
    """Failed attempt that was not the step's last. `lasted` and `blocked` (of the event loop) are in ms.

    `then`: the actions after it, more than one where a question was not answered.
    `answers`: the ends of questions, by their ids.
    """

    number: int
    tool: str
    failure: ev.Failure
    lasted: int
    blocked: int
    when: Moment
    then: list[ev.StrategyChosen] = []
    answers: dict[str, ev.QuestionClosed] = {}


class DoneUnit(Struct, frozen=True, gc=False):
    """Unit of a step's work, with the beginning of its result."""

    name: str
    result: str
    when: Moment


class SagaFailure(Struct, frozen=True, gc=False):
    """Failure of the saga: the failure of the slot, or (no slot) of a limit of the saga."""

    slot: str
    failure: ev.Failure
    when: Moment


class Place(Struct, gc=False):
    """One slot, as far as the log was read.
    `opened` is the work that it began with, `answer` that to its own question.

    `label`: what an item is called. `said`: what its node says of it. `fate`: what undoing made of it.

    `attempts` are those that failed before the last. `held`: the breaker or money that it waits for now.
    `moves`: what has happened to a question besides its answer. `units`: those recorded of its work.
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
    units: list[DoneUnit] = []

    @property
    def slot(self) -> str:
        return slot_of(self.node, self.iteration, self.item)

    @property
    def name(self) -> str:
        """Name of the slot in a sentence."""
        return f"{self.label} of `{slot_of(self.node, self.iteration)}`" if self.label else f"`{self.slot}`"

    @property
    def heard(self) -> dict[str, bool]:
        """Edges that arrived before the join fired: sender to alive."""
        return {src: arrival.alive for src, arrival in self.arrivals.items() if not arrival.late}

    @property
    def errors(self) -> dict[str, tuple[ev.Failure, ...]]:
        """Failures that arrived before the join fired, by sender."""
        told = self.arrivals.items()
        return {src: arrival.errors for src, arrival in told if arrival.errors and not arrival.late}


_LISTED = 5
_LONGEST = 120


def names_in_words(names: Iterable[str]) -> str:
    """Write names as `a`, `b` and `c`; of many, some."""
    return texts_in_words(f"`{name}`" for name in names)


def texts_in_words(texts: Iterable[str]) -> str:
    """Write texts that are no names as `names_in_words` does names."""
    shown = list(texts)
    if len(shown) > _LISTED:
        shown = [*shown[: _LISTED - 1], f"{len(shown) - _LISTED + 1} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def counted(number: int, one: str) -> str:
    """Write a number with its noun: `1 round`, `2 rounds`."""
    return f"{number} {one}" if number == 1 else f"{number} {one}s"


def code_and_message(failure: ev.Failure) -> str:
    """Return a failure's code and message."""
    return f"{failure.code}: {failure.message}" if failure.message else failure.code


def outside_event_in_words(event: Sent) -> str:
    """Describe an event from outside. Text of its sender is shortened."""
    return f"the event `{event.type}` from `{event.source[:_LONGEST]}` (id `{event.id[:_LONGEST]}`)"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def condition_words(condition: Condition) -> str:
    """Return a CEL expression, a query or a comparison as written; empty for any other condition."""
    if isinstance(condition, Cel):
        text = " ".join(condition.expression.split())
    elif isinstance(condition, JsonPath):
        value = "" if condition.operator in ("exists", "not_exists") else f" {_json(condition.value)}"
        text = f"{condition.query} {condition.operator}{value}"
    elif isinstance(condition, Compare):
        text = f"{_json(condition.left)} {condition.operator} {_json(condition.right)}"
    else:
        return ""
    return f"`{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}`"


def choice(program: Program, place: Place) -> str:
    """Return the reason for the choice of edges: its loop, its branch, or leaving a loop.

    Empty if no choice was made.
    """
    end = place.end
    assert end is not None, "it is done"
    words = [_word(word, program, place) for word in end.way.split(", ") if word]
    if end.leaves not in ("", place.node):
        words.append(f"it leaves the loop that ends with `{end.leaves}`")
    return "; ".join(words)


def _word(word: str, program: Program, place: Place) -> str:
    """Return one word for an arrival, from the log's `way`."""
    node, branch = program.nodes[place.node], program.nodes[place.node].branch
    rounds = counted(place.iteration[-1] + 1, "round") if place.iteration else ""
    if word == "again" and node.loop is not None:
        return f"round {place.iteration[-1] + 1} begins" + _at(place)
    if word == "timeout" and node.loop is not None:
        return f"it left the loop after {rounds}, the most there may be, by its timeout_path"
    if word == "break":
        return f"it left the loop after {rounds}"
    if word == "default" and branch is not None:
        why = "its `choose` names no node" if branch.choose else "no rule of its branch holds"
        return why if branch.default else f"{why}, and it has no default"
    if word.startswith("catch "):
        return f"caught by rule {word.removeprefix('catch ')} of its `catch`"
    if word == "chosen" and branch is not None:
        return f"by its `choose`, `{branch.choose}`"
    number = word.removeprefix("rule ")
    if branch is not None and number.isdecimal() and 1 <= int(number) <= len(branch.rules):
        condition = condition_words(branch.rules[int(number) - 1].condition)
        return f"{word} of its branch" + (f", {condition}" if condition else "")
    return word


def _at(place: Place) -> str:
    return f" at {iso(place.end.until)}" if place.end is not None and place.end.until else ""


def onward_in_words(program: Program, place: Place) -> str:
    """Return the words for the edges taken and not taken from a slot that was ready; empty without edges."""
    end = place.end
    assert end is not None, "it is done"
    receivers = list(dict.fromkeys(Slot.parse(slot).node for slot in (*end.to, *end.not_to)))
    if end.became == FAILED and not end.to:
        return f"the failure goes on to {names_in_words(receivers)}" if receivers else ""
    fault = code_and_message(end.failure) if end.failure is not None and end.became != FAILED else ""
    if fault and not end.to:
        return f"which way it goes on cannot be told: {fault}"
    to = list(dict.fromkeys(Slot.parse(slot).node for slot in end.to))
    others = [name for name in receivers if name not in to]
    where = ", ".join(
        part
        for part in (
            f"to {names_in_words(to)}" if to else "",
            f"not to {names_in_words(others)}" if others else "",
        )
        if part
    )
    words = ": ".join(part for part in (choice(program, place), where) if part)
    return f"{fault}, {words}" if fault else words


def skipped_handlers(places: Mapping[str, Place], slots: Iterable[str]) -> tuple[str, ...]:
    """Return the handlers at these slots if each was skipped by its own `when`; empty if not.

    A failure was then caught, and nothing ran.
    """
    found = [places[slot] for slot in slots]
    if any(place.end is None or place.end.why != "when" for place in found):
        return ()
    return tuple(dict.fromkeys(place.node for place in found))


def wait_reason(place: Place) -> str:
    """Return the words for the wait of a node."""
    assert place.opened is not None, "it has begun"
    return place.opened.words + asked_since(place.moves)


def held_for(event: ev.StepHeld) -> str:
    """Return the circuit breaker, or the money, that a node waits for."""
    if event.limit:
        needed = f"{dollars(event.amount)} dollars of the limit `{event.limit}`"
        return f"{needed}, whose rest others hold; it asks again at {iso(event.until)}"
    return f"breaker `{event.breaker}`, which is {event.state.replace('_', '-')}; it asks again at {iso(event.until)}"


def asked_since(moves: Sequence[ev.QuestionEscalated | ev.QuestionClaimed]) -> str:
    """Return the words for the events of a question since it was asked; of more than `_LISTED`, the last."""
    more = len(moves) - _LISTED
    earlier = f"; {counted(more, 'thing')} before that" if more > 0 else ""
    return earlier + "".join(f"; {_move(event)} {iso(event.at)}" for event in moves[-_LISTED:])


def _move(event: ev.QuestionEscalated | ev.QuestionClaimed) -> str:
    if isinstance(event, ev.QuestionClaimed):
        return f"{'claimed' if event.to else 'released'} by `{event.by}` at"
    if event.to is not None:
        return f"handed on to {f'`{event.to}`' if event.to else 'who has started the saga'} at"
    return f"reminder{f' by `{event.by}`' if event.by else ''} at"


Seen: TypeAlias = ev.UndoBegan | ev.UndoStepBegan | ev.UndoPassed | ev.ChildUndone | ev.StepStopped


class StoryPlaces(Protocol):
    """Parts of the story in story.py that this module changes."""

    program: Program
    places: dict[str, Place]
    ended: list[str]
    items: dict[str, list[Place]]
    undoing: tuple[ev.UndoBegan, Moment] | None
    reopened: list[tuple[Place, End]]

    def place(self, slot: str, node: str, iteration: tuple[int, ...], item: str = "") -> Place: ...
    def close(self, slot: str, end: End) -> None: ...


STAYS = "nothing undoes it, so it stays"
MAYBE = "it was stopped while it acted, and may have happened"
NOTHING = "nothing to undo: its child had done nothing that can be undone"


def see_undo_event(story: StoryPlaces, event: Seen, when: Moment) -> None:
    """Record an event about undoing. That of a step that undoes another is told to `settle`."""
    if isinstance(event, ev.UndoBegan):
        story.undoing = (event, when)
        for was, end in story.reopened:  # a rollback after the end repeats nothing
            story.close(was.slot, end)
        story.reopened = []
    elif isinstance(event, ev.UndoStepBegan):
        _begin(story, event, when)
    elif isinstance(event, ev.UndoPassed | ev.StepStopped):
        if (place := story.places.get(event.slot)) is not None:
            place.fate = _passed(event) if isinstance(event, ev.UndoPassed) else _stopped(event)
    else:
        became = FAILED if event.failure else SKIPPED if event.nothing else RAN
        settle_undo(story, event, became, event.failure, when)
        undone = _undone(story, event)
        if event.nothing and undone is not None:
            undone.fate = NOTHING


def _passed(event: ev.UndoPassed) -> str:
    return "it is undone with the last try of its poll" if event.polled else STAYS


def _stopped(event: ev.StepStopped) -> str:
    if event.instead and event.instead == event.tool:
        return f"an earlier call of `{event.tool}`, with other arguments, may have happened, too"
    if event.instead:
        return f"`{event.tool}`, which it has left for `{event.instead}`, may have happened, too"
    return f"child {event.child} was stopped; a rollback undoes what it has done" if event.child else MAYBE


def settle_undo(
    story: StoryPlaces,
    event: ev.ChildUndone | ev.Settles,
    became: str,
    failure: ev.Failure | None,
    when: Moment,
) -> None:
    """Record the end of a step that undoes another."""
    slot = event.slot
    place = story.places.get(slot)
    if place is None or place.end is not None:
        return
    story.close(slot, End(became, when, failure=failure))
    if (undone := _undone(story, event)) is not None:
        undone.fate = (
            f"undone {place.said}" if failure is None else f"could not be undone: {code_and_message(failure)}"
        )


def _begin(story: StoryPlaces, event: ev.UndoStepBegan, when: Moment) -> None:
    slot = event.slot
    is_new = slot not in story.places
    place = story.place(slot, event.node, event.iteration, event.item)
    if place.end is not None:  # it had failed, and is tried again
        place.end = None
        story.ended.remove(slot)
    if event.doubt and not event.way:  # the failure that a person is asked about
        failure = ev.Failure(UNKNOWN_OUTCOME, event.doubt, event.node)
        place.attempts.append(Attempt(0, event.tool, failure, 0, 0, when))
    undone = _undone(story, event)
    if undone is not None:
        undone.fate = "is being undone"
    place.label = "undo" + (f" of {undone.label}" if undone is not None and undone.label else "")
    place.said = f"by {_by(story, event)}"
    place.arrivals[event.node] = Arrival(event.node, True, (), owner_of(slot), when, False)
    if is_new:
        story.items.setdefault(owner_of(slot), []).append(place)


def _by(story: StoryPlaces, event: ev.UndoStepBegan) -> str:
    if event.child:
        return f"child {event.child}"
    found = story.program.nodes[event.node].inverse(event.tool, Slot.parse(event.slot).subject.item)
    return "no tool" if found is None else f"`{found.step.tool}`"


def _undone(story: StoryPlaces, event: ev.UndoStepBegan | ev.ChildUndone | ev.Settles) -> Place | None:
    """Return the place of the step that is undone."""
    return story.places.get(Slot.parse(event.slot).subject.text)


class Reaction(View):
    """A reaction to a failure."""

    strategy: str
    hint: str | None
    way: str | None
    policy: Annotated[str | None, "Failover policy that selected the strategy."]
    why: Annotated[list[str], "Reasons why earlier strategies were not used."]
    pause_ms: Annotated[Count | None, "For a retry: delay before it, in milliseconds."]
    next_attempt_at: Time | None
    question: Asked | None
    answer: Annotated[
        str | None, "Answer to the question: retry, use, fail or expired. Null if the question is open."
    ]


class FailedAttempt(AttemptFailure):
    """A failed attempt that was followed by a further reaction."""

    attempt: Version
    tool: str
    version: Annotated[Version, "Version of the log entry that records the failure."]
    at: Time
    lasted_ms: int
    then: list[Reaction]
    text: Annotated[str, "Complete explanation as text."]


class RecordedUnit(View):
    """A unit of a step's work that its tool has recorded."""

    name: str
    version: Annotated[Version, "Version of the log entry that has its result."]
    at: Time
    text: Annotated[str, "Its name, with that of the operation or call, and the beginning of its result."]


SHOWN = 50  # attempts of one round, or units: the first, and the last ones
_ANSWERS = {
    TRY_AGAIN: "a person said: try it again",
    USE: "a person gave what it was to give",
    GIVE_UP: "a person gave it up",
    "expired": "no answer came in time",
}


def attempts_view(place: Place) -> list[FailedAttempt]:
    """Return the attempts of a slot, in their order; of very many, the first and the last ones."""
    shown = place.attempts
    if len(shown) > SHOWN:
        shown = [shown[0], *shown[-SHOWN + 1 :]]
    return [_attempt_view(attempt) for attempt in shown]


def units_view(places: Iterable[Place]) -> list[RecordedUnit]:
    """Return the units of these slots, in the order of the log; of very many, the first and the last ones."""
    found = [(place, one) for place in places for one in place.units]
    found.sort(key=lambda one: one[1].when.version)
    if len(found) > SHOWN:
        found = [found[0], *found[-SHOWN + 1 :]]
    return [
        RecordedUnit(
            name=one.name,
            version=one.when.version,
            at=iso(one.when.at),
            text=f"{place.label}: {one.name}: {one.result}" if place.label else f"{one.name}: {one.result}",
        )
        for place, one in found
    ]


def unit_of(event: ev.UnitRecorded, when: Moment) -> DoneUnit:
    """Return a unit as it is shown: a long result is cut."""
    value = event.output
    text = f"{value.size:,} bytes" if value.ref else " ".join(_json(value.v).split())
    return DoneUnit(event.name, text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…", when)


def units_in_words(place: Place) -> str:
    """Return the words for the units recorded of a slot's work; empty for none."""
    if not place.units:
        return ""
    said = "unit of its work is" if len(place.units) == 1 else "units of its work are"
    return f"{len(place.units)} {said} recorded, the last `{place.units[-1].name}`"


def _attempt_view(attempt: Attempt) -> FailedAttempt:
    return FailedAttempt(
        attempt=attempt.number,
        tool=attempt.tool,
        version=attempt.when.version,
        at=iso(attempt.when.at),
        lasted_ms=attempt.lasted,
        **of_failure(attempt.failure),
        then=[_reaction_view(attempt, chosen) for chosen in attempt.then],
        text="; ".join([_failed(attempt), *(_done(attempt, chosen) for chosen in attempt.then)]),
    )


def _reaction_view(attempt: Attempt, chosen: ev.StrategyChosen) -> Reaction:
    answer = attempt.answers.get(chosen.ask.id) if chosen.ask is not None else None
    return Reaction(
        strategy=chosen.strategy,
        hint=chosen.hint or None,
        way=chosen.way.name if chosen.way is not None else None,
        policy=chosen.policy or None,
        why=list(chosen.why),
        pause_ms=pause_of(chosen),
        next_attempt_at=iso(chosen.due_at) if chosen.due_at else None,
        question=question_view(chosen.node, chosen.iteration, chosen.ask) if chosen.ask is not None else None,
        answer=answer.action if answer is not None else None,
    )


def pause_of(chosen: ev.StrategyChosen) -> int | None:
    """Return the milliseconds from a failure to the attempt after it;
    None where it is not a matter of time.
    """
    return max(chosen.due_at - chosen.at, 0) if of(chosen.strategy).repeats else None


# ---- in words


def _failed(attempt: Attempt) -> str:
    failure = attempt.failure
    means = advice_for(failure.code).says
    after = ", ".join(part for part in (duration_text(attempt.lasted), _held(attempt.blocked)) if part)
    return f"attempt {attempt.number} failed after {after}: {code_and_message(failure)} ({means})"


def _held(blocked_ms: int) -> str:
    return f"it held the event loop for {duration_text(blocked_ms)}" if blocked_ms else ""


def _done(attempt: Attempt, chosen: ev.StrategyChosen) -> str:
    """Return the action after a failed attempt, the reasons against others, and the answer to a question."""
    text = _words(chosen)
    if chosen.policy:
        text += f", by the policy `{chosen.policy}`" + (f": {chosen.message}" if chosen.message else "")
    if chosen.why:
        text += f" ({'; '.join(chosen.why)})"
    answer = attempt.answers.get(chosen.ask.id) if chosen.ask is not None else None
    if answer is None:
        return text
    with_other = f", with other values of {names_in_words(answer.arguments)}" if answer.arguments else ""
    return f"{text}; {_ANSWERS.get(answer.action, answer.action)}{with_other}"


def _words(chosen: ev.StrategyChosen) -> str:
    ask, way, pause = chosen.ask, chosen.way, pause_of(chosen)
    words = StrategyWords(
        pause=f"{duration_text(pause)}, at {iso(chosen.due_at)}" if pause else "",
        hooks=names_in_words(chosen.hooks),
        hint=chosen.hint,
        by="" if way is None else way.tool or way.name,
        others=names_in_words(chosen.arguments),
        is_asked=ask is not None,
        until=iso(ask.expires_at) if ask is not None and ask.expires_at else "",
        severity=chosen.severity,
    )
    return of(chosen.strategy).in_words(words)


def history(place: Place) -> str:
    """Return the words for the attempts before the last of an ended step; empty if it had only one."""
    end = place.end
    assert end is not None, "it has ended"
    recorded = "it had happened before, so what came of it then was taken" if end.recorded else ""
    parts = [recorded, _held(end.blocked_ms), units_in_words(place)]
    if place.attempts:
        last = place.attempts[-1]
        is_same = end.failure is not None and code_and_message(end.failure) == code_and_message(last.failure)
        how = "in the same way" if is_same else f"with {code_and_message(last.failure)}"
        parts.insert(0, f"after {counted(len(place.attempts), 'earlier attempt')} had failed, the last {how}")
    return "; ".join(part for part in parts if part)


def outlook(place: Place) -> str:
    """Return the next event of a step that has failed before; empty if it has not, or if it runs again."""
    if not place.attempts:
        return ""
    last = place.attempts[-1]
    failed = f"failed at attempt {last.number}: {code_and_message(last.failure)}"
    if not last.then:
        return failed
    chosen = last.then[-1]
    ask = chosen.ask
    if ask is None:
        return f"{failed}; it is {_words(chosen)}"
    answer = last.answers.get(ask.id)
    if answer is not None:
        return f"{failed}; {_ANSWERS.get(answer.action, answer.action)}"
    until = f", until {iso(ask.expires_at)} at most" if ask.expires_at else ""
    moves = [event for event in place.moves if event.ask == ask.id]
    return f"{failed}; it waits for an answer by {of(chosen.strategy).waits_for} to the question `{ask.id}`{until}{asked_since(moves)}"


def is_asking(place: Place) -> bool:
    """Return true if a question about the slot is open."""
    if not place.attempts or not place.attempts[-1].then:
        return False
    ask = place.attempts[-1].then[-1].ask
    return ask is not None and ask.id not in place.attempts[-1].answers
