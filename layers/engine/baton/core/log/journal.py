"""The journal of a step: the units of its work that its tool has named, with their results (`context.once`).

A unit is an operation below the step. The state only has the place of the newest one; the results are in the
log, and each event names the entry of those before it, so a step of many units costs the state nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from baton.core.log.records import About, Root, Value

MOST_UNITS: Final = 1_000
"""Most units of one step."""
MOST_BYTES: Final = 16_777_216
"""Most bytes of JSON in the results of all units of one step: an attempt has them in memory."""


class Journal(msgspec.Struct, frozen=True, omit_defaults=True):
    """The journal of a step at work.

    `head`: the version of the entry with its newest units. `units`: their number; `size`: the bytes of their
    results.
    """

    head: int = 0
    units: int = 0
    size: int = 0


class UnitRecorded(About, frozen=True, tag="unit_recorded", omit_defaults=True, kw_only=True):
    """A tool did a unit of its step's work, and does not do it again.

    `name` is the tool's own name for it. `key` is the same in all attempts at the same call, and differs for
    any other unit. `size`: bytes of its output. `prior`: the version of the entry with the units before it;
    0: there are none.
    """

    made = ("output",)
    name: str
    key: str
    output: Value
    size: int
    at: int
    prior: int = 0


class UnitsInEntry(NamedTuple):
    """Units of one step in an entry, the newest first, and the version of the entry with those before."""

    units: list[UnitRecorded]
    prior: int


def units_in(events: Iterable[Root], slot: str) -> UnitsInEntry:
    """Return the units of the step at a slot that an entry has."""
    found = [one for one in events if isinstance(one, UnitRecorded) and one.slot == slot]
    return UnitsInEntry(found[::-1], found[0].prior if found else 0)
