"""The events of maps, as sentences. Pure: an event of the API in, words out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from baton.words.text import counted, cut, one_line

_MOST = 200
_FATES = {
    "succeeded": "succeeded",
    "failed": "failed",
    "running": "running",
    "stopped": "stopped",
    "not_begun": "not begun",
}
Event = Mapping[str, Any]
Said = tuple[str, frozenset[str]]


def of_item(event: Event) -> Said:
    """What has become of one item."""
    name, known = f"item {event['item']}", {"item"}
    if failure := event.get("failure"):
        words = f"{failure.get('code')}: {one_line(str(failure.get('message')))}"
        return f"{name} has failed: {words}", frozenset((*known, "failure", "is_result"))
    return name, frozenset(known)


def _began(event: Event) -> Said:
    return f"begins with {counted(event.get('size', 0), 'item')}", frozenset(("size", "over"))


def _items_began(event: Event) -> Said:
    first, count = event.get("first") or 0, event.get("count") or 0
    words = f"item {first} begins" if count == 1 else f"items {first} to {first + count - 1} begin"
    return words, frozenset(("first", "count"))


def _gathered(event: Event) -> Said:
    return f"the results of {counted(len(event.get('items') or ()), 'item')} are put together", frozenset(
        ["items", "results"]
    )


def _stopped(event: Event) -> Said:
    failure = event.get("failure") or {}
    words = cut(one_line(f"{failure.get('code')}: {failure.get('message')}"), _MOST)
    return f"cannot be done any more: {words}", frozenset(("failure", "batch"))


def _closed(event: Event) -> Said:
    parts = [f"{event[key]} {word}" for key, word in _FATES.items() if event.get(key)]
    words = f"done: {', '.join(parts) or 'no items'}"
    if event.get("goes_on"):
        words = f"goes on: {', '.join(parts)}; those that are left come to their ends"
    return words, frozenset((*_FATES, "goes_on"))


def _ended(event: Event) -> Said:
    parts = [f"{event[key]} {word}" for key, word in _FATES.items() if event.get(key)]
    reason = f" ({event['why']})" if event.get("why") else ""
    return f"the items that were left are over{reason}: {', '.join(parts)}", frozenset((*_FATES, "why"))


WORDS: Mapping[str, Callable[[Event], Said]] = {
    "map_began": _began,
    "items_began": _items_began,
    "items_gathered": _gathered,
    "map_stopped": _stopped,
    "map_closed": _closed,
    "map_ended": _ended,
}
