"""The route of events from outside: a row of the table in routes.py."""

from __future__ import annotations

from typing import Any

from baton.web import commands
from baton.web.route import Route

EVENTS: tuple[Route[Any], ...] = (
    Route(
        method="POST", path="/events", id="sendEvents", handler=commands.send_events, roles=("run",),
        summary="Events from outside, as CloudEvents: they start sagas, and are signals, by the rules of documents. A known event does nothing.",
        takes_text=True,
        takes={"application/cloudevents+json": "CloudEvent", "application/cloudevents-batch+json": "CloudEvents"},
        answers={202: "EventsTaken"},
    ),
)  # fmt: skip
