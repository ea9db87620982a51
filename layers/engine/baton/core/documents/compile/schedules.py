"""What does not go together in a document's `schedule`, and an input that its sagas would not take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from baton.core.conditions.schema import input_violations
from baton.core.expressions import SCHEDULE, ExpressionError, expressions_in
from baton.core.graph.schedule import SKIP
from baton.core.log.labels import label_problems
from baton.core.schedules.record import ScheduleRecord, given_at
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.source import Source

MOST_BYTES = 8_192
_SOME_TICK = 1_767_225_600_000


def check(source: Source) -> Iterator[Problem]:
    """All of it."""
    model = source.model.schedule
    if model is None:
        return
    if bool(model.cron) == bool(model.rate):
        said = "has both `cron` and `rate`" if model.cron else "has neither `cron` nor `rate`"
        yield Problem("/schedule", f"the schedule {said}; write one of them")
    if model.rate and "timezone" in model.model_fields_set:
        yield Problem(
            "/schedule/timezone", "a rate follows elapsed time, in every time zone alike", "leave it out"
        )
    if model.overlap == SKIP and (model.catch_up or 0) > 1:
        message = "with `overlap: skip` one of the missed ticks is started, the newest"
        yield Problem(
            "/schedule/catch_up", message, "write `overlap: queue` or `overlap: allow`, or at most 1"
        )
    if len(msgspec.json.encode(model.input)) > MOST_BYTES:
        yield Problem("/schedule/input", f"the input of a schedule has at most {MOST_BYTES:,} bytes")
    yield from label_problems(model.labels, "/schedule/labels")
    wrong = list(_expressions(source))
    yield from wrong or _input(source)


def _expressions(source: Source) -> Iterator[Problem]:
    assert source.model.schedule is not None
    for place, found in expressions_in(source.model.schedule.input, "/schedule/input"):
        if isinstance(found, ExpressionError):
            yield Problem(place, str(found))
        elif found.root != SCHEDULE:
            message = f"`{found.text}`: the input of a schedule can name `schedule.time` and `schedule.name`"
            yield Problem(place, message)


def _input(source: Source) -> Iterator[Problem]:
    model = source.model
    if model.input is None or model.schedule is None:
        return
    example = ScheduleRecord(
        tenant="",
        workflow=model.name,
        number=0,
        version=0,
        by="",
        anchor=0,
        schedule=model.schedule.schedule(),
    )
    for problem in input_violations(model.input, given_at(example, _SOME_TICK)):
        yield Problem(f"/schedule{problem.path}", f"the workflow's `input` refuses it: {problem.message}")
