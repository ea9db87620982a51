"""Sends what the attempts of one invocation have spent without a reservation to the accounts.

Each account has one request at a time, with all that was reported while the last one was under way. What an attempt has
spent, and what was held for it, is in ledger.py.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from dataclasses import dataclass, field

from baton.errors import EngineFault, StoreUnavailable
from baton.ports import Account, Budgets, Reservation, Sums
from baton.runtime.store_retrier import StoreRetrier


@dataclass
class _Tally:
    """Of one account: how much was `reported`, and how much of it is known to be `counted`.

    `batch` is a reservation of nothing and the cost that it is settled with. It stays until that is answered: the
    same settlement is sent again, and counts once. `failures` is how many requests had no answer.
    """

    reported: int = 0
    counted: int = 0
    batch: tuple[Reservation, int] | None = None
    sums: Sums = field(default_factory=Sums)
    failures: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Counting:
    """What an invocation counts: each batch opens a reservation of nothing and settles it, and leaves nothing behind."""

    def __init__(self, budgets: Budgets, call: StoreRetrier, invocation: str, until: int) -> None:
        self._budgets = budgets
        self._call = call
        self._id = hashlib.sha256(invocation.encode()).hexdigest()[:16]
        self._until = until
        self._numbers = itertools.count(1)
        self._tallies: dict[Account, _Tally] = {}

    async def count(self, account: Account, more: int, now: int) -> Sums:
        """Count so much more, and what an earlier call could not; the sums after that.

        Callers that wait while a request is under way share its failure. One request after the other would take all
        the time that the invocation has left.
        """
        tally = self._tallies.setdefault(account, _Tally())
        tally.reported += more
        mine, failures = tally.reported, tally.failures
        async with tally.turn:
            while tally.counted < mine:  # else another has taken it along
                if tally.failures > failures:
                    raise StoreUnavailable("what this was to go along with had no answer")
                try:
                    await self._write(tally, account, now)
                except EngineFault:
                    tally.failures += 1
                    raise
        return tally.sums

    async def _write(self, tally: _Tally, account: Account, now: int) -> None:
        """Count one batch: the one that had no answer, else all that is reported by the time it is settled."""
        if tally.batch is None:
            held = await self._call(self.reserve, account, now)
            tally.batch = held, tally.reported - tally.counted
        held, cost = tally.batch
        tally.sums = await self._call(self._budgets.settle, account, held, cost)
        tally.counted += cost
        tally.batch = None

    def reserve(self, account: Account, now: int) -> Reservation:
        """Open a reservation of nothing. One that had no answer is never settled: should it land late, it ends unused."""
        held = Reservation(f"{self._id}.{next(self._numbers)}", 0, self._until)
        self._budgets.reserve(account, held, 0, now)
        return held
