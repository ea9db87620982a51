"""Parsing of CloudEvents 1.0 from HTTP requests and EventBridge, and the models of the answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from msgspec import Meta
from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel

from baton.core.documents.text import parse_document
from baton.core.outside import LONGEST_ID, LONGEST_SOURCE, LONGEST_TYPE, VERSION, event_problems
from baton.core.read.answers import Count, View
from baton.errors import EngineFault, InvalidInput, Problem, StoreUnavailable, Throttled, TooManyRequests
from baton.runtime.engine.parts import Engine
from baton.runtime.engine.request import Caller
from baton.runtime.requests.events import DEEDS, LATER, REFUSED, EventService, complaint
from baton.runtime.requests.service import Service

MOST_EVENTS = 100
STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
_ATTRIBUTE = "ce-"
_AGAIN_S = 5
_NO_ANSWER = "the store did not answer in time"


def read_events(text: str, headers: Mapping[str, str]) -> tuple[list[Any], bool]:
    """Return the events of a request, unchecked, and whether the request contained a list.

    The names in `headers` are in lower case. Raises `MalformedDocument`, or `InvalidInput` if the body
    contains no events.
    """
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (STRUCTURED, BATCH) and any(name.startswith(_ATTRIBUTE) for name in headers):
        return [_binary(text, headers, kind)], False
    value = parse_document(text if text.strip() else "null", json_only=True).value
    is_list = isinstance(value, list)
    if kind == BATCH and not is_list:
        raise _refused(f"with `{BATCH}` the body is a list of events", f"send one event as `{STRUCTURED}`")
    if kind == STRUCTURED and is_list:
        raise _refused(f"with `{STRUCTURED}` the body is one event", f"send a list of events as `{BATCH}`")
    if not isinstance(value, dict | list):
        hint = f"write it as `{STRUCTURED}`, or put its attributes into headers such as `ce-id`"
        raise _refused("the body is an event, which is a JSON object, or a list of events", hint)
    events: list[Any] = value if isinstance(value, list) else [value]
    if len(events) > MOST_EVENTS:
        raise _refused(f"a request has at most {MOST_EVENTS} events; this one has {len(events)}", "")
    return events, is_list


def _refused(message: str, hint: str) -> InvalidInput:
    return InvalidInput(message, (Problem("", message, hint),))


def _binary(text: str, headers: Mapping[str, str], kind: str) -> dict[str, Any]:
    event: dict[str, Any] = {
        name.removeprefix(_ATTRIBUTE): unquote(value)
        for name, value in headers.items()
        if name.startswith(_ATTRIBUTE)
    }
    if kind:
        event["datacontenttype"] = headers["content-type"]
    if text:
        is_json = not kind or kind.endswith(("/json", "+json"))
        event["data"] = parse_document(text, json_only=True).value if is_json else text
    return event


async def take(service: EventService, text: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """Process the events of a request and return the outcomes of each.

    Raises `InvalidInput` with the events that are invalid or that a rule has refused, and `TooManyRequests`
    with the events that the sender must send again. Outcomes of the other events are kept, so that a sender
    makes progress even if the store is too slow for all events of one request.
    """
    events, is_list = read_events(text, headers)
    faults = [event_problems(event, f"/{index}" if is_list else "") for index, event in enumerate(events)]
    if events and all(faults):
        found = tuple(problem for each in faults for problem in each)
        raise InvalidInput(f"at {found[0].path or '/'}: {found[0].message}", found)
    answers, later, wrong = [], [], []
    for index, (event, problems) in enumerate(zip(events, faults, strict=True)):
        try:
            outcomes = [] if problems else await service.take(event)
        except (StoreUnavailable, Throttled):
            if not index:
                raise
            left = (other for other in range(index, len(events)) if not faults[other])
            later += [Problem(f"/{other}", _NO_ANSWER) for other in left]
            break
        answers.append(_answer(event, outcomes))
        place = f"/{index}" if is_list else ""
        later += [Problem(f"/{index}", str(one["why"])) for one in outcomes if one["did"] == LATER]
        wrong += [Problem(place, complaint(one)) for one in outcomes if one["did"] == REFUSED]
        wrong += problems
    if later:
        many = _many(later, events, is_list)
        detail = f"{many} could not be processed now: {later[0].message}; send the same again, what was done is not done twice"
        refused = TooManyRequests(detail, _AGAIN_S)
        refused.problems = tuple(later)
        raise refused
    if wrong:
        was = "were" if is_list else "was"
        detail = f"{_many(wrong, events, is_list)} {was} refused: {wrong[0].message}; what others have done stays done"
        raise InvalidInput(detail, tuple(wrong))
    return {"events": answers}


def _answer(event: Any, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    named = event if isinstance(event, dict) else {}
    texts = {name: named.get(name) for name in ("id", "source", "type")}
    return {
        **{name: value if isinstance(value, str) else None for name, value in texts.items()},
        "matched": len(outcomes),
        "outcomes": outcomes,
    }


def _many(problems: Collection[Problem], events: Collection[Any], is_list: bool) -> str:
    return (
        f"{len({one.path.split('/')[1] for one in problems})} of {len(events)} events"
        if is_list
        else "the event"
    )


class CloudEvent(BaseModel):
    """An event as defined by CloudEvents 1.0. Names of extension attributes consist of lower-case letters and
    digits.
    """

    model_config = ConfigDict(extra="allow")

    specversion: Literal["1.0"]
    id: str = Field(
        min_length=1, max_length=LONGEST_ID, description="Identifier, unique among the events of the source."
    )
    source: str = Field(min_length=1, max_length=LONGEST_SOURCE, examples=["shop"])
    type: str = Field(min_length=1, max_length=LONGEST_TYPE, examples=["payment.settled"])
    data: JsonValue = Field(default=None, description="Any JSON value.", examples=[{"order": "A-17"}])


class CloudEvents(RootModel[Annotated[list[JsonValue], Field(max_length=MOST_EVENTS)]]):
    """A batch of events, each a CloudEvent. An invalid event does not affect the others; the answer is 422
    and names its position.
    """


class EventOutcome(View):
    """Result of one rule of a workflow."""

    workflow: str
    did: Annotated[
        Annotated[str, Meta(extra_json_schema={"enum": list(DEEDS)})],
        "; ".join(f"`{deed}`: {means}" for deed, means in DEEDS.items()) + ".",
    ]
    saga: Annotated[str | None, "Saga that was started or signalled, or that existed already."]
    signal: Annotated[str | None, "Signal of the rule. Null for a rule that starts sagas."]
    why: str | None


class EventTaken(View):
    """Result of one event."""

    id: str | None
    source: str | None
    type: str | None
    matched: Annotated[Count, "Number of rules that match the event."]
    outcomes: list[EventOutcome]


class EventsTaken(View):
    """Results of the events, in the order of the request."""

    events: list[EventTaken]


USER = "eventbridge"
"""User recorded in the log for signals from EventBridge."""


class NotTaken(EngineFault):
    """Error for an event that some or all of its rules could not process. The message contains the reason."""


def cloud_event(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the EventBridge entry as a CloudEvent. A detail that is a valid CloudEvent is that event."""
    detail = entry.get("detail")
    if isinstance(detail, dict) and detail.get("specversion") == VERSION and not event_problems(detail):
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
    """Process an EventBridge entry and return the outcomes. Raises `NotTaken`."""
    if not tenant:
        raise NotTaken("the parameter `EventTenant` does not say whose the events of the bus are")
    event = cloud_event(entry)
    if problems := event_problems(event):
        raise NotTaken(f"at {problems[0].path}: {problems[0].message}")
    caller = Caller(tenant=tenant, user=USER, request=request)
    service = Service(engine, caller, deadline).event_service
    outcomes = await service.take(event)
    left = [one for one in outcomes if one["did"] in (LATER, REFUSED)]
    if left:
        raise NotTaken(f"event {event['id']} of {event['source']}: {complaint(left[0])}")
    return outcomes
