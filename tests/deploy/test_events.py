"""The payloads in events/: of every trigger of every function, and such as the template would deliver.

What a function does with them is for tests/handlers to say.
"""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from baton.local.stack import Filters
from tests.deploy.stack import FUNCTIONS, ROOT, stack
from tests.deploy.test_permissions import resource_named, roles, statements
from tests.deploy.test_queues_and_streams import mapping_of
from tests.deploy.test_schedule import machine

EVENTS = ROOT / "events"


def payloads(function: str) -> dict[str, Any]:
    return {
        file.stem: json.loads(file.read_text("utf-8")) for file in sorted((EVENTS / function).glob("*.json"))
    }


def requests() -> dict[str, Any]:
    """Payloads of the api function that are no events of a bus."""
    return {name: one for name, one in payloads("api").items() if "requestContext" in one}


def mappings() -> list[dict[str, Any]]:
    return list(stack().of_type("AWS::Lambda::EventSourceMapping").values())


def test_every_function_has_payloads_and_nothing_else_does() -> None:
    assert {folder.name for folder in EVENTS.iterdir()} == set(FUNCTIONS)
    assert all(payloads(function) for function in FUNCTIONS)


@pytest.mark.parametrize("file", sorted(EVENTS.rglob("*.json")), ids=lambda f: f"{f.parent.name}/{f.stem}")
def test_a_payload_is_written_as_people_read_it(file: Path) -> None:
    text = file.read_text("utf-8")
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(("name", "payload"), requests().items(), ids=requests())
def test_a_request_came_by_a_route_of_the_api(name: str, payload: dict[str, Any]) -> None:
    routes = {r["RouteKey"]: r for r in stack().of_type("AWS::ApiGatewayV2::Route").values()}
    assert payload["version"] == "2.0"
    assert payload["routeKey"] == payload["requestContext"]["routeKey"]
    anonymous = routes[payload["routeKey"]]["AuthorizationType"] == "NONE"
    assert ("authorizer" in payload["requestContext"]) != anonymous
    assert all(header == header.lower() for header in payload["headers"])


def test_there_is_a_request_by_every_kind_of_caller() -> None:
    kinds = {kind for p in requests().values() for kind in p["requestContext"].get("authorizer", {"none": 0})}
    assert kinds == {"jwt", "iam", "none"}


@pytest.mark.parametrize(("name", "payload"), payloads("worker").items(), ids=payloads("worker"))
def test_a_worker_gets_messages_of_the_queue_or_direct_wakes(name: str, payload: dict[str, Any]) -> None:
    if name == "direct":
        assert all(wake["saga"].startswith("T#") for wake in payload["wakes"])
        return
    (mapping,) = (
        m
        for m in stack().of_type("AWS::Lambda::EventSourceMapping").values()
        if m["FunctionName"] == "baton-worker"
    )
    assert 1 <= len(payload["Records"]) <= int(mapping["BatchSize"])
    assert {record["eventSource"] for record in payload["Records"]} == {"aws:sqs"}
    ids = [record["messageId"] for record in payload["Records"]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(("name", "payload"), payloads("relay").items(), ids=payloads("relay"))
def test_every_record_of_the_stream_would_pass_the_filter(name: str, payload: dict[str, Any]) -> None:
    (mapping,) = (
        m
        for m in stack().of_type("AWS::Lambda::EventSourceMapping").values()
        if m["FunctionName"] == "baton-relay"
    )
    filters = Filters([f["Pattern"] for f in mapping["FilterCriteria"]["Filters"]])
    for record in payload["Records"]:
        assert filters.match(record)
        assert record["dynamodb"]["StreamViewType"] == "NEW_IMAGE"
        assert record["dynamodb"]["Keys"].items() <= record["dynamodb"]["NewImage"].items()
    numbers = [int(record["dynamodb"]["SequenceNumber"]) for record in payload["Records"]]
    assert numbers == sorted(set(numbers))


def test_a_removal_or_a_change_without_a_wake_never_comes_to_the_relay() -> None:
    """So there is no payload of either: Lambda's filter keeps them away, and they cost nothing."""
    filters = Filters([f["Pattern"] for f in mapping_of("relay")["FilterCriteria"]["Filters"]])
    changed, removed, other = (copy.deepcopy(payloads("relay")["head"]["Records"][0]) for _ in range(3))
    assert filters.match(changed)
    del changed["dynamodb"]["NewImage"]["wake"]
    removed["eventName"] = "REMOVE"
    del removed["dynamodb"]["NewImage"]
    other["dynamodb"]["NewImage"]["wake"] = {"NULL": True}
    assert not any(map(filters.match, (changed, removed, other)))


def test_every_trigger_of_every_function_has_its_payload() -> None:
    """By what the template connects: the API, queues, streams, and the roles that may invoke a function directly."""
    triggers = {(m["FunctionName"], m["EventSourceArn"]) for m in mappings()}
    assert triggers == {
        ("baton-worker", stack().arn("WakeQueue")),
        ("baton-relay", f"{stack().arn('SagaTable')}/stream/now"),
    }
    callers: dict[str, set[str]] = {}
    for role in roles():
        for statement in statements(role):
            if "lambda:InvokeFunction" in statement["Action"]:
                for arn in statement["Resource"]:
                    callers.setdefault(resource_named(arn).partition(":")[0], set()).add(role)
    assert callers == {
        "WorkerFunction": {"ReconcilerRole", "WorkerRole"},
        "ReconcilerFunction": {"ReconcileStateMachineRole"},
    }
    kinds = {
        "api": {"HTTP" if "requestContext" in p else "bus" for p in payloads("api").values()},
        "worker": {"direct" if "wakes" in p else "SQS" for p in payloads("worker").values()},
        "relay": {r["eventName"] for p in payloads("relay").values() for r in p["Records"]},
        "reconciler": {key for p in payloads("reconciler").values() for key in p},
    }
    assert kinds == {
        "api": {"HTTP", "bus"},
        "worker": {"SQS", "direct"},
        "relay": {"INSERT", "MODIFY"},
        "reconciler": {"shard", "task"},
    }


def test_the_worker_has_payloads_of_first_and_of_later_deliveries_and_of_every_sender() -> None:
    records = [r for p in payloads("worker").values() if "Records" in p for r in p["Records"]]
    receives = {int(record["attributes"]["ApproximateReceiveCount"]) for record in records}
    most = stack().properties("WakeQueue")["RedrivePolicy"]["maxReceiveCount"]
    assert {1, most} <= receives
    assert max(receives) == most
    assert {r["attributes"]["SenderId"].split(":")[1] for r in records} == {"baton-relay", "baton-reconciler"}
    for record in records:
        assert hashlib.md5(record["body"].encode(), usedforsecurity=False).hexdigest() == record["md5OfBody"]


def test_the_relay_has_payloads_of_every_kind_of_wake() -> None:
    records = [r for p in payloads("relay").values() for r in p["Records"]]
    texts = [record["dynamodb"]["NewImage"]["wake"]["S"] for record in records]
    keys = {key for text in texts if text.startswith("{") for key in json.loads(text)}
    assert {"v", "at", "parent", "slot"} <= keys


def test_the_reconciler_gets_what_the_state_machine_sends() -> None:
    sent = payloads("reconciler")
    states = machine()["States"]
    assert sent["dead-letters"] == states["DeadLetters"]["Parameters"]
    assert set(sent["shard"]) == {key.removesuffix(".$") for key in states["EachShard"]["ItemSelector"]}


def test_a_bus_hands_on_the_events_of_the_sources_that_are_named() -> None:
    assert stack().of_type("AWS::Events::Rule") == {}
    taking = stack(EventTenant="acme", EventSources="aws.s3,shop", EventSourceBus="orders")
    (rule,) = taking.of_type("AWS::Events::Rule").values()
    assert (rule["EventBusName"], rule["EventPattern"]) == ("orders", {"source": ["aws.s3", "shop"]})
    assert payloads("api")["bus-object-created"]["source"] in rule["EventPattern"]["source"]
    (target,) = rule["Targets"]
    aside = taking.arn("RelayFailureQueue")
    assert (target["Arn"], target["DeadLetterConfig"]) == (taking.arn("ApiFunction"), {"Arn": aside})
    assert taking.variables("api")["BATON_EVENT_TENANT"] == "acme"


def test_an_event_of_a_bus_comes_again_twice_and_then_lies_with_the_dead() -> None:
    taking = stack(EventTenant="acme", EventSources="shop")
    found = taking.of_type("AWS::Lambda::EventInvokeConfig").values()
    (tries,) = (one for one in found if one["FunctionName"] == "baton-api")
    assert tries["MaximumRetryAttempts"] == 2
    assert tries["DestinationConfig"] == {"OnFailure": {"Destination": taking.arn("RelayFailureQueue")}}
