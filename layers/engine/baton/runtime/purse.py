"""The money of users, around the attempts of steps: held before, settled after, and freed where nobody settles it.

How much may be spent is decided in core/purse.py, the accounts are a port. Without a limit on a user's day nothing
here does anything; a tool that neither declares nor reports a cost causes no request.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from dataclasses import dataclass, field
from decimal import Decimal

from baton.core import events as ev
from baton.core.draft import RunStep
from baton.core.graph import Graph
from baton.core.limits import Limits
from baton.core.money import micro_dollars
from baton.core.purse import Terms, day_of, is_blocked, is_told, user_notices, user_parked
from baton.core.state import State
from baton.errors import BudgetSpent, EngineFault
from baton.ports import Account, Budgets, Clock, NoRoom, Refused, Reservation, SagaRef, Sums
from baton.runtime.lease import Invocation
from baton.runtime.patience import Patience

logger = logging.getLogger("baton.purse")

LONGEST_LIFE_MS = 960_000  # of an invocation, with the grace of its lease


@dataclass
class Funds:
    """What lives as long as a process: the accounts, what is allowed, and what is known of today.

    `blocked` have spent their day's money, which no later call undoes; `told` are keys of notices that this process
    has asked for.
    """

    budgets: Budgets
    terms: Terms
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

    async def sums(self, call: Patience, tenant: str, user: str, now: int) -> Sums:
        """What a user has spent today: one eventually consistent read."""
        return await call(self.budgets.read, self.account(tenant, user, now))

    async def refuse_the_blocked(self, call: Patience, tenant: str, user: str, now: int) -> None:
        """Raises `BudgetSpent` for a user who begins nothing more today."""
        if not self.terms.user_day:
            return
        account = self.account(tenant, user, now)
        sums = await call(self.budgets.read, account)
        if self.learn(account, sums):
            parked = user_parked(sums, self.terms, account.day)
            left = -(-(parked.until - now) // 1_000)
            raise BudgetSpent(f"{parked.message}; the next day begins in {left} s", left)


@dataclass(frozen=True, slots=True)
class Halt:
    """The attempt was not begun: the saga has to be parked, and somebody is to be told."""

    parked: ev.Parked
    notices: tuple[ev.Notice, ...]


@dataclass
class _Attempt:
    """One that is under way. `held` None: nothing was reserved for it."""

    id: str
    account: Account
    until: int
    spent: list[Decimal]
    held: Reservation | None = None


class Purse:
    """The money of the steps of one invocation."""

    def __init__(
        self, funds: Funds, call: Patience, clock: Clock, limits: Limits, invocation: Invocation
    ) -> None:
        self._funds = funds
        self._budgets = funds.budgets
        self._call = call
        self._clock = clock
        self._invocation = invocation.id
        self._until = invocation.deadline + limits.lease_grace_ms
        self._under_way: dict[tuple[str, str], _Attempt] = {}
        self._left: list[tuple[str, _Attempt]] = []
        self._count = 0

    async def reserve(
        self, state: State, step: RunStep, spent: list[Decimal], amount: int | None = None
    ) -> Halt | None:
        """Hold what an attempt may cost, before it begins; `amount`, where it is not that of its node.

        `spent` is what it says, as it says it: an attempt that is never settled is, by `drain`, with that. Raises
        `NoRoom` when others hold what is left: it can be asked again soon, and nobody has failed.
        """
        funds, amount = self._funds, step.node.cost if amount is None else amount
        if not funds.terms.user_day:
            return None
        now = self._clock.now()
        account = funds.account(state.tenant, state.user, now)
        if (state.tenant, state.user) in funds.blocked and (amount or state.spent):
            sums = Sums(spent=funds.terms.user_day)
            return self._halt(state, step, account, sums, 0, now)
        saga, place = _key(state), (_key(state), step.slot)
        before = self._under_way.pop(place, None)
        if (
            before is not None
            and before.held is not None
            and not before.spent
            and before.held.amount == amount
        ):
            before.spent = spent  # it found no room in its process: what is held for it is held still
            self._under_way[place] = before
            return None
        if before is not None:
            self._left.append((saga, before))
        attempt = _Attempt(self._id(state, step), account, self._until, spent)
        self._under_way[place] = attempt
        if not amount:
            return None
        attempt.held = Reservation(attempt.id, amount, self._until)
        answer = await self._call(self._budgets.reserve, account, attempt.held, funds.terms.user_day, now)
        if not isinstance(answer, Refused):
            return None
        del self._under_way[place]
        funds.learn(account, answer.sums)
        if answer.is_busy:
            raise NoRoom
        return self._halt(state, step, account, answer.sums, amount, now)

    async def settle(self, state: State, step: RunStep, cost: int) -> tuple[ev.Notice, ...]:
        """Count what an attempt has cost; what the user is to be told now. Never fails an attempt that is done."""
        place = (_key(state), step.slot)
        attempt = self._under_way.get(place)
        if attempt is None:
            return ()
        if attempt.held is not None and cost > attempt.held.amount:
            logger.warning(
                "`%s` has cost more than its tool declares",
                step.node.name,
                extra={"saga": state.saga, "declared": attempt.held.amount, "cost": cost},
            )
        try:
            sums = await self._close(attempt, cost)
        except EngineFault:
            logger.warning("not settled yet", exc_info=True, extra={"saga": state.saga})
            return ()  # `drain` tries again
        self._under_way.pop(place, None)
        if sums is None:
            return ()
        self._funds.learn(attempt.account, sums)
        return self._news(state, attempt.account, sums)

    async def drain(self, ref: SagaRef) -> None:
        """Settle what a saga's attempts have left open: those that were cut off. Best effort: what is held ends anyway."""
        saga = str(ref)
        mine = [attempt for of, attempt in self._left if of == saga]
        mine += [attempt for (of, _), attempt in self._under_way.items() if of == saga]
        self._left = [pair for pair in self._left if pair[0] != saga]
        self._under_way = {place: attempt for place, attempt in self._under_way.items() if place[0] != saga}
        closing = (self._close(attempt, micro_dollars(attempt.spent)) for attempt in mine)
        for done in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(done, BaseException):
                logger.warning("left open until its time is over: %r", done, extra={"saga": ref.id})

    async def blocked(self, state: State, graph: Graph) -> ev.Parked | None:
        """Why a saga in which something costs does not run now; asked once, when it has been loaded."""
        terms = self._funds.terms
        is_idle = state.parked or state.ended or state.cancel or state.failure
        if not terms.user_day or is_idle or not _costs(state, graph):
            return None
        now = self._clock.now()
        account = self._funds.account(state.tenant, state.user, now)
        sums = await self._call(self._budgets.read, account)
        return user_parked(sums, terms, account.day) if self._funds.learn(account, sums) else None

    async def revived(self, state: State, graph: Graph, dead_until: int) -> None:
        """Free what an invocation held whose lease ran out at `dead_until`: on the days on which it lived."""
        if not self._funds.terms.user_day or not _costs(state, graph):
            return
        for day in sorted({day_of(dead_until - LONGEST_LIFE_MS), day_of(dead_until)}):
            account = Account(state.tenant, state.user, day)
            try:
                await self._call(self._budgets.expire, account, self._clock.now())
            except EngineFault:
                logger.warning("not freed", exc_info=True, extra={"saga": state.saga})

    async def _close(self, attempt: _Attempt, cost: int) -> Sums | None:
        """None when there was nothing to count."""
        if attempt.held is not None:
            return await self._call(self._budgets.settle, attempt.account, attempt.held, cost)
        if not cost:
            return None
        now = self._clock.now()
        return await self._call(
            self._budgets.add, attempt.account, attempt.id, cost, max(attempt.until, now), now
        )

    def _halt(self, state: State, step: RunStep, account: Account, sums: Sums, amount: int, now: int) -> Halt:
        parked = user_parked(sums, self._funds.terms, account.day, step.node.name, amount)
        notice = ev.Notice(
            key=f"budget100/user/{account.user}/{account.day}",
            to="user",
            code=parked.code,
            message=parked.message,
            severity="high",
            node=parked.node,
            at=now,
        )
        return Halt(parked, self._untold(state, (notice,)))

    def _news(self, state: State, account: Account, sums: Sums) -> tuple[ev.Notice, ...]:
        now, terms = self._clock.now(), self._funds.terms
        return self._untold(state, user_notices(account.user, sums, terms, account.day, now))

    def _untold(self, state: State, notices: tuple[ev.Notice, ...]) -> tuple[ev.Notice, ...]:
        """Those that neither this process nor this saga has asked for. Another may have: one of them is sent."""
        told = self._funds.told
        new = tuple(n for n in notices if n.key not in told and not is_told(state, n.key))
        told.update(notice.key for notice in new)
        return new

    def _id(self, state: State, step: RunStep) -> str:
        """Of this attempt and of no other, also not of the same step later in this invocation."""
        self._count += 1
        words = (self._invocation, self._count, state.saga, state.branch, step.slot, step.attempt)
        return hashlib.sha256("/".join(map(str, words)).encode()).hexdigest()[:20]


def _key(state: State) -> str:
    return str(SagaRef(state.tenant, state.saga))


def _costs(state: State, graph: Graph) -> bool:
    return bool(state.spent) or any(node.cost for node in graph.nodes)
