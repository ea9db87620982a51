"""What a template declares, as the parts of the local run need it: plain values, every physical id known.

How they are read from the template is in stack.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton.local.template.filter_pattern import Filters


@dataclass(frozen=True)
class Function:
    """`reserved` is the reserved concurrency; `retries` and `event_age_s` are for `Event` invocations. `deployed`: all layers there are."""

    logical_id: str
    name: str
    arn: str
    handler: str
    code: Path
    layers: tuple[Path, ...]
    timeout_s: int
    memory_mb: int
    runtime: str
    environment: Mapping[str, str]
    reserved: int | None = None
    retries: int = 2
    event_age_s: int = 6 * 3600
    on_failure_url: str = ""
    deployed: tuple[Path, ...] = ()


@dataclass(frozen=True)
class QueueSource:
    """An event source mapping of an SQS queue. `concurrency` None: as many as there are processes."""

    logical_id: str
    function: str
    arn: str
    url: str
    batch_size: int
    window_s: float
    partial: bool
    concurrency: int | None
    filters: Filters


@dataclass(frozen=True)
class StreamSource:
    """An event source mapping of a DynamoDB stream. `retries` and `max_age_s` None: without end."""

    logical_id: str
    function: str
    arn: str
    batch_size: int
    window_s: float
    partial: bool
    start: str
    bisect: bool
    parallel: int
    retries: int | None
    max_age_s: float | None
    on_failure_url: str
    filters: Filters


@dataclass(frozen=True)
class EventRule:
    """A rule on an EventBridge bus. `pattern` is JSON; `functions` are the targets."""

    logical_id: str
    bus: str
    pattern: str
    functions: tuple[str, ...]


@dataclass(frozen=True)
class StateMachine:
    logical_id: str
    arn: str
    definition: Mapping[str, Any]
    express: bool


@dataclass(frozen=True)
class Schedule:
    logical_id: str
    period_s: float
    target_arn: str
    payload: Any
