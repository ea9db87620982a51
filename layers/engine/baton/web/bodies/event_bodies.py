"""Events as CloudEvents 1.0 sends them by HTTP: structured, as a batch, or in headers (binary mode); and what is answered.

What is wrong with an event is in core/outside/cloudevents.py, what becomes of it in runtime/triggers/event_desk.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import unquote

from baton.core.documents.text import parse_document
from baton.core.outside.cloudevents import problems_of
from baton.errors import InvalidInput, Problem, StoreUnavailable, Throttled, TooManyRequests
from baton.runtime.triggers.event_desk import LATER, REFUSED, EventDesk, complaint

MOST_EVENTS = 100
STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
_ATTRIBUTE = "ce-"
_AGAIN_S = 5
_NO_ANSWER = "the store did not answer in time"


def read_events(text: str, headers: Mapping[str, str]) -> tuple[list[Any], bool]:
    """The events of a request, unchecked, and whether they came as a list. `headers` have names in lower case.

    Raises `MalformedDocument`, `InvalidInput` for what holds no events.
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


async def take(desk: EventDesk, text: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """The answer: what was done by each event.

    Raises `InvalidInput` with what is no event and what a rule has refused, and `TooManyRequests` with those that have to come again: what
    was done for the others stays done, and a sender gets on with a store that is too slow for all of them in one request.
    """
    events, is_list = read_events(text, headers)
    faults = [problems_of(event, f"/{index}" if is_list else "") for index, event in enumerate(events)]
    if events and all(faults):
        found = tuple(problem for each in faults for problem in each)
        raise InvalidInput(f"at {found[0].path or '/'}: {found[0].message}", found)
    answers, later, wrong = [], [], []
    for index, (event, problems) in enumerate(zip(events, faults, strict=True)):
        try:
            outcomes = [] if problems else await desk.take(event)
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
        detail = f"{many} could not be dealt with for now: {later[0].message}; send the same again, what was done is not done twice"
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
