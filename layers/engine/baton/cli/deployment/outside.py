"""The command about events from outside: send-events."""

from __future__ import annotations

from typing import Any

import click

from baton.cli.terminal.shared import Shared, console, json_option, print_json
from baton.cli.terminal.values import read_value


@click.command("send-events", short_help="Send events from outside to the rules of workflows.")
@click.argument("events", metavar="EVENTS")
@json_option
@click.pass_obj
def send_events(shared: Shared, events: str, as_json: bool) -> None:
    """Send events (CloudEvents 1.0) to the rules of registered workflows, and show what each rule has done.

    EVENTS is a file (JSON or YAML), JSON itself, or - for standard input: an event, or a list of up to 100. Sent again, an event does
    nothing that it has done already. The `message` of a dead letter of an EventBridge event, and that event itself, are taken as the event
    that they carry.
    """
    value = read_value(events if events[:1] in ("{", "[", "-", "@") else f"@{events}", "EVENTS")
    sent = [_carried(one) for one in value] if isinstance(value, list) else _carried(value)
    answer = shared.call(lambda api: api.send_events(sent))
    if as_json:
        print_json(answer)
    else:
        for event in answer["events"]:
            for line in _lines(event):
                console().print(line, markup=False, highlight=False)


def _carried(value: Any) -> Any:
    """An event without what EventBridge, and Lambda when it gave it up, have put around it."""
    from baton.web.bus_events import cloud_event

    entry = value.get("requestPayload", value) if isinstance(value, dict) else value
    return cloud_event(entry) if isinstance(entry, dict) and "detail-type" in entry else value


def _lines(event: dict[str, Any]) -> list[str]:
    named = event["id"] or "an event without id"
    if not event["outcomes"]:
        return [f"{named}  no rule is for it"]
    return [f"{named}  {_line(one)}" for one in event["outcomes"]]


def _line(one: dict[str, Any]) -> str:
    parts = [one["workflow"], one["signal"], one["did"].replace("_", " "), one["saga"], one["why"]]
    return "  ".join(part for part in parts if part)
