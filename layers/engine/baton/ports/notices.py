"""Notices to people, and the incidents that need a person, as Protocols.

What is told, to whom and when is decided in core/; in which words it is sent is the adapter's business.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

import msgspec

from baton.core.log.events import Notice

WINDOW_MS = 86_400_000  # so long a key stands for one notice
CLAIM_MS = 10_000  # longer than an answer of the topic may take; then another saga may send in its place


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """Something that went wrong and that a person has to look at. `resolved` 0: none has, so far.

    `by` is who did something about it.
    """

    tenant: str
    id: str
    saga: str
    node: str
    code: str
    message: str
    severity: str
    opened: int
    resolved: int = 0
    by: str = ""


def incident_of(tenant: str, saga: str, notice: Notice) -> Incident:
    """What a notice opens. The same notice opens the same incident."""
    return Incident(
        tenant=tenant,
        id=incident_id(notice.key, notice.at),
        saga=saga,
        node=notice.node,
        code=notice.code,
        message=notice.message,
        severity=notice.severity,
        opened=notice.at,
    )


def incident_id(key: str, at: int) -> str:
    """Sorts by time; says nothing of the key, which is the engine's own. 12 digits of time last until the year 10889."""
    return f"i{at:012x}{hashlib.sha256(key.encode()).hexdigest()[:12]}"


class Notices(Protocol):
    """Tells people."""

    def tell(self, tenant: str, saga: str, user: str, notice: Notice, now: int) -> None:
        """Send it, and keep its incident if it opens one. `user` is whose saga it is.

        Of all notices of a tenant with one key one is sent in 24 hours, however many callers there are: the others do
        nothing. So a key that is about one saga names it. A caller that dies on the way leaves a claim that its
        successor, and after 10 seconds everybody, takes over: nothing is lost, and rarely something is sent twice.
        Raises `Throttled` while another saga is just sending it.
        """
        ...


class Incidents(Protocol):
    """The incidents and their resolutions. Every read sees every write before it."""

    def listed(
        self, tenant: str, *, status: str = "", limit: int, after: str = ""
    ) -> tuple[Sequence[Incident], str]:
        """At most `limit` incidents, the newest first, and the id to go on after; empty: no more.

        `status`: open, resolved, or empty for both. A page may be short, or empty, and yet not be the last.
        """
        ...

    def of_saga(self, tenant: str, saga: str, node: str = "") -> Sequence[str]:
        """The ids of those of one saga, or of one of its nodes, the oldest first; resolved ones included."""
        ...

    def resolve(self, tenant: str, id: str, by: str, now: int) -> Incident | None:
        """Say that `by` has done something about it; the incident as it is now, None when there is none.

        One that is resolved stays as it was.
        """
        ...


class NoticeRecord(Incidents, Protocol):
    """Claims of notices, so that each has one sender, beside the incidents that they open."""

    def claim(self, tenant: str, saga: str, notice: Notice, now: int) -> Notice | None:
        """The notice that is to be sent under this key, or None when that has been done.

        It is the one that was claimed first, if another saga died over it. Raises `Throttled` while another saga is
        sending it; one's own claim is that of an invocation that died, because a saga has one at a time.
        """
        ...

    def sent(self, tenant: str, key: str, now: int) -> None:
        """Note that it was sent."""
        ...

    def open(self, tenant: str, saga: str, notice: Notice) -> None:
        """Keep the incident of a notice; the same notice again changes nothing."""
        ...
