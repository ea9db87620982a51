"""The places of a process: of the sagas that want one, that with fewest is given the next."""

from __future__ import annotations

from baton.tools.perform import WANTED_FOR_S, Places

A1, A2, B1 = ("acme", "s1"), ("acme", "s2"), ("globex", "s1")


def full(most: int = 4) -> Places:
    """All of its places are a saga's."""
    places = Places(most)
    assert all(places.take(A1, 0) for _ in range(most))
    return places


def test_there_are_so_many_and_no_more() -> None:
    places = full()
    assert not places.take(A1, 0)
    places.give_back(A1)
    assert places.taken == 3
    assert places.take(A1, 0)


def test_a_place_that_is_given_back_is_for_the_tenant_that_has_fewer_and_was_refused() -> None:
    places = full()
    assert not places.take(B1, 0)
    places.give_back(A1)
    assert not any(places.take(who, 1) for who in (A1, A2, A1)), "whatever saga of the tenant asks before it"
    assert places.take(B1, 1)


def test_between_sagas_of_a_tenant_it_is_for_the_one_with_fewer() -> None:
    places = full()
    assert not places.take(A2, 0)
    places.give_back(A1)
    assert not places.take(A1, 1)
    assert places.take(A2, 1)


def test_in_the_end_each_tenant_has_its_half() -> None:
    places, now = full(10), 0.0
    held = {A1: 10, B1: 0}
    for _ in range(8):
        for who in (B1, A1, A1, A1):
            now += 0.01
            held[who] += places.take(who, now)
        places.give_back(A1)
        held[A1] -= 1
    assert held[B1] in (5, 6)


def test_who_was_refused_and_does_not_ask_again_keeps_no_place_free() -> None:
    places = full()
    assert not places.take(B1, 0)
    places.give_back(A1)
    assert not places.take(A1, WANTED_FOR_S - 0.1)
    assert places.take(A1, WANTED_FOR_S)


def test_a_saga_that_is_gone_is_forgotten() -> None:
    places = Places(2)
    assert places.take(A1, 0)
    places.give_back(A1)
    assert not places._sagas
    assert not places._tenants
