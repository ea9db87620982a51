"""The schedule of a workflow that is built in Python is that of its document."""

from __future__ import annotations

from baton import Workflow
from baton.core.graph.schedule import Schedule


def test_a_schedule_is_written_as_in_a_document() -> None:
    flow = Workflow(
        "report",
        schedule={"cron": "0 18 * * fri", "timezone": "Europe/Berlin", "input": {"day": "${schedule.time}"}},
    )
    flow.value("a", 1)
    assert flow.compile({}).schedule == Schedule(
        cron="0 18 * * fri", timezone="Europe/Berlin", input={"day": "${schedule.time}"}
    )
