"""Incarnations: how often the work at each slot was taken back, and so which keys its effects have.

The rule is in docs/adr, 99. A fold raises them at the end of what takes work back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from baton.core.log.slots import Slot, slot_of


class ReplacedSaga(msgspec.Struct, frozen=True, array_like=True):
    """A saga that an ancestor's fork has replaced by this one, and its newest branch."""

    saga: str
    branch: int = 0


class Keys(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Incarnations of the slots of the sagas that this one replaces, as the log has them.

    `rounds`: by node, for each time, the first round that was raised. `standing` and `alone`: by slot, how
    far it is below or above the number of its round.
    """

    rounds: dict[str, tuple[tuple[int, ...], ...]] = {}
    standing: dict[str, int] = {}
    alone: dict[str, int] = {}

    @classmethod
    def of(cls, incarnation: Mapping[str, int]) -> Keys | None:
        """Return the keys of these incarnations; None if there are none."""
        if not incarnation:
            return None
        above = {slot: number for slot, number in incarnation.items() if number > 0}
        rounds: dict[str, tuple[tuple[int, ...], ...]] = {
            slot[:-1]: ((),) * number for slot, number in above.items() if slot.endswith("/")
        }
        return cls(
            rounds=rounds,
            standing={slot: -number for slot, number in incarnation.items() if number < 0},
            alone={slot: number for slot, number in above.items() if not slot.endswith("/")},
        )

    @property
    def incarnation(self) -> dict[str, int]:
        """The incarnation of each slot."""
        raised = ((node, first) for node, firsts in self.rounds.items() for first in firsts)
        below = ((slot, -number) for slot, number in self.standing.items())
        raises = (one for node, first in raised for one in from_round(node, first))
        return numbers_with({}, (*raises, *below, *self.alone.items()))


def numbers_with(incarnation: Mapping[str, int], by: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the incarnations with these numbers added to those of their slots."""
    numbers = dict(incarnation)
    for slot, number in by:
        numbers[slot] = numbers.get(slot, 0) + number
        if not numbers[slot]:
            del numbers[slot]
    return numbers


def from_round(node: str, first: tuple[int, ...]) -> Iterator[tuple[str, int]]:
    """Yield the places, with their numbers, by which the slots of a node are raised from a round on."""
    yield f"{node}/", 1
    for depth, number in enumerate(first):
        yield from ((f"{slot_of(node, (*first[:depth], before))}/", -1) for before in range(number))


def generation_of(incarnation: Mapping[str, int], slot: str) -> int:
    """Return the number of times that the work at this slot was taken back."""
    if not incarnation:
        return 0
    place = Slot.parse(slot.removesuffix("/"))
    around = [f"{slot_of(place.node, place.iteration[:depth])}/" for depth in range(len(place.iteration) + 1)]
    return max(sum(incarnation.get(one, 0) for one in {*around, slot}), 0)


def merged(known: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the incarnations by which each slot has the highest number of all."""
    known = [one for one in known if one]
    numbers: dict[str, int] = {}
    for slot in sorted(
        {slot for one in known for slot in one}, key=lambda slot: (slot[-1] != "/", len(slot), slot)
    ):
        if more := max(generation_of(one, slot) for one in known) - generation_of(numbers, slot):
            numbers[slot] = more
    return numbers
