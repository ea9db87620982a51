"""The events of agents as sentences: which turn, which call of it, what the model has asked for and what it was given.

Pure. `--json` has all of every event.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from baton.core.log.agents import Called, calls_words, is_turn, item_words, turn_item
from baton.core.log.maps import is_index
from baton.words import map_words
from baton.words.text import counted, cut, one_line

Event: TypeAlias = Mapping[str, Any]
Said: TypeAlias = tuple[str, frozenset[str]]
"""A sentence, and the fields of the event that it says."""

_MOST = 120  # characters of a prompt, of arguments, or of a result
_BEGAN, _TURN, _CALLS = "node_began", "turn_began", "calls_began"


def news(events: Sequence[Event]) -> list[Event]:
    """The events of an entry without those that only say that turns and calls begin; all of them, if there are no others."""
    asked = any(is_turn(str(event.get("item"))) and "v" in (event.get("output") or {}) for event in events)
    return [event for event in events if _is_news(event, asked=asked)] or list(events)


def _is_news(event: Event, *, asked: bool) -> bool:
    """`asked`: an event beside it says for which calls the model has asked."""
    kind = event.get("kind")
    if kind == _BEGAN:
        return not event.get("item")
    if kind == _TURN:
        return bool(event.get("heard"))
    calls = event.get("calls") or ()
    return not (kind == _CALLS and asked) or any(one.get("failure") or one.get("repeats") for one in calls)


class AgentWords:
    """Remembers which tool each call is of: most events of a call have only its number."""

    def __init__(self) -> None:
        self._tools: dict[tuple[str, str, str], str] = {}

    def of(self, event: Event) -> Said | None:
        """What an event of an agent says, or None for one that has no words here."""
        kind = event.get("kind")
        if kind == _CALLS:
            calls = msgspec.convert(event["calls"], tuple[Called, ...])
            self._tools |= {(*_place(event), one.item): one.tool for one in calls}
            turn = item_words(calls[0].item.partition("-")[0])
            return f"{turn} asks for {calls_words(calls)}", frozenset(("calls", "used"))
        if kind == _TURN:
            heard = len(event.get("heard") or ())
            more = f" with {counted(heard, 'message')} from outside" if heard else ""
            return f"{item_words(turn_item(event['turn']))} begins{more}", frozenset(
                ("turn", "heard", "segments", "used")
            )
        if kind == "agent_began":
            return _began(event)
        if kind == "agent_closed":
            used = event.get("used") or {}
            parts = [counted(event["turns"], "turn"), counted(used.get("calls", 0), "call")]
            words = f"answers after {', '.join(parts)} and {used.get('tokens', 0):,} tokens"
            return words, frozenset(("turns", "used", "output"))  # its last turn has the output
        if not event.get("item"):
            return None
        return map_words.of_item(event) if is_index(str(event["item"])) else self._of_item(event)

    def _of_item(self, event: Event) -> Said:
        item, output = str(event["item"]), event.get("output") or {}
        tool = "" if is_turn(item) else event.get("tool") or self._tools.get((*_place(event), item), "")
        name, known = item_words(item, tool), {"item", "tool"}
        if failure := event.get("failure"):
            told = ", and the model is told" if event.get("is_result") else ""
            words = f"{failure.get('code')}: {one_line(str(failure.get('message')))}"
            return f"{name} has failed{told}: {words}", frozenset((*known, "failure", "is_result"))
        if "v" not in output:
            return name, frozenset(known)
        said = output["v"]
        if not is_turn(item):
            return f"{name}: {_short(said)}", frozenset((*known, "output"))
        words = _answer(said) if isinstance(said, Mapping) else _short(said)
        return f"{name} {words}", frozenset((*known, "output"))


def _began(event: Event) -> Said | None:
    given = (event.get("given") or {}).get("v")
    if not isinstance(given, Mapping):
        return None  # it is too large for its entry
    hears = f", and hears the signal `{event['listens']}`" if event.get("listens") else ""
    return f"asks {given.get('model')}{hears}: {_short(given.get('prompt'))}", frozenset(("given", "listens"))


def _answer(said: Mapping[str, Any]) -> str:
    """What the model has answered with: calls that it asks for, or what it gives."""
    if not said.get("calls"):
        return f"answers {_short(said.get('data'))}"
    return f"asks for {', '.join(_call(one) for one in said['calls'])}"


def _call(one: Mapping[str, Any]) -> str:
    return f"{one.get('tool')} {_short(one.get('text') or one.get('arguments'))}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return cut(one_line(text), _MOST)


def _place(event: Event) -> tuple[str, str]:
    return str(event.get("node")), str(event.get("iteration"))
