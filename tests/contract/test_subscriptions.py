"""Contract of `Subscriptions`."""

from __future__ import annotations

from tests.contract.stores import Stores


def test_the_workflows_of_a_type_are_found_by_name_and_no_others(stores: Stores) -> None:
    known = stores.store.subscriptions
    assert list(known.subscribed("acme", "paid", 10)) == []
    for tenant, kind, workflow, user in (
        ("acme", "paid", "ship", "mia"),
        ("acme", "paid", "bill", "tom"),
        ("acme", "paid#late", "remind", "tom"),
        ("globex", "paid", "other", "eve"),
    ):
        known.subscribe(tenant, kind, workflow, user, 1)
    assert list(known.subscribed("acme", "paid", 10)) == [("bill", "tom", 1), ("ship", "mia", 1)]
    assert list(known.subscribed("acme", "paid", 1)) == [("bill", "tom", 1)]
    assert list(known.subscribed("acme", "paid#late", 10)) == [("remind", "tom", 1)]


def test_a_repetition_changes_the_user_alone(stores: Stores) -> None:
    for user in ("mia", "mia", "tom"):
        stores.store.subscriptions.subscribe("acme", "paid", "ship", user, 1)
    assert list(stores.store.subscriptions.subscribed("acme", "paid", 10)) == [("ship", "tom", 1)]


def test_of_two_versions_the_later_one_counts_whatever_the_order(stores: Stores) -> None:
    known, place = stores.store.subscriptions, ("acme", "paid", "ship")

    def found() -> list[tuple[str, str, int]]:
        return list(known.subscribed("acme", "paid", 10))

    known.unsubscribe(*place, 3, LATER)
    known.subscribe(*place, "mia", 2)
    assert found() == [("ship", "mia", 2)], "what was not there cannot be given up"
    known.unsubscribe(*place, 2, LATER)
    known.unsubscribe(*place, 1, LATER)
    assert found() == [("ship", "mia", 2)]
    known.unsubscribe(*place, 3, LATER)
    known.unsubscribe(*place, 3, LATER)
    known.subscribe(*place, "tom", 2)
    assert found() == []
    known.subscribe(*place, "eve", 3)
    assert found() == [("ship", "eve", 3)]


def test_what_was_given_up_counts_towards_no_limit(stores: Stores) -> None:
    known = stores.store.subscriptions
    for number in range(30):
        known.subscribe("acme", "paid", f"w{number:02d}", "mia", 1)
        if number % 10:
            known.unsubscribe("acme", "paid", f"w{number:02d}", 2, LATER)
    assert [workflow for workflow, _, _ in known.subscribed("acme", "paid", 2)] == ["w00", "w10"]
    assert len(known.subscribed("acme", "paid", 100)) == 3


LATER = 4_000_000_000_000
