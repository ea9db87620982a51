"""What the turns of an agent came to: what it said, what it called, and what that gave, read from the log.

How a test scripts the model is in models.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baton.core.log.agents import is_turn, place_of
from baton.core.log.replans import PLAN
from baton.core.log.state import node_of, slot_of
from baton.core.models.tool import MODEL
from baton.core.money import MICRO

_ENDS = frozenset({"step_succeeded", "step_failed", "attempt_failed"})
_BEGAN, _HANDED = "calls_began", "callback_opened"


@dataclass(frozen=True, slots=True)
class Call:
    """A call that an answer asks for.

    `output` is what its tool gave, or what it gave to the equal call that this one repeats (`repeated`). `error` is
    `code: message` of what the model was told instead. `attempts` of its tool came to an end; 0: it was not called.
    """

    tool: str
    arguments: Mapping[str, Any]
    output: Any = None
    error: str = ""
    repeated: bool = False
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of an agent, what a `model` node has asked, or what a model was to put in the place of a step.

    `answer` is None where it asks for `calls`, and where it has failed, with `code: message` as its `error`. `read` and `written`: tokens of
    all its `attempts`, as what they cost.
    """

    number: int
    answer: Any = None
    calls: Sequence[Call] = ()
    error: str = ""
    read: int = 0
    written: int = 0
    spent_usd: float = 0.0
    attempts: int = 0

    @property
    def tokens(self) -> int:
        return self.read + self.written

    def __str__(self) -> str:
        """A line of a story."""
        said = [_told(one) for one in self.calls]
        if self.error or not said:
            said.append(f"({self.error})" if self.error else f"= {short(self.answer)}")
        return f"turn {self.number}: {', '.join(said)}"


@dataclass(slots=True)
class _Ends:
    """How the attempts of one slot have ended so far."""

    attempts: int = 0
    output: Any = None
    error: str = ""
    read: int = 0
    written: int = 0
    cost: int = 0


def short(value: Any, longest: int = 200) -> str:
    """A value as a story shows it."""
    text = repr(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def failure_text(failure: Mapping[str, Any]) -> str:
    return f"{failure['code']}: {failure['message']}"


def turns_of(
    entries: Sequence[Mapping[str, Any]], content: Callable[[Any], Any]
) -> Mapping[str, Sequence[Turn]]:
    """By slot of the node, its turns. `content` gives what a logged value stands for."""
    events = [event for entry in entries for event in entry["events"]]
    asked = {slot for event in events if (slot := _asks(event))}
    if not asked:
        return {}
    ends: dict[str, _Ends] = {}
    calls: dict[str, Sequence[Mapping[str, Any]]] = {}
    for event in events:
        if event["kind"] == _BEGAN:
            turn, _ = place_of(event["calls"][0]["item"])
            calls[slot_of(event["node"], tuple(event["iteration"]), f"t{turn}")] = event["calls"]
        elif event["kind"] in _ENDS:
            _end(ends.setdefault(_slot(event), _Ends()), event, content)
        elif event["kind"] == _HANDED and event.get(
            "response"
        ):  # what was held for the answer counts until it is there
            _spend(ends.setdefault(_slot(event), _Ends()), event)
    found: dict[str, list[Turn]] = {}
    for slot in ends:
        if slot in asked:
            turns = found.setdefault(slot.partition("#")[0], [])
            turns.append(_turn(len(turns) + 1, slot, ends, calls.get(slot, ())))
    return found


def turns_at(turns: Mapping[str, Sequence[Turn]], place: str) -> list[Turn]:
    """Those of a node, in all its rounds, or of one round, `NODE@ROUND`."""
    return [turn for slot, its in turns.items() if place in (slot, node_of(slot)[0]) for turn in its]


def item_in(event: Mapping[str, Any]) -> str:
    """The item of an event of a log's view; empty for a node's own."""
    return str(event.get("item", ""))


def _slot(event: Mapping[str, Any]) -> str:
    return slot_of(event["node"], tuple(event["iteration"]), item_in(event))


def _asks(event: Mapping[str, Any]) -> str:
    """The slot of an attempt that has asked a model; empty for any other event."""
    if event["kind"] not in _ENDS:
        return ""
    item = item_in(event)
    is_one = (
        is_turn(item) or item == PLAN
        if item
        else MODEL in (event.get("tool"), event.get("failure", {}).get("tool"))
    )
    return _slot(event) if is_one else ""


def _end(end: _Ends, event: Mapping[str, Any], content: Callable[[Any], Any]) -> None:
    failure = event.get("failure")
    end.attempts += 1
    end.output = None if failure else content(event["output"])
    end.error = failure_text(failure) if failure else ""
    _spend(end, event)


def _spend(end: _Ends, event: Mapping[str, Any]) -> None:
    end.cost += event.get("cost", 0)
    for usage in event.get("usage", ()):
        end.read += usage.get("input", 0)
        end.written += usage.get("output", 0)


def _turn(number: int, slot: str, ends: Mapping[str, _Ends], called: Sequence[Mapping[str, Any]]) -> Turn:
    end = ends[slot]
    said: Any = end.output
    if "#" in slot and said is not None:
        said = said.get("data", said)  # a plan is all of it
    made: dict[str, Call] = {}
    for one in called:
        _, index = place_of(one["item"])
        arguments = end.output["calls"][index]["arguments"]
        made[one["item"]] = _call(one, arguments, slot, ends, made)
    return Turn(
        number=number,
        answer=said,
        calls=tuple(made.values()),
        error=end.error,
        read=end.read,
        written=end.written,
        spent_usd=end.cost / MICRO,
        attempts=end.attempts,
    )


def _call(
    one: Mapping[str, Any],
    arguments: Mapping[str, Any],
    slot: str,
    ends: Mapping[str, _Ends],
    made: Mapping[str, Call],
) -> Call:
    owner = slot.partition("#")[0]
    if failure := one.get("failure"):
        return Call(one["tool"], arguments, error=failure_text(failure))
    first = one.get("repeats", "")
    end = ends.get(f"{owner}#{first or one['item']}", _Ends())
    attempts = 0 if first else end.attempts
    return Call(one["tool"], arguments, end.output, end.error, bool(first), attempts)


def _told(call: Call) -> str:
    given = ", ".join(f"{name}={short(value, 40)}" for name, value in call.arguments.items())
    again = " again" if call.repeated else ""
    came = f"({call.error})" if call.error else f"= {short(call.output, 80)}"
    return f"{call.tool}({given}){again} {came}"
