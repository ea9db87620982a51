"""What the attempts of one invocation have spent without having reserved it, on its way to the accounts.

Belongs here: one request at a time for each account, with all that was reported while the last one was under way. Does
not belong here: what an attempt has spent, and what was held for it (purse.py).
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field

from baton.ports import Account, Budgets, Sums
from baton.runtime.patience import Patience


@dataclass
class _Tally:
    """Of one account: the `total` that was reported, and how much of it is known to be `counted`."""

    total: int = 0
    counted: int = 0
    sums: Sums = field(default_factory=Sums)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Counting:
    """What an invocation counts, under one name on each account: its items hold a mark for each, and no more."""

    def __init__(self, budgets: Budgets, call: Patience, invocation: str, until: int) -> None:
        self._budgets = budgets
        self._call = call
        self._id = hashlib.sha256(invocation.encode()).hexdigest()[:16]
        self._until = until
        self._tallies: dict[Account, _Tally] = {}

    async def count(self, account: Account, more: int, now: int) -> Sums:
        """Count so much more, and what an earlier call could not; the sums after that."""
        tally = self._tallies.setdefault(account, _Tally())
        tally.total += more
        mine = tally.total
        async with tally.turn:
            if tally.counted < mine:  # else another has taken it along
                before, total = tally.counted, tally.total
                tally.sums = await self._call(
                    self._budgets.count, account, self._id, before, total, self._until, now
                )
                tally.counted = total
        return tally.sums
