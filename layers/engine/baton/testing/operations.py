"""Names of a function's operations in a test.

An operation is named by its label, such as `charge`, `charge#2` or `notify[3]/send`. All operations of one
name are named by that: `send`. An exact label comes before a name, and both before the node of the function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from baton.core.log.slots import Slot, slot_of
from baton.tools.functions.loop import item_of

_is_label = re.compile(r"([A-Za-z_]\w*\[\d+\]/)*[A-Za-z_]\w*(#\d+)?").fullmatch
_its_count = re.compile(r"-\d+$")


def is_label(name: str) -> bool:
    """Return true if an operation can have this name."""
    return _is_label(name) is not None


def own_name(item: str) -> str:
    """Return the name of an operation without its place, from its item in the log."""
    return _its_count.sub("", item.rpartition("--")[2]).removeprefix("_")


class FunctionNodes:
    """The nodes of the sagas of a test that run functions."""

    def __init__(self) -> None:
        self.nodes: set[str] = set()

    def named(self, names: Iterable[str], slot: str) -> str | None:
        """Return the one of these names that a test has given to this slot, or None.

        That of an inverse has the name of what it undoes.
        """
        at, known = Slot.parse(slot).subject, list(names)
        if at.item and at.node in self.nodes:
            exact = (name for name in known if is_label(name) and item_of(name) == at.item)
            if (found := next(exact, None)) is not None:
                return found
            if (own := own_name(at.item)) in known:
                return own
        return at.node if at.node in known else None

    def of_question(self, names: Iterable[str], question: Mapping[str, Any]) -> str | None:
        """Return the one of these names that a test has given to what a question is about, or None."""
        item = str(question["id"]).partition("#")[2].partition(".")[0]
        return self.named(names, slot_of(str(question["node"] or ""), (), item))
