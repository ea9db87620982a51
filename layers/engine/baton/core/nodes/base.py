"""What a kind of node is asked, and what it can say."""

from __future__ import annotations

from msgspec import Struct

from baton.core.graph.graph import Node


class Activation(Struct, frozen=True):
    """One round of one node; with `item`, one of the several things that the node does in it."""

    slot: str
    node: Node
    iteration: tuple[int, ...] = ()
    item: str = ""
