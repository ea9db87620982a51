"""Contract of `Log`: putting and reading heads."""

from __future__ import annotations

from baton.ports import Wake
from tests.contract.stores import OTHER, SAGA, Stores, a_head


def test_a_new_head_reads_back_as_it_was_written(stores: Stores) -> None:
    assert stores.log.create_head(a_head()) is None
    assert stores.log.read_head(SAGA) == a_head()


def test_a_head_keeps_every_field(stores: Stores) -> None:
    full = a_head(
        status="waiting",
        group="waiting",
        branch=3,
        folded=12,
        snapshot=8,
        owner="invocation-1",
        until=90_000,
        epoch=4,
        pending_wake=14,
        armed=70_000,
        wake=Wake(v=12, at=80_000, parent="T#acme#SAGA#parent", slot="guests/2"),
    )
    stores.log.create_head(full)
    assert stores.log.read_head(SAGA) == full


def test_a_head_without_a_start_and_not_due_keeps_that_too(stores: Stores) -> None:
    bare = a_head(start=b"", due_at=None)
    stores.log.create_head(bare)
    assert stores.log.read_head(SAGA) == bare


def test_a_start_of_many_kilobytes_comes_back_whole(stores: Stores) -> None:
    start = b'{"input":"' + b"two for eight o'clock " * 1000 + b'"}'
    stores.log.create_head(a_head(start=start))
    found = stores.log.read_head(SAGA)
    assert found is not None
    assert found.start == start


def test_a_saga_that_was_never_started_has_no_head(stores: Stores) -> None:
    stores.log.create_head(a_head(OTHER))
    assert stores.log.read_head(SAGA) is None


def test_creating_a_head_that_exists_returns_the_one_there_and_changes_nothing(stores: Stores) -> None:
    stores.log.create_head(a_head())
    assert stores.log.create_head(a_head(start_hash="other", user="eve")) == a_head()
    assert stores.log.read_head(SAGA) == a_head()


def test_the_head_returned_to_a_second_creator_is_the_present_one_not_the_first(stores: Stores) -> None:
    stores.log.create_head(a_head())
    stores.log.take(SAGA, "invocation-1", 90_000, 0, 93_000)
    there = stores.log.create_head(a_head())
    assert there is not None
    assert (there.owner, there.epoch) == ("invocation-1", 1)


def test_the_same_saga_id_of_two_tenants_is_two_sagas(stores: Stores) -> None:
    namesake = type(SAGA)(tenant="globex", id=SAGA.id)
    stores.log.create_head(a_head())
    assert stores.log.create_head(a_head(namesake, user="bob")) is None
    found = stores.log.read_head(namesake)
    assert found is not None
    assert found.user == "bob"
