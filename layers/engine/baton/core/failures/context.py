"""A context that is too long: a shorter one, its parts, and what the results for the parts come to.

Contexts are texts, lists, and lists of messages (objects with a `role`), as plain JSON. Whose parameter one is, is in
alternatives.py; tools are called with it in runtime/attempts/attempt.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_SPACE = re.compile(r"\s+")
_LONGEST_WORD = 100
_SYSTEM = frozenset({"system", "developer"})


def shortened(value: Any) -> Any:
    """The value without its older half; itself when there is nothing to leave out. It may be shortened again.

    Of a text the second half stays, from a word's beginning on. Of messages the system's and the last stay; if there are no
    others, the last is shortened itself. Of any other list the second half of its items stays.
    """
    if isinstance(value, str):
        return _from_middle(value)
    if not isinstance(value, list) or not value:
        return value
    if not _are_messages(value):
        return value[len(value) // 2 :] if len(value) > 1 else [shortened(value[0])]
    system, middle, last = _sorted_out(value)
    if middle:
        return [*system, *_from_question(middle[(len(middle) + 1) // 2 :]), *last]
    return [*system, *(_with_content(message, shortened(message.get("content"))) for message in last)]


def parts_of(value: Any, count: int) -> list[Any]:
    """The value in that many parts, or in as many as it has; one when it cannot be parted.

    Each part of messages has the system's and the last, for it says what is to be done with them.
    """
    if isinstance(value, str):
        return _texts(value, count)
    if not isinstance(value, list) or not value:
        return [value]
    if not _are_messages(value):
        return _slices(value, count) if len(value) > 1 else [[part] for part in parts_of(value[0], count)]
    system, middle, last = _sorted_out(value)
    if middle:
        return [[*system, *part, *last] for part in _slices(middle, count)]
    if not last:
        return [value]
    contents = parts_of(last[0].get("content"), count)
    return [[*system, _with_content(last[0], content)] for content in contents]


def combined(results: Sequence[Any], *, as_list: bool = False) -> Any:
    """One result of those for the parts: texts below each other, lists one behind the other.

    Anything else is a list of them where that is allowed. Raises `ValueError`.
    """
    if all(isinstance(result, str) for result in results):
        return "\n".join(results)
    if all(isinstance(result, list) for result in results):
        return [item for result in results for item in result]
    if as_list:
        return list(results)
    raise ValueError("the results for the parts are neither all texts nor all lists")


# ---- texts ---------------------------------------------------------------------------------------------------------


def _from_middle(text: str) -> str:
    if len(text) < 2:
        return text
    return text[_boundary(text, len(text) // 2) :].lstrip() or text[len(text) // 2 :]


def _texts(text: str, count: int) -> list[str]:
    size = -(-len(text) // count)
    parts, begin = [], 0
    while len(text) - begin > size:
        end = _boundary(text, begin + size)
        parts.append(text[begin:end].strip())
        begin = end
    parts.append(text[begin:].strip())
    return [part for part in parts if part] or [text]


def _boundary(text: str, at: int) -> int:
    """The next beginning of a word, if one is near; words without end are cut."""
    found = _SPACE.search(text, at - 1, at + _LONGEST_WORD)
    return found.end() if found and found.end() < len(text) else at


# ---- lists ---------------------------------------------------------------------------------------------------------


def _slices(items: list[Any], count: int) -> list[list[Any]]:
    size = -(-len(items) // count)
    return [items[begin : begin + size] for begin in range(0, len(items), size)]


def _are_messages(items: list[Any]) -> bool:
    return all(isinstance(item, dict) and isinstance(item.get("role"), str) for item in items)


def _sorted_out(messages: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """The system's, the others, and the last of them."""
    system = [message for message in messages if message["role"] in _SYSTEM]
    others = [message for message in messages if message["role"] not in _SYSTEM]
    return system, others[:-1], others[-1:]


def _from_question(messages: list[Any]) -> list[Any]:
    """Without answers of tools at the beginning: their questions are missing."""
    for index, message in enumerate(messages):
        if message["role"] != "tool":
            return messages[index:]
    return []


def _with_content(message: dict[str, Any], content: Any) -> dict[str, Any]:
    return {**message, "content": content} if "content" in message else message
