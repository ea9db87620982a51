"""JSON values as conditions see them: how large they are, what equals what, what is less than what.

`compare` and `jsonpath` share the comparisons. CEL's are made by its library.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from baton.core.conditions import model
from baton.core.conditions.model import TOO_LARGE, TYPE, ConditionError
from baton.core.expressions import nearest

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
ORDERINGS = ("<", "<=", ">", ">=")
MEMBERSHIPS = ("in", "not_in", "contains")
_MEANT = {"=": "==", "===": "==", "=>": ">=", "=<": "<=", "<>": "!=", "not in": "not_in"}
_BYTES_OF_A_UNIT = 5  # as a shift: 32


@dataclass(frozen=True)
class Shape:
    """The largest there is at each depth of a value, which itself is depth 0.

    `sizes` in units, `widths` in items of one list or object, `texts` in units of one text.
    """

    sizes: tuple[int, ...]
    widths: tuple[int, ...]
    texts: tuple[int, ...]

    @property
    def size(self) -> int:
        return self.sizes[0]

    @property
    def width(self) -> int:
        return self.widths[0]

    @property
    def text(self) -> int:
        return self.texts[0]


def unknown_operator(operator: str, known: tuple[str, ...], listed: str) -> tuple[str, str]:
    """Return the message for an unknown operator, and a suggestion."""
    hint = f"did you mean `{_MEANT[operator]}`?" if operator in _MEANT else nearest(operator, known)
    return f"there is no operator `{operator[:40]}`", hint or f"there are {listed}"


def units(text: str) -> int:
    """The size of a text."""
    return 1 + (len(text) >> _BYTES_OF_A_UNIT)


def measure(value: Any) -> Shape:
    """Raises `ConditionError` for what is too deep or too large to be looked at."""
    levels = [[0] * (model.DATA_DEPTH + 1) for _ in range(3)]
    sizes, widths, texts = levels
    if isinstance(value, (dict, list)):
        sizes[0] = _walk(value, 0, sizes, widths, texts)
    else:
        texts[0] = units(value) if isinstance(value, str) else 0
        sizes[0] = texts[0] or 1
        check_size(sizes[0])
    depth = sizes.index(0) if 0 in sizes else len(sizes)
    return Shape(*(tuple(level[:depth]) for level in levels))


def check_size(size: int) -> None:
    """Check a size. Raises `ConditionError` for more units than a condition may read."""
    if size > model.DATA_UNITS:
        raise ConditionError(
            TOO_LARGE,
            f"the condition reads more than {model.DATA_UNITS} values (32 characters of text count as one); "
            "name only the part that it needs",
        )


def _walk(
    value: dict[str, Any] | list[Any], depth: int, sizes: list[int], widths: list[int], texts: list[int]
) -> int:
    """The size of a list or object; raises the levels below it to what it has there."""
    if depth >= model.DATA_DEPTH:
        raise ConditionError(
            TOO_LARGE, f"the data is nested deeper than {model.DATA_DEPTH} levels; name a part of it"
        )
    total, largest, longest, below = 1, 0, 0, depth + 1
    items = [*value, *value.values()] if isinstance(value, dict) else value
    for item in items:
        kind = type(item)
        if kind is str:
            size = 1 + (len(item) >> _BYTES_OF_A_UNIT)
            longest = max(longest, size)
        elif kind is dict or kind is list:
            size = _walk(item, below, sizes, widths, texts)
        else:
            size = 1
        total += size
        largest = max(largest, size)
    check_size(total)
    widths[depth] = max(widths[depth], len(value))
    sizes[below] = max(sizes[below], largest)
    texts[below] = max(texts[below], longest)
    return total


def type_of(value: Any) -> str:
    """The JSON type, with its article."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def is_number(value: Any) -> bool:
    """Numbers only: in JSON, true is not 1."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    """Return true if two JSON values are equal: 1 equals 1.0, but not true.

    The caller must have measured both values.
    """
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(equal(item, right[key]) for key, item in left.items())
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def compared(left: Any, operator: str, right: Any) -> bool:
    """Compare two values by one of `COMPARISONS`. Raises `ConditionError` for values without an order."""
    if operator == "==":
        return equal(left, right)
    if operator == "!=":
        return not equal(left, right)
    if not (is_number(left) and is_number(right)) and not (isinstance(left, str) and isinstance(right, str)):
        raise ConditionError(
            TYPE,
            f"`{operator}` compares two numbers or two texts, not {type_of(left)} with {type_of(right)}",
        )
    if operator in {">", ">="}:
        left, right = right, left
    return bool(left < right) or (operator in {"<=", ">="} and bool(left == right))


def member(left: Any, operator: str, right: Any) -> bool:
    """Return true if one of `MEMBERSHIPS` holds: in a list, an object's keys or a text."""
    if operator == "contains":
        return _holds(left, right, "contains")
    return _holds(right, left, operator) is (operator == "in")


def _holds(whole: Any, part: Any, operator: str) -> bool:
    if isinstance(whole, list):
        return any(equal(item, part) for item in whole)
    if isinstance(whole, (dict, str)) and isinstance(part, str):
        return part in whole
    if isinstance(whole, (dict, str)):
        raise ConditionError(
            TYPE, f"`{operator}`: in {type_of(whole)} only a text can be looked for, not {type_of(part)}"
        )
    raise ConditionError(TYPE, f"`{operator}` looks into a list, an object or a text, not {type_of(whole)}")


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Info(NamedTuple):
    """Figures of a cache as `lru_cache` gives them, with the bytes that it holds."""

    misses: int
    currsize: int
    held: int


class Kept(Generic[K, V]):
    """A function of one argument whose results are kept. `size` estimates the bytes of one."""

    def __init__(self, make: Callable[[K], V], most: int, size: Callable[[V], int]) -> None:
        self._make, self._most, self._size = make, most, size
        self._kept: dict[K, V] = {}
        self._misses = 0

    def __call__(self, key: K) -> V:
        """Two threads may make the same; one of the results is kept."""
        found = self._kept.pop(key, None)
        if found is None:
            found = self._make(key)
            self._misses += 1
            self._make_room(self._size(found))
        self._kept[key] = found  # the last one now
        return found

    def _make_room(self, size: int) -> None:
        sizes = [(key, self._size(value)) for key, value in list(self._kept.items())]
        held = size + sum(size for _, size in sizes)
        for key, size in sizes:
            if held <= self._most:
                return
            self._kept.pop(key, None)
            held -= size

    def cache_info(self) -> Info:
        """Return misses, entries and total size of the cache."""
        return Info(self._misses, len(self._kept), sum(map(self._size, self._kept.values())))
