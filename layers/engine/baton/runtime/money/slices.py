"""The limit of a tenant's day: its users draw slices of it, and give back what they do not need.

A user's account holds its attempts to what it has drawn, by the write that reserves for them anyway (account_queue.py). So
the tenant's account is moved once for many attempts. What follows from a refusal is in ledger.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict

from baton.errors import EngineFault
from baton.ports import Account, Drawn, NoRoom, Sums
from baton.runtime.invocation.store_retrier import StoreRetrier
from baton.runtime.money.account_queue import AccountQueue
from baton.runtime.money.ledger_cache import LedgerCache

logger = logging.getLogger("baton.ledger")

PART = 16
"""A slice is at most this part of what the tenant has left, unless one call needs more: the last money is drawn exactly."""
TRIES = 8


class Slices:
    """What the users of one invocation have of their tenants' days. `_users` are the sagas that have asked, by account.

    `tenants` are the last known sums of the tenants' accounts.
    """

    def __init__(self, call: StoreRetrier, cache: LedgerCache) -> None:
        self._call = call
        self._budgets = cache.budgets
        self._limit = cache.terms.tenant_day
        self._alone: defaultdict[Account, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._users: defaultdict[AccountQueue, set[str]] = defaultdict(set)
        self.tenants: dict[Account, Sums] = {}

    def use(self, account: AccountQueue, saga: str) -> None:
        """The saga may have a part in what the account draws; it is given back once no saga has."""
        if self._limit:
            self._users[account].add(saga)

    async def draw(self, account: AccountQueue, cost: int) -> Sums | None:
        """Let the account hold `cost` more, as far as the tenant's day goes. What it has spent makes its slices larger.

        Returns the tenant's sums if the tenant has not so much left. Raises `NoRoom` if others are always faster.
        """
        async with self._alone[account.account]:
            if account.sums == Sums():
                account.sums = await self._call(self._budgets.read, account.account)
            for _ in range(TRIES):
                sums = account.sums
                missing = sums.held + account.ahead + cost - sums.drawn
                if missing <= 0:
                    return None
                left = self._limit - (await self._tenant(account.account)).held
                more = max(missing, min(sums.spent, left // PART))
                answer = await self._move(account, sums, sums.drawn + more, self._limit)
                if answer.is_done:
                    return None
                if _share(answer.user) == _share(sums) and answer.tenant.held + missing > self._limit:
                    return await self._refused(account, answer)
        raise NoRoom("others draw from the tenant's day")

    async def _tenant(self, account: Account) -> Sums:
        tenant = account.of_tenant
        if tenant not in self.tenants:
            self.tenants[tenant] = await self._call(self._budgets.read, tenant)
        return self.tenants[tenant]

    async def _refused(self, account: AccountQueue, answer: Drawn) -> Sums:
        """The tenant's sums, with all that this user has spent. What does not suffice here is left to others."""
        if not _is_even(answer.user):
            answer = await self._move(account, answer.user, answer.user.held)
        return answer.tenant

    async def _move(self, account: AccountQueue, seen: Sums, drawn: int, limit: int | None = None) -> Drawn:
        answer = await self._call(self._budgets.draw, account.account, seen, drawn, limit)
        account.sums, self.tenants[account.account.of_tenant] = answer.user, answer.tenant
        return answer

    async def give_back(self, saga: str) -> None:
        """A saga leaves its invocation: what its user has drawn and no attempt holds is the tenant's again. Best effort.

        Only the last of the user's invocations does it: others may need what is left. What cannot be given back is there for the
        user's next one.
        """
        for account in [account for account, sagas in self._users.items() if saga in sagas]:
            self._users[account].discard(saga)
            if self._users[account]:
                continue
            del self._users[account]
            sums = account.sums
            if sums.open or not account.is_settled or _is_even(sums):
                continue
            try:
                await self._move(account, sums, sums.held)
            except EngineFault:
                logger.warning(
                    "a slice is not given back", exc_info=True, extra={"user": account.account.user}
                )


def _share(sums: Sums) -> tuple[int, int]:
    return sums.drawn, sums.told


def _is_even(sums: Sums) -> bool:
    """Whether the tenant's account counts for a user exactly what the user's own does."""
    return _share(sums) == (sums.held, sums.spent)
