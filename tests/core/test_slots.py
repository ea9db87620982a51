"""Slots: one text form, which is the key of states, effects and children, and so stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.core.log.records import Token
from baton.core.log.scopes import ItemsBegan
from baton.core.log.slots import ITEM_PATTERN, Slot, check_item, owner_of, slot_of
from baton.core.log.undos import undo_item
from tests.core.build import PROPERTY
from tests.kit.sentences import Says

NODES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,63}", fullmatch=True) | st.text(
    st.characters(exclude_characters="/@#"), min_size=1
)  # documents allow the first alone; a graph as data may have any other
ROUNDS = st.lists(st.integers(0, 10**6), max_size=4).map(tuple)
ITEMS = st.just("") | st.from_regex(ITEM_PATTERN, fullmatch=True)
SEGMENTS = st.builds(slot_of, NODES, ROUNDS, ITEMS)


@given(NODES, ROUNDS, ITEMS)
@PROPERTY
def test_a_slot_is_read_from_its_text(node: str, iteration: tuple[int, ...], item: str) -> None:
    text = slot_of(node, iteration, item)
    slot = Slot.parse(text)
    assert str(slot) == text
    assert slot.fields == {"node": node, "iteration": iteration, "item": item}
    assert (slot.node, slot.iteration, slot.item) == (node, iteration, item)
    assert slot.owner == owner_of(text) == slot_of(node, iteration, "")
    above = Slot.parse(slot.owner)
    assert slot.parent == (above if item else Slot.parse(""))
    assert not item or above.child(item) == slot


@given(st.lists(SEGMENTS, min_size=1, max_size=4))
@PROPERTY
def test_a_slot_is_a_path(segments: list[str]) -> None:
    slot = Slot.parse("/".join(segments))
    assert str(slot) == "/".join(segments)
    assert slot.fields == Slot.parse(segments[-1]).fields
    if not slot.item:
        assert slot.parent == Slot.parse("/".join(segments[:-1]))


@given(st.text("ab/@#.0 1", max_size=8))
@PROPERTY
def test_any_other_text_is_refused(text: str) -> None:
    try:
        slot = Slot.parse(text)
    except ValueError:
        return
    last = text.rpartition("/")[2]
    assert slot_of(slot.node, slot.iteration, slot.item) == last, "a slot has one text"


def test_texts_of_slots_do_not_change() -> None:
    """Effect keys, ids of children and snapshots are made of them."""
    assert (slot_of("book", ()), slot_of("book", (2, 0))) == ("book", "book@2.0")
    assert (slot_of("m", (), "a"), slot_of("m", (1, 0), "a-7")) == ("m#a", "m@1.0#a-7")
    assert ItemsBegan(node="m", iteration=(3,), item="", count=1, at=1).slot == "m@3"
    assert Token("a", "b", (1, 2)).slot == "b@1.2"


def test_a_slot_has_parents_up_to_the_saga() -> None:
    slot, path = Slot.parse("fulfil/notify@2#3/send"), []
    while (above := slot.parent) is not None:
        path.append(str(slot := above))
    assert path == ["fulfil/notify@2#3", "fulfil/notify@2", "fulfil", ""]


@pytest.mark.parametrize(
    "text", ["/a", "a/", "a//b", "#a", "a#", "a#b#c", "a@", "a@x", "a@1.", "a@01", "a@1@2"]
)
def test_what_is_no_slot_is_refused(text: str, says: Says) -> None:
    with says.raised(ValueError):
        Slot.parse(text)


@pytest.mark.parametrize("slot", ["a", "a@1", "a#t1-0", "a@1.2#7"])
def test_an_inverse_runs_at_an_item_of_the_same_node(slot: str) -> None:
    at = Slot.parse(slot)
    for left in (0, 12):
        assert at.child(undo_item(at.item, left)).subject.text == slot
    assert Slot.parse(slot).subject.text == slot


def test_a_slot_without_an_item_is_its_nodes_own() -> None:
    assert check_item("a-7") == "a-7"
    assert (Slot.parse("m@1").item, owner_of("m@1")) == ("", "m@1")


@pytest.mark.parametrize(
    "item", ["a#b", "a@1", "1.0", "a/b", "a b", "ä", "a" * 65, "a\n", "undo", "undo-1", "undone"]
)
def test_what_would_make_a_slot_ambiguous_names_no_item(item: str, says: Says) -> None:
    with says.raised(ValueError):
        check_item(item)
