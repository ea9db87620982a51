"""`Letters` in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from baton.adapters.memory.log import MemoryLog
from baton.adapters.rules import is_over
from baton.core.letters import PENDING, Letter
from baton.ports import Clock, Wake
from baton.ports.letters import MOST_COUNTED, Outstanding, ref_of


class MemoryLetters:
    """The record of dead letters; one lock makes every call atomic. Without a clock, nothing expires."""

    def __init__(self, log: MemoryLog, clock: Clock | None = None) -> None:
        self._lock = threading.Lock()
        self._log = log
        self._clock = clock
        self._letters: dict[tuple[str, str], Letter] = {}

    def read(self, tenant: str, id: str) -> Letter | None:
        with self._lock:
            return self._there(tenant, id)

    def write(self, letter: Letter, seen: int, wake: Wake | None = None) -> bool:
        with self._lock:
            there = self._there(letter.tenant, letter.id)
            if (there.number if there is not None else 0) != seen:
                return False
            self._letters[letter.tenant, letter.id] = letter
        if wake is not None:
            self._log.pass_on(ref_of(letter), wake)
        return True

    def listed(
        self, tenant: str, status: str, limit: int, after: Letter | None = None
    ) -> tuple[Sequence[Letter], bool]:
        found = [one for one in self.all() if (one.tenant, one.status) == (tenant, status)]
        left = [one for one in found if after is None or _place(one) > _place(after)]
        return left[:limit], len(left) > limit

    def outstanding(self) -> Outstanding:
        pending = [one.since for one in self.all() if one.status == PENDING]
        return Outstanding(min(len(pending), MOST_COUNTED), min(pending, default=0))

    def all(self) -> list[Letter]:
        """Every letter, in the order of lists. For looking on: no port has it."""
        with self._lock:
            there = [one for place in self._letters if (one := self._there(*place)) is not None]
        return sorted(there, key=_place)

    def _there(self, tenant: str, id: str) -> Letter | None:
        letter = self._letters.get((tenant, id))
        if letter is None or (self._clock is not None and is_over(letter.expires, self._clock.now())):
            return None
        return letter


def _place(letter: Letter) -> tuple[int, str]:
    return letter.since, letter.id
