"""The toy store's dead letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from baton.adapters.clock import SystemClock
from baton.core.letters import PENDING, Letter
from baton.ports import SagaRef, Wake
from baton.ports.log import is_over
from baton.ports.operators import MOST_COUNTED, Outstanding, letter_ref
from tests.contract.toy_table import Kept


class ToyLetters:
    """`Letters`."""

    def __init__(self, kept: Kept, pass_on: Callable[[SagaRef, Wake], None]) -> None:
        self._kept = kept
        self._pass_on = pass_on

    def read(self, tenant: str, id: str) -> Letter | None:
        found = self._kept.get("letter", tenant, id, Letter)
        return None if found is None or is_over(found.expires, SystemClock().now()) else found

    def write(self, letter: Letter, seen: int, wake: Wake | None = None) -> bool:
        with self._kept.alone():
            there = self.read(letter.tenant, letter.id)
            if (there.number if there else 0) != seen:
                return False
            self._kept.put("letter", letter.tenant, letter.id, letter)
            if wake is not None:
                self._pass_on(letter_ref(letter), wake)
            return True

    def listed(
        self, tenant: str, status: str, limit: int, after: Letter | None = None
    ) -> tuple[Sequence[Letter], bool]:
        found = [one for one in self._all() if (one.tenant, one.status) == (tenant, status)]
        left = [one for one in found if after is None or (one.since, one.id) > (after.since, after.id)]
        return left[:limit], len(left) > limit

    def outstanding(self) -> Outstanding:
        pending = [one.since for one in self._all() if one.status == PENDING]
        return Outstanding(min(len(pending), MOST_COUNTED), min(pending, default=0))

    def _all(self) -> list[Letter]:
        now = SystemClock().now()
        kept = [one for _, _, one in self._kept.all("letter", Letter)]
        return sorted(
            (one for one in kept if not is_over(one.expires, now)), key=lambda one: (one.since, one.id)
        )
