"""A store: everything that the engine keeps in one table, as one object.

A store has every port below, and its limits.
What is kept elsewhere is no part of it: blobs and objects (a bucket), messages (a queue).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from baton.ports.budgets import Budgets
from baton.ports.log import Inbox, Live, Log, StoreLimits
from baton.ports.outside import Entities
from baton.ports.people import NoticeRecord, Questions
from baton.ports.records import Definitions, Effects, Rates

if TYPE_CHECKING:
    from baton.ports.operators import Breakers, Letters
    from baton.ports.triggers import Schedules, Subscriptions


class Store(Protocol):
    """The ports to one table. Each has its own contract (tests/contract)."""

    @property
    def limits(self) -> StoreLimits:
        """What it takes at most."""
        ...

    @property
    def cell(self) -> int:
        """The one of several deployments that share the load of a service, by
        whose number the ids of its sagas begin; 0: the only one.
        """
        ...

    @property
    def log(self) -> Log:
        """Heads, entries, snapshots, indexes, and tools' own rows."""
        ...

    @property
    def inbox(self) -> Inbox:
        """Ends of child sagas, for their parents."""
        ...

    @property
    def definitions(self) -> Definitions:
        """Registered workflows."""
        ...

    @property
    def effects(self) -> Effects:
        """Effects that may happen only once."""
        ...

    @property
    def budgets(self) -> Budgets:
        """The money of users."""
        ...

    @property
    def rates(self) -> Rates:
        """Requests of tenants."""
        ...

    @property
    def breakers(self) -> Breakers:
        """Circuit breakers."""
        ...

    @property
    def notice_record(self) -> NoticeRecord:
        """Notices that were sent, and incidents."""
        ...

    @property
    def live(self) -> Live:
        """What viewers of sagas are shown."""
        ...

    @property
    def questions(self) -> Questions:
        """The inbox of open questions."""
        ...

    @property
    def entities(self) -> Entities:
        """Versioned JSON of the standard tools."""
        ...

    @property
    def letters(self) -> Letters:
        """The record of dead letters."""
        ...

    @property
    def schedules(self) -> Schedules:
        """When workflows are started by themselves."""
        ...

    @property
    def subscriptions(self) -> Subscriptions:
        """Which workflows have rules for events from outside."""
        ...
