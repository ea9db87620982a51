"""Contract of labels on heads: they are there from the start to the end, and lists find them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.ports import Head, Release, SagaRef
from tests.contract.stores import SHARDS, Stores

NOW = 1_790_000_000_000
MODELS = {"m": (5, 6, 7)}
TRICKY = 'x":"4711'


def head(id: str, **labels: str) -> Head:
    return Head(
        ref=SagaRef("acme", id),
        workflow="w",
        graph="g",
        user="ann",
        created=NOW,
        start_hash="h",
        due_at=NOW,
        labels=labels,
    )


def found(stores: Stores, group: str = "open", **labels: str) -> list[str]:
    rows = (
        row
        for shard in range(SHARDS)
        for row in stores.log.listed("acme", group, shard, limit=100, labels=labels)[0]
    )
    return sorted(row.id for row in rows)


def test_a_head_keeps_its_labels_and_lists_find_them(stores: Stores) -> None:
    for one in (
        head("s1", customer="4711", team="a"),
        head("s2", customer="4711"),
        head("s3"),
        head("s4", team="a"),
    ):
        assert stores.log.create_head(one) is None
        assert stores.log.read_head(one.ref) == one
    assert found(stores) == ["s1", "s2", "s3", "s4"]
    assert found(stores, customer="4711") == ["s1", "s2"]
    assert found(stores, customer="4711", team="a") == ["s1"]
    assert found(stores, customer="471") == found(stores, ustomer="4711") == found(stores, team="b") == []


@pytest.mark.parametrize("value", [TRICKY, "\\", "Ü", '"', "a:b"])
def test_a_value_is_found_as_a_whole_and_in_no_other(stores: Stores, value: str) -> None:
    stores.log.create_head(head("s1", customer=value))
    stores.log.create_head(head("s2", note=f'{value}","customer":"4711'))
    assert found(stores, customer=value) == ["s1"]
    assert found(stores, customer="4711") == []


def test_a_release_leaves_them_also_when_it_says_what_models_have_cost(stores: Stores) -> None:
    one = head("s1", customer="4711")
    stores.log.create_head(one)
    assert stores.log.take(one.ref, "w", NOW + 9, 0, NOW + 9) is not None
    release = Release(
        folded=3,
        status="completed",
        group="done",
        group_at=NOW + 1,
        branch=0,
        snapshot=0,
        due_at=None,
        armed=0,
        models=MODELS,
        labels=one.labels,
    )
    assert stores.log.release(one.ref, "w", 1, release)
    there = stores.log.read_head(one.ref)
    assert there is not None
    assert (there.labels, there.models) == (one.labels, MODELS)
    assert found(stores, "done", customer="4711") == ["s1"]
    (row,) = [r for shard in range(SHARDS) for r in stores.log.listed("acme", "done", shard, limit=9)[0]]
    assert (row.labels, row.models) == (one.labels, MODELS)
    assert replace(there, labels={}) != there
