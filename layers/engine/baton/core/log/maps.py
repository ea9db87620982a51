"""What a map has open, and the events that move it: items begin, their results are put together, and it ends.

A map does the same for each item of a list. The item with the index 3 is at the slot `node#3`, like any part of a node.
What a map does is in core/nodes/map.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import msgspec
from msgspec.structs import replace

from baton.core.log.opened import Work
from baton.core.log.records import LONGEST_MESSAGE, About, Blamed, Failure, Value
from baton.core.log.settling import Gives, Settles

ERRORS_KEPT = 20
"""How many errors the failure of a map keeps: it is stored in an entry and in the state. The batch result has all of them."""
SUCCEEDED, FAILED, STOPPED, NOT_BEGUN = "succeeded", "failed", "stopped", "not_begun"
RUNNING = "running"
"""What became of an item. It runs where the map has gone on without it."""


class Map(Work, msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="map"):
    """A map at work: the list `over`, its `size`, and how many items have `begun`, in the order of the list.

    `parts` are the results of items that have left the state: `gathered` so many, of which `lost` have failed.
    `failures` are those of items that have not, by item; `first` are the first of all. `failure`: it has failed with that;
    `batch` says then what became of each item. `late`: what comes after the map has begun, and nothing follows from the items that
    are left; so many of them have since succeeded, and failed.
    """

    over: Value
    size: int
    begun: int = 0
    gathered: int = 0
    lost: int = 0
    parts: tuple[Value, ...] = ()
    failures: dict[str, Failure] = {}
    first: tuple[Blamed, ...] = ()
    failure: Failure | None = None
    batch: Value | None = None
    late: tuple[int, int] | None = None

    @property
    def is_late(self) -> bool:
        return self.late is not None

    @property
    def acts_by_items(self) -> bool:
        return True

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self:
        """What items have given up to the cut is kept; those at work then are done again, under the same keys."""
        return self


def is_index(item: str) -> bool:
    """Whether an item is one of a list, and not a turn, a call or another part of a node's work."""
    return item.isdecimal()


class ItemsBegan(About, frozen=True, tag="items_began", omit_defaults=True, kw_only=True):
    """So many items of a map began together, from the index `first` on."""

    first: int = 0
    count: int
    at: int

    @property
    def items(self) -> Iterable[str]:
        return map(str, range(self.first, self.first + self.count))


class ItemsGathered(About, frozen=True, tag="items_gathered", omit_defaults=True, kw_only=True):
    """The results of items that have ended leave the state: of each its index, whether it has succeeded, and its output or error."""

    made = ("results",)
    items: tuple[int, ...]
    results: Value


class MapStopped(About, frozen=True, tag="map_stopped", omit_defaults=True, kw_only=True):
    """A map has failed. `batch` says of each item what became of it; the failure of the node follows."""

    made = ("batch",)
    failure: Failure
    batch: Value


class MapClosed(Gives, frozen=True, tag="map_closed", omit_defaults=True, kw_only=True):
    """A map is done: how many of its items have succeeded, have failed, were stopped and never began.

    `running`: so many run on beside what comes after the map, and those that have not begun will (`goes_on`). The map is over with
    `MapEnded`.
    """

    made = ("output",)
    succeeded: int = 0
    failed: int = 0
    stopped: int = 0
    not_begun: int = 0
    running: int = 0
    goes_on: bool = False


class MapEnded(Settles, frozen=True, tag="map_ended", omit_defaults=True, kw_only=True):
    """The items that a map has left running are over: how many of them have succeeded, have failed, were stopped and never began.

    `why`: what has stopped them, if they did not end by themselves.
    """

    succeeded: int = 0
    failed: int = 0
    stopped: int = 0
    not_begun: int = 0
    why: str = ""

    @property
    def leads_on(self) -> bool:
        """Whether what has stopped the items may come behind it: both are in the same entry."""
        return bool(self.why)


def late_end(node: str, iteration: tuple[int, ...], work: Map, running: int, why: str = "") -> MapEnded:
    """The end of a map that has gone on, where so many items still run."""
    assert work.late is not None, "it has gone on"
    good, bad = work.late
    return MapEnded(
        node=node,
        iteration=iteration,
        succeeded=good,
        failed=bad,
        stopped=running,
        not_begun=work.size - work.begun,
        why=why,
    )


def with_late(work: Map, *, succeeded: bool) -> Map:
    """An item has ended that the map has left running."""
    assert work.late is not None, "the caller has looked"
    good, bad = work.late
    return replace(work, late=(good + succeeded, bad + (not succeeded)))


def with_failure(work: Map, item: str, failure: Failure) -> Map:
    """An item has failed for good."""
    node = f"{failure.node.partition('#')[0]}#{item}"
    first = work.first
    if len(first) < ERRORS_KEPT:
        first = (*first, Blamed(failure.code, failure.message[:LONGEST_MESSAGE], node))
    return replace(work, failures={**work.failures, item: failure}, first=first)


def with_part(work: Map, event: ItemsGathered) -> Map:
    """The results of these items are a part of what is gathered."""
    gone = set(map(str, event.items))
    return replace(
        work,
        gathered=work.gathered + len(event.items),
        lost=work.lost + len(gone & work.failures.keys()),
        parts=(*work.parts, event.results),
        failures={item: failure for item, failure in work.failures.items() if item not in gone},
    )
