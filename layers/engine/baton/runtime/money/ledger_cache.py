"""The accounts as one process knows them: their limits, and the users and tenants who may begin nothing more today.

It outlives an invocation. Reservations are in ledger.py; what a limit means is in core/decide/spending.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from baton.core.decide.spending import (
    USER_SPENT,
    SpendingLimits,
    day_of,
    end_of,
    is_blocked,
    is_tenant_blocked,
    tenant_parked,
    user_parked,
)
from baton.core.log import events as ev
from baton.errors import BudgetSpent, TenantBudgetSpent
from baton.ports import Account, Budgets, Sums
from baton.runtime.invocation.store_retrier import StoreRetrier


@dataclass
class LedgerCache:
    """Lives as long as a process: the accounts, their limits, and what is known of today.

    `blocked` have spent their day's money, which no later call undoes (a tenant without a user); `told` are keys of notices that this process
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
        """Whether the user, or the tenant, is blocked."""
        is_over = is_blocked(sums, self.terms) if account.user else is_tenant_blocked(sums, self.terms)
        if is_over and account.day == self.day:
            self.blocked.add((account.tenant, account.user))
        return is_over

    async def sums(self, call: StoreRetrier, tenant: str, user: str, now: int) -> Sums:
        """What a user, or without one the tenant, has spent today: one eventually consistent read."""
        return await call(self.budgets.read, self.account(tenant, user, now))

    async def refuse_the_blocked(self, call: StoreRetrier, tenant: str, user: str, now: int) -> None:
        """Raises `BudgetSpent` for a user, or of a tenant, who begins nothing more today."""
        account = self.account(tenant, user, now)
        if parked := await self.parked(call, account):
            left = -(-(end_of(account.day) - now) // 1_000)
            error = BudgetSpent if parked.code == USER_SPENT else TenantBudgetSpent
            raise error(f"{parked.message}; the next day begins in {left} s", left)

    async def parked(self, call: StoreRetrier, account: Account) -> ev.Parked | None:
        """Why a saga of this user begins nothing more today: one eventually consistent read for each limit that is set."""
        if self.terms.user_day:
            sums = await call(self.budgets.read, account)
            if self.learn(account, sums):
                return user_parked(sums, self.terms, account.day)
        if self.terms.tenant_day:
            sums = await call(self.budgets.read, account.of_tenant)
            if self.learn(account.of_tenant, sums):
                return tenant_parked(sums, self.terms, account.day)
        return None
