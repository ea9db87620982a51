"""The relay function: stream records with a wake in; the ones that must come again, out."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from baton.loading import loading

with loading():
    from baton.errors import PoisonMessage
    from baton.runtime.invocation.context import answer
    from baton.runtime.relay import StreamItem
    from baton.wiring import image_wake, make_relay

    _relay = make_relay()

logger = logging.getLogger("baton.relay")
_loop = asyncio.Runner()


def handler(event: dict[str, Any], context: Any) -> Any:
    """A DynamoDB stream event whose records all have a new image with `wake`."""
    deadline = _relay.clock.now() + context.get_remaining_time_in_millis()
    items, unreadable = [], []
    for record in event["Records"]:
        try:
            ref, wake = image_wake(record["dynamodb"]["NewImage"])
        except PoisonMessage as error:
            # Reported as failed: the stream retries it a few times and then puts it on the failure queue.
            logger.error("unreadable stream record", extra={"fault": str(error)})
            unreadable.append(record["dynamodb"]["SequenceNumber"])
            continue
        items.append(StreamItem(record["dynamodb"]["SequenceNumber"], ref, wake))
    return answer(unreadable + _loop.run(_relay.handle(items, deadline)))
