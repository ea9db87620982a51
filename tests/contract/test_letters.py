"""Contract of `Letters` and `DeadQueue`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from baton.adapters.clock import SystemClock
from baton.adapters.dynamo.letters import DynamoLetters
from baton.core.letters import DISCARDED, PENDING, REDRIVEN, Letter, discard_letter
from baton.ports import DeadMessageCause, SagaRef, Wake
from baton.ports.operators import Outstanding
from tests.contract.dead_queues import dead_queue
from tests.contract.stores import AwsStores, Stores

SOON = SystemClock().now() + 3_600_000
PAST = SystemClock().now() - 3_600_000


def a_letter(number: int = 1, saga: str = "dinner-1", tenant: str = "acme", since: int = 1_000) -> Letter:
    return Letter(
        id=saga,
        tenant=tenant,
        saga=saga,
        code="unreadable_log",
        reason="CorruptLog: a gap",
        node="pay",
        version=4,
        body='{"saga":"T#acme#SAGA#dinner-1","v":3}',
        v=3,
        messages=1,
        attempts=2,
        first=since,
        since=since,
        last=since,
        seen=("m1",),
        number=number,
        expires=SOON,
    )


def test_a_letter_is_read_as_it_was_written(stores: Stores) -> None:
    letters = stores.store.letters
    assert letters.read("acme", "dinner-1") is None
    assert letters.write(a_letter(), 0)
    assert letters.read("acme", "dinner-1") == a_letter()
    assert letters.read("umbrella", "dinner-1") is None


def test_a_letter_that_names_no_saga_has_a_place_of_its_own(stores: Stores) -> None:
    one = replace(a_letter(), id="message~1f-2", saga="", tenant="/deployment")
    assert stores.store.letters.write(one, 0)
    assert stores.store.letters.read("/deployment", "message~1f-2") == one


def test_of_two_writers_that_have_seen_the_same_letter_one_is_refused(stores: Stores) -> None:
    letters = stores.store.letters
    assert letters.write(a_letter(1), 0)
    assert not letters.write(replace(a_letter(1), reason="another"), 0)
    assert letters.write(replace(a_letter(2), reason="mine"), 1)
    assert not letters.write(replace(a_letter(2), reason="late"), 1)
    kept = letters.read("acme", "dinner-1")
    assert kept is not None
    assert kept.reason == "mine"


def test_of_many_writers_at_once_one_wins(concurrent_stores: Stores) -> None:
    letters = concurrent_stores.store.letters
    assert letters.read("acme", "dinner-1") is None
    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(lambda n: letters.write(replace(a_letter(), v=n), 0), range(8)))
    assert sum(won) == 1


def test_a_letter_with_a_wake_is_passed_on_for_its_saga_and_one_without_is_not(stores: Stores) -> None:
    letters = stores.store.letters
    assert letters.write(a_letter(1), 0)
    assert stores.wakes() == []
    assert letters.write(replace(a_letter(2), status=REDRIVEN), 1, Wake(v=3))
    assert not letters.write(replace(a_letter(2), status=REDRIVEN), 1, Wake(v=3))
    assert stores.wakes() == [(SagaRef("acme", "dinner-1"), Wake(v=3))]
    assert letters.write(a_letter(3), 2)
    assert len(stores.wakes()) == 1


def test_a_list_has_the_letters_of_a_tenant_and_a_status_the_oldest_first_in_pages(stores: Stores) -> None:
    letters = stores.store.letters
    for n in range(5):
        assert letters.write(a_letter(saga=f"s{n}", since=5_000 - n), 0)
    assert letters.write(a_letter(tenant="umbrella"), 0)
    assert letters.write(replace(a_letter(saga="gone"), status=DISCARDED), 0)
    first, is_more = letters.listed("acme", PENDING, 2)
    assert ([one.id for one in first], is_more) == (["s4", "s3"], True)
    second, _ = letters.listed("acme", PENDING, 10, first[-1])
    assert [one.id for one in second] == ["s2", "s1", "s0"]
    assert [one.id for one in letters.listed("acme", DISCARDED, 10)[0]] == ["gone"]
    assert letters.listed("acme", REDRIVEN, 10) == ([], False)


def test_a_list_goes_on_behind_a_letter_that_has_left_it(stores: Stores) -> None:
    letters = stores.store.letters
    for n in range(3):
        assert letters.write(a_letter(saga=f"s{n}", since=n), 0)
    (first,), _ = letters.listed("acme", PENDING, 1)
    assert letters.write(replace(first, status=REDRIVEN, number=2), 1)
    assert [one.id for one in letters.listed("acme", PENDING, 5, first)[0]] == ["s1", "s2"]


def test_letters_of_one_moment_are_all_listed_once(stores: Stores) -> None:
    letters, found, after = stores.store.letters, list[str](), None
    for n in range(7):
        assert letters.write(a_letter(saga=f"s{n}"), 0)
    while True:
        page, is_more = letters.listed("acme", PENDING, 3, after)
        found += [one.id for one in page]
        if not is_more or not page:
            break
        after = page[-1]
    assert sorted(found) == [f"s{n}" for n in range(7)]


def test_what_is_outstanding_is_pending_of_any_tenant(stores: Stores) -> None:
    letters = stores.store.letters
    assert letters.outstanding() == Outstanding()
    assert letters.write(a_letter(since=2_000), 0)
    assert letters.write(a_letter(tenant="umbrella", since=1_000), 0)
    assert letters.write(replace(a_letter(saga="done", since=500), status=REDRIVEN), 0)
    assert letters.outstanding() == Outstanding(2, 1_000)


def test_a_letter_that_has_expired_is_not_there(stores: Stores) -> None:
    letters = stores.store.letters
    assert letters.write(replace(a_letter(), reason="old", expires=PAST), 0)
    assert letters.write(a_letter(saga="s2", since=2_000), 0)
    assert letters.read("acme", "dinner-1") is None
    assert [one.id for one in letters.listed("acme", PENDING, 1)[0]] == ["s2"], "found behind what is over"
    assert letters.write(a_letter(), 0)
    assert letters.read("acme", "dinner-1") == a_letter()


# -- DeadQueue


def test_what_the_worker_said_comes_with_a_dead_message(stores: Stores) -> None:
    cause = DeadMessageCause(code="unreadable_log", version=4, node="pay", attempts=3)
    stores.dead_letters.send('{"saga":"s"}', "CorruptLog: a gap", cause)
    (message,) = dead_queue(stores).receive(10)
    assert (message.body, message.reason) == ('{"saga":"s"}', "CorruptLog: a gap")
    assert (message.code, message.version, message.node, message.attempts) == ("unreadable_log", 4, "pay", 3)
    assert message.sent >= 0


def test_what_is_received_is_hidden_until_it_is_deleted(stores: Stores) -> None:
    queue = dead_queue(stores)
    assert queue.count() == 0
    assert queue.receive(10) == []
    for n in range(3):
        stores.dead_letters.send(f"poison {n}", "unreadable")
    assert queue.count() == 3
    found = [*queue.receive(2), *queue.receive(10)]
    assert sorted(message.body for message in found) == ["poison 0", "poison 1", "poison 2"]
    assert len({message.id for message in found}) == 3
    assert queue.receive(10) == []
    queue.delete([message.receipt for message in found])
    queue.delete([found[0].receipt])
    assert queue.count() == 0


def test_on_sqs_a_message_that_the_queue_itself_gave_up_has_no_reason(moto: Stores) -> None:
    sqs, url = moto.dead_letters._client, moto.dead_letters._url  # type: ignore[attr-defined]  # as redrive does
    sqs.send_message(QueueUrl=url, MessageBody="{}")
    (message,) = dead_queue(moto).receive(10)
    assert (message.reason, message.code, message.attempts) == ("", "", 5)
    assert message.sent > PAST


@pytest.mark.parametrize("said", ["-1", "x", "1.5", ""])
def test_on_sqs_an_attribute_that_is_no_number_is_none(said: str, moto: Stores) -> None:
    sqs, url = moto.dead_letters._client, moto.dead_letters._url  # type: ignore[attr-defined]
    told = {"reason": {"DataType": "String", "StringValue": "r"}}
    if said:
        told["version"] = {"DataType": "String", "StringValue": said}
    sqs.send_message(QueueUrl=url, MessageBody="{}", MessageAttributes=told)
    (message,) = dead_queue(moto).receive(10)
    assert (message.version, message.attempts) == (0, 1)


def test_one_letter_that_cannot_be_read_keeps_no_other_from_being_listed_and_can_be_discarded(
    moto: AwsStores,
) -> None:
    letters = moto.store.letters
    assert isinstance(letters, DynamoLetters)
    letters.write(a_letter(), 0)
    letters.write(replace(a_letter(), id="dinner-2", saga="dinner-2", since=2_000), 0)
    letters.write(replace(a_letter(), id="message~1", saga="", since=3_000), 0)
    for item in moto.scan():
        if item["pk"]["S"].endswith("dinner-1") or item["sk"]["S"] == "message~1":
            letters._client.put_item(TableName=letters._table, Item={**item, "d": {"B": b"\x00nonsense"}})
    found, _ = letters.listed("acme", PENDING, 10)
    assert [(one.id, one.saga, one.code) for one in found] == [
        ("dinner-1", "dinner-1", "unreadable_letter"),
        ("dinner-2", "dinner-2", "unreadable_log"),
        ("message~1", "", "unreadable_letter"),
    ]
    read = letters.read("acme", "dinner-1")
    assert read is not None
    assert letters.write(discard_letter(read, "ada", "nonsense", SOON), read.number)
    again = letters.read("acme", "dinner-1")
    assert again is not None
    assert (again.status, again.why) == (DISCARDED, "nonsense")
