"""What agents of a saga and their models said to each other, turn by turn, with what each turn cost. Pure: entries in, turns out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from baton.console.rendering import milliseconds
from baton.core.log.agents import is_turn
from baton.core.money import MICRO


@dataclass(slots=True)
class Called:
    """A call that the model asked for. result: None as long as there is none; failure: in its place."""

    tool: str
    arguments: Any
    result: Any = None
    failure: Mapping[str, Any] | None = None
    took: int | None = None
    version: int = 0


@dataclass(slots=True)
class Turn:
    """heard: messages from outside before it. Tokens: of all requests of it. version: of the entry with the answer, 0: none yet."""

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


@dataclass(slots=True)
class Talk:
    """One run of an agent. given: its model, instructions and prompt, where the entry has room for them."""

    node: str
    round: str
    given: Mapping[str, Any]
    turns: dict[int, Turn] = field(default_factory=dict)
    is_over: bool = False

    @property
    def usd(self) -> float:
        return sum(turn.usd for turn in self.turns.values())


def talks_of(entries: Sequence[Mapping[str, Any]]) -> list[Talk]:
    """In the order in which agents began."""
    found: dict[tuple[str, str], Talk] = {}
    for entry in entries:
        for event in entry["events"]:
            place = (str(event.get("node") or ""), ".".join(map(str, event.get("iteration") or ())))
            if event["kind"] == "agent_began":
                given = (event.get("given") or {}).get("v")
                found[place] = Talk(*place, given if isinstance(given, Mapping) else {})
            elif (talk := found.get(place)) is not None:
                _take(talk, event, int(entry["version"]))
    return list(found.values())


def _take(talk: Talk, event: Mapping[str, Any], version: int) -> None:
    if event["kind"] == "agent_closed":
        talk.is_over = True
    elif event["kind"] == "turn_began":
        _turn(talk, int(event["turn"])).heard = event.get("heard") or ()
    elif event["kind"] == "calls_began":
        for one in event["calls"]:
            call = _call(talk, str(one["item"]))
            call.tool = str(one.get("tool") or call.tool)
            call.failure = one.get("failure") or call.failure
            call.version = call.version or version
    elif item := str(event.get("item") or ""):
        if is_turn(item):
            _answered(_turn(talk, int(item[1:])), event, version)
        elif item.startswith("t") and "-" in item:
            _came_back(_call(talk, item), event, version)


def _turn(talk: Talk, number: int) -> Turn:
    return talk.turns.setdefault(number, Turn(talk.node, talk.round, number))


def _call(talk: Talk, item: str) -> Called:
    turn, _, index = item.partition("-")
    return _call_at(_turn(talk, int(turn[1:])), int(index))


def _answered(turn: Turn, event: Mapping[str, Any], version: int) -> None:
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
    said = (event.get("output") or {}).get("v")
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


def _came_back(call: Called, event: Mapping[str, Any], version: int) -> None:
    call.failure = event.get("failure")
    if event["kind"] in ("step_succeeded", "step_failed"):
        call.version, call.took = version, _took(event)
        output = event.get("output") or {}
        call.result = output.get("v", output or None)


def _took(event: Mapping[str, Any]) -> int | None:
    begin, end = milliseconds(event.get("started_at")), milliseconds(event.get("ended_at"))
    return None if begin is None or end is None else max(end - begin, 0)
