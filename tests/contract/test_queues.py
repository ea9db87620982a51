"""Contract of `Queue` and `DeadLetters`."""

from __future__ import annotations

import pytest

from baton.adapters.memory.queues import MemoryQueue
from baton.ports import Message
from tests.contract.dead_queues import dead_queue
from tests.contract.stores import SAGA, AwsStores, Stores
from tests.kit.sentences import Says

MAX_MESSAGE = 1_048_576  # of SQS, attributes included


def a_message(version: int = 0) -> Message:
    return Message(saga=str(SAGA), v=version)


# -- Queue


def test_a_message_is_a_sagas_key_and_a_version(stores: Stores) -> None:
    assert stores.queue.send([(a_message(7), 0)]) == []
    assert stores.visible() == ['{"saga":"T#acme#SAGA#dinner-1","v":7}']


def test_a_message_without_a_version_has_only_the_key(stores: Stores) -> None:
    stores.queue.send([(a_message(), 0)])
    assert stores.visible() == ['{"saga":"T#acme#SAGA#dinner-1"}']


def test_any_number_of_messages_can_be_sent_at_once(stores: Stores) -> None:
    assert stores.queue.send([(a_message(version), 0) for version in range(1, 26)]) == []
    assert len(set(stores.visible())) == 25


def test_sending_nothing_does_nothing(stores: Stores) -> None:
    assert stores.queue.send([]) == []
    assert stores.visible() == []


def test_a_delayed_message_cannot_be_received_yet(stores: Stores) -> None:
    assert stores.queue.send([(a_message(1), 900), (a_message(2), 0), (a_message(3), 60)]) == []
    assert stores.visible() == ['{"saga":"T#acme#SAGA#dinner-1","v":2}']


@pytest.mark.parametrize("delay", [-1, 901])
def test_a_delay_that_the_queue_cannot_keep_is_refused_and_nothing_is_sent(
    stores: Stores, delay: int
) -> None:
    with pytest.raises(ValueError, match="0 to 900"):
        stores.queue.send([(a_message(1), 0), (a_message(2), delay)])
    assert stores.visible() == []


def test_in_memory_a_message_can_be_received_when_its_delay_is_over_soonest_first() -> None:
    class HandClock:
        time = 1_000

        def now(self) -> int:
            return self.time

    clock = HandClock()
    queue = MemoryQueue(clock)
    queue.send([(a_message(1), 3), (a_message(2), 2), (a_message(3), 0)])
    assert queue.waiting() == [(4_000, a_message(1)), (3_000, a_message(2)), (1_000, a_message(3))]
    assert queue.receive() == [a_message(3)]
    clock.time = 2_999
    assert queue.receive() == []
    clock.time = 4_000
    assert queue.receive(limit=1) == [a_message(2)]
    assert queue.receive() == [a_message(1)]
    assert queue.waiting() == []


# -- DeadLetters


def test_a_dead_letter_keeps_its_body_and_its_reason(stores: Stores, says: Says) -> None:
    stores.dead_letters.send('{"saga": 12}', "the saga is not text")
    says(stores.letters())


def test_dead_letters_are_counted(stores: Stores) -> None:
    assert dead_queue(stores).count() == 0
    for number in range(3):
        stores.dead_letters.send(f"poison {number}", "unreadable")
    assert dead_queue(stores).count() == 3


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "empty"),
        ("poison", ""),
        ("poison \x00", "saw \x00 and \ud800"),
        ("poison", "long " * 1_000),
        ("x" * MAX_MESSAGE, "as large as a message may be"),
        ("\x00" * (MAX_MESSAGE // 2), "larger when it can be read"),
    ],
    ids=["empty", "no reason", "no text", "long reason", "largest", "largest of no text"],
)
def test_no_letter_is_so_bad_that_the_queue_refuses_it(stores: Stores, body: str, reason: str) -> None:
    stores.dead_letters.send(body, reason)
    assert dead_queue(stores).count() == 1


def test_on_sqs_a_letter_loses_what_the_queue_would_refuse_and_no_more(moto: Stores) -> None:
    moto.dead_letters.send("poison \x00\ttab, ümlaut, \U0001f372", "long " * 1_000)
    ((body, reason),) = moto.letters()
    assert body == "poison \ufffd\ttab, ümlaut, \U0001f372"
    assert reason == ("long " * 1_000)[:1_000]


def test_on_sqs_a_letter_that_is_too_long_is_cut_and_says_so(moto: Stores, says: Says) -> None:
    moto.dead_letters.send('{"saga":"' + "ü" * (MAX_MESSAGE // 2), "ü" * 2_000)
    ((body, reason),) = moto.letters()
    assert body.startswith('{"saga":"ü')
    assert body.endswith("ü"), "no half characters"
    assert len(body.encode()) > MAX_MESSAGE - 4_000
    assert len(body.encode()) + len(reason.encode()) + len("reasonString") <= MAX_MESSAGE
    assert reason.startswith("ü" * 1_000)
    says(reason[1_000:])


def test_on_sqs_a_message_is_of_its_tenants_group_so_that_the_queue_is_fair(moto: AwsStores) -> None:
    moto.queue.send([(Message("T#acme#SAGA#a", 1), 0), (Message("T#a/b:c@d#SAGA#b"), 0)])
    assert sorted(moto.groups()) == ["a/b:c@d", "acme"]


def test_a_backlog_is_what_could_be_received_now(stores: Stores) -> None:
    assert stores.queue.backlog() == 0
    stores.queue.send([(a_message(version), 0) for version in range(3)])
    stores.queue.send([(a_message(9), 60)])
    assert stores.queue.backlog() == 3
    stores.visible()
    assert stores.queue.backlog() == 0
