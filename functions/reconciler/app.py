"""The reconciler function: one task of the state machine's run."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

from baton.loading import loading

with loading():
    from baton.wiring import make_reconciler

    _reconciler, _letters = make_reconciler()

_loop = asyncio.Runner()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """`{"shard": i}` wakes what is due in a shard; `{"task": "dead-letters"}` looks at the queues of dead letters."""
    left = context.get_remaining_time_in_millis()
    if event.get("task") == "dead-letters":
        return asdict(_loop.run(_letters.collect(left)))
    return {"shard": event["shard"], **asdict(_loop.run(_reconciler.sweep(int(event["shard"]), left)))}
