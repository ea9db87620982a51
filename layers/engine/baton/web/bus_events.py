"""Events that Amazon EventBridge hands to the api function: its envelope becomes a CloudEvent of the tenant in `EventTenant`.

Lambda repeats what raises here, and puts it into the queue of dead letters at last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.core.outside.cloudevents import VERSION, problems_of
from baton.errors import EngineFault
from baton.runtime.engine.parts import Engine
from baton.runtime.engine.request import Caller
from baton.runtime.service import Service
from baton.runtime.triggers.event_desk import LATER, REFUSED, complaint

USER = "eventbridge"
"""Who signals, in the log."""


class NotTaken(EngineFault):
    """The event could not be dealt with, or not by every rule; the message says why."""


def cloud_event(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of a bus as a CloudEvent. One whose detail is a CloudEvent already is taken as that."""
    detail = entry.get("detail")
    if isinstance(detail, dict) and detail.get("specversion") == VERSION and not problems_of(detail):
        return detail
    resources = entry.get("resources") or []
    named = {"account": entry.get("account"), "region": entry.get("region"), "time": entry.get("time")}
    return {
        "specversion": VERSION,
        "id": entry.get("id"),
        "source": entry.get("source"),
        "type": entry.get("detail-type"),
        **{name: value for name, value in named.items() if value},
        **({"subject": resources[0]} if len(resources) == 1 else {}),
        "data": detail,
    }


async def take_in(
    engine: Engine, tenant: str, entry: Mapping[str, Any], request: str, deadline: int
) -> list[dict[str, Any]]:
    """What was done. Raises `NotTaken`."""
    if not tenant:
        raise NotTaken("the parameter `EventTenant` does not say whose the events of the bus are")
    event = cloud_event(entry)
    if problems := problems_of(event):
        raise NotTaken(f"at {problems[0].path}: {problems[0].message}")
    caller = Caller(tenant=tenant, user=USER, request=request)
    desk = Service(engine, caller, deadline).event_desk
    outcomes = await desk.take(event)
    left = [one for one in outcomes if one["did"] in (LATER, REFUSED)]
    if left:
        raise NotTaken(f"event {event['id']} of {event['source']}: {complaint(left[0])}")
    return outcomes
