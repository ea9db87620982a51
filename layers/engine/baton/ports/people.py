"""Notices, incidents and questions: their records, and the ports to them."""

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
    """Something that went wrong and that a person has to look at. `resolved` 0: none has, so far.

    `by` is who did something about it. `acked`: when `holder` last acknowledged it, with a `note`; 0: no
    person has.
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


def is_of(incident: Incident, status: str) -> bool:
    """Whether a list with this status has the incident."""
    if status == "unacknowledged":
        return not incident.resolved and not incident.acked
    return not status or (status == "resolved") == bool(incident.resolved)


def incident_id(key: str, at: int) -> str:
    """Sorts by time; says nothing of the key, which is the engine's own. 12
    digits of time last until the year 10889.
    """
    return f"i{at:012x}{hashlib.sha256(key.encode()).hexdigest()[:12]}"


class Telling(msgspec.Struct, frozen=True, kw_only=True):
    """A notice on its way to people, at `now`.
    `user` is whose saga it is; `expires` is when the saga does, 0: never.

    `ask` is the question that it is about, while that is open. `link`: where it can be answered without
    signing in; empty: nowhere.
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
    """A channel by which people are told.
    What is told once and what again is decided in runtime/people/notices.py.
    """

    @property
    def name(self) -> str:
        """The same for ever: a notice is claimed for a channel by its name."""
        ...

    def reaches(self, telling: Telling) -> bool:
        """Whether there is somewhere to send it."""
        ...

    def tell(self, telling: Telling) -> None:
        """Send it. To send it again sends it again, under the same id where the channel has ids.

        Raises `Throttled` and `StoreUnavailable` for what can be tried again,
        and `ChannelRefused` for what cannot.
        """
        ...


class Incidents(Protocol):
    """The incidents and their resolutions. Every read sees every write before it."""

    def listed(
        self, tenant: str, *, status: str = "", limit: int, after: str = ""
    ) -> tuple[Sequence[Incident], str]:
        """At most `limit` incidents, the newest first, and the id to go on after; empty: no more.

        `status`: open, unacknowledged (open, and acknowledged by no one), resolved, or empty for all. A page
        may be short, or empty, and yet not be the last.
        """
        ...

    def of_saga(self, tenant: str, saga: str, node: str = "") -> Sequence[str]:
        """The ids of those of one saga, or of one of its nodes, the oldest first; resolved ones included."""
        ...

    def find(self, tenant: str, id: str) -> Incident | None:
        """One of them; None when there is none."""
        ...

    def acknowledge(
        self, tenant: str, id: str, by: str, note: str, now: int, seen: int = 0
    ) -> Incident | None:
        """Say that `by` has it; the incident as it is now, None when there is none.

        `seen`: its `acked` as the caller has seen it; one that has another by now, or is resolved, stays as
        it was. So a write that lands late does not take the incident away from the person who has it since.
        """
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

        It is the one that was claimed first, if another saga died over it. Raises `Throttled` while another
        saga is sending it; one's own claim is that of an invocation that died, because a saga has one at a
        time. Raises `ChannelRefused` where that was noted.
        """
        ...

    def sent(self, tenant: str, key: str, now: int, refused: str = "") -> None:
        """Note that it was sent, or why it never will be."""
        ...

    def open(self, tenant: str, saga: str, notice: Notice, expires: int = 0) -> None:
        """Keep the incident of a notice until `expires`, when its saga does; 0: for ever.
        The same notice again changes nothing.
        """
        ...


Spot: TypeAlias = tuple[int, str, str]
"""Of a row in a list: when its question expires (NEVER, if it does not), its saga, its id."""
NEVER = 10**15
"""In the order of a list, the time of what never expires: behind everything else."""


class QuestionRow(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An open question as lists show it.
    `to` is its audience in one word: `user:ada`, `group:ops`, `role:answer`, `on_call`.

    `expires_at`: when it is closed without an answer; 0: never. `told`: its audience was told of it;
    otherwise it waits for a place among a person's pending ones. `title` and `message` may be cut.
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
    """The rows of open questions.

    Calls about one question carry a number that grows with the saga's log.
    What lands late, behind a call with a higher number, changes nothing: no row comes back that was removed.
    """

    def put(self, tenant: str, row: QuestionRow, number: int, until: int) -> None:
        """Put or replace a row. The store may delete it after `until`; 0: never."""
        ...

    def remove(self, ref: SagaRef, ask: str, number: int, until: int) -> None:
        """Take a row out, there or not. Until `until` at least, the store knows that it did."""
        ...

    def removed(self, ref: SagaRef, number: int) -> Collection[str]:
        """The questions of a saga whose rows were taken out with this number or a higher one.
        Strongly consistent.
        """
        ...

    def listed(
        self, tenant: str, audience: str, now: int, limit: int, after: Spot | None = None
    ) -> tuple[Sequence[QuestionRow], Spot | None]:
        """At most `limit` questions of an audience that expire after `now`,
        soonest first, and where to go on (None: at its end).

        Those that expire at the same moment come in an order of the store's own, always the same.
        Eventually consistent.
        """
        ...
