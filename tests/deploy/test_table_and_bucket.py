"""Table and bucket: keys, indexes, stream, expiry, and what protects them."""

from __future__ import annotations

from typing import Any

from baton.adapters.dynamo.items import DUE_INDEX, STATUS_INDEX
from tests.deploy.stack import stack

TABLE = stack().properties("SagaTable")


def keys(of: dict[str, Any]) -> list[tuple[str, str]]:
    return [(key["AttributeName"], key["KeyType"]) for key in of["KeySchema"]]


def test_the_table_has_the_keys_of_the_design() -> None:
    assert keys(TABLE) == [("pk", "HASH"), ("sk", "RANGE")]
    types = {a["AttributeName"]: a["AttributeType"] for a in TABLE["AttributeDefinitions"]}
    assert types == {"pk": "S", "sk": "S", "due_shard": "S", "due_at": "N", "st_key": "S", "st_at": "N"}


def test_the_due_index_holds_keys_only() -> None:
    (index,) = (i for i in TABLE["GlobalSecondaryIndexes"] if i["IndexName"] == DUE_INDEX)
    assert keys(index) == [("due_shard", "HASH"), ("due_at", "RANGE")]
    assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}


def test_the_status_index_holds_what_a_list_shows() -> None:
    (index,) = (i for i in TABLE["GlobalSecondaryIndexes"] if i["IndexName"] == STATUS_INDEX)
    assert keys(index) == [("st_key", "HASH"), ("st_at", "RANGE")]
    assert index["Projection"]["ProjectionType"] == "INCLUDE"
    assert set(index["Projection"]["NonKeyAttributes"]) == {"wf", "user", "created", "st"}


def test_there_is_no_third_index() -> None:
    assert len(TABLE["GlobalSecondaryIndexes"]) == 2
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


def test_the_bucket_removes_what_no_saga_can_read_and_no_value_by_its_age() -> None:
    (rule,) = stack().properties("BlobBucket")["LifecycleConfiguration"]["Rules"]
    assert rule.pop("Id")
    assert rule == {
        "Status": "Enabled",
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
        "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
    }


def test_deleting_the_stack_deletes_no_sagas() -> None:
    for logical_id in ("SagaTable", "BlobBucket"):
        resource = stack().template.resources[logical_id]
        assert resource["DeletionPolicy"] == resource["UpdateReplacePolicy"] == "Retain"
