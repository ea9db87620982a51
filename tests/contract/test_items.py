"""How items are stored, byte by byte: what other programs, old logs and the relay's filter rely on."""

from __future__ import annotations

from typing import Any

import pytest

from baton.adapters.aws import Aws
from baton.adapters.dynamo.definitions import DynamoDefinitions
from baton.adapters.dynamo.items import ATTRIBUTES, head_item, head_of, image_wake, names_in
from baton.adapters.dynamo.log import DynamoLog
from baton.core.log.codec import decode_entry
from baton.errors import CorruptLog, PoisonMessage
from baton.ports import SagaRef, Wake
from tests.contract.stores import SAGA, SHARDS, a_definition, a_head, a_release, an_entry
from tests.kit.table import create_table, table_properties

PK = "T#acme#SAGA#dinner-1"


@pytest.fixture
def table(moto_aws: Aws) -> Aws:
    create_table(moto_aws.dynamodb, "sagas")
    return moto_aws


@pytest.fixture
def log(table: Aws) -> DynamoLog:
    return DynamoLog(table.dynamodb, "sagas", SHARDS)


def stored(aws: Aws, pk: str, sk: str) -> dict[str, Any]:
    return dict(aws.dynamodb.get_item(TableName="sagas", Key={"pk": {"S": pk}, "sk": {"S": sk}})["Item"])


def test_a_new_head_is_stored_with_exactly_these_attributes(table: Aws, log: DynamoLog) -> None:
    log.create_head(a_head())
    assert stored(table, PK, "HEAD") == {
        "pk": {"S": PK},
        "sk": {"S": "HEAD"},
        "wf": {"S": "dinner"},
        "gh": {"S": "9f86d081"},
        "user": {"S": "ada"},
        "created": {"N": "1000"},
        "start": {"B": b'{"kind":"saga.started"}'},
        "start_hash": {"S": "2c26b46b"},
        "st": {"S": "running"},
        "st_key": {"S": "T#acme#open#02"},
        "st_at": {"N": "1000"},
        "br": {"N": "0"},
        "folded": {"N": "0"},
        "epoch": {"N": "0"},
        "due_shard": {"S": "DUE#work#002"},
        "due_at": {"N": "61000"},
    }


def test_a_held_head_has_owner_until_and_nudge_and_a_free_one_has_none_of_them(
    table: Aws, log: DynamoLog
) -> None:
    log.create_head(a_head())
    log.take(SAGA, "me", 90_000, 0, 93_000)
    log.leave_wake(SAGA, "me", 1, 4)
    held = stored(table, PK, "HEAD")
    assert (held["owner"], held["until"], held["nudge"]) == ({"S": "me"}, {"N": "90000"}, {"N": "4"})
    log.release(SAGA, "me", 1, a_release(folded=4))
    assert not {"owner", "until", "nudge", "start", "wake"} & stored(table, PK, "HEAD").keys()


def test_a_finished_head_is_in_the_status_index_under_done_and_in_no_due_index(
    table: Aws, log: DynamoLog
) -> None:
    log.create_head(a_head())
    log.take(SAGA, "me", 90_000, 0, 93_000)
    log.release(SAGA, "me", 1, a_release(status="completed", group="done", group_at=70_000, due_at=None))
    head = stored(table, PK, "HEAD")
    assert (head["st"], head["st_key"], head["st_at"]) == (
        {"S": "completed"},
        {"S": "T#acme#done#02"},
        {"N": "70000"},
    )
    assert "due_at" not in head


def test_taking_and_releasing_do_not_touch_the_status_index(table: Aws, log: DynamoLog) -> None:
    log.create_head(a_head())
    log.take(SAGA, "me", 90_000, 0, 93_000)
    log.release(SAGA, "me", 1, a_release(status="running"))
    head = stored(table, PK, "HEAD")
    assert (head["st_key"], head["st_at"]) == ({"S": "T#acme#open#02"}, {"N": "1000"})


def test_an_entry_is_stored_under_its_branch_and_version_with_its_wake_as_text(
    table: Aws, log: DynamoLog
) -> None:
    log.append(SAGA, an_entry(7, b'{"a":1}', branch=2), Wake(v=7))
    assert stored(table, PK, "LOG#0002#0000000007") == {
        "pk": {"S": PK},
        "sk": {"S": "LOG#0002#0000000007"},
        "d": {"B": b'{"a":1}'},
        "wake": {"S": '{"v":7}'},
    }


def test_a_wake_names_its_moment_and_parent_only_when_it_has_them(table: Aws, log: DynamoLog) -> None:
    log.append(SAGA, an_entry(7), Wake(v=7, at=9_000, parent="T#acme#SAGA#p", slot="guests/2"))
    entry = stored(table, PK, "LOG#0000#0000000007")
    assert entry["wake"] == {"S": '{"v":7,"at":9000,"parent":"T#acme#SAGA#p","slot":"guests/2"}'}


def test_a_snapshot_is_stored_beside_the_log(table: Aws, log: DynamoLog) -> None:
    log.put_snapshot(SAGA, an_entry(8, b'{"state":8}', branch=1))
    assert stored(table, PK, "SNAP#0001#0000000008")["d"] == {"B": b'{"state":8}'}


def test_a_definition_is_stored_under_its_version_and_its_name_in_the_tenants_list(table: Aws) -> None:
    DynamoDefinitions(table.dynamodb, "sagas").put(a_definition(version=3))
    assert stored(table, "T#acme#WF#dinner", "V#000003") == {
        "pk": {"S": "T#acme#WF#dinner"},
        "sk": {"S": "V#000003"},
        "gh": {"S": "9f86d081"},
        "doc": {"S": "cas://sha256/00"},
        "created": {"N": "1000"},
        "by": {"S": "ada"},
    }
    assert stored(table, "T#acme#WF", "dinner")


def test_every_key_of_the_templates_table_is_an_attribute_that_is_written() -> None:
    declared = {attribute["AttributeName"] for attribute in table_properties()["AttributeDefinitions"]}
    projected = {
        name
        for index in table_properties()["GlobalSecondaryIndexes"]
        for name in index["Projection"].get("NonKeyAttributes", [])
    }
    assert declared | projected <= ATTRIBUTES.keys()


def test_an_expression_cannot_name_an_attribute_that_the_table_does_not_have() -> None:
    assert names_in("SET #owner = :o", "#until <= :now") == {"#owner": "owner", "#until": "until"}
    with pytest.raises(KeyError, match="ownr"):
        names_in("SET #ownr = :o")


# -- what no version of ours has written


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("wf", None),
        ("pk", {"S": "T#acme"}),
        ("st_key", {"S": "open"}),
        ("epoch", {"N": "1.5"}),
        ("wake", {"S": "soon"}),
        ("wake", {"S": "{}"}),
        ("start", {"B": b"x\x9cgarbage"}),
    ],
)
def test_a_head_that_cannot_be_read_is_a_corrupt_log(
    table: Aws, log: DynamoLog, attribute: str, value: Any
) -> None:
    item: dict[str, Any] = dict(head_item(a_head(), log.limits))
    if value is None:
        del item[attribute]
    else:
        item[attribute] = value
    with pytest.raises(CorruptLog, match="head"):
        head_of(item)


@pytest.mark.parametrize("item", [{}, {"d": {"S": "{}"}}, {"d": {"B": b"garbage"}}])
def test_an_entry_that_cannot_be_read_keeps_its_place_and_does_not_decode(
    table: Aws, log: DynamoLog, item: dict[str, Any]
) -> None:
    key = {"pk": {"S": PK}, "sk": {"S": "LOG#0000#0000000001"}}
    table.dynamodb.put_item(TableName="sagas", Item=key | item)
    (record,) = log.read_tail(SAGA, 0, 0)
    assert (record.branch, record.version) == (0, 1)
    with pytest.raises(CorruptLog):
        decode_entry(record.data)


def test_a_definition_that_cannot_be_read_is_a_corrupt_log(table: Aws) -> None:
    table.dynamodb.put_item(
        TableName="sagas", Item={"pk": {"S": "T#acme#WF#dinner"}, "sk": {"S": "V#000001"}}
    )
    with pytest.raises(CorruptLog, match="dinner"):
        DynamoDefinitions(table.dynamodb, "sagas").get("acme", "dinner")


def test_a_stream_image_gives_its_saga_and_its_wake() -> None:
    image = {"pk": {"S": PK}, "sk": {"S": "HEAD"}, "wake": {"S": '{"v":7,"later":true}'}}
    assert image_wake(image) == (SagaRef(tenant="acme", id="dinner-1"), Wake(v=7))


@pytest.mark.parametrize(
    "image",
    [
        {},
        {"pk": {"S": PK}},
        {"pk": {"S": "DUE"}, "wake": {"S": '{"v":7}'}},
        {"pk": {"S": PK}, "wake": {"S": "{"}},
        {"pk": {"S": PK}, "wake": {"S": '{"v":"seven"}'}},
        {"pk": {"S": PK}, "wake": "soon"},
    ],
)
def test_an_image_without_a_readable_wake_is_poison(image: dict[str, Any]) -> None:
    with pytest.raises(PoisonMessage):
        image_wake(image)
