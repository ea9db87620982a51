"""What an agent has open, and the events that move it: from turn to turn, and from an answer to the calls that it asks for.

Turns and calls themselves are steps, at slots of items: `t3` is the third turn, `t3-0` the first call that its answer asks
for. What an agent does is in core/nodes/agent.py.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from baton.core.log.opened import Work
from baton.core.log.records import About, Failure, Segment, Value
from baton.core.log.settling import Gives


class Turn(msgspec.Struct, frozen=True, array_like=True):
    """A turn that is over: the answer, what came of each call in its order, and the messages from outside before it.

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
    """An agent at work. `given`: its prompt and settings, rendered once. `turn` is the number of its turn, 0 before the first.

    `calls` are those of this turn, by item, with their tools, and `again` those of them that repeat another one. The transcript is
    in `segments`, the oldest first, and in `tail`. `made`: by its digest, the item of each call that has succeeded or is under way;
    those of turns that are in segments are there. `listens`: the signal that brings it messages; `heard`: those with which this
    turn begins. `failed`: so many calls of this turn cannot be made, or have failed.
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
        """Answers and results up to the cut are kept; what was under way then is done again, under the same keys."""
        return self


def turn_item(turn: int) -> str:
    """`t3`"""
    return f"t{turn}"


def call_item(turn: int, index: int) -> str:
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
    """The next turn of an agent; the one before is over. `segments`: what has become of older turns, where that is news.

    `heard`: the keys of the signals whose payloads are messages to it.
    """

    turn: int
    heard: tuple[str, ...] = ()
    segments: tuple[Segment, ...] | None = None
    used: Progress = Progress()


class Called(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A call that an answer asks for. It is made, or it has a `failure`, or is the same as an earlier one (`repeats`)."""

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
    """The agent in its next turn. `items` has the answer and the results of the one that is over; `heard` goes with the next."""
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
