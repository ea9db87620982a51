"""Table and bucket: keys, indexes, stream, expiry, and what protects them."""

from __future__ import annotations

from typing import Any

from baton.adapters.dynamo.items import DUE_INDEX, INBOX_INDEX, STATUS_INDEX
from baton.ports.log import period_of
from tests.deploy.stack import stack

TABLE = stack().properties("SagaTable")


def keys(of: dict[str, Any]) -> list[tuple[str, str]]:
    return [(key["AttributeName"], key["KeyType"]) for key in of["KeySchema"]]


def test_the_table_has_the_keys_of_the_design() -> None:
    assert keys(TABLE) == [("pk", "HASH"), ("sk", "RANGE")]
    types = {a["AttributeName"]: a["AttributeType"] for a in TABLE["AttributeDefinitions"]}
    indexed = {"due_shard": "S", "due_at": "N", "st_key": "S", "st_at": "N", "ask_key": "S", "ask_at": "N"}
    assert types == {"pk": "S", "sk": "S", **indexed}


def test_the_due_index_holds_keys_only() -> None:
    (index,) = (i for i in TABLE["GlobalSecondaryIndexes"] if i["IndexName"] == DUE_INDEX)
    assert keys(index) == [("due_shard", "HASH"), ("due_at", "RANGE")]
    assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}


def test_the_status_index_holds_what_a_list_shows() -> None:
    (index,) = (i for i in TABLE["GlobalSecondaryIndexes"] if i["IndexName"] == STATUS_INDEX)
    assert keys(index) == [("st_key", "HASH"), ("st_at", "RANGE")]
    assert index["Projection"]["ProjectionType"] == "INCLUDE"
    assert set(index["Projection"]["NonKeyAttributes"]) == {
        *("wf", "user", "created", "st", "ttl"),
        *("labels", "parent", "code"),
    }


def test_the_inbox_index_holds_what_a_list_of_questions_shows() -> None:
    (index,) = (i for i in TABLE["GlobalSecondaryIndexes"] if i["IndexName"] == INBOX_INDEX)
    assert keys(index) == [("ask_key", "HASH"), ("ask_at", "RANGE")]
    assert index["Projection"] == {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["d"]}


def test_there_is_no_fourth_index() -> None:
    assert len(TABLE["GlobalSecondaryIndexes"]) == 3
    assert "LocalSecondaryIndexes" not in TABLE


def test_the_table_is_paid_by_use_streams_new_images_and_expires_by_ttl() -> None:
    assert TABLE["BillingMode"] == "PAY_PER_REQUEST"
    assert TABLE["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}
    assert TABLE["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}


def test_the_table_can_be_restored_and_is_encrypted() -> None:
    assert TABLE["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert TABLE["SSESpecification"] == {"SSEEnabled": True}


def test_the_bucket_is_private_encrypted_and_keeps_no_versions() -> None:
    bucket = stack().properties("BlobBucket")
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    assert "VersioningConfiguration" not in bucket


def test_the_bucket_removes_what_no_saga_can_read() -> None:
    unread, *_ = stack().properties("BlobBucket")["LifecycleConfiguration"]["Rules"]
    assert unread.pop("Id")
    assert unread == {
        "Status": "Enabled",
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
        "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
    }


def test_the_bucket_deletes_values_after_the_days_that_their_names_begin_with_and_documents_never() -> None:
    _, *rules = stack().properties("BlobBucket")["LifecycleConfiguration"]["Rules"]
    kept = {rule["Prefix"]: rule["ExpirationInDays"] for rule in rules if rule["Status"] == "Enabled"}
    assert len(rules) == len(kept)
    assert not any("T/".startswith(prefix) or prefix.startswith("T/") for prefix in kept)
    longest = 2 * 3_650 * 86_400_000
    for days in range(1, longest // 86_400_000 + 1, 7):
        name = period_of(0, days * 86_400_000).partition("d")[0]
        assert kept[f"{name}d/"] == int(name) >= days


def test_deleting_the_stack_deletes_no_sagas() -> None:
    for logical_id in ("SagaTable", "BlobBucket"):
        resource = stack().template.resources[logical_id]
        assert resource["DeletionPolicy"] == resource["UpdateReplacePolicy"] == "Retain"


def test_table_and_indexes_are_warmed_as_far_as_is_said() -> None:
    def warmed(**parameters: str) -> list[object]:
        table = stack(**parameters).properties("SagaTable")
        return [one.get("WarmThroughput") for one in (table, *table["GlobalSecondaryIndexes"])]

    assert warmed() == [None] * 4
    both = {"ReadUnitsPerSecond": "12000", "WriteUnitsPerSecond": "40000"}
    assert warmed(WarmReads="12000", WarmWrites="40000") == [both] * 4
