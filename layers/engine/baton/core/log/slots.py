"""Slots: the places of work in a saga, and their one text form.

A slot is a path of segments. A segment is a node, the round of its loops, and the item that the node does:
`book`, `book@2.0` in the third round of an outer loop, `book@2.0#item`. A further segment is work inside of
it: `fulfil/notify#3/send`. The text is the key of the state's dictionaries, and a part of the keys of effects
and of the ids of children: it never changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

ITEM_PATTERN = (
    "[A-Za-z0-9_-]{1,64}"  # neither @, # nor `.`, which separate the parts of a slot and of a question's id
)
_is_item = re.compile(ITEM_PATTERN).fullmatch
_NUMBER = "(?:0|[1-9][0-9]*)"
_segment = re.compile(rf"([^/@#]+)(?:@({_NUMBER}(?:\.{_NUMBER})*))?(?:#([^/@#]+))?").fullmatch
INVERSE = "undo"
"""Begin of the items that are members of the saga's rollback: `undo` takes back the work of its node,
`undo-ITEM` that of an item, `undo_VERSION` a call that its step has left at that version.
"""
_REMEMBERED = 4096  # a step asks some ten times of the same slot


@lru_cache(maxsize=_REMEMBERED)
def slot_of(node: str, iteration: tuple[int, ...] = (), item: str = "") -> str:
    """Return the text of a slot of one segment."""
    slot = f"{node}@{'.'.join(map(str, iteration))}" if iteration else node
    return f"{slot}#{item}" if item else slot


def item_slots(owner: str, items: Iterable[str]) -> list[str]:
    """Return the slots of items of a node."""
    return [f"{owner}#{item}" for item in items]


def owner_of(slot: str) -> str:
    """Return the slot of the node itself for the slot of an item.

    It cuts the text alone, for walks over all the keys of a state; `Slot.owner` is the same.
    """
    return slot.partition("#")[0]


def subject_item(item: str) -> str:
    """Return the item with the work that a member of the rollback is about; empty: the node's own."""
    return item.partition("-")[2] if item.startswith(INVERSE) else item


def check_item(item: str) -> str:
    """Return the same text. Raises `ValueError` for a text that would make the slot of an item ambiguous."""
    if not _is_item(item) or scope_of(item):
        raise ValueError(
            f"{item[:100]!r} names no item: write 1 to 64 letters, digits, `_` and `-` that do not begin with `{INVERSE}`"
        )
    return item


def scope_of(item: str) -> str:
    """Return the scope of the saga itself that has this item as a member; empty: it is its node's."""
    return INVERSE if item.startswith(INVERSE) else ""


class Slot(msgspec.Struct, frozen=True, gc=False):
    """A slot, read from its text by `Slot.parse`. The empty path is the saga itself.

    `node`, `iteration` and `item` are of the last segment; `item` is empty if the slot is its node's own.
    `owner`: the text of the slot of the node itself. `fields`: the slot as an event names it.
    `scope`: the scope of the saga itself that has this slot as a member; empty: it is a slot of its node. The
    rules that the document has for its nodes do not apply to such a member.
    """

    text: str
    node: str
    iteration: tuple[int, ...]
    item: str
    owner: str
    fields: dict[str, Any]
    scope: str = ""

    def __str__(self) -> str:
        return self.text

    @staticmethod
    @lru_cache(maxsize=_REMEMBERED)
    def parse(text: str) -> Slot:
        """Return the slot of a text. Raises `ValueError` for a text that is none."""
        owner, _, item = text.partition("#")
        if owner.isidentifier() and (item.isalnum() if item else owner == text):  # most have no round
            fields: dict[str, Any] = {"node": owner, "iteration": (), "item": item}
            return Slot(text, owner, (), item, owner, fields, scope_of(item))
        if not text:
            return Slot("", "", (), "", "", {"node": "", "iteration": (), "item": ""})
        above, is_inner, last = text.rpartition("/")
        if (found := _segment(last)) is None or (is_inner and not Slot.parse(above).text):
            raise ValueError(
                f"{text[:200]!r} is no slot: write NODE, NODE@ROUND, NODE#ITEM or NODE@ROUND#ITEM"
            )
        node, rounds, item = found.groups("")
        iteration = tuple(map(int, rounds.split("."))) if rounds else ()
        owner = text[: -len(item) - 1] if item else text
        fields = {"node": node, "iteration": iteration, "item": item}
        return Slot(text, node, iteration, item, owner, fields, scope_of(item))

    @property
    def parent(self) -> Slot | None:
        """The slot that this one is a part of: of an item its node's own, of a node the work around it."""
        if self.item:
            return Slot.parse(self.owner)
        return Slot.parse(self.text.rpartition("/")[0]) if self.text else None

    @property
    def subject(self) -> Slot:
        """The slot with the work that a member of a scope of the saga is about; any other slot itself."""
        if not self.scope:
            return self
        return Slot.parse(slot_of(self.node, self.iteration, subject_item(self.item)))

    def child(self, item: str) -> Slot:
        """Return the slot of an item of this node. Raises `ValueError` for an item that has no slot."""
        return Slot.parse(f"{self.owner}#{item}")
