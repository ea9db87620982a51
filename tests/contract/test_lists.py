"""Contract of `Log`: sagas by status, the latest change first, page by page."""

from __future__ import annotations

import pytest

from baton.ports import Listed, Place, SagaRef
from tests.contract.stores import SAGA, Stores, a_head, a_release
from tests.contract.test_due_index import of_one_shard


def listed(stores: Stores, group: str = "open", **options: object) -> list[Listed]:
    """All of shard 0, through as many pages as it takes."""
    found: list[Listed] = []
    after: Place | None = None
    for _ in range(50):
        asked: dict[str, object] = {"limit": 100, "after": after, **options}
        page, after = stores.log.listed("acme", group, 0, **asked)  # type: ignore[arg-type] # keywords of any kind
        found += page
        if after is None:
            return found
    raise AssertionError("the pages have no end")


def ids(rows: list[Listed]) -> list[str]:
    return [row.id for row in rows]


def finish(stores: Stores, ref: SagaRef, status: str, at: int) -> None:
    assert stores.log.take(ref, "me", 90_000, 0, 93_000) is not None
    end = a_release(status=status, group="done", group_at=at, due_at=None)
    assert stores.log.release(ref, "me", 1, end)


def test_a_new_saga_is_listed_as_open_with_what_a_list_shows(stores: Stores) -> None:
    (ref,) = of_one_shard(1)
    stores.log.create_head(a_head(ref))
    assert listed(stores) == [
        Listed(id=ref.id, workflow="dinner", status="running", user="ada", created=1_000, changed=1_000)
    ]
    assert listed(stores, "done") == listed(stores, "waiting") == []


def test_a_saga_is_listed_for_its_own_tenant_only(stores: Stores) -> None:
    (ref,) = of_one_shard(1)
    stores.log.create_head(a_head(SagaRef("rival", ref.id)))
    assert listed(stores) == []


def test_a_finished_saga_moves_to_the_other_list_with_its_status_and_moment(stores: Stores) -> None:
    (ref,) = of_one_shard(1)
    stores.log.create_head(a_head(ref))
    finish(stores, ref, "failed", 70_000)
    assert listed(stores) == []
    (row,) = listed(stores, "done")
    assert (row.status, row.changed, row.created) == ("failed", 70_000, 1_000)


def test_a_status_that_changes_inside_its_group_is_listed_and_keeps_its_place(stores: Stores) -> None:
    (ref,) = of_one_shard(1)
    stores.log.create_head(a_head(ref, status="pending"))
    stores.log.take(ref, "me", 90_000, 0, 93_000)
    stores.log.release(ref, "me", 1, a_release(status="running"))
    (row,) = listed(stores)
    assert (row.status, row.changed) == ("running", 1_000)


def test_the_latest_change_comes_first(stores: Stores) -> None:
    refs = of_one_shard(4)
    for ref, created in zip(refs, (30, 9, 1_000, 100), strict=True):
        stores.log.create_head(a_head(ref, created=created))
    assert ids(listed(stores)) == [refs[2].id, refs[3].id, refs[0].id, refs[1].id]
    assert ids(listed(stores, since=100)) == [refs[2].id, refs[3].id]


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_of_any_size_show_every_saga_once_even_those_of_one_millisecond(
    stores: Stores, limit: int
) -> None:
    refs = of_one_shard(7)
    for number, ref in enumerate(refs):
        stores.log.create_head(a_head(ref, created=500 if number < 5 else 600))
    found = ids(listed(stores, limit=limit))
    assert sorted(found) == sorted(ref.id for ref in refs)
    assert set(found[:2]) == {refs[5].id, refs[6].id}


def test_a_page_goes_on_from_a_saga_that_has_moved_since(stores: Stores) -> None:
    refs = of_one_shard(3)
    for number, ref in enumerate(refs):
        stores.log.create_head(a_head(ref, created=1_000 - number))
    first, place = stores.log.listed("acme", "open", 0, limit=1)
    assert [row.id for row in first] == [refs[0].id]
    finish(stores, refs[0], "completed", 70_000)
    rest, _ = stores.log.listed("acme", "open", 0, limit=5, after=place)
    assert [row.id for row in rest] == [refs[1].id, refs[2].id]


def test_a_filter_looks_at_no_more_than_asked_and_says_where_to_go_on(stores: Stores) -> None:
    refs = of_one_shard(4)
    for number, ref in enumerate(refs):
        workflow = "rare" if number == 3 else "dinner"
        stores.log.create_head(a_head(ref, created=1_000 - number, workflow=workflow))
    first, place = stores.log.listed("acme", "open", 0, limit=2, workflow="rare")
    assert not first
    assert place is not None
    second, _ = stores.log.listed("acme", "open", 0, limit=2, workflow="rare", after=place)
    assert [row.id for row in second] == [refs[3].id]
    assert ids(listed(stores, workflow="rare", status="running")) == [refs[3].id]
    assert listed(stores, workflow="rare", status="pending") == []


def test_the_sagas_of_one_user_are_listed(stores: Stores) -> None:
    refs = of_one_shard(2)
    for ref, user in zip(refs, ("ada", "bob"), strict=True):
        stores.log.create_head(a_head(ref, user=user))
    assert ids(listed(stores, user="bob")) == [refs[1].id]
    assert listed(stores, user="bob", workflow="rare") == []


def test_the_number_of_shards_is_known(stores: Stores) -> None:
    stores.log.create_head(a_head(SAGA))
    found = [
        row.id
        for shard in range(stores.log.limits.status_shards)
        for row in stores.log.listed("acme", "open", shard, limit=5)[0]
    ]
    assert found == [SAGA.id]


def test_sagas_at_work_are_counted_and_those_that_wait_or_have_ended_are_not(stores: Stores) -> None:
    refs = of_one_shard(5)
    for ref in refs:
        stores.log.create_head(a_head(ref))
    stores.log.create_head(a_head(SagaRef("rival", refs[0].id)))
    assert stores.log.at_work("acme", 0, 100) == 5
    assert stores.log.at_work("acme", 0, 3) == 3, "it does not look further"
    finish(stores, refs[0], "completed", 5_000)
    stores.log.take(refs[1], "me", 90_000, 0, 93_000)
    stores.log.release(refs[1], "me", 1, a_release(status="waiting", group="waiting", group_at=5_000))
    assert stores.log.at_work("acme", 0, 100) == 3
    assert stores.log.at_work("idle", 0, 100) == 0
