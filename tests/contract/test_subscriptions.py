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
        known.subscribe(tenant, kind, workflow, user)
    assert list(known.subscribed("acme", "paid", 10)) == [("bill", "tom"), ("ship", "mia")]
    assert list(known.subscribed("acme", "paid", 1)) == [("bill", "tom")]
    assert list(known.subscribed("acme", "paid#late", 10)) == [("remind", "tom")]


def test_a_repetition_changes_the_user_alone(stores: Stores) -> None:
    for user in ("mia", "mia", "tom"):
        stores.store.subscriptions.subscribe("acme", "paid", "ship", user)
    assert list(stores.store.subscriptions.subscribed("acme", "paid", 10)) == [("ship", "tom")]
