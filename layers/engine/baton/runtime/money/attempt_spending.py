"""What one attempt holds and has spent. Whose it is and what follows is in ledger.py."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from baton.core.money import micro_dollars
from baton.ports import Sums
from baton.runtime.money.account_queue import AccountQueue


class AttemptSpending(Struct, eq=False):
    """An attempt under way: `cover` is what it may spend beyond what has been `closed`, which is counted.

    `held` of it is reserved. `sums` are the last known ones of the account. `rests`: there was no room for it in its
    process. `billed`: what is held for it is for a request that is billed whatever becomes of its caller, and this is its
    name.
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

    @property
    def most(self) -> int:
        """The cost so far, or the most that it may come to."""
        return max(micro_dollars(self.spent), self.closed + self.cover)
