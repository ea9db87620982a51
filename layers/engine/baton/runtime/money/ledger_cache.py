"""The accounts as one process knows them: their limits, rules about users, and the users and tenants who may begin nothing more today.

It outlives an invocation. Reservations are in ledger.py; what a limit means is in core/decide/spending.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from baton.core.decide.spending import (
    USER_BLOCKED,
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
from baton.core.user_rules import NO_RULE, UserRule
from baton.errors import BudgetSpent, TenantBudgetSpent, UserBlocked
from baton.ports import Account, Budgets, Sums
from baton.runtime.invocation.store_retrier import StoreRetrier


@dataclass
class LedgerCache:
    """Lives as long as a process: the accounts, their limits, and what is known of today.

    `blocked` have spent their day's money, or are blocked, which only a later rule undoes (a tenant without a user); `told` are keys of notices
    that this process has asked for. `rules`: what operators have decided about users, the latest that this process has heard.
    """

    budgets: Budgets
    terms: SpendingLimits
    day: int = 0
    blocked: set[tuple[str, str]] = field(default_factory=set)
    told: set[str] = field(default_factory=set)
    rules: dict[tuple[str, str], UserRule] = field(default_factory=dict)

    def rule(self, account: Account) -> UserRule:
        """The operator's rule about the user of an account, as far as this process has heard."""
        return self.rules.get((account.tenant, account.user), NO_RULE) if self.rules else NO_RULE

    def terms_of(self, account: Account) -> SpendingLimits:
        """The limits, with that of the user."""
        rule = self.rule(account)
        return replace(self.terms, user_day=rule.most(self.terms.user_day)) if rule.version else self.terms

    def account(self, tenant: str, user: str, now: int) -> Account:
        day = day_of(now)
        if day > self.day:
            self.day = day
            self.blocked.clear()
            self.told.clear()
        return Account(tenant, user, day)

    def learn(self, account: Account, sums: Sums) -> bool:
        """Whether the user, or the tenant, is blocked."""
        who = (account.tenant, account.user)
        if sums.rule.version > self.rule(account).version:
            self.rules[who] = sums.rule
            self.blocked.discard(who)
        terms = self.terms_of(account)
        is_over = is_blocked(sums, terms) if account.user else is_tenant_blocked(sums, terms)
        if is_over and account.day == self.day:
            self.blocked.add(who)
        return is_over

    async def sums(self, call: StoreRetrier, tenant: str, user: str, now: int) -> Sums:
        """What a user, or without one the tenant, has spent today: one eventually consistent read."""
        account = self.account(tenant, user, now)
        sums = await call(self.budgets.read, account)
        self.learn(account, sums)
        return sums

    async def refuse_the_blocked(self, call: StoreRetrier, tenant: str, user: str, now: int) -> None:
        """Raises `BudgetSpent` for a user, or of a tenant, who begins nothing more today, and `UserBlocked`."""
        account = self.account(tenant, user, now)
        if parked := await self.parked(call, account):
            if parked.code == USER_BLOCKED:
                raise UserBlocked(f"an operator has blocked `{user}`: no saga of this user starts")
            left = -(-(end_of(account.day) - now) // 1_000)
            error = BudgetSpent if parked.code == USER_SPENT else TenantBudgetSpent
            raise error(f"{parked.message}; the next day begins in {left} s", left)

    async def parked(self, call: StoreRetrier, account: Account) -> ev.Parked | None:
        """Why a saga of this user begins nothing more today: one eventually consistent read for each limit that is set."""
        if self.terms.user_day:
            sums = await call(self.budgets.read, account)
            if self.learn(account, sums):
                return user_parked(sums, self.terms_of(account), account.day)
        if self.terms.tenant_day:
            sums = await call(self.budgets.read, account.of_tenant)
            if self.learn(account.of_tenant, sums):
                return tenant_parked(sums, self.terms, account.day)
        return None
