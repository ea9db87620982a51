"""The relay function: stream records with a wake in; the first that must come again, out."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from baton.ports import SagaRef, Wake
from baton.runtime.relay import StreamItem
from baton.runtime.worker import answer
from baton.wiring import make_relay

_relay, _engine = make_relay()
_loop = asyncio.Runner()


def handler(event: dict[str, Any], context: Any) -> Any:
    """A DynamoDB stream event whose records all have a new image with `wake`."""
    deadline = _engine.clock.now() + context.get_remaining_time_in_millis()
    items = [_item(record["dynamodb"]) for record in event["Records"]]
    return answer(_loop.run(_relay.handle(items, context.aws_request_id, deadline)))


def _item(record: dict[str, Any]) -> StreamItem:
    image = record["NewImage"]
    wake = msgspec.json.decode(image["wake"]["S"], type=Wake)
    return StreamItem(record["SequenceNumber"], SagaRef.parse(record["Keys"]["pk"]["S"]), wake)
