"""Events that EventBridge hands to the api function."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.web.bodies.events import NotTaken, cloud_event
from tests.handlers.deployment import Context, Deployment, payload
from tests.handlers.http import Http
from tests.handlers.test_reconciler import Reconciler
from tests.kit import emf
from tests.kit.sentences import Says

OBJECT = payload("api", "bus-object-created")
IMPORT = """
name: import-object
input: {type: object, required: [bucket, key], properties: {key: {type: string}}}
events:
  start:
    - {type: Object Created, source: aws.s3, input: {bucket: "${event.data.bucket.name}", key: "${event.data.object.key}"}}
nodes: {read: {value: "${input.key}"}}
"""


def taken(deployment: Deployment, *entries: dict[str, Any], tenant: str = "acme", **more: str) -> list[Any]:
    """What the function gives for each, or the error that it ends with."""
    found: list[Any] = []
    with deployment.function("api", BATON_EVENT_TENANT=tenant, **more) as module:
        Http(module).register(IMPORT)
        for entry in entries:
            try:
                found.append(module.handler(entry, Context()))
            except NotTaken as error:
                found.append(error)
        module._api._loop.close()
    return found


def test_event_tenant(deployment: Deployment) -> None:
    first, again = taken(deployment, OBJECT, OBJECT)
    (done,) = first["outcomes"]
    assert (done["workflow"], done["did"]) == ("import-object", "started")
    assert again["outcomes"] == [{**done, "did": "duplicate"}]
    assert taken(deployment, OBJECT, tenant="globex")[0] == {"outcomes": []}
    (refused,) = taken(deployment, OBJECT, tenant="")
    assert "`EventTenant`" in str(refused)


def test_worker_of_the_api(deployment: Deployment, capsys: pytest.CaptureFixture[str]) -> None:
    """What events do not do is counted under the worker's name, as all figures of a deployment are."""
    taken(deployment, {**OBJECT, "detail-type": "Object Deleted"}, BATON_WORKER="its-worker")
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith('{"_aws"')]
    assert emf.total(emf.read(lines), "EventsUnmatched", function="its-worker") == 1


def test_what_cannot_be_dealt_with_comes_again(deployment: Deployment) -> None:
    (refused,) = taken(deployment, {**OBJECT, "detail": {"bucket": {"name": "b"}, "object": {"key": 5}}})
    assert "import-object: at /input/key" in str(refused)
    (no_event,) = taken(deployment, {**OBJECT, "id": None})
    assert "at /id" in str(no_event)


def test_an_envelope_becomes_a_cloud_event() -> None:
    assert cloud_event(OBJECT) == {
        "specversion": "1.0",
        "id": OBJECT["id"],
        "source": "aws.s3",
        "type": "Object Created",
        "subject": "arn:aws:s3:::incoming",
        "time": "2026-01-01T00:00:00Z",
        "account": "123456789012",
        "region": "eu-central-1",
        "data": OBJECT["detail"],
    }
    inside = {"specversion": "1.0", "id": "e1", "source": "shop", "type": "paid"}
    assert cloud_event({**OBJECT, "detail": inside}) == inside
    assert cloud_event({**OBJECT, "detail": {**inside, "id": ""}})["id"] == OBJECT["id"]


@pytest.mark.parametrize("wrapped", [True, False])
def test_what_has_failed_for_good_is_a_dead_letter(wrapped: bool, deployment: Deployment, says: Says) -> None:
    lost = {"requestPayload": OBJECT, "responsePayload": {"errorMessage": "at /key: it is 5"}}
    body = json.dumps(lost if wrapped else OBJECT)
    deployment.sqs.send_message(QueueUrl=deployment.url("RelayFailureQueue"), MessageBody=body)
    with deployment.function("reconciler", BATON_OPERATOR_TENANT="acme") as module:
        Reconciler(module).send({"task": "dead-letters"})
        letters, _ = module._letters._letters.listed("acme", "pending", 10)
        assert letters[0].code == "outside_event"
        says(letters[0].reason)
        module._loop.close()
