"""Contract of `Inbox`, and of the count that it keeps on a head until a release clears it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace

from baton.errors import Throttled
from baton.ports import Head, Report, SagaRef
from tests.contract.stores import OTHER, SAGA, AwsStores, Stores, a_head, a_release

UNTIL = 1_790_000_000_000


def a_report(number: int = 1, **changes: Any) -> Report:
    report = Report(parent=SAGA, window=0, slot=f"c{number}", child=f"{SAGA.id}.0.c{number}")
    return replace(report, **changes)


def head_of(stores: Stores, ref: SagaRef = SAGA) -> Head:
    head = stores.log.read_head(ref)
    assert head is not None
    return head


def taken(stores: Stores, news: int = 0) -> None:
    stores.log.create_head(a_head(due_at=60_000))
    for _ in range(news):
        stores.inbox.announce(SAGA)
    assert stores.log.take(SAGA, "me", 90_000, 0, 93_000) is not None


# ---- what stands in it


def test_what_was_left_is_found_in_its_window_and_in_no_other(stores: Stores) -> None:
    stores.inbox.leave([a_report(1), a_report(2), a_report(3, window=1), a_report(4, parent=OTHER)], UNTIL)
    assert list(stores.inbox.read(SAGA, 0)) == [a_report(1), a_report(2)]
    assert list(stores.inbox.read(SAGA, 1)) == [a_report(3, window=1)]
    assert list(stores.inbox.read(OTHER, 0)) == [a_report(4, parent=OTHER)]
    assert list(stores.inbox.read(SAGA, 2)) == []


def test_what_is_left_twice_stands_there_once(stores: Stores) -> None:
    stores.inbox.leave([a_report(), a_report()], UNTIL)
    stores.inbox.leave([a_report()], UNTIL + 5_000)
    assert list(stores.inbox.read(SAGA, 0)) == [a_report()]


def test_a_slot_with_rounds_and_items_comes_back_as_it_is(stores: Stores) -> None:
    odd = a_report(slot="c@2.0#item-1", child=f"{SAGA.id}.0.c-2.0-item-1")
    stores.inbox.leave([odd], UNTIL)
    assert list(stores.inbox.read(SAGA, 0)) == [odd]


def test_any_number_is_left_at_once(stores: Stores) -> None:
    many = [a_report(number, window=number // 64) for number in range(130)]
    stores.inbox.leave(many, UNTIL)
    assert [len(stores.inbox.read(SAGA, window)) for window in range(4)] == [64, 64, 2, 0]


def test_nothing_is_left_of_nothing(stores: Stores) -> None:
    stores.inbox.leave([], UNTIL)
    assert list(stores.inbox.read(SAGA, 0)) == []


# ---- what is announced


def test_each_piece_of_news_is_counted_on_the_head_and_all_else_stays(stores: Stores) -> None:
    before = a_head(due_at=60_000)
    stores.log.create_head(before)
    assert head_of(stores).inbox == 0
    assert stores.inbox.announce(SAGA)
    assert stores.inbox.announce(SAGA)
    assert head_of(stores) == replace(before, inbox=2)


def test_a_saga_that_is_held_is_not_to_be_woken(stores: Stores) -> None:
    taken(stores)
    assert not stores.inbox.announce(SAGA)
    assert head_of(stores).inbox == 1


def test_a_saga_that_has_ended_or_is_not_there_hears_of_nothing(stores: Stores) -> None:
    stores.log.create_head(a_head(due_at=None))
    assert not stores.inbox.announce(SAGA)
    assert head_of(stores).inbox == 0
    assert not stores.inbox.announce(OTHER)
    assert stores.log.read_head(OTHER) is None


def test_a_take_tells_what_was_announced_and_leaves_it(stores: Stores) -> None:
    stores.log.create_head(a_head(due_at=60_000))
    stores.inbox.announce(SAGA)
    before = stores.log.take(SAGA, "me", 90_000, 0, 93_000)
    assert before is not None
    assert (before.inbox, head_of(stores).inbox) == (1, 1)


# ---- the release


def test_a_release_that_has_taken_it_in_clears_it(stores: Stores) -> None:
    taken(stores, news=2)
    assert stores.log.release(SAGA, "me", 1, a_release(inbox=2))
    assert head_of(stores).inbox == 0


@pytest.mark.parametrize(("before", "seen"), [(0, 0), (1, 1), (2, 2)])
def test_a_release_is_refused_when_more_was_announced_since(stores: Stores, before: int, seen: int) -> None:
    taken(stores, news=before)
    stores.inbox.announce(SAGA)
    there = head_of(stores)
    assert not stores.log.release(SAGA, "me", 1, a_release(inbox=seen))
    assert head_of(stores) == there


def test_a_release_that_has_taken_nothing_in_leaves_it_for_the_next_holder(stores: Stores) -> None:
    taken(stores, news=2)
    assert stores.log.release(SAGA, "me", 1, a_release(inbox=None))
    assert head_of(stores).inbox == 2


def test_no_arming_is_based_on_an_older_head(stores: Stores) -> None:
    stores.log.create_head(a_head(due_at=60_000))
    seen = head_of(stores)
    stores.inbox.announce(SAGA)
    assert not stores.log.arm(seen, 95_000)


def test_of_announcements_at_the_same_time_none_is_lost(concurrent_stores: Stores) -> None:
    concurrent_stores.log.create_head(a_head(due_at=60_000))
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: concurrent_stores.inbox.announce(SAGA), range(40)))
    assert head_of(concurrent_stores).inbox == 40


# ---- on the table


def test_an_item_is_no_more_than_its_key_and_expires(moto: AwsStores) -> None:
    moto.inbox.leave([a_report(window=3)], UNTIL)
    (item,) = moto.scan()
    assert item == {
        "pk": {"S": f"{SAGA}#IN#3"},
        "sk": {"S": f"c1#{SAGA.id}.0.c1"},
        "ttl": {"N": str(UNTIL // 1_000)},
    }


def test_what_the_table_had_no_room_for_is_a_reason_to_try_it_all_again(moto: AwsStores) -> None:
    events = moto.store.inbox._client.meta.events

    def half(parsed: dict[str, Any], **_: object) -> None:
        parsed["UnprocessedItems"] = {"t": [{"PutRequest": {"Item": {}}}]}

    moto.inbox.leave([], UNTIL)
    events.register("after-call.dynamodb.BatchWriteItem", half)
    try:
        with pytest.raises(Throttled):
            moto.inbox.leave([a_report()], UNTIL)
    finally:
        events.unregister("after-call.dynamodb.BatchWriteItem", half)


def test_a_request_has_no_more_puts_than_it_may(moto: AwsStores) -> None:
    sizes: list[int] = []

    def note(params: dict[str, Any], **_: object) -> None:
        sizes.extend(len(puts) for puts in params["RequestItems"].values())

    events = moto.store.inbox._client.meta.events
    events.register("provide-client-params.dynamodb.BatchWriteItem", note)
    try:
        moto.inbox.leave([a_report(number) for number in range(60)], UNTIL)
    finally:
        events.unregister("provide-client-params.dynamodb.BatchWriteItem", note)
    assert sizes == [25, 25, 10]
