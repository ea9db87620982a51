"""What a kind of node says that says nothing of its own, and what open work is of no use for."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.records import Child, Work
from baton.core.log.slots import Slot
from baton.core.log.work import Wait
from baton.core.nodes.base import Activation, Kind

NODE = Node(name="a", kind="plain", arguments={"x": 1})
AT = Activation("a", NODE, Slot.parse("a"))
DESK: Any = None


def test_a_kind_opens_and_shows_nothing_of_its_own() -> None:
    kind, work = Kind(), Wait(until=1)
    assert kind.says(ev.TurnBegan(node="a", turn=1)) == ("", "")
    assert kind.template(NODE) == {"x": 1}
    assert (kind.resume(AT, work, DESK), kind.gather(AT, {"i": None}, DESK)) == (None, None)
    assert (kind.node_view(NODE), kind.gives(AT, DESK)) == ({}, None)


def test_a_kind_says_what_it_does() -> None:
    with pytest.raises(NotImplementedError):
        Kind().begin(AT, DESK)
    with pytest.raises(NotImplementedError):
        Kind().returned(AT, "0.a.1", {})
    with pytest.raises(NotImplementedError):
        ev.Opens(node="a").work()
    with pytest.raises(NotImplementedError):
        _ = ev.Opens(node="a").words
    with pytest.raises(NotImplementedError):
        Work().view(None)


def test_a_wait_hears_of_no_child_and_a_child_of_no_signal() -> None:
    child = Child(saga="k", workflow="w", input=ev.Value())
    assert (Wait().hears("k"), Wait().orphan) == (False, None)
    assert (child.hears("k"), child.signal, child.due, child.orphan) == (True, "", None, child)
