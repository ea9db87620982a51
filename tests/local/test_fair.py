"""The order in which messages of several tenants are received."""

from __future__ import annotations

from baton.local.fair import NOISY_FROM, NOISY_SHARE, fairest


def test_messages_of_one_group_keep_their_order() -> None:
    assert fairest(["a"] * 5, {}, 3) == [0, 1, 2]


def test_a_batch_is_shared_between_those_that_wait_whoever_has_more() -> None:
    waiting = ["a"] * 100 + ["b"] * 3
    assert fairest(waiting, {}, 6) == [0, 100, 1, 101, 2, 102]


def test_who_has_much_in_flight_waits_for_who_has_not() -> None:
    waiting = ["a"] * 100 + ["b"] * 20
    assert fairest(waiting, {"a": 10}, 10) == list(range(100, 110))


def test_by_the_rule_of_sqs_a_group_is_noisy_from_thirty_and_a_tenth() -> None:
    def first(in_flight: dict[str, int]) -> int:
        return fairest(["a", "b"], in_flight, 1, noisy_from=NOISY_FROM, noisy_share=NOISY_SHARE)[0]

    assert first({"a": 29, "b": 0}) == 0
    assert first({"a": 30, "b": 0}) == 1
    assert first({"a": 30, "b": 0, "c": 270}) == 0, "not more than a tenth"
    assert first({"a": 31, "b": 0, "c": 270}) == 1


def test_there_may_be_fewer_than_are_asked_for() -> None:
    assert fairest(["b", "a"], {}, 10) == [0, 1]
    assert fairest([], {}, 10) == []
