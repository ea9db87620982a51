"""The worker function: a batch of wakes from SQS, or direct ones, in; what must come again, out."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from baton.loading import loading

with loading():
    from baton.runtime.invocation.context import Invocation, answer
    from baton.runtime.worker.worker import Delivery
    from baton.wiring import make_worker

    _worker, _engine = make_worker()

_loop = asyncio.Runner()
_cold = [True]


def handler(event: dict[str, Any], context: Any) -> Any:
    """An SQS event with partial batch responses, or `{"wakes": [{"saga": key, "v": version}]}`.

    A worker of other code adds `until`, the time by which it expects the answer, and the `build` that it means.
    """
    if event.get("build", _engine.limits.build) != _engine.limits.build:
        raise LookupError(f"the alias of build {event['build']} leads to build {_engine.limits.build}")
    now = _engine.clock.now()
    deadline = now + context.get_remaining_time_in_millis()
    deadline = min(deadline, event.get("until", deadline))
    name = f"{context.aws_request_id}.{_engine.entropy.token(24)}"
    invocation = Invocation(name, now, deadline, _cold[0])
    _cold[0] = False
    if "wakes" in event:
        deliveries = [Delivery(str(i), json.dumps(wake)) for i, wake in enumerate(event["wakes"])]
    else:
        deliveries = [
            Delivery(
                record["messageId"], record["body"], int(record["attributes"]["ApproximateReceiveCount"])
            )
            for record in event["Records"]
        ]
    return answer(_loop.run(_worker.handle(deliveries, invocation)))
