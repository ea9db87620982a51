"""`Budgets` in memory: for tests and for trying things without any AWS."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from baton.adapters.memory.limits import OPEN_RESERVATIONS
from baton.ports import Account, Held, Refused, Reservation, Sums


@dataclass
class _Item:
    spent: int = 0
    held: int = 0
    open: dict[str, Reservation] = field(default_factory=dict)
    freed: set[str] = field(default_factory=set)

    @property
    def sums(self) -> Sums:
        return Sums(self.spent, self.held, len(self.open))

    def free(self, now: int) -> None:
        for id_, one in list(self.open.items()):
            if one.until <= now:
                del self.open[id_]
                self.held -= one.amount
                self.freed.add(id_)


class MemoryBudgets:
    """Accounts; one lock makes every call atomic. `calls` counts those that would cost a request."""

    def __init__(self, most_open: int = OPEN_RESERVATIONS) -> None:
        self._most_open = most_open
        self._lock = threading.Lock()
        self._items: dict[Account, _Item] = {}
        self.calls = 0

    def _item(self, account: Account) -> _Item:
        self.calls += 1
        return self._items.setdefault(account, _Item())

    def reserve(self, account: Account, reservation: Reservation, limit: int, now: int) -> Held | Refused:
        with self._lock:
            item = self._item(account)
            if reservation.id in item.open:
                return Held(item.sums)
            room = limit - reservation.amount
            if reservation.amount and (item.held > room or len(item.open) >= self._most_open):
                item.free(now)
            if reservation.amount and (item.held > room or len(item.open) >= self._most_open):
                return Refused(item.sums, is_busy=item.spent <= room)
            item.freed.discard(reservation.id)
            item.open[reservation.id] = reservation
            item.held += reservation.amount
            return Held(item.sums)

    def settle(self, account: Account, reservation: Reservation, cost: int) -> Sums:
        with self._lock:
            item = self._item(account)
            known = item.open.pop(reservation.id, None)
            if known is not None or reservation.id in item.freed:
                item.freed.discard(reservation.id)
                item.spent += cost
                item.held += cost - (known.amount if known is not None else 0)
            return item.sums

    def expire(self, account: Account, now: int) -> Sums:
        with self._lock:
            item = self._item(account)
            item.free(now)
            return item.sums

    def read(self, account: Account) -> Sums:
        with self._lock:
            return self._item(account).sums

    def spent(self) -> dict[Account, int]:
        """What was spent from each account; for looking on, no port has it."""
        with self._lock:
            return {account: item.spent for account, item in self._items.items()}
