"""When a workflow is started by itself, as its compiled document says it.

When the ticks of it are is in core/schedules/ticks.py, what becomes of them in core/schedules/record.py.
"""

from __future__ import annotations

from typing import Any

import msgspec

SKIP, QUEUE, ALLOW = "skip", "queue", "allow"
OVERLAPS = (SKIP, QUEUE, ALLOW)
"""What becomes of a tick while a saga of the schedule is still at work: it is passed over, waits for its end, or is started beside it."""


class Schedule(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """Ticks by a cron expression of five fields, or (`rate`, in ms) one after so long.

    `catch_up`: of ticks that are overdue, so many are started, the newest ones. `input` is a template. `labels` are those of its sagas.
    """

    cron: str = ""
    rate: int = 0
    timezone: str = "UTC"
    overlap: str = SKIP
    catch_up: int = 1
    input: Any = None
    labels: dict[str, str] = {}
