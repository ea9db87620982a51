"""Open work with parts (agents, maps and replans), and the events that move it on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from baton.core.effects.keys import canonical
from baton.core.expressions import iso
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
from baton.core.log.slots import Slot

ENDS = "ends"
"""Key of an answer with which an agent ends its conversation."""


class Turn(msgspec.Struct, frozen=True, array_like=True):
    """A finished turn: the answer, the result of each call in order, and the messages from outside before it.

    `again`: calls that were not made, each with the call that it repeats.
    """

    answer: Value
    results: tuple[Value, ...] = ()
    heard: tuple[Value, ...] = ()
    again: dict[str, str] = {}


class Progress(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Use of an agent: calls, tokens in all, and tokens that its last turn has read.
    `turns`: those of its delegates.
    """

    calls: int = 0
    tokens: int = 0
    read: int = 0
    turns: int = 0


class Agent(Work, msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="agent"):
    """An agent at work.

    `given`: its prompt and settings, rendered once. `turn`: the number of its turn, 0 before the first.
    `calls`: the tools of this turn's calls, by item; `again`: those of them that repeat another call.
    The transcript is in `segments`, the oldest first, and in `tail`.
    `made`: by digest, the item of each call that has succeeded or is under way, except for calls of turns in
    segments.
    `listens`: the signal that brings it messages; `heard`: the messages with which this turn begins.
    `failed`: number of calls of this turn that cannot be made or have failed.
    `until`, of a conversation that waits for a message: the end of its idle time.
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
    until: int = 0
    word = "running"

    def view(self, schema: Any) -> dict[str, Any]:
        shown = {"turn": self.turn, "calls": self.used.calls, "tokens": self.used.tokens}
        if not self.until:
            return shown
        return {**shown, "state": "waiting", "signal": self.listens, "until": iso(self.until)}

    @property
    def signal(self) -> str:
        return self.listens if self.until else ""

    @property
    def taken_signal(self) -> str:
        return self.listens

    @property
    def due(self) -> int | None:
        return self.until or None

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self:
        """Return the agent with its answers and results up to the cut; unfinished calls are repeated under
        the same keys, and a conversation waits for as long as it still would at the cut.
        """
        return self.postponed(later)

    def postponed(self, later: int) -> Self:
        return replace(self, until=self.until + later) if self.until else self


def turn_item(turn: int) -> str:
    """Return the item of a turn: `t3`."""
    return f"t{turn}"


def agent_call_item(turn: int, index: int) -> str:
    """Return the item of a call: `t3-0`."""
    return f"t{turn}-{index}"


def is_turn(item: str) -> bool:
    """Return true if an item is a turn of an agent, and not a call or a part of another kind of work."""
    return item[:1] == "t" and item[1:].isdigit()


def place_of(item: str) -> tuple[int, int]:
    """Return the turn and the index of a call."""
    turn, _, index = item[1:].partition("-")
    return int(turn), int(index)


def item_words(item: str, tool: str = "") -> str:
    """Return `turn 3`, or `turn 3, call 1 (table.search)`; any other item is returned as it is."""
    if not _is_item(item):
        return item
    if is_turn(item):
        return f"turn {item[1:]}"
    turn, index = place_of(item)
    return f"turn {turn}, call {index + 1}" + (f" ({tool})" if tool else "")


_is_item = re.compile("t[0-9]+(-[0-9]+)?").fullmatch
_encode = msgspec.json.Encoder(order="sorted").encode


def call_digest(tool: str, arguments: Any) -> str:
    """Return a digest that is the same for equal calls."""
    return hashlib.sha256(_encode([tool, arguments])).hexdigest()[:16]


class TurnBegan(About, frozen=True, tag="turn_began", omit_defaults=True, kw_only=True):
    """The next turn of an agent began; the one before is over.

    `segments`: the segments of older turns, if they changed. `heard`: the keys of the signals whose payloads
    are messages to the agent.
    """

    turn: int
    heard: tuple[str, ...] = ()
    segments: tuple[Segment, ...] | None = None
    used: Progress = Progress()


class Called(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A call that an answer asks for: it is made, has a `failure`, or repeats an earlier one (`repeats`)."""

    item: str
    tool: str
    digest: str = ""
    repeats: str = ""
    failure: Failure | None = None

    @property
    def result(self) -> Value | None:
        """The result that is known at once; None: the call is made."""
        if self.failure is not None:
            return failure_for_model(self.failure)
        return Value(v={"repeated": self.repeats}) if self.repeats else None


class CallsBegan(About, frozen=True, tag="calls_began", omit_defaults=True, kw_only=True):
    """The calls that the answer of a turn asks for began. Calls that are made begin with events of their own.

    `at`: the time of the answer, if none of its calls can be made.
    """

    calls: tuple[Called, ...]
    at: int = 0
    used: Progress = Progress()


class MessageAwaited(About, frozen=True, tag="message_awaited", omit_defaults=True, kw_only=True):
    """An agent has answered, and its conversation waits for the next message until `until`."""

    until: int
    used: Progress = Progress()


class AgentClosed(Gives, frozen=True, tag="agent_closed", omit_defaults=True, kw_only=True):
    """An agent has its answer after `turns` turns.

    `by`: the key of the signal that ended its conversation.
    """

    became = "answered"
    made = ("output",)
    turns: int
    used: Progress = Progress()
    by: str = ""


def calls_words(calls: Iterable[Called]) -> str:
    """Return the tools of calls, with the reason for each call that is not made."""
    return ", ".join(f"`{one.tool}`{_unmade(one)}" for one in calls)


def _unmade(one: Called) -> str:
    if one.failure is not None:
        return f" (not made: {one.failure.code})"
    return f" (not made, as {item_words(one.repeats)} was)" if one.repeats else ""


def stand_in_answer(output: Any) -> dict[str, Any]:
    """Return an answer for a turn that was given by a person or by a stand-in tool, not by a model."""
    text = output if isinstance(output, str) else _encode(output).decode()
    return {"text": text, "calls": [], "data": output, "tokens": [0, 0]}


def failure_for_model(failure: Failure) -> Value:
    """Return a failure in the form in which a model is told of it."""
    return Value(v={"error": {"code": failure.code, "message": failure.message}})


def next_turn(
    work: Agent, event: TurnBegan, items: Mapping[str, Value | None], heard: tuple[Value, ...] = ()
) -> Agent:
    """Return the agent in its next turn.

    `items` has the answer and the results of the finished turn; `heard` are the messages for the next.
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
        until=0,
    )


def awaiting(work: Agent, event: MessageAwaited) -> Agent:
    """Return the agent that waits for a message."""
    return replace(work, until=event.until, used=event.used)


def with_calls(work: Agent, event: CallsBegan) -> Agent:
    """Return the agent with the calls of its turn."""
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
"""Most errors in the failure of a map, which is stored in an entry and in the state.

The batch result has all of them.
"""
SUCCEEDED, FAILED, STOPPED, NOT_BEGUN = "succeeded", "failed", "stopped", "not_begun"
RUNNING = "running"
"""Results of an item. `RUNNING`: the map has gone on without it."""


class Map(Work, msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="map"):
    """A map at work: the list `over`, its `size`, and the number of items that have `begun`, in the order of
    the list.

    `parts`: the results of items that have left the state. `gathered`: the number of these items; `lost`:
    those of them that failed.
    `failures`: the failures of items still in the state, by item. `first`: the first failures of all.
    `failure`: the reason why the map has failed; `batch` then has the result of each item.
    `late`: the map has gone on, and its remaining items affect nothing else; the numbers of them that have
    since succeeded and failed.
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
    word = "running"

    def view(self, schema: Any) -> dict[str, Any]:
        good, bad = self.late or (0, 0)
        shown = {"items": self.size, "begun": self.begun, "failed": self.lost + len(self.failures) + bad}
        return shown if self.late is None else {**shown, "late": True, "ended_since": good + bad}

    @property
    def is_late(self) -> bool:
        return self.late is not None

    @property
    def acts_by_items(self) -> bool:
        return True

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self:
        """Return the map with the results of items up to the cut; unfinished items are repeated under the
        same keys.
        """
        return self


def is_index(item: str) -> bool:
    """Return true if an item is one of a list, and not a turn, a call or another part of a node's work."""
    return item.isdecimal()


class ItemsBegan(About, frozen=True, tag="items_began", omit_defaults=True, kw_only=True):
    """`count` items of a map began together, from the index `first` on."""

    first: int = 0
    count: int
    at: int

    @property
    def items(self) -> Iterable[str]:
        return map(str, range(self.first, self.first + self.count))


class ItemsGathered(About, frozen=True, tag="items_gathered", omit_defaults=True, kw_only=True):
    """The results of ended items leave the state: each with its index, its success, and its output
    or error.
    """

    made = ("results",)
    items: tuple[int, ...]
    results: Value


class MapStopped(About, frozen=True, tag="map_stopped", omit_defaults=True, kw_only=True):
    """A map failed. `batch` has the result of each item; the failure of the node follows."""

    made = ("batch",)
    failure: Failure
    batch: Value


class MapClosed(Gives, frozen=True, tag="map_closed", omit_defaults=True, kw_only=True):
    """A map is done, with the numbers of its items that succeeded, failed, were stopped and never began.

    `running`: number of items that run on beside the nodes after the map; with `goes_on`, items that have not
    begun will still begin.
    The map ends with `MapEnded`.
    """

    made = ("output",)
    succeeded: int = 0
    failed: int = 0
    stopped: int = 0
    not_begun: int = 0
    running: int = 0
    goes_on: bool = False


class MapEnded(Settles, frozen=True, tag="map_ended", omit_defaults=True, kw_only=True):
    """The items that a map left running are over: the numbers that succeeded, failed, were stopped and never
    began.

    `why`: the reason why they were stopped, if they did not end by themselves.
    """

    succeeded: int = 0
    failed: int = 0
    stopped: int = 0
    not_begun: int = 0
    why: str = ""

    @property
    def leads_on(self) -> bool:
        """True if the event that stopped the items may follow in the same entry."""
        return bool(self.why)


def late_end(slot: Slot, work: Map, running: int, why: str = "") -> MapEnded:
    """Return the end of a map that has gone on, with `running` items still running."""
    assert work.late is not None, "it has gone on"
    good, bad = work.late
    return MapEnded(
        **slot.fields,
        succeeded=good,
        failed=bad,
        stopped=running,
        not_begun=work.size - work.begun,
        why=why,
    )


def with_late(work: Map, *, succeeded: bool) -> Map:
    """Return the map after the end of an item that it has left running."""
    assert work.late is not None, "the caller has looked"
    good, bad = work.late
    return replace(work, late=(good + succeeded, bad + (not succeeded)))


def with_failure(work: Map, item: str, failure: Failure) -> Map:
    """Return the map after the final failure of an item."""
    node = f"{failure.node.partition('#')[0]}#{item}"
    first = work.first
    if len(first) < ERRORS_KEPT:
        first = (*first, Blamed(failure.code, failure.message[:LONGEST_MESSAGE], node))
    return replace(work, failures={**work.failures, item: failure}, first=first)


def with_part(work: Map, event: ItemsGathered) -> Map:
    """Return the map with the results of these items gathered."""
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


class MadeCall(msgspec.Struct, frozen=True, array_like=True):
    """A call of a model that has succeeded: its slot and its output."""

    slot: str
    output: Value


class Replanning(Work, msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="replanning"):
    """A failed step that tries alternatives. `until`: no alternative begins after it.

    `alternative`: the number of the present one, 0 before the first. `calls`: the tools of its calls that
    have begun, by item.
    `failed`: the failure of the last call.
    """

    until: int
    alternative: int = 0
    calls: dict[str, str] = {}
    failed: Failure | None = None
    word = "running"

    def view(self, schema: Any) -> dict[str, Any]:
        return {"alternative": self.alternative or None}

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self:
        """Return the work with the model's answers, and with as much time left as at the cut."""
        return self.postponed(later)

    def postponed(self, later: int) -> Self:
        return replace(self, until=self.until + later)


class AlternativeBegan(About, frozen=True, tag="alternative_began", omit_defaults=True, kw_only=True):
    """The next call of the model's alternative `number` began, or the first call of the next alternative.

    `tool` is called, or an equal call was made before and gave the result (`repeats` is its slot).
    """

    at: int
    number: int
    call: str
    tool: str
    digest: str = ""
    repeats: str = ""


class ReplanEnded(About, frozen=True, tag="replan_ended", omit_defaults=True, kw_only=True):
    """A replan ended: no alternative is left, or no time for one. The step's failure handling goes on.
    `why`: for people.
    """

    at: int
    why: str


def replan_call_item(number: int, step: int) -> str:
    """Return the item of a call in an alternative: `a2-1`; both numbers count from 1."""
    return f"a{number}-{step}"


def call_place(item: str) -> tuple[int, int]:
    """Return the numbers of the alternative and of the call in it."""
    number, _, step = item[1:].partition("-")
    return int(number), int(step)


def label_of(item: str, tool: str = "") -> str:
    """Return `alternative 2, call 1 (table.search)`, in words for people."""
    if item in (PLAN, CHOICE):
        return f"the {item}"
    number, step = call_place(item)
    return f"alternative {number}, call {step}" + (f" ({tool})" if tool else "")


def act_digest(user: str, tool: str, arguments: Mapping[str, Any]) -> str:
    """Return a digest that is the same for calls with the same meaning for one user, in any notation of their
    arguments.
    """
    return hashlib.sha256(_encode([user, tool, canonical(dict(arguments))])).hexdigest()[:32]


def with_made_call(made: dict[str, MadeCall], digest: str, slot: str, output: Value) -> dict[str, MadeCall]:
    """Return the remembered calls with one more, without the oldest if they are too many."""
    more = {**{key: one for key, one in made.items() if key != digest}, digest: MadeCall(slot, output)}
    return dict(list(more.items())[-MADE_REMEMBERED:])
