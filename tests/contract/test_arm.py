"""Contract of `Log`: arming a head before an append that nothing else would bring to light."""

from __future__ import annotations

import msgspec
import pytest

from baton.ports import Head
from tests.contract.stores import SAGA, Stores, a_head, a_release


def head_of(stores: Stores) -> Head:
    head = stores.log.read_head(SAGA)
    assert head is not None
    return head


def test_arming_a_finished_saga_puts_it_into_the_due_index(stores: Stores) -> None:
    stores.log.create_head(a_head(due_at=None))
    assert stores.log.arm(head_of(stores), 95_000)
    assert head_of(stores) == a_head(due_at=95_000, armed=95_000)
    assert (SAGA, 95_000) in [
        row for shard in range(4) for row in stores.log.due("work", shard, 0, 95_000, 10)
    ]


def test_arming_keeps_a_nearer_due_time(stores: Stores) -> None:
    stores.log.create_head(a_head(due_at=61_000))
    assert stores.log.arm(head_of(stores), 95_000)
    assert head_of(stores) == a_head(due_at=61_000, armed=95_000)


def test_arming_brings_a_later_due_time_nearer(stores: Stores) -> None:
    stores.log.create_head(a_head(due_at=300_000))
    assert stores.log.arm(head_of(stores), 95_000)
    assert head_of(stores) == a_head(due_at=95_000, armed=95_000)


def test_arming_does_not_touch_the_lease(stores: Stores) -> None:
    stores.log.create_head(a_head())
    stores.log.take(SAGA, "me", 90_000, 0, 93_000)
    held = head_of(stores)
    assert stores.log.arm(held, 95_000)
    assert head_of(stores) == msgspec.structs.replace(held, armed=95_000)


def test_arming_a_saga_without_a_head_is_refused_and_makes_none(stores: Stores) -> None:
    assert not stores.log.arm(a_head(), 95_000)
    assert stores.log.read_head(SAGA) is None


@pytest.mark.parametrize(
    "change", ["taken", "retaken", "released", "released as due", "nudged", "armed", "armed later"]
)
def test_arming_is_refused_when_the_head_changed_since_it_was_seen(stores: Stores, change: str) -> None:
    log = stores.log
    log.create_head(a_head())
    if change != "taken":
        log.take(SAGA, "me", 90_000, 0, 93_000)
    if change == "armed later":
        log.arm(head_of(stores), 92_000)
    seen = head_of(stores)
    changed = {
        "taken": lambda: log.take(SAGA, "me", 90_000, 0, 93_000) is not None,
        "retaken": lambda: log.take(SAGA, "me", 90_000, 1, 93_000) is not None,
        "released": lambda: log.release(SAGA, "me", 1, a_release()),
        "released as due": lambda: log.release(SAGA, "me", 1, a_release(due_at=seen.due_at)),
        "nudged": lambda: log.leave_wake(SAGA, "me", 1, 4),
        "armed": lambda: log.arm(seen, 93_000),
        "armed later": lambda: log.arm(seen, 93_000),
    }[change]()
    assert changed
    before = head_of(stores)
    assert not log.arm(seen, 95_000)
    assert head_of(stores) == before
