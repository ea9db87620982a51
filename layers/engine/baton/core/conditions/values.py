"""JSON values in conditions: their size, equality and order.

`compare` and `jsonpath` share the comparisons. The library of CEL makes those of CEL.
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
class ValueShape:
    """Upper bounds of a value by depth; the value itself is depth 0.

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
    """Return message and suggestion for an unknown operator."""
    hint = f"did you mean `{_MEANT[operator]}`?" if operator in _MEANT else nearest(operator, known)
    return f"there is no operator `{operator[:40]}`", hint or f"there are {listed}"


def units(text: str) -> int:
    """Return the size of a text in units of work."""
    return 1 + (len(text) >> _BYTES_OF_A_UNIT)


def measure(value: Any) -> ValueShape:
    """Return the shape of a value. Raises `ConditionError` for a value that is too deep or too large."""
    levels = [[0] * (model.DATA_DEPTH + 1) for _ in range(3)]
    sizes, widths, texts = levels
    if isinstance(value, (dict, list)):
        sizes[0] = _walk(value, 0, sizes, widths, texts)
    else:
        texts[0] = units(value) if isinstance(value, str) else 0
        sizes[0] = texts[0] or 1
        check_size(sizes[0])
    depth = sizes.index(0) if 0 in sizes else len(sizes)
    return ValueShape(*(tuple(level[:depth]) for level in levels))


def check_size(size: int) -> None:
    """Raise `ConditionError` for more units than a condition may read."""
    if size > model.DATA_UNITS:
        raise ConditionError(
            TOO_LARGE,
            f"the condition reads more than {model.DATA_UNITS} values (32 characters of text count as one); "
            "name only the part that it needs",
        )


def _walk(
    value: dict[str, Any] | list[Any], depth: int, sizes: list[int], widths: list[int], texts: list[int]
) -> int:
    """Return the size of a list or object, and add to the sizes of the levels below it."""
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
    """Return the JSON type, with its article."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def is_number(value: Any) -> bool:
    """Return true if the value is a number. In JSON, true is not 1."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    """Return true if two JSON values are equal: 1 is 1.0, but not true. Both must have been measured."""
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


def compare_values(left: Any, operator: str, right: Any) -> bool:
    """Compare by one of `COMPARISONS`. Raises `ConditionError` for an order of values that have none."""
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
    """Test membership by one of `MEMBERSHIPS`: in a list, an object's keys or a text."""
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


class CacheInfo(NamedTuple):
    """Statistics of a cache, as those of `lru_cache`, with the held bytes."""

    misses: int
    currsize: int
    held: int


class ResultCache(Generic[K, V]):
    """Cache of the results of a function of one argument. `size` estimates the bytes of one result."""

    def __init__(self, make: Callable[[K], V], most: int, size: Callable[[V], int]) -> None:
        self._make, self._most, self._size = make, most, size
        self._kept: dict[K, V] = {}
        self._misses = 0

    def __call__(self, key: K) -> V:
        """Return the kept result for a key, or make it.
        Two threads may make the same; one of the results is kept.
        """
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

    def cache_info(self) -> CacheInfo:
        """Return misses, number of results and held bytes."""
        return CacheInfo(self._misses, len(self._kept), sum(map(self._size, self._kept.values())))
