"""Halts of sagas that may spend nothing more on a day: the reason, and the notices, once a day each."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from baton.core.decide.spending import (
    TENANT_SPENT,
    USER_BLOCKED,
    is_told,
    tenant_notices,
    tenant_parked,
    user_notices,
    user_parked,
)
from baton.core.log import events as ev
from baton.core.log.state import State
from baton.ports import Account, Clock, NoRoom, Sums
from baton.runtime.money.accounts import AttemptSpending, HeldByOthers, LedgerCache, Slices


class Halt(Struct, frozen=True):
    """The attempt comes no further: the saga has to be parked, and the notices are to be sent."""

    parked: ev.Parked
    notices: tuple[ev.Notice, ...]


class Halted(NoRoom):
    """Halt of a call without money, while no other attempt holds any that would come back."""

    def __init__(self, halt: Halt) -> None:
        super().__init__(halt.parked.message)
        self.halt = halt

    def because(self, why: str) -> Halted:
        """Return the same halt, with its reason for the people notified."""
        text = f"{self.halt.parked.message}: {why}"
        told = tuple(replace(notice, message=text) for notice in self.halt.notices)
        return Halted(Halt(replace(self.halt.parked, message=text), told))


class Halting:
    """Decisions about a saga from the sums of its accounts."""

    def __init__(self, cache: LedgerCache, clock: Clock) -> None:
        self._cache = cache
        self._clock = clock

    def by_user(
        self, state: State, node: str, account: Account, sums: Sums, amount: int = 0, what: str = ""
    ) -> Halted:
        """Return the halt for a user's day that has no room for `what`, which would cost `amount`."""
        parked = user_parked(sums, self._cache.terms_of(account), account.day, node, amount, what)
        if parked.code == USER_BLOCKED:  # told once, however many days it lasts
            key = f"blocked/user/{account.user}/{self._cache.rule(account).version}"
            return self._halted(state, parked, key)
        return self._halted(state, parked, f"budget100/user/{account.user}/{account.day}")

    def by_tenant(
        self, state: State, node: str, account: Account, sums: Sums, amount: int = 0, what: str = ""
    ) -> Halted:
        """The tenant's day has none. Each of its users is told that sagas wait."""
        parked = tenant_parked(sums, self._cache.terms, account.day, node, amount, what)
        return self._halted(state, parked, f"budget100/tenant/{account.user}/{account.day}")

    async def draw(
        self,
        slices: Slices,
        state: State,
        node: str,
        what: str,
        attempt: AttemptSpending,
        spent: int,
        cost: int,
    ) -> None:
        """Have enough of the tenant's day for a call.
        Raises `HeldByOthers` when others have the rest, and `Halted`.
        """
        account = attempt.account
        tenant = await slices.draw(account, cost - attempt.held + spent - attempt.closed)
        if tenant is None:
            return
        uncounted = account.uncounted + spent - attempt.closed
        if tenant.spent + uncounted + cost <= self._cache.terms.tenant_day:
            raise HeldByOthers(TENANT_SPENT, "others have the rest of the tenant's day")
        self._cache.learn(account.account.of_tenant, tenant)
        raise self.by_tenant(state, node, account.account, tenant, cost, what)

    def known(self, state: State, node: str, account: Account) -> Halted | None:
        """Return the halt of a step if this process knows already that nothing more begins; else None."""
        terms, blocked = self._cache.terms_of(account), self._cache.blocked
        if (account.tenant, account.user) in blocked:
            return self.by_user(state, node, account, Sums(spent=terms.user_day))
        if (account.tenant, "") in blocked:
            return self.by_tenant(state, node, account, Sums(spent=terms.tenant_day))
        return None

    def _halted(self, state: State, parked: ev.Parked, key: str) -> Halted:
        notice = ev.Notice(
            key=key,
            to="user",
            code=parked.code,
            message=parked.message,
            severity="high",
            node=parked.node,
            at=self._clock.now(),
        )
        return Halted(Halt(parked, self._untold(state, (notice,))))

    def news(
        self, state: State, account: Account, sums: Sums | None, tenant: Sums | None
    ) -> tuple[ev.Notice, ...]:
        """The notices that are due by these sums, as far as they are known."""
        if sums is None and tenant is None:
            return ()
        now, terms, found = self._clock.now(), self._cache.terms_of(account), tuple[ev.Notice, ...]()
        if sums is not None:
            found = user_notices(account.user, sums, terms, account.day, now)
        if tenant is not None:
            found += tenant_notices(tenant, terms, account.day, now)
        return self._untold(state, found)

    def _untold(self, state: State, notices: tuple[ev.Notice, ...]) -> tuple[ev.Notice, ...]:
        """Return the notices that neither this process nor this saga has asked for.
        Another may have: one is sent.
        """
        if not notices:
            return ()
        told = self._cache.told
        new = tuple(n for n in notices if n.key not in told and not is_told(state, n.key))
        told.update(notice.key for notice in new)
        return new
