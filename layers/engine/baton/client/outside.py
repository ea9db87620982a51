"""Events from outside, as calls of `Api`."""

from __future__ import annotations

import json
from typing import Any

from baton.client.calls import Calls

_ONE, _MANY = "application/cloudevents+json", "application/cloudevents-batch+json"


class EventCalls(Calls):
    """What an `Api` can do with events from outside."""

    async def send_events(self, events: Any) -> dict[str, Any]:
        """`POST /events` with an event or a list of events; what a repetition has done already is not done twice."""
        kind = _MANY if isinstance(events, list) else _ONE
        text = json.dumps(events, ensure_ascii=False)
        answer = await self._transport.ask("POST", "/events", text=text, content_type=kind)
        return self._shaped(answer.document or {}, "events")
