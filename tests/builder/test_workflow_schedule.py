"""The schedule of a workflow that is built in Python is that of its document, and so are its rules for events."""

from __future__ import annotations

from baton import Workflow
from baton.core.graph.graph import Events, Schedule, StartRule


def test_a_schedule_is_written_as_in_a_document() -> None:
    flow = Workflow(
        "report",
        schedule={"cron": "0 18 * * fri", "timezone": "Europe/Berlin", "input": {"day": "${schedule.time}"}},
    )
    flow.value("a", 1)
    assert flow.compile({}).schedule == Schedule(
        cron="0 18 * * fri", timezone="Europe/Berlin", input={"day": "${schedule.time}"}
    )


def test_rules_for_events_are_written_as_in_a_document() -> None:
    flow = Workflow("ship", events={"start": [{"type": "paid", "input": {"order": "${event.data.order}"}}]})
    flow.value("a", 1)
    rule = StartRule(type="paid", input={"order": "${event.data.order}"})
    assert flow.compile({}).events == Events(start=(rule,))
