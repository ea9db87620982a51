"""A store: all records that the engine keeps in one table, as one object.

A store has every port below, and its limits. Blobs and objects (a bucket) and messages (a queue) are kept
elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from baton.ports.budgets import Budgets
from baton.ports.log import Inbox, Live, Log, StoreLimits
from baton.ports.outside import Entities, Facts
from baton.ports.people import NoticeRecord, Questions
from baton.ports.records import Checkpoints, Definitions, Effects, Rates

if TYPE_CHECKING:
    from baton.ports.operators import Breakers, Letters
    from baton.ports.triggers import Schedules, Subscriptions


class Store(Protocol):
    """Ports to one table. Each has its own contract (tests/contract)."""

    @property
    def limits(self) -> StoreLimits:
        """Limits of the store."""
        ...

    @property
    def cell(self) -> int:
        """Number of this deployment of several, with which its sagas' ids begin. 0: the only one."""
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
        """Port to the registered workflows."""
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
        """Port to the numbers of requests of tenants."""
        ...

    @property
    def breakers(self) -> Breakers:
        """Port to the circuit breakers."""
        ...

    @property
    def notice_record(self) -> NoticeRecord:
        """Notices that were sent, and incidents."""
        ...

    @property
    def live(self) -> Live:
        """Texts of models under way, for viewers of sagas."""
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
    def checkpoints(self) -> Checkpoints:
        """Threads of agents of other frameworks."""
        ...

    @property
    def facts(self) -> Facts:
        """Facts of users."""
        ...

    @property
    def letters(self) -> Letters:
        """The record of dead letters."""
        ...

    @property
    def schedules(self) -> Schedules:
        """Schedules that start workflows."""
        ...

    @property
    def subscriptions(self) -> Subscriptions:
        """Workflows with rules for events from outside."""
        ...
