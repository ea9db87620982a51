"""The payloads in events/: of every trigger of every function, and such as the template would deliver.

What a function does with them is for tests/handlers to say.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from baton.local.filter_pattern import Filters
from tests.deploy.stack import FUNCTIONS, ROOT, stack
from tests.deploy.test_schedule import machine

EVENTS = ROOT / "events"


def payloads(function: str) -> dict[str, Any]:
    return {
        file.stem: json.loads(file.read_text("utf-8")) for file in sorted((EVENTS / function).glob("*.json"))
    }


def test_every_function_has_payloads_and_nothing_else_does() -> None:
    assert {folder.name for folder in EVENTS.iterdir()} == set(FUNCTIONS)
    assert all(payloads(function) for function in FUNCTIONS)


@pytest.mark.parametrize("file", sorted(EVENTS.rglob("*.json")), ids=lambda f: f"{f.parent.name}/{f.stem}")
def test_a_payload_is_written_as_people_read_it(file: Path) -> None:
    text = file.read_text("utf-8")
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(("name", "payload"), payloads("api").items(), ids=payloads("api"))
def test_a_request_came_by_a_route_of_the_api(name: str, payload: dict[str, Any]) -> None:
    routes = {r["RouteKey"]: r for r in stack().of_type("AWS::ApiGatewayV2::Route").values()}
    assert payload["version"] == "2.0"
    assert payload["routeKey"] == payload["requestContext"]["routeKey"]
    anonymous = routes[payload["routeKey"]]["AuthorizationType"] == "NONE"
    assert ("authorizer" in payload["requestContext"]) != anonymous
    assert all(header == header.lower() for header in payload["headers"])


def test_there_is_a_request_by_every_kind_of_caller() -> None:
    kinds = {
        kind for p in payloads("api").values() for kind in p["requestContext"].get("authorizer", {"none": 0})
    }
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
    assert 1 <= len(payload["Records"]) <= mapping["BatchSize"]
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


def test_the_reconciler_gets_what_the_state_machine_sends() -> None:
    sent = payloads("reconciler")
    states = machine()["States"]
    assert sent["dead-letters"] == states["DeadLetters"]["Parameters"]
    assert set(sent["shard"]) == {key.removesuffix(".$") for key in states["EachShard"]["ItemSelector"]}
