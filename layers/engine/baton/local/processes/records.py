"""What a local run tells about its processes and invocations; plain values, used by the demo and by tests.

Times are UTC epoch milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Outcome = Literal["ok", "error", "timeout", "killed"]
Trigger = Literal["sqs", "stream", "event", "invoke", "http", "schedule"]


@dataclass(frozen=True)
class ProcessInfo:
    """One process of a function. `cold`: it has not finished an invocation yet.

    `request_id` is empty and `busy_since` None while it waits for work (or is still importing).
    """

    pid: int
    busy: bool
    request_id: str
    busy_since: int | None
    cold: bool


@dataclass(frozen=True)
class InvocationRecord:
    """One invocation that has ended.

    `outcome`: `error` is an exception of the handler, a failed import or an exit of its own; `timeout`
    was killed at the deadline; `killed` ended by a signal from elsewhere. `error` is the function's error
    document (None when ok). `init_ms` is 0 unless the invocation was `cold`.
    """

    function: str
    request_id: str
    trigger: Trigger
    event: Any
    started: int
    ended: int
    cold: bool
    outcome: Outcome
    duration_ms: float
    init_ms: float
    pid: int
    error: Any = None
