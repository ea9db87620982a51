"""Records of notices, incidents and questions, and the ports to them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Protocol, TypeAlias

import msgspec

from baton.core.log.events import Ask, Notice
from baton.ports.log import SagaRef

WINDOW_MS = 86_400_000  # so long a key stands for one notice; the same notice, by its `at`, is not sent again after it
LINK_LASTS_MS = 900_000  # from the telling on
CLAIM_MS = 10_000  # longer than an answer of the topic may take; then another saga may send in its place


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """Problem that a person must look at.
    `resolved` 0: it is unresolved.

    `by`: the person who resolved it. `acked`: when `holder` last acknowledged it, with a `note`; 0: no person
    has.
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
    acked: int = 0
    holder: str = ""
    note: str = ""


def incident_of(tenant: str, saga: str, notice: Notice) -> Incident:
    """Return the incident that a notice opens. The same notice opens the same incident."""
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


def is_of(incident: Incident, status: str) -> bool:
    """Return true if a list with this status has the incident."""
    if status == "unacknowledged":
        return not incident.resolved and not incident.acked
    return not status or (status == "resolved") == bool(incident.resolved)


def incident_id(key: str, at: int) -> str:
    """Return the id of an incident.
    Ids sort by time, and reveal nothing of the key, which is the engine's own.

    Their 12 digits of time last until the year 10889.
    """
    return f"i{at:012x}{hashlib.sha256(key.encode()).hexdigest()[:12]}"


class Telling(msgspec.Struct, frozen=True, kw_only=True):
    """Notice on its way to people, at `now`.

    `user` is the owner of the saga; `expires` is when the saga does, 0: never. `ask` is the question that the
    notice is about, while that is open. `link`: an address to answer at without signing in; empty: none.
    """

    tenant: str
    saga: str
    user: str
    notice: Notice
    now: int
    expires: int = 0
    ask: Ask | None = None
    link: str = ""


class Notices(Protocol):
    """Channel that sends notices to people. runtime/people/notices.py decides on repetitions."""

    @property
    def name(self) -> str:
        """Name of the channel. It never changes: a notice is claimed for a channel by its name."""
        ...

    def reaches(self, telling: Telling) -> bool:
        """Return true if the channel has an address for it."""
        ...

    def tell(self, telling: Telling) -> None:
        """Send the notice.
        Sending it again sends it again, under the same id if the channel has ids.

        Raises `Throttled` and `StoreUnavailable` for a failure that can be retried, and `ChannelRefused` for
        one that cannot.
        """
        ...


class Incidents(Protocol):
    """Incidents and their resolutions. Every read sees every earlier write."""

    def listed(
        self, tenant: str, *, status: str = "", limit: int, after: str = ""
    ) -> tuple[Sequence[Incident], str]:
        """Return at most `limit` incidents, the newest first, and the id to continue after; empty: no more.

        `status`: open, unacknowledged (open, and acknowledged by no one), resolved, or empty for all. A page
        may be short, or empty, and yet not be the last.
        """
        ...

    def of_saga(self, tenant: str, saga: str, node: str = "") -> Sequence[str]:
        """Return the ids of incidents of a saga, or of its node, oldest first, resolved ones too."""
        ...

    def find(self, tenant: str, id: str) -> Incident | None:
        """Return an incident; None if it does not exist."""
        ...

    def acknowledge(
        self, tenant: str, id: str, by: str, note: str, now: int, seen: int = 0
    ) -> Incident | None:
        """Acknowledge an incident for `by`.
        Return it as it is now, None if it does not exist.

        `seen`: its `acked` as the caller has seen it; an incident that has another by now, or is resolved,
        stays as it was. So a write that arrives late does not take the incident away from the person who has
        it since.
        """
        ...

    def resolve(self, tenant: str, id: str, by: str, now: int) -> Incident | None:
        """Resolve an open incident for `by`. Return it as it is now, None if it does not exist."""
        ...


class NoticeRecord(Incidents, Protocol):
    """Claims of notices, so that each has one sender, with the incidents that they open."""

    def claim(self, tenant: str, saga: str, notice: Notice, now: int) -> Notice | None:
        """Return the notice to send under this key, or None when it is sent already.

        It is the one that was claimed first, if another saga died before it sent it. Raises `Throttled` while
        another saga is sending it; a claim by the same saga belongs to an invocation that died, because a
        saga has one at a time. Raises `ChannelRefused` if that was recorded.
        """
        ...

    def sent(self, tenant: str, key: str, now: int, refused: str = "") -> None:
        """Record that the notice was sent, or the reason why it never will be."""
        ...

    def open(self, tenant: str, saga: str, notice: Notice, expires: int = 0) -> None:
        """Keep a notice's incident until `expires` (0: for ever). The same notice again changes nothing."""
        ...


Spot: TypeAlias = tuple[int, str, str]
"""Position of a row in a list: when its question expires (NEVER, if it does not), its saga, its id."""
NEVER = 10**15
"""Time of a question that never expires, in the order of a list: after all others."""


class QuestionRow(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Open question as lists show it.

    `to` is its audience in one word: `user:ada`, `group:ops`, `role:answer`, `on_call`. `expires_at`: when it
    is closed without an answer; 0: never. `told`: its audience was notified; otherwise it waits for a place
    among a person's pending ones. `title` and `message` may be cut.
    """

    saga: str
    workflow: str
    ask: str
    type: str
    kind: str
    title: str
    message: str
    to: str
    actions: tuple[str, ...] = ()
    asked_at: int = 0
    expires_at: int = 0
    told: bool = False
    risk: str = ""

    @property
    def spot(self) -> Spot:
        return self.expires_at or NEVER, self.saga, self.ask


class Questions(Protocol):
    """Rows of open questions.

    Calls about one question carry a number that grows with the saga's log. A call that arrives after one with
    a higher number changes nothing: no removed row comes back.
    """

    def put(self, tenant: str, row: QuestionRow, number: int, until: int) -> None:
        """Write or replace a row. The store may delete it after `until`; 0: never."""
        ...

    def remove(self, ref: SagaRef, ask: str, number: int, until: int) -> None:
        """Remove a row, stored or not. The store remembers the removal until `until` at least."""
        ...

    def removed(self, ref: SagaRef, number: int) -> Collection[str]:
        """Return the questions removed with this number or a higher one, strongly consistent."""
        ...

    def listed(
        self, tenant: str, audience: str, now: int, limit: int, after: Spot | None = None
    ) -> tuple[Sequence[QuestionRow], Spot | None]:
        """Return at most `limit` questions of an audience that expire after `now`, soonest first, and the
        place to continue from (None: end).

        Those that expire at the same moment come in an order of the store's own, always the same. Eventually
        consistent.
        """
        ...
