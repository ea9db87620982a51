"""Contracts of `Entities` and `Objects`, in memory and on AWS."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from baton.adapters.aws import Aws
from baton.adapters.dynamo.effects import DynamoEntities
from baton.adapters.memory.outside import MemoryEntities, MemoryObjects
from baton.adapters.s3 import S3Objects
from baton.ports.outside import KEYS_KEPT, Entities, Entity, Objects, Written
from tests.contract.conftest import EMBEDDED, MOTO
from tests.contract.toy_store import ToyStore
from tests.kit.table import create_bucket, create_table

_numbers = itertools.count(1)


class Kept(NamedTuple):
    entities: Entities
    objects: Objects


def on_aws(aws: Aws) -> Kept:
    name = f"outside-{next(_numbers)}"
    create_table(aws.dynamodb, name)
    create_bucket(aws.s3, name)
    return Kept(DynamoEntities(aws.dynamodb, name), S3Objects(aws.s3, name))


def backend(name: str, request: pytest.FixtureRequest) -> Kept:
    if name == "memory":
        return Kept(MemoryEntities(), MemoryObjects())
    if name == "toy":
        return Kept(ToyStore().entities, MemoryObjects())
    aws = request.getfixturevalue("moto_aws") if name == "moto" else Aws(request.getfixturevalue("ministack"))
    return on_aws(aws)


@pytest.fixture(params=["memory", "toy", MOTO, EMBEDDED])
def kept(request: pytest.FixtureRequest) -> Kept:
    return backend(request.param, request)


@pytest.fixture(params=["memory", "toy", EMBEDDED])
def concurrent(request: pytest.FixtureRequest) -> Kept:
    """Without moto, whose conditional writes are not atomic under threads."""
    return backend(request.param, request)


# ---- entities ------------------------------------------------------------------------------------------------


def put(entities: Entities, data: Any, key: str, expected: int | None = None) -> Written:
    return entities.put("acme", "order", "o-1", data, key=key, expected=expected)


def test_a_write_counts_the_version_up_and_its_repetition_changes_nothing(kept: Kept) -> None:
    entities = kept.entities
    assert entities.get("acme", "order", "o-1") is None
    assert put(entities, {"n": 1}, "a") == Written(version=1, is_new=True)
    assert put(entities, {"n": 2}, "a") == Written(version=1)
    assert put(entities, {"n": 2}, "b") == Written(version=2, is_new=True)
    found = entities.get("acme", "order", "o-1")
    assert found is not None
    assert (found.version, found.data) == (2, {"n": 2})


def test_a_repetition_that_comes_late_does_not_undo_what_came_after_it(kept: Kept) -> None:
    for number, key in enumerate("abc", start=1):
        put(kept.entities, number, key)
    assert [put(kept.entities, 0, key).version for key in "abc"] == [1, 2, 3]
    found = kept.entities.get("acme", "order", "o-1")
    assert found is not None
    assert (found.version, found.data) == (3, 3)


def test_a_write_that_expects_another_version_is_refused(kept: Kept) -> None:
    entities = kept.entities
    assert put(entities, 1, "a", expected=1) == Written(version=0, conflict=True)
    assert put(entities, 1, "b", expected=0) == Written(version=1, is_new=True)
    assert put(entities, 2, "c", expected=0) == Written(version=1, conflict=True)
    assert put(entities, 2, "d", expected=1) == Written(version=2, is_new=True)
    assert put(entities, 2, "d", expected=1) == Written(version=2), "its own repetition is no conflict"
    assert put(entities, 3, "c", expected=2) == Written(version=3, is_new=True), (
        "what was refused was not done"
    )


def test_keys_are_forgotten_half_at_a_time_and_versions_stay_right(kept: Kept) -> None:
    for number in range(KEYS_KEPT + 4):
        assert put(kept.entities, number, f"k{number}").version == number + 1
    assert put(kept.entities, 0, f"k{KEYS_KEPT + 3}") == Written(version=KEYS_KEPT + 4)
    assert put(kept.entities, 0, f"k{KEYS_KEPT // 2}") == Written(version=KEYS_KEPT // 2 + 1)
    assert put(kept.entities, 0, "k0").is_new


def keep(entities: Entities, data: Any, key: str) -> Written:
    return entities.put("acme", "order", "o-1", data, key=key, keeps_before=True)


NOTHING = Entity(version=0, data=None)


def test_what_a_write_replaces_is_given_by_it_and_by_its_repetition_until_another_comes(kept: Kept) -> None:
    entities = kept.entities
    assert keep(entities, {"n": 1}, "a") == Written(version=1, is_new=True, before=NOTHING)
    assert keep(entities, 7, "a") == Written(version=1, before=NOTHING)
    first = Entity(version=1, data={"n": 1})
    assert keep(entities, None, "b") == Written(version=2, is_new=True, before=first)
    assert keep(entities, 7, "b") == Written(version=2, before=first)
    assert keep(entities, 7, "a") == Written(version=1), "lost by now"
    assert keep(entities, 3, "c").before == Entity(version=2, data=None), "null is a value"
    assert put(entities, 4, "d") == Written(version=4, is_new=True)
    assert put(entities, 4, "d") == Written(version=4), "not kept, and nothing older in its place"


def test_a_deleted_entity_is_not_there_and_its_late_writes_are_known(kept: Kept) -> None:
    entities = kept.entities
    keep(entities, 1, "a")
    assert entities.delete("acme", "order", "o-1", key="x", expected=2) == Written(version=1, conflict=True)
    assert entities.delete("acme", "order", "o-1", key="b", expected=1) == Written(version=2, is_new=True)
    assert entities.delete("acme", "order", "o-1", key="b", expected=1) == Written(version=2)
    assert entities.get("acme", "order", "o-1") is None
    assert keep(entities, 1, "a").is_new is False
    assert entities.get("acme", "order", "o-1") is None, "the first write comes late, and brings nothing back"
    assert put(entities, 2, "c", expected=2) == Written(version=0, conflict=True)
    assert entities.put("acme", "order", "o-1", 2, key="d", expected=0, keeps_before=True) == Written(
        version=3, is_new=True, before=NOTHING
    )


def test_what_was_never_there_is_not_deleted(kept: Kept) -> None:
    assert kept.entities.delete("acme", "order", "o-1", key="a", expected=1) == Written(
        version=0, conflict=True
    )
    assert kept.entities.get("acme", "order", "o-1") is None


@pytest.mark.parametrize("data", [None, [1, "x", {"a": [None, True, 1.5]}], "ü" * 40_000, {"a" * 300: 2**60}])
def test_any_json_comes_back_as_it_was(kept: Kept, data: Any) -> None:
    put(kept.entities, data, "a")
    found = kept.entities.get("acme", "order", "o-1")
    assert found is not None
    assert found.data == data


def test_entities_belong_to_their_tenant_type_and_id(kept: Kept) -> None:
    put(kept.entities, 1, "a")
    for where in (("globex", "order", "o-1"), ("acme", "bill", "o-1"), ("acme", "order", "o-2")):
        assert kept.entities.get(*where) is None
        assert kept.entities.put(*where, 1, key="a") == Written(version=1, is_new=True)


def test_of_writes_at_the_same_time_each_gets_a_version_of_its_own(concurrent: Kept) -> None:
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: put(concurrent.entities, n, f"k{n % 20}"), range(40)))
    assert sorted(one.version for one in done if one.is_new) == list(range(1, 21))
    assert sorted(one.version for one in done) == sorted([*range(1, 21)] * 2)


def test_of_writes_that_expect_the_same_version_one_is_done(concurrent: Kept) -> None:
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: put(concurrent.entities, n, f"k{n}", expected=0), range(8)))
    assert sorted((one.is_new, one.conflict) for one in done) == [(False, True)] * 7 + [(True, False)]


# ---- objects -------------------------------------------------------------------------------------------------


def test_content_is_written_once_under_its_name_and_hash(kept: Kept) -> None:
    first = kept.objects.put("acme", "reports/march.txt", b"soup", "text/plain")
    again = kept.objects.put("acme", "reports/march.txt", b"soup", "text/plain")
    other = kept.objects.put("acme", "reports/march.txt", b"salad", "text/plain")
    assert (first.is_new, again.is_new, other.is_new) == (True, False, True)
    assert (first.ref, first.size) == (again.ref, 4)
    assert first.ref.endswith(f"T/acme/objects/reports/march.txt.{first.sha256}")
    assert kept.objects.get("acme", "reports/march.txt", first.sha256) == b"soup"
    assert kept.objects.get("acme", "reports/march.txt", other.sha256) == b"salad"


def test_a_repetition_with_the_key_of_the_call_that_has_written_content_has_written_it(kept: Kept) -> None:
    def is_new(key: str, data: bytes = b"soup") -> bool:
        return kept.objects.put("acme", "a", data, "text/plain", key=key).is_new

    assert [is_new(key) for key in ("k1", "k1", "k2", "", "k1")] == [True, True, False, False, True]
    assert is_new("", b"salad")
    assert [is_new(key, b"salad") for key in ("", "k1")] == [False, False]


def test_an_object_that_is_deleted_is_gone_and_may_be_put_again(kept: Kept) -> None:
    made = kept.objects.put("acme", "a", b"soup", "text/plain")
    for tenant in ("globex", "acme", "acme"):
        kept.objects.delete(tenant, "a", made.sha256)
    assert kept.objects.get("acme", "a", made.sha256) is None
    assert kept.objects.put("acme", "a", b"soup", "text/plain").is_new


def test_objects_belong_to_their_tenant(kept: Kept) -> None:
    made = kept.objects.put("acme", "a", b"soup", "text/plain")
    assert kept.objects.get("globex", "a", made.sha256) is None
    assert kept.objects.put("globex", "a", b"soup", "text/plain").is_new


def test_of_puts_at_the_same_time_one_writes(concurrent: Kept) -> None:
    def write(_: int) -> bool:
        return concurrent.objects.put("acme", "a", b"soup", "text/plain").is_new

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(8))) == 1
