"""The records of circuit breakers: one for each target of a tenant, moved by conditional writes alone.

What a record means is in core/failures/breakers.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from baton.core.failures.breakers import Breaker


class Breakers(Protocol):
    """One record for each tenant and target."""

    def read_breaker(self, tenant: str, target: str) -> Breaker | None:
        """The record, eventually consistent; None: nothing was ever told of this target, or not for long."""
        ...

    def write_breaker(self, tenant: str, target: str, breaker: Breaker, now: int) -> Breaker | None:
        """Put the record if what is there has the version before its own; a record with version 1, if none is there.

        Returns what is there instead: None if it was written. A write that is repeated because its answer was lost finds
        itself there. The record is kept for 30 days from `now` on; one that is open until it is reset, for good.
        """
        ...

    def all(self, tenant: str, after: str = "", limit: int = 100) -> Sequence[tuple[str, Breaker]]:
        """The records of a tenant with their targets, in the order of these, eventually consistent."""
        ...
