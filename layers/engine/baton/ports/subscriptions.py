"""Which workflows have rules for events of a type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Subscriptions(Protocol):
    """By tenant and type of event, the names of workflows. A workflow may be there whose newest version has no such rule."""

    def subscribe(self, tenant: str, type: str, workflow: str, user: str) -> None:
        """Repeated, it changes who the user is, and nothing else."""
        ...

    def subscribed(self, tenant: str, type: str, limit: int) -> Sequence[tuple[str, str]]:
        """(Workflow, user) of at most `limit` workflows, by name; strongly consistent."""
        ...
