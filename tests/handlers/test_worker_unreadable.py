"""A log that this version cannot read: refused loudly, and the saga left as it was for one that can."""

from __future__ import annotations

import json
import logging
import zlib
from typing import Any

import pytest

from baton.ports.log import unpack
from tests.handlers.deployment import Deployment, Interference, Item, throttled
from tests.handlers.pauses import Pauses
from tests.handlers.sagas import ADA, ECHO, GRACE, PARTY, begin
from tests.handlers.workers import Worker

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
ENTRY = {"format": 1, "version": 2, "at": 1_767_225_600_000, "invocation": "newer", "events": []}
UNKNOWN_KIND = ENTRY | {"events": [{"kind": "budget_reserved", "dollars": 1}]}
NEWER_FORMAT = ENTRY | {"format": 2, "events": [{"kind": "step_succeeded", "node": "say"}]}
# What taking and giving back a lease may change: who holds it, how often it was taken, when it is due.
HALF_AN_HOUR = 1_800_000
OF_THE_LEASE = {"epoch", "due_at", "owner", "until", "nudge", "wake"}

UNREADABLE = {
    "an unknown kind": (UNKNOWN_KIND, "UnknownEntry: ", "budget_reserved"),
    "a newer format": (NEWER_FORMAT, "UnknownEntry: ", "format 2"),
    "another place": (ENTRY | {"version": 7}, "CorruptLog: ", "cannot follow"),
    "fields missing": ({"format": 1, "version": 2}, "CorruptLog: ", "does not decode"),
}


def put(deployment: Deployment, data: Any) -> None:
    """An entry 2 that this version did not write, as the table would hold it."""
    stored = data if isinstance(data, bytes) else json.dumps(data).encode()
    item: Item = {"pk": {"S": str(ADA)}, "sk": {"S": "LOG#0000#0000000002"}, "d": {"B": stored}}
    deployment.dynamodb.put_item(TableName=deployment.table, Item=item)


def without_lease(items: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    head = {name: value for name, value in items["HEAD"].items() if name not in OF_THE_LEASE}
    return items | {"HEAD": head}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_saga_that_cannot_be_read_is_left_as_it_was_and_said_aloud(
    what: str, worker: Worker, deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    data, kind, says = UNREADABLE[what]
    begin(worker.engine, ADA, PARTY)
    begin(worker.engine, GRACE, ECHO)
    put(deployment, data)
    before = deployment.saga_items(ADA)
    with caplog.at_level(logging.ERROR, logger="baton"):
        assert worker.wake(ADA, GRACE) == []
    assert without_lease(deployment.saga_items(ADA)) == without_lease(before)
    head = deployment.head(ADA)
    assert (head.owner, head.until, head.pending_wake) == ("", 0, 0)
    assert head.due_at is not None  # the reconciler looks again
    ((body, reason),) = deployment.dead_letters()
    assert json.loads(body)["saga"] == str(ADA)
    assert reason.startswith(kind)
    assert says in reason
    assert any(getattr(record, "saga", "") == str(ADA) for record in caplog.records)
    assert deployment.head(GRACE).status == "completed"


@pytest.mark.parametrize("stored", [b"{", b"\x00\x01\x02"], ids=["no JSON", "no text"])
def test_what_no_release_has_written_is_left_behind_in_a_new_branch(
    stored: bytes, worker: Worker, deployment: Deployment
) -> None:
    begin(worker.engine, ADA, ECHO)
    put(deployment, stored)
    assert worker.wake(ADA) == []
    assert deployment.dead_letters() == []
    items = deployment.saga_items(ADA)
    assert b"workflow_recovered" in unpack(items["LOG#0000#0000000003"]["d"]["B"])
    assert items["LOG#0000#0000000003"]["wake"]["S"] == '{"v":3}'
    assert items["LOG#0000#0000000002"]["d"]["B"] == stored, "nothing is deleted"
    assert worker.wake(ADA) == []
    assert deployment.head(ADA).status == "completed"


def test_a_saga_that_cannot_be_read_is_not_tried_again_every_minute(
    worker: Worker, deployment: Deployment
) -> None:
    """Each try is one more dead letter."""
    begin(worker.engine, ADA, PARTY)
    put(deployment, NEWER_FORMAT)
    worker.wake(ADA)
    due_at = deployment.head(ADA).due_at
    assert due_at is not None
    assert due_at > worker.engine.clock.now() + HALF_AN_HOUR


@pytest.mark.parametrize("minutes", [0, 5, 59])
def test_what_a_newer_version_has_just_written_is_left_to_it_without_a_letter(
    minutes: int, worker: Worker, deployment: Deployment
) -> None:
    """A worker of before is still there while the newer version is deployed."""
    begin(worker.engine, ADA, PARTY)
    put(deployment, UNKNOWN_KIND | {"at": worker.engine.clock.now() - minutes * 60_000})
    before = deployment.saga_items(ADA)
    assert worker.wake(ADA) == []
    assert deployment.dead_letters() == []
    assert without_lease(deployment.saga_items(ADA)) == without_lease(before)
    head, now = deployment.head(ADA), worker.engine.clock.now()
    assert (head.owner, head.status) == ("", "running")
    assert head.due_at is not None
    assert max(minutes, 1) * 60_000 - 5_000 < head.due_at - now <= max(minutes, 1) * 60_000 + 5_000


def test_an_hour_later_a_person_learns_that_no_newer_version_runs(
    worker: Worker, deployment: Deployment
) -> None:
    begin(worker.engine, ADA, PARTY)
    put(deployment, UNKNOWN_KIND | {"at": worker.engine.clock.now() - 3_601_000})
    assert worker.wake(ADA) == []
    ((_, reason),) = deployment.dead_letters()
    assert "budget_reserved" in reason


def test_a_compressed_entry_of_a_newer_format_is_refused_just_as_well(
    worker: Worker, deployment: Deployment
) -> None:
    begin(worker.engine, ADA, PARTY)
    put(deployment, zlib.compress(json.dumps(NEWER_FORMAT).encode()))
    assert worker.wake(ADA) == []
    ((_, reason),) = deployment.dead_letters()
    assert "format 2" in reason


def test_once_the_right_version_is_deployed_the_saga_goes_on(worker: Worker, deployment: Deployment) -> None:
    """Here the other way round: what could not be read is taken away again."""
    begin(worker.engine, ADA, ECHO, "hello")
    put(deployment, NEWER_FORMAT)
    worker.wake(ADA)
    key = {"pk": {"S": str(ADA)}, "sk": {"S": "LOG#0000#0000000002"}}
    deployment.dynamodb.delete_item(TableName=deployment.table, Key=key)
    assert worker.wake(ADA) == []
    assert deployment.head(ADA).status == "completed"


def test_a_graph_that_is_gone_is_a_log_that_cannot_be_read(worker: Worker, deployment: Deployment) -> None:
    begin(worker.engine, ADA, ECHO)
    key = {"pk": {"S": str(ADA)}, "sk": {"S": "LOG#0000#0000000001"}}
    entry = json.loads(deployment.saga_items(ADA)["LOG#0000#0000000001"]["d"]["B"])
    entry["events"][0]["graph"] = "0" * 64
    item: Item = {**key, "d": {"B": json.dumps(entry).encode()}}
    deployment.dynamodb.put_item(TableName=deployment.table, Item=item)
    before = deployment.saga_items(ADA)
    assert worker.wake(ADA) == []
    assert without_lease(deployment.saga_items(ADA)) == without_lease(before)
    ((_, reason),) = deployment.dead_letters()
    assert "is not there" in reason


def test_if_it_cannot_be_said_aloud_the_message_comes_again(
    worker: Worker, deployment: Deployment, pauses: Pauses
) -> None:
    begin(worker.engine, ADA, PARTY)
    put(deployment, NEWER_FORMAT)
    with Interference(worker.dead_letters).answering("SendMessage", lambda _: throttled()):
        assert worker.wake(ADA) == ["m0"]
    assert deployment.dead_letters() == []


def spoil_head(deployment: Deployment, due_at: int) -> None:
    """Without the attribute that says which workflow it is, and due at a moment."""
    deployment.dynamodb.update_item(
        TableName=deployment.table,
        Key={"pk": {"S": str(ADA)}, "sk": {"S": "HEAD"}},
        UpdateExpression="SET due_at = :due_at REMOVE wf",
        ExpressionAttributeValues={":due_at": {"N": str(due_at)}},
    )


def test_a_head_that_cannot_be_read_is_a_dead_letter_an_hour_and_not_one_a_minute(
    worker: Worker, deployment: Deployment
) -> None:
    begin(worker.engine, ADA, PARTY)
    now = worker.engine.clock.now()
    spoil_head(deployment, now - 1)
    before = deployment.saga_items(ADA)
    assert worker.wake(ADA) == []
    ((_, reason),) = deployment.dead_letters()
    assert reason.startswith("CorruptLog: ")
    after = deployment.saga_items(ADA)
    due_at = int(after["HEAD"].pop("due_at")["N"])
    assert due_at >= now + 2 * HALF_AN_HOUR
    before["HEAD"].pop("due_at")
    assert after == before


def test_a_wake_of_a_head_that_cannot_be_read_does_not_put_it_off_again(
    worker: Worker, deployment: Deployment
) -> None:
    begin(worker.engine, ADA, PARTY)
    soon = worker.engine.clock.now() + HALF_AN_HOUR
    spoil_head(deployment, soon)
    worker.wake(ADA)
    assert deployment.saga_items(ADA)["HEAD"]["due_at"] == {"N": str(soon)}


def test_a_head_that_can_be_neither_read_nor_put_off_is_a_dead_letter_all_the_same(
    worker: Worker, deployment: Deployment, pauses: Pauses
) -> None:
    begin(worker.engine, ADA, PARTY)
    spoil_head(deployment, worker.engine.clock.now() - 1)
    with Interference(worker.engine.log._client).answering("UpdateItem", lambda _: throttled()):
        assert worker.wake(ADA) == []
    ((_, reason),) = deployment.dead_letters()
    assert reason.startswith("CorruptLog: ")
