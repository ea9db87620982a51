"""What one attempt holds and has spent. Whose it is and what follows is in ledger.py."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal

from msgspec import Struct

from baton.core.log.records import SharedLimit
from baton.core.money import micro_dollars
from baton.ports import Sums
from baton.runtime.money.account_queue import AccountQueue


class AttemptSpending(Struct, eq=False):
    """An attempt under way: `cover` is what it may spend beyond what has been `closed`, which is counted.

    `held` of it is reserved. `sums` are the last known ones of the account. `rests`: there was no room for it in its
    process. `billed`: what is held for it is for a request that is billed whatever becomes of its caller, and this is its
    name. `shared`: the same on the accounts of limits that its saga shares with others, the nearest first.
    """

    saga: str
    account: AccountQueue
    spent: list[Decimal]
    cover: int = 0
    closed: int = 0
    held: int = 0
    sums: Sums | None = None
    rests: bool = False
    billed: str = ""
    shared: tuple[SharedSpending, ...] = ()

    @property
    def most(self) -> int:
        """The cost so far, or the most that it may come to."""
        return max(micro_dollars(self.spent), self.closed + self.cover)

    def holds(self, amount: int, left: Collection[tuple[str, AccountQueue]]) -> bool:
        """Tell whether it has spent nothing and holds this amount on accounts that have all answered."""
        is_known = not any((self.saga, one.account) in left for one in (self, *self.shared))
        return is_known and not self.spent and self.cover == amount

    async def move(self, now: int, cost: int, cover: int, billed: str) -> Sums | None:
        """Count what it has cost so far, and hold `cover` in place of what is held for it. Returns the sums where there is no room.

        Raises `EngineFault` where the account gives no answer.
        """
        less, spent = self.held, cost - self.closed
        self.held, self.closed, self.cover = 0, cost, cover  # at once: others may ask meanwhile
        refused = await self.account.ask(now, less, spent, cover, billed)
        self.sums = self.account.sums if refused is None else refused
        self.held = self.cover = cover if refused is None else 0
        return refused


class SharedSpending(AttemptSpending, kw_only=True, eq=False):
    """Holds and spending of an attempt on the account of a limit that its saga shares with others."""

    limit: SharedLimit
