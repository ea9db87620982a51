"""Which workflows have rules for events of a type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Subscriptions(Protocol):
    """By tenant and type of event, the names of workflows. A workflow may be there whose newest version has no such rule.

    Each write is of a version of the workflow, and changes nothing that was written for a later one.
    """

    def subscribe(self, tenant: str, type: str, workflow: str, user: str, version: int) -> None:
        """For a version that has rules for the type. Repeated, it changes who the user is, and nothing else."""
        ...

    def unsubscribe(self, tenant: str, type: str, workflow: str, version: int, expires: int) -> None:
        """For a version that has none; the subscription of the same version or a later one stays.

        Until `expires` (epoch ms) a subscription of an earlier version that lands late is refused, too.
        """
        ...

    def subscribed(self, tenant: str, type: str, limit: int) -> Sequence[tuple[str, str, int]]:
        """(Workflow, user, version) of at most `limit` workflows, by name; strongly consistent."""
        ...
