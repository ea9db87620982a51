"""Incarnations: one number a slot of its undoings, also where an older log counts them by the rounds of a node."""

from __future__ import annotations

import random

import pytest

from baton.core.log.incarnations import Keys, from_round, generation_of, merged, numbers_with
from baton.core.log.slots import Slot, slot_of


def by_rounds(keys: Keys, slot: str) -> int:
    """The number as earlier versions have counted it; the keys of stored effects are made of it."""
    place = Slot.parse(slot)
    undone = sum(first <= place.iteration for first in keys.rounds.get(place.node, ()))
    whole = max(undone - keys.standing.get(slot, 0), 0) if undone else 0
    return whole + keys.alone.get(slot, 0)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_the_keys_of_an_older_log_are_the_same(depth: int) -> None:
    for seed in range(50):
        check_keys(random.Random(f"{seed}/{depth}"), depth)


def check_keys(draw: random.Random, depth: int) -> None:
    slots = [
        slot_of("a", tuple(draw.randrange(4) for _ in range(depth)), draw.choice(["", "1", "t2-0"]))
        for _ in range(12)
    ]
    firsts = tuple(tuple(draw.randrange(4) for _ in range(depth)) for _ in range(3))
    within = {
        slot: n for slot in slots[:6] if (n := sum(first <= Slot.parse(slot).iteration for first in firsts))
    }
    keys = Keys(
        rounds={"a": firsts},
        standing={slot: draw.randint(1, number) for slot, number in within.items()},
        alone={slot: 1 for slot in slots[4:8] if "#" in slot},
    )
    again = Keys.of(keys.incarnation)
    for slot in (*slots, slot_of("b", (0,) * depth)):
        assert generation_of(keys.incarnation, slot) == by_rounds(keys, slot), (slot, keys)
        assert again is None or generation_of(again.incarnation, slot) == by_rounds(keys, slot), (slot, keys)


def test_what_was_not_undone_has_no_number() -> None:
    assert (Keys.of({}), merged([]), merged([{}]), generation_of({}, "a")) == (None, {}, {}, 0)
    numbers = numbers_with({}, from_round("a", (1, 2)))
    assert [generation_of(numbers, slot) for slot in ("a@0.9", "a@1.1", "a@1.2", "a@1.2#x", "a@3.0")] == [
        0,
        0,
        1,
        1,
        1,
    ]
    assert numbers_with({"a": 1}, [("a", -1)]) == {}


def test_of_several_sagas_in_one_place_the_highest_number_counts_for_each_slot() -> None:
    one = numbers_with({}, [*from_round("a", ()), ("a#3", -1)])
    other = numbers_with({}, [("a#3", 1), ("b", 2)])
    both = merged([one, other])
    assert [generation_of(both, slot) for slot in ("a", "a#1", "a#3", "b", "c")] == [1, 1, 1, 2, 0]
    assert merged([both, one]) == both
