"""The few expressions and conditions that the graphs of these tests use, read and judged in the plainest way.

Shares no code with the engine. The caller says what a name stands for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

Ask = Callable[[tuple[str, ...]], Any]
_TEST = re.compile(r"([\w.?]+)(?: (==|!=|<) (.+))?")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
}


class Broken(Exception):
    """A name that stands for nothing."""


@cache
def parts(text: str) -> tuple[str, ...]:
    return tuple(text.split("."))


def literal(text: str) -> Any:
    known = {"null": None, "true": True, "false": False}
    return known[text] if text in known else text[1:-1] if text[0] == "'" else int(text)


@cache
def _read(text: str) -> tuple[str, str, Any]:
    found = _TEST.fullmatch(text)
    assert found, text
    name, operator, right = found.groups()
    return name, operator or "==", True if operator is None else literal(right)


def holds(condition: Any, ask: Ask) -> bool:
    """Whether a condition of a document holds. Raises `Broken`."""
    if isinstance(condition, str):
        name, operator, right = _read(condition)
        if name in ("true", "false"):
            return name == "true"
        return _OPERATORS[operator](ask(parts(name)), right)
    ((kind, inner),) = condition.items()
    if kind == "all":
        return all(holds(one, ask) for one in inner)
    if kind == "any":
        return any(holds(one, ask) for one in inner)
    if kind == "not":
        return not holds(inner, ask)
    assert kind == "compare", kind
    return _OPERATORS[inner["operator"]](render(inner["left"], ask), render(inner["right"], ask))


def render(value: Any, ask: Ask) -> Any:
    """JSON with `${…}` in it, each a whole text. Raises `Broken`."""
    if isinstance(value, str) and value.startswith("${"):
        return ask(parts(value[2:-1]))
    if isinstance(value, Mapping):
        return {key: render(inner, ask) for key, inner in value.items()}
    if isinstance(value, list):
        return [render(inner, ask) for inner in value]
    return value


def into(value: Any, steps: tuple[str, ...]) -> Any:
    """What stands at the end of the steps."""
    for step in steps:
        if not isinstance(value, Mapping) or step not in value:
            raise Broken(step)
        value = value[step]
    return value
