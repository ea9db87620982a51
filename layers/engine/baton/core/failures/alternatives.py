"""Another way to do what a tool does, as graphs and logs keep it, and choose(hints, ways, used): which one is next.

Which ways there are is in remedies.py, when one is taken in ladder.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec


class Way(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """Another way to do what a tool does. `hints` are the hints that it carries out; none: any.

    Either `tool` is called in its place (`first` False), or before it (`first` True), and what that gives takes the
    place of the arguments of the same names. `arguments` take the place of those of the same names, too. `shorten` and
    `chunk` name the argument that is shortened, or given in parts.
    """

    name: str
    hints: tuple[str, ...] = ()
    tool: str = ""
    first: bool = False
    arguments: dict[str, Any] = {}
    shorten: str = ""
    chunk: str = ""


def choose(hints: Iterable[str], ways: Sequence[Way], used: Collection[str]) -> Way | None:
    """The best way for the first hint that has a way left; else the best way that fits any hint.

    `used` are the names of the ways that were tried.
    """
    left = [way for way in ways if way.name not in used]
    for hint in hints:
        for way in left:
            if hint in way.hints:
                return way
    return next((way for way in left if not way.hints), None)
