"""What became of slots, in words for a person.

story.py finds the facts; explain.py says what follows from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from baton.core.conditions.model import Cel, Compare, Condition, JsonPath
from baton.core.decide.program import Program
from baton.core.log import events as ev
from baton.core.log.records import Sent
from baton.core.log.state import node_of
from baton.core.read.places import FAILED, Place
from baton.core.times import iso

_LISTED = 5
_LONGEST = 120


def listed(names: Iterable[str]) -> str:
    """`a`, `b` and `c`; of many, some."""
    return some(f"`{name}`" for name in names)


def some(texts: Iterable[str]) -> str:
    """The same of texts that are no names."""
    shown = list(texts)
    if len(shown) > _LISTED:
        shown = [*shown[: _LISTED - 1], f"{len(shown) - _LISTED + 1} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def counted(number: int, one: str) -> str:
    """`1 round`, `2 rounds`."""
    return f"{number} {one}" if number == 1 else f"{number} {one}s"


def said(failure: ev.Failure) -> str:
    """A failure's code and message."""
    return f"{failure.code}: {failure.message}" if failure.message else failure.code


def sent(event: Sent) -> str:
    """An event from outside. What its sender has written is shortened."""
    return f"the event `{event.type}` from `{event.source[:_LONGEST]}` (id `{event.id[:_LONGEST]}`)"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def condition_words(condition: Condition) -> str:
    """An expression, a query or a comparison as it is written; nothing of a condition that has no short form."""
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
    """How the edges from a slot were chosen: by its loop, by its branch, or by leaving a loop. Empty: they were not."""
    end = place.end
    assert end is not None, "it is done"
    words = [_word(word, program, place) for word in end.way.split(", ") if word]
    if end.leaves not in ("", place.node):
        words.append(f"it leaves the loop that ends with `{end.leaves}`")
    return "; ".join(words)


def _word(word: str, program: Program, place: Place) -> str:
    """One word of the log's `way`."""
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


def moved(program: Program, place: Place) -> str:
    """Where it went on from a slot that was ready, and where not; empty where nothing follows."""
    end = place.end
    assert end is not None, "it is done"
    receivers = list(dict.fromkeys(node_of(slot)[0] for slot in (*end.to, *end.not_to)))
    if end.became == FAILED and not end.to:
        return f"the failure goes on to {listed(receivers)}" if receivers else ""
    fault = said(end.failure) if end.failure is not None and end.became != FAILED else ""
    if fault and not end.to:
        return f"which way it goes on cannot be told: {fault}"
    to = list(dict.fromkeys(node_of(slot)[0] for slot in end.to))
    others = [name for name in receivers if name not in to]
    where = ", ".join(
        part
        for part in (f"to {listed(to)}" if to else "", f"not to {listed(others)}" if others else "")
        if part
    )
    words = ": ".join(part for part in (choice(program, place), where) if part)
    return f"{fault}, {words}" if fault else words


def unhandled(places: Mapping[str, Place], slots: Iterable[str]) -> tuple[str, ...]:
    """The handlers at these slots, where each was skipped by its own `when`: a failure was caught, and nothing ran."""
    found = [places[slot] for slot in slots]
    if any(place.end is None or place.end.why != "when" for place in found):
        return ()
    return tuple(dict.fromkeys(place.node for place in found))


def opened(program: Program, place: Place) -> str:
    """What a node waits for."""
    assert place.opened is not None, "it has begun"
    return program.kinds[program.doing(place.slot).kind].words(place.opened) + asked_since(place.moves)


def held(event: ev.StepHeld) -> str:
    """The circuit breaker that a node waits for."""
    return f"breaker `{event.breaker}`, which is {event.state.replace('_', '-')}; next probe at {iso(event.until)}"


def asked_since(moves: Sequence[ev.QuestionEscalated | ev.QuestionClaimed]) -> str:
    """What has happened to a question since it was asked; of much, the last."""
    more = len(moves) - _LISTED
    earlier = f"; {counted(more, 'thing')} before that" if more > 0 else ""
    return earlier + "".join(f"; {_move(event)} {iso(event.at)}" for event in moves[-_LISTED:])


def _move(event: ev.QuestionEscalated | ev.QuestionClaimed) -> str:
    if isinstance(event, ev.QuestionClaimed):
        return f"{'claimed' if event.to else 'released'} by `{event.by}` at"
    if event.to is not None:
        return f"handed on to {f'`{event.to}`' if event.to else 'who has started the saga'} at"
    return f"reminder{f' by `{event.by}`' if event.by else ''} at"
