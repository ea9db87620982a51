"""What agents of a saga and their models said to each other, turn by turn, with what each turn cost. Pure: entries in, turns out.

Which entries are read, and the page, are in talking.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from baton.console.rendering import milliseconds
from baton.core.log.agents import is_turn, item_words
from baton.core.log.references import PERIOD, SCHEME
from baton.core.money import MICRO


@dataclass(frozen=True, slots=True)
class Stored:
    """A value that is kept beside the log and was not read: its digest and its bytes."""

    digest: str
    size: int


@dataclass(slots=True)
class Called:
    """A call that the model asked for. result: None as long as there is none; failure, repeats: in its place, the call whose result it got."""

    tool: str
    arguments: Any
    result: Any = None
    failure: Mapping[str, Any] | None = None
    took: int | None = None
    version: int = 0
    repeats: str = ""


@dataclass(slots=True)
class Turn:
    """heard: messages from outside before it. Tokens: of all requests of it. version: of the entry with the answer, 0: none yet.

    moved: the last entry that says something of the turn itself.
    """

    node: str
    round: str
    number: int
    heard: Sequence[Any] = ()
    answer: Any = None
    failure: Mapping[str, Any] | None = None
    calls: list[Called] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    input: int = 0
    cached: int = 0
    output: int = 0
    usd: float = 0.0
    took: int | None = None
    version: int = 0
    moved: int = 0


@dataclass(slots=True)
class Talk:
    """One run of an agent. given: its model, instructions and prompt; empty where its beginning is not among the entries."""

    node: str
    round: str
    given: Mapping[str, Any] | Stored
    turns: dict[int, Turn] = field(default_factory=dict)
    is_over: bool = False

    @property
    def usd(self) -> float:
        return sum(turn.usd for turn in self.turns.values())


@dataclass(slots=True)
class _Reader:
    """values: what was read of values beside the log, by digest. news: what signals said, by key."""

    values: Mapping[str, Any]
    news: dict[str, Any] = field(default_factory=dict)

    def value(self, given: Any) -> Any:
        """What a value of an event is; None for none."""
        if not isinstance(given, Mapping):
            return None
        if not (ref := given.get("ref")):
            return given.get("v")
        digest = str(ref).removeprefix(SCHEME).partition(PERIOD)[0]
        return self.values.get(digest, Stored(digest, int(given.get("size") or 0)))


def talks_of(
    entries: Sequence[Mapping[str, Any]],
    values: Mapping[str, Any] = MappingProxyType({}),
    *,
    is_part: bool = False,
) -> list[Talk]:
    """In the order in which agents began. is_part: the beginnings may be in earlier entries."""
    found: dict[tuple[str, str], Talk] = {}
    reader = _Reader(values)
    for entry in entries:
        for event in entry["events"]:
            if event["kind"] == "signal_received":
                reader.news[str(event.get("key"))] = reader.value(event.get("payload"))
                continue
            place = (str(event.get("node") or ""), ".".join(map(str, event.get("iteration") or ())))
            if event["kind"] == "agent_began":
                given = reader.value(event.get("given"))
                found[place] = Talk(*place, given if isinstance(given, Mapping | Stored) else {})
                continue
            if is_part and place not in found and _is_of_an_agent(event):
                found[place] = Talk(*place, {})
            if (talk := found.get(place)) is not None:
                _take(talk, event, int(entry["version"]), reader)
    return list(found.values())


def stored_in(talk: Talk) -> Iterator[Stored]:
    """The values beside the log that its turns name, the newest turn first."""
    for turn in sorted(talk.turns.values(), key=lambda turn: -turn.number):
        results = [call.result for call in turn.calls]
        yield from (one for one in (turn.answer, *turn.heard, *results) if isinstance(one, Stored))
    if isinstance(talk.given, Stored):
        yield talk.given


def _is_of_an_agent(event: Mapping[str, Any]) -> bool:
    item = re.fullmatch(r"t[0-9]+(-[0-9]+)?", str(event.get("item") or ""))
    return event["kind"] in ("turn_began", "calls_began", "agent_closed") or item is not None


def _take(talk: Talk, event: Mapping[str, Any], version: int, reader: _Reader) -> None:
    if event["kind"] == "agent_closed":
        talk.is_over = True
    elif event["kind"] == "turn_began":
        turn = _turn(talk, int(event["turn"]))
        turn.heard = [reader.news.get(str(key), key) for key in event.get("heard") or ()]
        turn.moved = version
    elif event["kind"] == "calls_began":
        for one in event["calls"]:
            call = _call(talk, str(one["item"]))
            call.tool = str(one.get("tool") or call.tool)
            call.failure = one.get("failure") or call.failure
            call.repeats = item_words(str(one.get("repeats") or ""))
            call.version = call.version or version
    elif item := str(event.get("item") or ""):
        if is_turn(item):
            _answered(_turn(talk, int(item[1:])), event, version, reader)
        elif item.startswith("t") and "-" in item:
            _came_back(_call(talk, item), event, version, reader)


def _turn(talk: Talk, number: int) -> Turn:
    return talk.turns.setdefault(number, Turn(talk.node, talk.round, number))


def _call(talk: Talk, item: str) -> Called:
    turn, _, index = item.partition("-")
    return _call_at(_turn(talk, int(turn[1:])), int(index))


def _answered(turn: Turn, event: Mapping[str, Any], version: int, reader: _Reader) -> None:
    turn.moved = version
    for one in event.get("usage") or ():
        turn.input += one.get("input", 0)
        turn.cached += one.get("cached", 0)
        turn.output += one.get("output", 0)
        turn.models += [str(one.get("model"))] if one.get("model") not in turn.models else []
    cost = event.get("cost") or 0
    turn.usd += (sum(cost.values()) if isinstance(cost, Mapping) else cost) / MICRO
    turn.failure = event.get("failure")
    if event["kind"] != "step_succeeded":
        return
    turn.version, turn.took = version, _took(event)
    said = reader.value(event.get("output"))
    if not isinstance(said, Mapping):
        turn.answer = said
        return
    for index, one in enumerate(said.get("calls") or ()):
        call = _call_at(turn, index)
        call.tool, call.arguments = str(one.get("tool")), one.get("arguments") or one.get("text")
    turn.answer = said.get("text") or said.get("data")


def _call_at(turn: Turn, index: int) -> Called:
    while len(turn.calls) <= index:
        turn.calls.append(Called("", None))
    return turn.calls[index]


def _came_back(call: Called, event: Mapping[str, Any], version: int, reader: _Reader) -> None:
    call.failure = event.get("failure")
    if event["kind"] in ("step_succeeded", "step_failed"):
        call.version, call.took = version, _took(event)
        call.result = reader.value(event.get("output"))


def _took(event: Mapping[str, Any]) -> int | None:
    begin, end = milliseconds(event.get("started_at")), milliseconds(event.get("ended_at"))
    return None if begin is None or end is None else max(end - begin, 0)
