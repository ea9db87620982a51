"""The toy store's subscriptions."""

from __future__ import annotations

from collections.abc import Sequence

from tests.contract.toy_table import Kept


class ToySubscriptions:
    """`Subscriptions`."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def subscribe(self, tenant: str, type: str, workflow: str, user: str) -> None:
        with self._kept.alone():
            self._kept.put(f"subscription {type}", tenant, workflow, (workflow, user))

    def subscribed(self, tenant: str, type: str, limit: int) -> Sequence[tuple[str, str]]:
        found = self._kept.between(f"subscription {type}", tenant, "", "~", tuple[str, str])
        return list(found)[:limit]
