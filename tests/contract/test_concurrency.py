"""The conditions of the log under real concurrency: of many at once, exactly one is right."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from baton.ports import Head, SagaRef
from tests.contract.stores import SAGA, Stores, a_definition, a_head, a_release, an_entry, as_written

T = TypeVar("T")
MANY = 50
ROUNDS = 20


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Make all calls at the same moment, each in a thread of its own."""
    barrier = threading.Barrier(len(calls))
    usual = sys.getswitchinterval()

    def together(call: Callable[[], T]) -> T:
        barrier.wait()
        return call()

    sys.setswitchinterval(1e-6)  # in memory, a call is over before the next thread gets its turn
    try:
        with ThreadPoolExecutor(len(calls)) as threads:
            return list(threads.map(together, calls))
    finally:
        sys.setswitchinterval(usual)


def head_of(stores: Stores, ref: SagaRef = SAGA) -> Head:
    head = stores.log.read_head(ref)
    assert head is not None
    return head


def test_of_many_starts_one_creates_the_head_and_the_others_get_it(concurrent_stores: Stores) -> None:
    log = concurrent_stores.log
    answers = at_once([partial(log.create_head, a_head(user=f"user-{n}")) for n in range(MANY)])
    assert answers.count(None) == 1
    winner = f"user-{answers.index(None)}"
    assert {head.user for head in answers if head is not None} == {winner}


def test_of_many_appends_of_one_version_one_wins_and_its_entry_stays(concurrent_stores: Stores) -> None:
    log = concurrent_stores.log

    def append(number: int) -> bool:
        return log.append(SAGA, an_entry(1, b'{"by":%d}' % number)) is not None

    won = at_once([partial(append, n) for n in range(MANY)])
    assert won.count(True) == 1
    assert [as_written(record) for record in log.read_tail(SAGA, 0, 0)] == [
        an_entry(1, b'{"by":%d}' % won.index(True))
    ]


def test_of_many_takes_of_a_free_lease_one_wins(concurrent_stores: Stores) -> None:
    log = concurrent_stores.log
    log.create_head(a_head())
    taken = at_once([partial(log.take, SAGA, f"me-{n}", 90_000, 0, 93_000) for n in range(MANY)])
    (winner,) = [number for number, before in enumerate(taken) if before is not None]
    assert (head_of(concurrent_stores).owner, head_of(concurrent_stores).epoch) == (f"me-{winner}", 1)


def test_of_many_takes_of_an_expired_lease_one_wins(concurrent_stores: Stores) -> None:
    log = concurrent_stores.log
    log.create_head(a_head())
    log.take(SAGA, "dead", 40_000, 0, 43_000)
    taken = at_once([partial(log.take, SAGA, f"me-{n}", 90_000, 1, 93_000) for n in range(MANY)])
    (before,) = [head for head in taken if head is not None]
    assert before.owner == "dead"
    assert head_of(concurrent_stores).epoch == 2


def test_of_takes_and_retakes_of_one_head_at_once_one_owner_wins(concurrent_stores: Stores) -> None:
    log = concurrent_stores.log
    for number in range(ROUNDS):
        ref = SagaRef(tenant="acme", id=f"race-{number}")
        log.create_head(a_head(ref))
        owners = [f"me-{n % 4}" for n in range(8)]  # each asks twice
        taken = at_once([partial(log.take, ref, owner, 90_000, 0, 93_000) for owner in owners])
        won = {owner for owner, before in zip(owners, taken, strict=True) if before is not None}
        assert won == {head_of(concurrent_stores, ref).owner}
        assert head_of(concurrent_stores, ref).epoch == 1


def test_of_many_nudges_the_highest_stays(concurrent_stores: Stores) -> None:
    log = concurrent_stores.log
    log.create_head(a_head())
    log.take(SAGA, "me", 90_000, 0, 93_000)
    accepted = at_once([partial(log.leave_wake, SAGA, "me", 1, n) for n in range(1, MANY + 1)])
    assert accepted[-1]
    assert head_of(concurrent_stores).pending_wake == MANY


def test_a_nudge_and_a_release_that_does_not_know_it_never_both_succeed(concurrent_stores: Stores) -> None:
    log = concurrent_stores.log
    for number in range(ROUNDS):
        ref = SagaRef(tenant="acme", id=f"race-{number}")
        log.create_head(a_head(ref))
        log.take(ref, "me", 90_000, 0, 93_000)
        nudged, released = at_once(
            [
                partial(log.leave_wake, ref, "me", 1, 5),
                partial(log.release, ref, "me", 1, a_release(folded=4)),
            ]
        )
        assert nudged != released
        assert head_of(concurrent_stores, ref).pending_wake == (5 if nudged else 0)


def test_an_arming_and_a_release_that_does_not_know_it_never_both_succeed(concurrent_stores: Stores) -> None:
    log = concurrent_stores.log
    for number in range(ROUNDS):
        ref = SagaRef(tenant="acme", id=f"race-{number}")
        log.create_head(a_head(ref))
        log.take(ref, "me", 90_000, 0, 93_000)
        seen = head_of(concurrent_stores, ref)
        armed, released = at_once(
            [
                partial(log.arm, seen, 95_000),
                partial(log.release, ref, "me", 1, a_release(due_at=None)),
            ]
        )
        assert armed != released
        assert head_of(concurrent_stores, ref).due_at == (93_000 if armed else None)


def test_an_arming_that_succeeds_is_seen_by_the_next_to_take(concurrent_stores: Stores) -> None:
    log = concurrent_stores.log
    for number in range(ROUNDS):
        ref = SagaRef(tenant="acme", id=f"race-{number}")
        log.create_head(a_head(ref, due_at=None))
        seen = head_of(concurrent_stores, ref)
        calls: list[Callable[[], Head | bool | None]] = [
            partial(log.arm, seen, 95_000),
            partial(log.take, ref, "me", 90_000, 0, 93_000),
        ]
        armed, before = at_once(calls)
        assert isinstance(before, Head)
        assert before.armed == (95_000 if armed else 0)


def test_the_same_definition_registered_by_many_is_registered_once(concurrent_stores: Stores) -> None:
    definitions = concurrent_stores.definitions
    won = at_once([partial(definitions.put, a_definition(by=f"user-{n}")) for n in range(MANY)])
    assert won.count(True) == 1
    assert definitions.get("acme", "dinner") == a_definition(by=f"user-{won.index(True)}")
    assert definitions.names("acme") == ["dinner"]
