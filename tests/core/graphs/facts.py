"""What the interpreter says of a graph: slots, what became of them, how joins fired, how the saga ended.

Plain data, shared by everything here that looks at the interpreter. How it comes about is in interpreter.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Rounds = tuple[int, ...]
Slot = tuple[str, Rounds]


@dataclass(frozen=True)
class Error:
    """A failure. `attempt`: that of the step which made it, 0 for one that no attempt has made.

    `by`: the handlers that it was caught by.
    """

    node: str
    code: str
    kind: str
    attempt: int = 0
    by: frozenset[str] = frozenset()
    batch: str = ""
    """What became of the items of a map, as JSON."""

    @property
    def told(self) -> dict[str, Any]:
        """What `last_error` says of it, as far as these tests ask."""
        said = {"node": self.node, "code": self.code, "class": self.kind, "attempt": self.attempt}
        return {**said, "batch": json.loads(self.batch)} if self.batch else said


@dataclass(frozen=True)
class Breaks:
    """Stands for what a node is given if it fails with this code, and by this attempt of an item, when its turn comes."""

    code: str
    attempt: int = 0
    batch: str = ""


@dataclass(frozen=True)
class Word:
    """The report of an edge: alive, or dead and because of which errors. `at`: so many slots had their fate before."""

    alive: bool
    errors: tuple[Error, ...] = ()
    at: int = 0


@dataclass(frozen=True)
class Fate:
    """What became of a slot: done (alive edges: `to`), failed or skipped (with the `errors` that are to blame).

    One that failed and was `caught` has alive edges, too, which carry that error; its others are lost by it.
    """

    kind: str
    value: Any = None
    to: frozenset[str] = frozenset()
    again: bool = False
    errors: tuple[Error, ...] = ()
    caught: tuple[Error, ...] = ()


@dataclass(frozen=True)
class Firing:
    """How a join fired: whose edges were alive, and the errors that had come: those first that were caught."""

    arrived: tuple[str, ...] = ()
    errors: tuple[Error, ...] = ()
    early: bool = False
    fails: bool = False


@dataclass(frozen=True)
class End:
    """How the saga ended: completed with an output, or failed with a code."""

    status: str
    output: Any = None
    code: str = ""
    node: str = ""


def slot_name(slot: Slot) -> str:
    """As people write it: `book`, or `book@2.0`; an item of it is `book@2.0#3`."""
    name, mark, item = slot[0].partition("#")
    return name + ("@" + ".".join(map(str, slot[1])) if slot[1] else "") + mark + item


def slot_of(text: str) -> Slot:
    text, mark, item = text.partition("#")
    name, _, rounds = text.partition("@")
    return name + mark + item, tuple(int(one) for one in rounds.split(".")) if rounds else ()


def owner_of(slot: Slot) -> Slot:
    """The slot of the map that an item is of; of any other slot, itself."""
    return slot[0].partition("#")[0], slot[1]


def item_of(slot: Slot, index: int) -> Slot:
    return f"{slot[0]}#{index}", slot[1]
