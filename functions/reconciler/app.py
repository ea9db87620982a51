"""The reconciler function: one task of the state machine's run."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

from baton.wiring import make_reconciler

_reconciler = make_reconciler()
_loop = asyncio.Runner()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """`{"shard": i}` wakes what is due in a shard; `{"task": "dead-letters"}` looks at the queue."""
    if event.get("task") == "dead-letters":
        return {"dead_letters": _reconciler.watch_dead_letters()}
    sweep = _loop.run(_reconciler.sweep(int(event["shard"]), context.get_remaining_time_in_millis()))
    return {"shard": event["shard"], **asdict(sweep)}
