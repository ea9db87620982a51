"""The accounts as one process knows them: their limits, and the users who may begin nothing more today.

It outlives an invocation. Reservations are in ledger.py; what a limit means is in core/decide/spending.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from baton.core.decide.spending import SpendingLimits, day_of, is_blocked, user_parked
from baton.errors import BudgetSpent
from baton.ports import Account, Budgets, Sums
from baton.runtime.store_retrier import StoreRetrier


@dataclass
class LedgerCache:
    """Lives as long as a process: the accounts, their limits, and what is known of today.

    `blocked` have spent their day's money, which no later call undoes; `told` are keys of notices that this process
    has asked for.
    """

    budgets: Budgets
    terms: SpendingLimits
    day: int = 0
    blocked: set[tuple[str, str]] = field(default_factory=set)
    told: set[str] = field(default_factory=set)

    def account(self, tenant: str, user: str, now: int) -> Account:
        day = day_of(now)
        if day > self.day:
            self.day = day
            self.blocked.clear()
            self.told.clear()
        return Account(tenant, user, day)

    def learn(self, account: Account, sums: Sums) -> bool:
        """Whether the user is blocked."""
        is_over = is_blocked(sums, self.terms)
        if is_over and account.day == self.day:
            self.blocked.add((account.tenant, account.user))
        return is_over

    async def sums(self, call: StoreRetrier, tenant: str, user: str, now: int) -> Sums:
        """What a user has spent today: one eventually consistent read."""
        return await call(self.budgets.read, self.account(tenant, user, now))

    async def refuse_the_blocked(self, call: StoreRetrier, tenant: str, user: str, now: int) -> None:
        """Raises `BudgetSpent` for a user who begins nothing more today."""
        if not self.terms.user_day:
            return
        account = self.account(tenant, user, now)
        sums = await call(self.budgets.read, account)
        if self.learn(account, sums):
            parked = user_parked(sums, self.terms, account.day)
            left = -(-(parked.until - now) // 1_000)
            raise BudgetSpent(f"{parked.message}; the next day begins in {left} s", left)
