"""A saga that cannot be read, from the worker's dead letter to its redrive, through all four functions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from baton.ports import SagaRef
from tests.handlers.deployment import Context, Deployment, Interference, Item, changed, payload, throttled
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, ECHO, GRACE, begin
from tests.handlers.test_reconciler import Reconciler
from tests.handlers.test_relay import Relay
from tests.handlers.workers import Worker
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
ENTRY = {"format": 2, "version": 2, "at": 1, "invocation": "n", "events": [{"kind": "dreamt", "node": "say"}]}
DEAD = {"task": "dead-letters"}


@pytest.fixture(scope="module")
def shared_reconciler(shared_deployment: Deployment) -> Iterator[Reconciler]:
    with shared_deployment.function("reconciler") as module:
        yield Reconciler(module)
        module._loop.close()


@pytest.fixture
def reconciler(shared_reconciler: Reconciler, deployment: Deployment) -> Reconciler:
    return shared_reconciler


@pytest.fixture(scope="module")
def shared_relay(shared_deployment: Deployment) -> Iterator[Relay]:
    with shared_deployment.function("relay") as module:
        yield Relay(module)
        module._loop.close()


def key_of(ref: SagaRef, version: int) -> Item:
    return {"pk": {"S": str(ref)}, "sk": {"S": f"LOG#0000#{version:010d}"}}


def spoil(deployment: Deployment, ref: SagaRef) -> None:
    """An entry 2 that this version cannot read."""
    item: Item = {**key_of(ref, 2), "d": {"B": json.dumps(ENTRY).encode()}}
    deployment.dynamodb.put_item(TableName=deployment.table, Item=item)


def mend(deployment: Deployment, ref: SagaRef) -> None:
    deployment.dynamodb.delete_item(TableName=deployment.table, Key=key_of(ref, 2))


def die(worker: Worker, reconciler: Reconciler, deployment: Deployment, *refs: SagaRef) -> None:
    """Sagas that cannot be read, woken, and found by the reconciler."""
    for ref in refs:
        begin(worker.engine, ref, ECHO, "hello")
        spoil(deployment, ref)
    assert worker.wake(*refs) == []
    assert reconciler.send(DEAD)["moved"] == len(refs)


def letters(http: Http, **query: str) -> list[Any]:
    answer = http.get("/dead-letters", query=query)
    assert answer.status == 200, answer
    found: list[Any] = answer.body["dead_letters"]
    return found


def test_an_unreadable_saga_is_listed_mended_and_redriven(
    worker: Worker, reconciler: Reconciler, http: Http, shared_relay: Relay, deployment: Deployment
) -> None:
    die(worker, reconciler, deployment, ADA)
    (letter,) = letters(http)
    assert (letter["id"], letter["saga"], letter["node"], letter["version"]) == (ADA.id, ADA.id, "say", 2)
    assert (letter["code"], letter["status"], letter["source"]) == ("unknown_entry", "pending", "wakes")
    assert "format 2" in letter["reason"]
    assert (letter["messages"], letter["attempts"], letter["redrives_left"]) == (1, 1, 3)
    assert http.get(f"/dead-letters/{ADA.id}").body["reason"] == letter["reason"]
    mend(deployment, ADA)
    redriven = http.post(f"/dead-letters/{ADA.id}/redrive", {})
    assert (redriven.status, redriven.body["status"], redriven.body["decided_by"]) == (202, "redriven", "ada")
    again = http.post(f"/dead-letters/{ADA.id}/redrive", {})
    assert (again.status, again.body["redrives"], again.body["decided_at"]) == (
        202,
        1,
        redriven.body["decided_at"],
    )
    assert letters(http) == []
    record = changed(payload("relay", "entry"))
    record["Records"] = record["Records"][-1:]
    record["Records"][0]["dynamodb"]["NewImage"] = deployment.saga_items(ADA)["DEAD"]
    record["Records"][0]["dynamodb"]["NewImage"].pop("d")
    assert shared_relay.send(record) == []
    (message,) = deployment.messages("WakeQueue")
    assert json.loads(message["Body"])["saga"] == str(ADA)
    assert (
        worker.send(
            {
                "Records": [
                    {
                        "messageId": "m",
                        "body": message["Body"],
                        "attributes": {"ApproximateReceiveCount": "1"},
                    }
                ]
            }
        )
        == []
    )
    assert deployment.head(ADA).status == "completed"
    assert reconciler.send(DEAD)["dead_letters"] == 0


def test_a_saga_that_dies_again_is_pending_again_and_keeps_its_count(
    worker: Worker, reconciler: Reconciler, http: Http, deployment: Deployment
) -> None:
    die(worker, reconciler, deployment, ADA)
    for redrives in range(1, 4):
        assert http.post(f"/dead-letters/{ADA.id}/redrive", {}).status == 202
        assert worker.wake(ADA) == []
        assert reconciler.send(DEAD)["moved"] == 1
        (letter,) = letters(http)
        assert (letter["redrives"], letter["messages"]) == (redrives, redrives + 1)
    refused = http.post(f"/dead-letters/{ADA.id}/redrive", {}).problem(409, "not-allowed-now")
    assert "3 times" in refused["detail"]
    assert "`force`" in refused["detail"]
    assert http.post(f"/dead-letters/{ADA.id}/redrive", {"force": True}).body["redrives"] == 4


def test_many_are_counted_first_and_then_redriven_by_what_they_have_in_common(
    worker: Worker, reconciler: Reconciler, http: Http, deployment: Deployment
) -> None:
    die(worker, reconciler, deployment, ADA, GRACE)
    wanted = {"reason": "FORMAT 2", "node": "say"}
    counted = http.post("/dead-letters/redrive", wanted | {"dry_run": True})
    assert counted.body == {"matched": 2, "redriven": 0, "refused": [], "next": None}
    assert len(letters(http)) == 2
    first = http.post("/dead-letters/redrive", wanted | {"limit": 1}).body
    assert (first["matched"], first["redriven"]) == (1, 1)
    second = http.post("/dead-letters/redrive", wanted | {"cursor": first["next"]}).body
    assert (second["matched"], second["redriven"], second["next"]) == (1, 1, None)
    assert http.post("/dead-letters/redrive", {"node": "other"}).body["matched"] == 0
    assert letters(http) == []


def test_lists_are_filtered_and_paged(
    worker: Worker, reconciler: Reconciler, http: Http, deployment: Deployment
) -> None:
    die(worker, reconciler, deployment, ADA, GRACE)
    assert [one["id"] for one in letters(http, saga=GRACE.id)] == [GRACE.id]
    assert letters(http, saga="another") == []
    assert letters(http, node="other") == []
    assert len(letters(http, reason="unknown_entry")) == 2
    page = http.get("/dead-letters", query={"limit": "1"}).body
    rest = http.get("/dead-letters", query={"limit": "1", "cursor": page["next"]}).body
    assert {page["dead_letters"][0]["id"], rest["dead_letters"][0]["id"]} == {ADA.id, GRACE.id}
    assert http.get("/dead-letters", query={"cursor": "eJxx"}).status == 400


def test_many_are_counted_and_discarded_in_one_request(
    worker: Worker, reconciler: Reconciler, http: Http, deployment: Deployment
) -> None:
    die(worker, reconciler, deployment, ADA, GRACE)
    body = {"node": "say", "why": "a test"}
    counted = http.post("/dead-letters/discard", body | {"dry_run": True})
    assert (counted.status, counted.body["matched"], counted.body["discarded"]) == (202, 2, 0)
    one = http.post("/dead-letters/discard", body | {"limit": 1}).body
    assert (one["matched"], one["discarded"], one["next"] is None) == (1, 1, False)
    rest = http.post("/dead-letters/discard", body | {"cursor": one["next"]}).body
    assert rest == {"matched": 1, "discarded": 1, "refused": [], "next": None}
    assert letters(http) == []
    assert {letter["why"] for letter in letters(http, status="discarded")} == {"a test"}
    # A body that is meant for redriving, where `reason` chooses letters, discards none.
    http.post("/dead-letters/discard", {"node": "say", "reason": "corrupt"}).problem(422, "invalid-input")


def test_letters_are_discarded_by_what_they_died_of(
    worker: Worker, reconciler: Reconciler, http: Http, deployment: Deployment
) -> None:
    die(worker, reconciler, deployment, ADA)
    (letter,) = letters(http)
    for reason, matched in (("another", 0), (letter["code"], 1)):
        body = {"reason": reason, "why": "a test", "dry_run": True}
        assert http.post("/dead-letters/discard", body).body["matched"] == matched


def test_a_discarded_letter_keeps_who_when_and_why_and_stays_so_while_its_cause_is_the_same(
    worker: Worker, reconciler: Reconciler, http: Http, deployment: Deployment
) -> None:
    die(worker, reconciler, deployment, ADA)
    first = http.post(f"/dead-letters/{ADA.id}/discard", {"reason": "a test"})
    again = http.post(f"/dead-letters/{ADA.id}/discard", {"reason": "a test"})
    assert (first.status, again.status, again.body["decided_at"]) == (202, 202, first.body["decided_at"])
    assert (again.body["status"], again.body["decided_by"], again.body["why"]) == (
        "discarded",
        "ada",
        "a test",
    )
    deployment.make_due(ADA, worker.engine.clock.now() - 1)
    assert worker.wake(ADA) == []
    reconciler.send(DEAD)
    (letter,) = letters(http, status="discarded")
    assert (letter["messages"], letter["why"]) == (2, "a test")
    assert letters(http) == []
    assert http.post(f"/dead-letters/{ADA.id}/discard", {}).status == 422


def test_a_tenant_sees_its_own_letters_and_an_operator_alone(
    worker: Worker, reconciler: Reconciler, http: Http, deployment: Deployment
) -> None:
    die(worker, reconciler, deployment, ADA)
    assert http.get("/dead-letters", tenant="umbrella").body["dead_letters"] == []
    assert http.get(f"/dead-letters/{ADA.id}", tenant="umbrella").status == 404
    assert http.post(f"/dead-letters/{ADA.id}/redrive", {}, tenant="umbrella").status == 404
    for roles in ("[read]", "[read run answer]"):
        assert http.get("/dead-letters", roles=roles).status == 403
        assert http.post(f"/dead-letters/{ADA.id}/discard", {"reason": "r"}, roles=roles).status == 403


def test_what_no_redrive_brings_on_is_refused_and_says_what_to_do(
    worker: Worker, reconciler: Reconciler, http: Http, deployment: Deployment, says: Says
) -> None:
    die(worker, reconciler, deployment, ADA)
    mend(deployment, ADA)
    deployment.make_due(ADA, worker.engine.clock.now() - 1)
    assert worker.wake(ADA) == []
    over = http.post(f"/dead-letters/{ADA.id}/redrive", {}).problem(409, "not-allowed-now")
    says(over["detail"])
    deployment.dynamodb.delete_item(
        TableName=deployment.table, Key={"pk": {"S": str(ADA)}, "sk": {"S": "HEAD"}}
    )
    gone = http.post(f"/dead-letters/{ADA.id}/redrive", {}).problem(409, "not-allowed-now")
    says(gone["detail"])


def test_what_names_no_saga_is_for_the_operators_tenant(
    worker: Worker, reconciler: Reconciler, http: Http, deployment: Deployment, says: Says
) -> None:
    with deployment.function("reconciler", BATON_OPERATOR_TENANT="acme") as module:
        worker.send(payload("worker", "poison"))
        described = {
            "requestContext": {"condition": "RetryAttemptsExhausted"},
            "DDBStreamBatchInfo": {"batchSize": 3},
        }
        for body in (json.dumps(described), "what?"):
            deployment.sqs.send_message(QueueUrl=deployment.url("RelayFailureQueue"), MessageBody=body)
        Reconciler(module).send(DEAD)
    found = [one for one in letters(http) if one["saga"] is None]
    assert {one["code"] for one in found} == {"not_a_wake", "stream_records"}
    says.within([one["reason"] for one in found])
    for one in found:
        refused = http.post(f"/dead-letters/{one['id']}/redrive", {}).problem(409, "not-allowed-now")
        assert "discard it" in refused["detail"]
    many = http.post("/dead-letters/redrive", {}).body
    assert {one["id"] for one in many["refused"]} >= {one["id"] for one in found}
    assert http.post(f"/dead-letters/{found[0]['id']}/discard", {"reason": "seen"}).status == 202


def test_a_message_that_was_received_too_often_says_so(
    worker: Worker, reconciler: Reconciler, http: Http, deployment: Deployment, says: Says
) -> None:
    begin(worker.engine, ADA, ECHO, "hello")
    body = json.dumps({"saga": str(ADA), "v": 1})
    deployment.sqs.send_message(QueueUrl=deployment.url("WakeDeadLetterQueue"), MessageBody=body)
    reconciler.send(DEAD)
    (letter,) = letters(http)
    assert (letter["code"], letter["attempts"], letter["saga"]) == ("received_too_often", 5, ADA.id)
    says(letter["reason"])


def test_a_letter_that_cannot_be_written_keeps_its_message(
    worker: Worker, reconciler: Reconciler, deployment: Deployment
) -> None:
    begin(worker.engine, ADA, ECHO, "hello")
    body = json.dumps({"saga": str(ADA), "v": 1})
    deployment.sqs.send_message(QueueUrl=deployment.url("WakeDeadLetterQueue"), MessageBody=body)
    with (
        Interference(reconciler.module._letters._letters._client).answering("PutItem", lambda _: throttled()),
        reconciler.queue.watching("DeleteMessageBatch") as deleted,
        pytest.raises(Exception, match="throughput"),
    ):
        reconciler.module.handler(DEAD, Context(50_000))
    assert deleted == []


def test_the_route_of_many_is_not_taken_for_a_letter(http: Http) -> None:
    answer = http.send(http.event("DELETE", "/dead-letters/redrive"))
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    answer = http.send(http.event("DELETE", "/dead-letters/some-saga"))
    assert (answer.status, answer.headers["allow"]) == (405, "GET")


def test_a_saga_that_could_not_be_one_is_refused_before_it_is_looked_for(http: Http) -> None:
    answer = http.post("/dead-letters/redrive", {"saga": "a b"})
    assert (answer.status, answer.body["errors"][0]["path"]) == (422, "/saga")
