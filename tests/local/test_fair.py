"""The order in which messages of several tenants are received."""

from __future__ import annotations

from baton.local.queues import fairest


def test_messages_of_one_group_keep_their_order() -> None:
    assert fairest(["a"] * 5, {}, 3) == [0, 1, 2]


def test_a_batch_is_shared_between_those_that_wait_however_much_each_has() -> None:
    waiting = ["a"] * 100 + ["b"] * 3
    assert fairest(waiting, {}, 6) == [0, 100, 1, 101, 2, 102]


def test_who_has_used_much_waits_for_who_has_not() -> None:
    waiting = ["a"] * 100 + ["b"] * 20
    assert fairest(waiting, {"a": 10}, 10) == list(range(100, 110))
    assert fairest(waiting, {"a": 10}, 12) == [*range(100, 110), 0, 110]


def test_a_group_is_noisy_with_more_than_a_tenth() -> None:
    waiting = ["a", "b"]
    assert fairest(waiting, {"a": 10, "b": 0, "c": 90}, 1) == [0]
    assert fairest(waiting, {"a": 11, "b": 0, "c": 89}, 1) == [1]


def test_there_may_be_fewer_than_are_asked_for() -> None:
    assert fairest(["b", "a"], {}, 10) == [0, 1]
    assert fairest([], {}, 10) == []
