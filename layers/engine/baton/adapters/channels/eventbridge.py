"""`Notices` on a bus of EventBridge, each as a CloudEvent of version 1.0 in JSON. Rules of the bus say who gets it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from baton.adapters.aws import refusals_are_outages, translated
from baton.adapters.channels.words import data_of, id_of, kind_of
from baton.core.times import iso
from baton.errors import ChannelRefused, StoreUnavailable, Throttled
from baton.ports import Telling

SOURCE = "baton"
_FOR_EVER = frozenset({"InvalidArgument", "MalformedDetail"})


class EventsClient(Protocol):
    """What is used of the client."""

    def put_events(self, *, Entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:  # noqa: N803  # boto3's name
        """An answer of 200 may say of an entry that it was not taken."""
        ...


class EventNotices:
    """`Notices` on the bus with this name."""

    name = "events"

    def __init__(self, client: EventsClient, bus: str) -> None:
        self._client = client
        self._bus = bus

    def reaches(self, telling: Telling) -> bool:
        return True

    def tell(self, telling: Telling) -> None:
        event = cloud_event(telling)
        entry = {
            "EventBusName": self._bus,
            "Source": SOURCE,
            "DetailType": event["type"],
            "Detail": msgspec.json.encode(event).decode(),
        }
        with refusals_are_outages(), translated():
            answer = self._client.put_events(Entries=[entry])
        if answer["FailedEntryCount"]:
            raise _failure(answer["Entries"][0])


def cloud_event(telling: Telling) -> dict[str, Any]:
    """Source and id together name one event; the id is the same when it is sent again."""
    return {
        "specversion": "1.0",
        "id": id_of(telling, EventNotices.name),
        "source": f"/{SOURCE}/{quote(telling.tenant, safe='')}",
        "type": kind_of(telling),
        "subject": telling.saga,
        "time": iso(telling.notice.at),
        "datacontenttype": "application/json",
        "data": data_of(telling),
    }


def _failure(entry: Mapping[str, Any]) -> Exception:
    code, said = entry.get("ErrorCode", ""), f"the bus did not take it: {entry.get('ErrorMessage', '')}"
    if "Throttling" in code:
        return Throttled(said)
    return ChannelRefused(said) if code in _FOR_EVER else StoreUnavailable(said)
