"""Notices by EventBridge and by mail."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from baton.adapters.aws import refusals_are_outages, translated
from baton.adapters.channels.words import id_of, letter_of, line, notice_data, notice_kind, subject_of
from baton.core.expressions import iso
from baton.core.failures.strategies.base import STARTER
from baton.errors import ChannelRefused, StoreUnavailable, Throttled
from baton.ports import Telling
from baton.ports.outside import Letter, Mailer

SOURCE = "baton"
_FOR_EVER = frozenset({"InvalidArgument", "MalformedDetail"})


class EventsClient(Protocol):
    """The methods of boto3's client for EventBridge that the engine calls."""

    def put_events(self, *, Entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:  # noqa: N803  # boto3's name
        """Put entries. An answer of 200 may still refuse single entries."""
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
    """Return the notice as a CloudEvent, whose source and id are the same when it is sent again."""
    return {
        "specversion": "1.0",
        "id": id_of(telling, EventNotices.name),
        "source": f"/{SOURCE}/{quote(telling.tenant, safe='')}",
        "type": notice_kind(telling),
        "subject": telling.saga,
        "time": iso(telling.notice.at),
        "datacontenttype": "application/json",
        "data": notice_data(telling),
    }


def _failure(entry: Mapping[str, Any]) -> Exception:
    code, said = entry.get("ErrorCode", ""), f"the bus did not take it: {entry.get('ErrorMessage', '')}"
    if "Throttling" in code:
        return Throttled(said)
    return ChannelRefused(said) if code in _FOR_EVER else StoreUnavailable(said)


NAME = "{name}"
_MOST_MAIL_SUBJECT = 200
_MOST_ADDRESS = 254
# What SES says of an address or a mail that it will never take, such as one that is not verified in its sandbox.
_MAIL_FOR_EVER = frozenset({"BadRequestException", "MailFromDomainNotVerifiedException", "MessageRejected"})
_is_address = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+").fullmatch
# Asks machines not to answer it ("I am on holiday").
_HEADERS = {"Auto-Submitted": "auto-generated"}


class MailNotices:
    """`Notices` from one sender. `users`, `groups`: patterns of addresses with `{name}`, or empty."""

    name = "mail"

    def __init__(self, mailer: Mailer, sender: str, users: str, groups: str) -> None:
        self._mailer, self._sender = mailer, sender
        self._patterns = {"user": users, "group": groups}

    def reaches(self, telling: Telling) -> bool:
        return bool(self._address(telling))

    def tell(self, telling: Telling) -> None:
        letter = Letter(
            sender=self._sender,
            to=self._address(telling),
            subject=line(subject_of(telling, titled=True), _MOST_MAIL_SUBJECT),
            text=letter_of(telling),
            headers=_HEADERS,
        )
        with refusals_are_outages(_MAIL_FOR_EVER):
            self._mailer.send(letter)

    def _address(self, telling: Telling) -> str:
        kind, _, name = telling.notice.to.partition(":")
        if telling.notice.to == STARTER:
            kind, name = "user", telling.user
        return address_of(self._patterns.get(kind, ""), name)


def address_of(pattern: str, name: str) -> str:
    """Return the address of a user or a group, empty when there is none.

    `{name}@a.example` makes one of a name, and takes a name that is an address of that domain already;
    `{name}` takes any name that is an address.
    """
    if not pattern:
        return ""
    made, domain = pattern.replace(NAME, name), pattern.partition("@")[2]
    for address in (made, name):
        is_ours = not domain or address.lower().endswith(f"@{domain.lower()}")
        if is_ours and len(address) <= _MOST_ADDRESS and _is_address(address):
            return address
    return ""
