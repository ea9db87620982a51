"""Events that a sender outside puts on the bus of the deployment, with boto3 as anywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.deployment import TENANT, Deployment, Json, until

pytestmark = pytest.mark.e2e
SHIP = """
name: ship
input: {type: object, required: [order], properties: {order: {type: string}}}
events: {start: [{type: payment.settled, source: shop, labels: {order: "${event.data.order}"}}]}
nodes: {pack: {value: "Pack ${input.order}"}}
output: ${ctx.pack.output}
"""


def entry(detail: Json, source: str = "shop") -> Json:
    return {"Source": source, "DetailType": "payment.settled", "Detail": json.dumps(detail)}


def test_an_event_on_the_bus_starts_one_saga_of_the_tenant_that_the_bus_is_for(
    everything: Deployment,
) -> None:
    other = everything.run.token("bob", "globex")
    everything.register(SHIP)
    answer = everything.request("POST", "/workflows", content=SHIP, token=other)
    assert answer.status_code == 201, answer.text
    said = {"specversion": "1.0", "id": "pay-9", "source": "shop", "type": "payment.settled"}
    inside = entry({**said, "data": {"order": "A-2"}})
    answered: Any = everything.client("events").put_events(
        Entries=[entry({"order": "A-1"}), entry({"order": "A-0"}, "shp"), inside, inside]
    )
    assert answered["FailedEntryCount"] == 0
    first, stray, *twice = (taken["EventId"] for taken in answered["Entries"])

    def invoked() -> Json | None:
        events = [record for record in everything.run.invocations if record.trigger == "event"]
        ended = {r.event["id"]: r.outcome for r in events if r.event.get("source") in ("shop", "shp")}
        return ended if ended.keys() >= {first, *twice} else None

    assert until(invoked, "the events' way") == dict.fromkeys([first, *twice], "ok"), stray
    listed = everything.request("GET", "/sagas", params={"workflow": "ship"}).json()["sagas"]
    assert sorted(saga["labels"]["order"] for saga in listed) == ["A-1", "A-2"], "what came twice started one"
    assert everything.request("GET", "/sagas?workflow=ship", token=other).json()["sagas"] == [], TENANT
    (saga,) = (saga["id"] for saga in listed if saga["labels"]["order"] == "A-1")
    assert everything.wait_for(saga)["result"] == "Pack A-1"
    (started,) = everything.events(saga, "saga_started")
    assert started["sent"]["id"] == first
