"""What a process keeps so as not to make it again, up to so many bytes: what was used longest ago goes first.

Where all that is kept is small, `lru_cache` does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Info(NamedTuple):
    """As `lru_cache` tells it, with the bytes that are held."""

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
        """What was made, and what is there."""
        return Info(self._misses, len(self._kept), sum(map(self._size, self._kept.values())))
