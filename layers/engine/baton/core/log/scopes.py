"""Open work that has parts: agents, maps and replans, and the events that move them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from baton.core.effects.keys import canonical
from baton.core.log.records import (
    LONGEST_MESSAGE,
    About,
    Blamed,
    Failure,
    Gives,
    Segment,
    Settles,
    Value,
    Work,
)


class Turn(msgspec.Struct, frozen=True, array_like=True):
    """A turn that is over: the answer, what came of each call in its order,
    and the messages from outside before it.

    `again`: calls that were not made, and which they repeat.
    """

    answer: Value
    results: tuple[Value, ...] = ()
    heard: tuple[Value, ...] = ()
    again: dict[str, str] = {}


class Progress(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What an agent has used: calls, tokens in all, and those that its last turn has read."""

    calls: int = 0
    tokens: int = 0
    read: int = 0


class Agent(Work, msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="agent"):
    """An agent at work.
    `given`: its prompt and settings, rendered once.
    `turn` is the number of its turn, 0 before the first.

    `calls` are those of this turn, by item, with their tools, and `again` those of them that repeat another
    one. The transcript is
    in `segments`, the oldest first, and in `tail`.
    `made`: by its digest, the item of each call that has succeeded or is under way; those of turns
    that are in segments are there. `listens`: the signal that brings it messages; `heard`: those
    with which this turn begins. `failed`: so many calls of this turn cannot be made, or have failed.
    """

    given: Value
    turn: int = 0
    calls: dict[str, str] = {}
    again: dict[str, str] = {}
    segments: tuple[Segment, ...] = ()
    tail: tuple[Turn, ...] = ()
    made: dict[str, str] = {}
    used: Progress = Progress()
    listens: str = ""
    heard: tuple[Value, ...] = ()
    failed: int = 0

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self:
        """Answers and results up to the cut are kept; what was under way then
        is done again, under the same keys.
        """
        return self


def turn_item(turn: int) -> str:
    """`t3`"""
    return f"t{turn}"


def agent_call_item(turn: int, index: int) -> str:
    """`t3-0`"""
    return f"t{turn}-{index}"


def is_turn(item: str) -> bool:
    """Whether an item is a turn of an agent; else it is a call, or a part of another kind of work."""
    return item.startswith("t") and "-" not in item


def place_of(item: str) -> tuple[int, int]:
    """The turn and the index of a call."""
    turn, _, index = item[1:].partition("-")
    return int(turn), int(index)


def item_words(item: str, tool: str = "") -> str:
    """`turn 3`, or `turn 3, call 1 (table.search)`; what is neither is shown as it is."""
    if not _is_item(item):
        return item
    if is_turn(item):
        return f"turn {item[1:]}"
    turn, index = place_of(item)
    return f"turn {turn}, call {index + 1}" + (f" ({tool})" if tool else "")


_is_item = re.compile("t[0-9]+(-[0-9]+)?").fullmatch
_encode = msgspec.json.Encoder(order="sorted").encode


def call_digest(tool: str, arguments: Any) -> str:
    """The same for equal calls."""
    return hashlib.sha256(_encode([tool, arguments])).hexdigest()[:16]


class TurnBegan(About, frozen=True, tag="turn_began", omit_defaults=True, kw_only=True):
    """The next turn of an agent; the one before is over.
    `segments`: what has become of older turns, where that is news.

    `heard`: the keys of the signals whose payloads are messages to it.
    """

    turn: int
    heard: tuple[str, ...] = ()
    segments: tuple[Segment, ...] | None = None
    used: Progress = Progress()


class Called(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A call that an answer asks for.
    It is made, or it has a `failure`, or is the same as an earlier one (`repeats`).
    """

    item: str
    tool: str
    digest: str = ""
    repeats: str = ""
    failure: Failure | None = None

    @property
    def result(self) -> Value | None:
        """What there is to say of it at once; None: it is made."""
        if self.failure is not None:
            return told(self.failure)
        return Value(v={"repeated": self.repeats}) if self.repeats else None


class CallsBegan(About, frozen=True, tag="calls_began", omit_defaults=True, kw_only=True):
    """The calls that the answer of a turn asks for. Those that are made begin with events of their own.

    `at`: where none of them can be made, when that was.
    """

    calls: tuple[Called, ...]
    at: int = 0
    used: Progress = Progress()


class AgentClosed(Gives, frozen=True, tag="agent_closed", omit_defaults=True, kw_only=True):
    """An agent has its answer, after so many turns."""

    became = "answered"
    made = ("output",)
    turns: int
    used: Progress = Progress()


def calls_words(calls: Iterable[Called]) -> str:
    """The tools of calls, with why those are not made that are not."""
    return ", ".join(f"`{one.tool}`{_unmade(one)}" for one in calls)


def _unmade(one: Called) -> str:
    if one.failure is not None:
        return f" (not made: {one.failure.code})"
    return f" (not made, as {item_words(one.repeats)} was)" if one.repeats else ""


def answer_of(output: Any) -> dict[str, Any]:
    """The answer of a turn that no model has given: a person has, or a tool that stands in."""
    text = output if isinstance(output, str) else _encode(output).decode()
    return {"text": text, "calls": [], "data": output, "tokens": [0, 0]}


def told(failure: Failure) -> Value:
    """A failure as a model is told of it."""
    return Value(v={"error": {"code": failure.code, "message": failure.message}})


def next_turn(
    work: Agent, event: TurnBegan, items: Mapping[str, Value | None], heard: tuple[Value, ...] = ()
) -> Agent:
    """The agent in its next turn.
    `items` has the answer and the results of the one that is over; `heard` goes with the next.
    """
    if event.turn != work.turn + 1:
        return work
    tail, made = work.tail, work.made
    if event.segments is not None:
        covered = sum(one.turns for one in event.segments)
        tail = tail[covered - sum(one.turns for one in work.segments) :]
        made = {key: item for key, item in made.items() if place_of(item)[0] > covered}
    if work.turn:
        answer, results = items[turn_item(work.turn)], [items[item] for item in work.calls]
        given = tuple(one or Value() for one in results)
        tail = (*tail, Turn(answer or Value(), given, work.heard, work.again))
    return replace(
        work,
        turn=event.turn,
        calls={},
        again={},
        failed=0,
        segments=work.segments if event.segments is None else event.segments,
        tail=tail,
        made=made,
        used=event.used,
        heard=heard,
    )


def with_calls(work: Agent, event: CallsBegan) -> Agent:
    """The agent with the calls of its turn."""
    made = {one.digest: one.item for one in event.calls if one.result is None and one.digest}
    return replace(
        work,
        calls={one.item: one.tool for one in event.calls},
        again={one.item: one.repeats for one in event.calls if one.repeats},
        made={**work.made, **made},
        used=event.used,
        failed=sum(one.failure is not None for one in event.calls),
    )


ERRORS_KEPT = 20
"""How many errors the failure of a map keeps: it is stored in an entry and in the state.
The batch result has all of them.
"""
SUCCEEDED, FAILED, STOPPED, NOT_BEGUN = "succeeded", "failed", "stopped", "not_begun"
RUNNING = "running"
"""What became of an item. It runs where the map has gone on without it."""


class Map(Work, msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="map"):
    """A map at work: the list `over`, its `size`, and how many items have `begun`, in the order of the list.

    `parts` are the results of items that have left the state: `gathered` so many, of which `lost` have
    failed.
    `failures` are those of items that have not, by item; `first` are the first of all. `failure`: it has
    failed with that;
    `batch` says then what became of each item. `late`: what comes after the map has begun, and nothing
    follows from the items that
    are left; so many of them have since succeeded, and failed.
    """

    over: Value
    size: int
    begun: int = 0
    gathered: int = 0
    lost: int = 0
    parts: tuple[Value, ...] = ()
    failures: dict[str, Failure] = {}
    first: tuple[Blamed, ...] = ()
    failure: Failure | None = None
    batch: Value | None = None
    late: tuple[int, int] | None = None

    @property
    def is_late(self) -> bool:
        return self.late is not None

    @property
    def acts_by_items(self) -> bool:
        return True

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self:
        """What items have given up to the cut is kept; those at work then are
        done again, under the same keys.
        """
        return self


def is_index(item: str) -> bool:
    """Whether an item is one of a list, and not a turn, a call or another part of a node's work."""
    return item.isdecimal()


class ItemsBegan(About, frozen=True, tag="items_began", omit_defaults=True, kw_only=True):
    """So many items of a map began together, from the index `first` on."""

    first: int = 0
    count: int
    at: int

    @property
    def items(self) -> Iterable[str]:
        return map(str, range(self.first, self.first + self.count))


class ItemsGathered(About, frozen=True, tag="items_gathered", omit_defaults=True, kw_only=True):
    """The results of items that have ended leave the state: of each its
    index, whether it has succeeded, and its output or error.
    """

    made = ("results",)
    items: tuple[int, ...]
    results: Value


class MapStopped(About, frozen=True, tag="map_stopped", omit_defaults=True, kw_only=True):
    """A map has failed. `batch` says of each item what became of it; the failure of the node follows."""

    made = ("batch",)
    failure: Failure
    batch: Value


class MapClosed(Gives, frozen=True, tag="map_closed", omit_defaults=True, kw_only=True):
    """A map is done: how many of its items have succeeded, have failed, were stopped and never began.

    `running`: so many run on beside what comes after the map, and those that have not begun will (`goes_on`).
    The map is over with
    `MapEnded`.
    """

    made = ("output",)
    succeeded: int = 0
    failed: int = 0
    stopped: int = 0
    not_begun: int = 0
    running: int = 0
    goes_on: bool = False


class MapEnded(Settles, frozen=True, tag="map_ended", omit_defaults=True, kw_only=True):
    """The items that a map has left running are over: how many of them have
    succeeded, have failed, were stopped and never began.

    `why`: what has stopped them, if they did not end by themselves.
    """

    succeeded: int = 0
    failed: int = 0
    stopped: int = 0
    not_begun: int = 0
    why: str = ""

    @property
    def leads_on(self) -> bool:
        """Whether what has stopped the items may come behind it: both are in the same entry."""
        return bool(self.why)


def late_end(node: str, iteration: tuple[int, ...], work: Map, running: int, why: str = "") -> MapEnded:
    """The end of a map that has gone on, where so many items still run."""
    assert work.late is not None, "it has gone on"
    good, bad = work.late
    return MapEnded(
        node=node,
        iteration=iteration,
        succeeded=good,
        failed=bad,
        stopped=running,
        not_begun=work.size - work.begun,
        why=why,
    )


def with_late(work: Map, *, succeeded: bool) -> Map:
    """An item has ended that the map has left running."""
    assert work.late is not None, "the caller has looked"
    good, bad = work.late
    return replace(work, late=(good + succeeded, bad + (not succeeded)))


def with_failure(work: Map, item: str, failure: Failure) -> Map:
    """An item has failed for good."""
    node = f"{failure.node.partition('#')[0]}#{item}"
    first = work.first
    if len(first) < ERRORS_KEPT:
        first = (*first, Blamed(failure.code, failure.message[:LONGEST_MESSAGE], node))
    return replace(work, failures={**work.failures, item: failure}, first=first)


def with_part(work: Map, event: ItemsGathered) -> Map:
    """The results of these items are a part of what is gathered."""
    gone = set(map(str, event.items))
    return replace(
        work,
        gathered=work.gathered + len(event.items),
        lost=work.lost + len(gone & work.failures.keys()),
        parts=(*work.parts, event.results),
        failures={item: failure for item, failure in work.failures.items() if item not in gone},
    )


PLAN, CHOICE = "plan", "choice"
MADE_REMEMBERED = 200


class Made(msgspec.Struct, frozen=True, array_like=True):
    """A call that has succeeded: where, and what it gave."""

    slot: str
    output: Value


class Replanning(Work, msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="replanning"):
    """A step that is done another way. `until`: no alternative begins after it.

    `alternative` is the number of the one under way, 0 before the first; `calls`: those of its calls that
    have begun, by item, with
    their tools. `failed`: what the last of them has failed with.
    """

    until: int
    alternative: int = 0
    calls: dict[str, str] = {}
    failed: Failure | None = None

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self:
        """What the model has answered is kept, and there is as much time left as at the cut."""
        return self.postponed(later)

    def postponed(self, later: int) -> Self:
        return replace(self, until=self.until + later)


class AlternativeBegan(About, frozen=True, tag="alternative_began", omit_defaults=True, kw_only=True):
    """The next call of the model's alternative of this `number`, or the first of the next one.

    `tool` is called, or an equal call was made before and has given what this one gives (`repeats` is its
    slot).
    """

    at: int
    number: int
    call: str
    tool: str
    digest: str = ""
    repeats: str = ""


class ReplanEnded(About, frozen=True, tag="replan_ended", omit_defaults=True, kw_only=True):
    """No alternative is left, or there is no time for it: what is done about the failure goes on.
    `why`: for people.
    """

    at: int
    why: str


def replan_call_item(number: int, step: int) -> str:
    """`a2-1`: both count from 1."""
    return f"a{number}-{step}"


def call_place(item: str) -> tuple[int, int]:
    """The numbers of the alternative and of the call in it."""
    number, _, step = item[1:].partition("-")
    return int(number), int(step)


def label_of(item: str, tool: str = "") -> str:
    """`alternative 2, call 1 (table.search)`, in words for people."""
    if item in (PLAN, CHOICE):
        return f"the {item}"
    number, step = call_place(item)
    return f"alternative {number}, call {step}" + (f" ({tool})" if tool else "")


def act_digest(user: str, tool: str, arguments: Mapping[str, Any]) -> str:
    """The same for calls that mean the same to one user, however their arguments are written."""
    return hashlib.sha256(_encode([user, tool, canonical(dict(arguments))])).hexdigest()[:32]


def remembered(made: dict[str, Made], digest: str, slot: str, output: Value) -> dict[str, Made]:
    """With one more call, and without the oldest where there are too many."""
    more = {**{key: one for key, one in made.items() if key != digest}, digest: Made(slot, output)}
    return dict(list(more.items())[-MADE_REMEMBERED:])
