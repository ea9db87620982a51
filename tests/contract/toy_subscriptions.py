"""The toy store's subscriptions."""

from __future__ import annotations

from collections.abc import Sequence

from tests.contract.toy_table import Kept


class ToySubscriptions:
    """`Subscriptions`: workflow, user (empty once it was given up) and version."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def subscribe(self, tenant: str, type: str, workflow: str, user: str, version: int) -> None:
        with self._kept.alone():
            if self._version(tenant, type, workflow) <= version:
                self._kept.put(f"subscription {type}", tenant, workflow, (workflow, user, version))

    def unsubscribe(self, tenant: str, type: str, workflow: str, version: int, expires: int) -> None:
        with self._kept.alone():
            if 0 < self._version(tenant, type, workflow) < version:
                self._kept.put(f"subscription {type}", tenant, workflow, (workflow, "", version))

    def subscribed(self, tenant: str, type: str, limit: int) -> Sequence[tuple[str, str, int]]:
        found = self._kept.between(f"subscription {type}", tenant, "", "~", tuple[str, str, int])
        return [one for one in found if one[1]][:limit]

    def _version(self, tenant: str, type: str, workflow: str) -> int:
        found = self._kept.get(f"subscription {type}", tenant, workflow, tuple[str, str, int])
        return found[2] if found else 0
