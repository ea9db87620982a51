"""Sagas in DynamoDB and S3 that are damaged as it was seen: shown, diagnosed, repaired over HTTP, and run on by a worker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.handlers.deployment import Deployment, Item
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, ECHO, begin
from tests.handlers.workers import Worker

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
SAGA = f"/sagas/{ADA.id}"
HEAD: Item = {"pk": {"S": str(ADA)}, "sk": {"S": "HEAD"}}


def not_due(deployment: Deployment) -> None:
    deployment.dynamodb.update_item(TableName=deployment.table, Key=HEAD, UpdateExpression="REMOVE due_at")


def graph_lost(deployment: Deployment) -> None:
    bucket, name = deployment.name("BlobBucket"), deployment.head(ADA).graph
    for one in deployment._s3.list_objects_v2(Bucket=bucket)["Contents"]:
        if name in one["Key"]:
            deployment._s3.delete_object(Bucket=bucket, Key=one["Key"])


def unreadable_entries(deployment: Deployment) -> None:
    place: Item = {"pk": {"S": str(ADA)}, "sk": {"S": "LOG#0000#0000000002"}}
    deployment.dynamodb.put_item(TableName=deployment.table, Item={**place, "d": {"B": b"\x00\x01"}})


@pytest.mark.parametrize("damage", [not_due, graph_lost, unreadable_entries])
def test_a_damaged_saga_is_shown_diagnosed_and_repaired(
    damage: Callable[[Deployment], None],
    http: Http,
    worker: Worker,
    deployment: Deployment,
) -> None:
    begin(http.engine, ADA, ECHO)
    damage(deployment)
    code = damage.__name__
    found = http.get(f"{SAGA}/diagnosis")
    assert (found.status, [one["code"] for one in found.body["findings"]]) == (200, [code])
    if damage is unreadable_entries:
        assert http.get(SAGA).body["unreadable"]["first"] == 2
        assert [one["first"] for one in http.get(f"{SAGA}/events").body["unreadable"]] == [2]
        http.post(f"{SAGA}/cancel").problem(409, "not-allowed-now")
    repaired = http.post(f"{SAGA}/diagnosis")
    assert repaired.status == 202
    assert [one["code"] for one in repaired.body["repaired"]] == [code]
    assert repaired.body["findings"] == []
    assert worker.wake(ADA) == []
    assert deployment.head(ADA).status == "completed"
    replayed = http.get(f"{SAGA}/replay")
    assert (replayed.status, replayed.body["divergence"]) == (200, None)


def test_a_damaged_head_is_named_and_left_to_a_person(
    http: Http, worker: Worker, deployment: Deployment
) -> None:
    begin(http.engine, ADA, ECHO)
    deployment.dynamodb.update_item(TableName=deployment.table, Key=HEAD, UpdateExpression="REMOVE wf")
    found = http.post(f"{SAGA}/diagnosis").body
    assert [(one["code"], one["repairable"]) for one in found["findings"]] == [("unreadable_head", False)]


@pytest.mark.parametrize("lost", ["due_shard", "due_at", "due_shard, due_at"])
def test_a_head_without_its_place_in_the_index_gets_one(
    lost: str, http: Http, worker: Worker, deployment: Deployment
) -> None:
    begin(http.engine, ADA, ECHO)
    deployment.dynamodb.update_item(TableName=deployment.table, Key=HEAD, UpdateExpression=f"REMOVE {lost}")
    assert http.get(SAGA).status == 200
    found = http.get(f"{SAGA}/diagnosis").body
    assert [(one["code"], one["repairable"]) for one in found["findings"]] == [("not_due", True)]
    assert http.post(f"{SAGA}/diagnosis").status in (200, 202)
    assert http.get(f"{SAGA}/diagnosis").body["findings"] == []
    assert deployment.head(ADA).due_at is not None
    assert deployment.head(ADA).lane == "work"
