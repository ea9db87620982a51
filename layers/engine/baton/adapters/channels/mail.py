"""`Notices` by mail, to those whose address is known. Who sends the mail is a `Mailer`.

An address is made of a name by a pattern of the deployment, so that no document can have mail sent to another domain
than the deployment's own, unless its pattern says so.
"""

from __future__ import annotations

import re

from baton.adapters.aws import refusals_are_outages
from baton.adapters.channels.words import letter_of, line, subject_of
from baton.core.failures.strategies.base import STARTER
from baton.ports import Telling
from baton.ports.outside import Letter, Mailer

NAME = "{name}"
_MOST_SUBJECT = 200
_MOST_ADDRESS = 254
# What SES says of an address or a mail that it will never take, such as one that is not verified in its sandbox.
_FOR_EVER = frozenset({"BadRequestException", "MailFromDomainNotVerifiedException", "MessageRejected"})
_is_address = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+").fullmatch
# Asks machines not to answer it ("I am on holiday").
_HEADERS = {"Auto-Submitted": "auto-generated"}


class MailNotices:
    """`Notices` from one sender. `users`, `groups`: patterns of addresses with `{name}` in them; empty: no mail to these."""

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
            subject=line(subject_of(telling, titled=True), _MOST_SUBJECT),
            text=letter_of(telling),
            headers=_HEADERS,
        )
        with refusals_are_outages(_FOR_EVER):
            self._mailer.send(letter)

    def _address(self, telling: Telling) -> str:
        kind, _, name = telling.notice.to.partition(":")
        if telling.notice.to == STARTER:
            kind, name = "user", telling.user
        return address_of(self._patterns.get(kind, ""), name)


def address_of(pattern: str, name: str) -> str:
    """The address of a user or a group, empty when there is none.

    `{name}@a.example` makes one of a name, and takes a name that is an address of that domain already; `{name}` takes
    any name that is an address.
    """
    if not pattern:
        return ""
    made, domain = pattern.replace(NAME, name), pattern.partition("@")[2]
    for address in (made, name):
        is_ours = not domain or address.lower().endswith(f"@{domain.lower()}")
        if is_ours and len(address) <= _MOST_ADDRESS and _is_address(address):
            return address
    return ""
