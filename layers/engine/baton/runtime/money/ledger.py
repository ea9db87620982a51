"""The money of sagas and users, around the calls of attempts: held
before, settled after, freed after a crash.

How much may be spent is decided in core/decide/spending.py, the accounts are a
port, which calls there are is not known here. Without limits nothing here does
anything; a tool that neither declares nor reports a cost causes no request.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING

from baton.core.decide.decision import RunStep
from baton.core.decide.spending import (
    TENANT_SPENT,
    USER_SPENT,
    WAITS,
    ask_for,
    day_of,
    is_told,
    parked_notice,
    saga_key,
)
from baton.core.graph.graph import Graph
from baton.core.log import events as ev
from baton.core.log.state import State
from baton.core.money import micro_dollars
from baton.core.on_demand import OnDemand
from baton.errors import EngineFault
from baton.ports import Account, NoRoom, Reservation, SagaRef, StepFailure, Sums
from baton.runtime.invocation.context import InvocationContext
from baton.runtime.money.accounts import (
    TRIES,
    AccountQueue,
    AccountQueues,
    AttemptSpending,
    HeldByOthers,
    LedgerCache,
    Left,
    Slices,
    attempt_name,
    left_of,
    short_name,
)
from baton.runtime.money.halting import Halt, Halted, Halting

if TYPE_CHECKING:
    from baton.runtime.money import holds
    from baton.runtime.money.holds import RequestHolds, SharedHolds, Spending
else:
    holds = OnDemand("baton.runtime.money.holds")

logger = logging.getLogger("baton.ledger")

LONGEST_LIFE_MS = 960_000  # of an invocation, with the grace of its lease
BRIEFLY_S = 0.5
"""Longest wait, in seconds, of an append or a reservation until the accounts have the spending of stopped
attempts.
"""


class Ledger:
    """The money of the steps of one invocation.

    `_seen` are the last states of the sagas, `_unlogged` the costs of their attempts that are not in these
    states, by slot. `_wanted`: the amount that an attempt under way lacked while others held the rest; it
    begins with that. `_returning`: what attempts give back of what was counted, which the log does not have
    yet. `_left`: accounts that gave no answer, with the sagas that had asked.
    """

    def __init__(self, context: InvocationContext, cache: LedgerCache) -> None:
        self._cache = cache
        self._call = context.call
        self._clock = context.clock
        self._skew = context.limits.clock_skew_ms
        until, limit = context.tenure.last, cache.terms.user_day
        holder = (cache.budgets, context.call, context.invocation.id, until, limit)
        self._slices, self._halting = Slices(context.call, cache), Halting(cache, context.clock)
        self._accounts = AccountQueues(*holder, draws=bool(cache.terms.tenant_day))
        self._under_way: defaultdict[str, dict[str, AttemptSpending]] = defaultdict(dict)  # by saga and slot
        self._left: set[tuple[str, AccountQueue]] = set()
        self._closing: dict[asyncio.Task[None], str] = {}  # with their sagas
        self._seen: dict[str, State] = {}
        self._unlogged: dict[str, dict[str, int]] = {}
        self._holds: RequestHolds | None = None  # most sagas have no limit for requests
        self._shared: SharedHolds | None = None
        self._context = context
        self._wanted: dict[tuple[str, str, int], int] = {}
        self._returning: dict[tuple[str, str], tuple[AttemptSpending, int]] = {}

    def see(self, state: State, running: Collection[str]) -> None:
        """Take in the present state of the saga. It includes the costs of attempts that are not `running`."""
        saga = _key(state)
        self._seen[saga] = state
        if self._holds is not None:
            self._holds.see(saga, running)
        if found := self._unlogged.get(saga):
            self._unlogged[saga] = {slot: cost for slot, cost in found.items() if slot in running}
        for place in [place for place in self._returning if place[0] == saga and place[1] not in running]:
            self._close_soon(saga, *self._returning.pop(place))
        for slot, attempt in list(self._under_way[saga].items()):
            if attempt.rests and slot not in state.tokens:
                self._leave((saga, slot))

    async def reserve(
        self,
        state: State,
        step: RunStep,
        spent: list[Decimal],
        amount: int | None = None,
        *,
        is_free: bool = False,
    ) -> None:
        """Hold what an attempt may cost, before it begins; `amount`, where it is not that of its node.

        `spent` collects what it reports: `drain` settles with that an attempt that was never settled.
        `is_free`: no limit applies to it, and what it spends is counted all the same. Raises `NoRoom`, which
        may be `HeldByOthers`, when others hold what is left: no attempt has failed. And `Halted`.
        """
        cache = self._cache
        if not self._counts(state, step):
            return
        saga = _key(state)
        amount = step.node.cost if amount is None else amount
        amount = max(amount, self._wanted.get((saga, step.slot, step.attempt), 0))
        if is_free or state.held:
            amount = 0 if is_free else max(amount, _lacked(state, step.slot))
        origin = state.origin
        account = self._accounts[cache.account(origin.tenant, origin.user, self._clock.now())]
        self._seen.setdefault(saga, state)
        self._slices.use(account, saga)
        is_costly = not is_free and (amount or state.money.spent)
        if is_costly and (halted := self._halting.known(state, step.node.name, account.account)):
            raise halted
        before = self._under_way[saga].get(step.slot)
        if before is not None and before.holds(amount, self._left):
            before.spent, before.rests = spent, False  # what is held for it is held still
            return
        self._leave((saga, step.slot))
        if self._closing:
            await self.closed(saga)
        attempt = self._open(saga, state, step, account, spent)
        try:
            if attempt.shared and is_costly:
                self._shared_holds().check(state, step.node.name, attempt)
            if amount:
                await self._hold(state, step.node.name, step.node.name, attempt, amount)
        except StepFailure:
            return  # the call itself fails with it
        except NoRoom:
            del self._under_way[saga][step.slot]
            raise

    def reopen(self, state: State, step: RunStep, spent: list[Decimal], day: int) -> None:
        """Continue an attempt whose highest possible cost was counted on this day: there it gives back the
        rest.
        """
        if day and self._counts(state, step):
            account = self._accounts[Account(state.origin.tenant, state.origin.user, day)]
            saga = _key(state)
            before = self._under_way[saga].get(step.slot)
            if before is not None and before.spent is spent:
                return  # a unit of it was paid before
            self._slices.use(account, saga)
            self._seen.setdefault(saga, state)
            self._open(saga, state, step, account, spent)

    def _counts(self, state: State, step: RunStep) -> bool:
        """Return true if any limit of money is on for the step."""
        terms = self._cache.terms
        return bool(terms.counts_days or terms.saga or step.shares or state.origin.shared_limits)

    def _open(
        self, saga: str, state: State, step: RunStep, account: AccountQueue, spent: list[Decimal]
    ) -> AttemptSpending:
        attempt = self._under_way[saga][step.slot] = AttemptSpending(saga, account, spent)
        if step.shares or state.origin.shared_limits:
            attempt.shared = self._shared_holds().of(saga, state, step, spent)
        return attempt

    def day(self, state: State, step: RunStep) -> int:
        """Return the day on which the cost of an attempt under way is counted."""
        attempt = self._under_way[_key(state)].get(step.slot)
        return attempt.account.account.day if attempt is not None else 0

    async def cover(
        self, state: State, step: RunStep, tool: str, cost: int, billed: Sequence[int] | None = None
    ) -> None:
        """Hold what the next call of an attempt may cost, as far as more is needed than is held for it.

        `billed`: the call costs so much even if its caller dies, and then that is spent, and not freed. These
        are the tokens that it may read and write, where they are limited.

        Raises `NoRoom`, which may be `Halted`: then the call must not be made, and the attempt is over.
        """
        saga = _key(state)
        attempt = self._under_way[saga].get(step.slot)
        if attempt is None:
            return
        spent = micro_dollars(attempt.spent)
        name = attempt.billed if billed is None else attempt_name(saga, step.slot, billed)
        if spent + cost <= attempt.closed + attempt.cover and attempt.billed == name:
            return
        attempt.billed = name
        try:
            await self._hold(state, step.node.name, tool, attempt, cost)
        except Halted:
            raise
        except NoRoom as refusal:
            if isinstance(refusal, HeldByOthers):
                refusal.first = bool(spent)
            if spent:  # else the calls before it are paid for once more
                self._wanted[saga, step.slot, step.attempt] = spent + cost
            raise

    def room(self, state: State, step: RunStep, context: Spending, read: int, wanted: int) -> int:
        """Return the most tokens for the answer to a request, by its saga's limits; they are then held.
        See holds.py.
        """
        saga = _key(state)
        return self._holds_of().tokens(saga, self._seen.get(saga, state), step, context, read, wanted)

    def afford(self, state: State, step: RunStep, context: Spending, most: int) -> None:
        """Hold what a request may cost against its saga's own limits, before
        `cover` holds it against the budgets.
        """
        self._holds_of().dollars(_key(state), self._seen.get(_key(state), state), step, context, most)

    def unsaid(self, state: State, step: RunStep) -> int:
        """Return the number of workers that died with this step and whose requests no account has.

        Each may be billed like the next one.
        """
        if not (deaths := state.recovery.deaths) or self._cache.terms.counts_days:
            return 0
        attempt = self._under_way[_key(state)].get(step.slot)
        return 0 if attempt is not None and attempt.shared else deaths.get(step.slot, 0)

    def used(self, state: State, step: RunStep) -> None:
        """Record that the request is over; its context has its usage."""
        if self._holds is not None:
            self._holds.over(_key(state), step.slot)

    def _shared_holds(self) -> holds.SharedHolds:
        self._shared = self._shared or holds.SharedHolds(self._context, self._cache)
        return self._shared

    def _holds_of(self) -> holds.RequestHolds:
        if self._holds is None:
            self._holds = holds.RequestHolds()
        return self._holds

    async def _hold(self, state: State, node: str, what: str, attempt: AttemptSpending, cost: int) -> None:
        """Cover a call, or the begin of an attempt, and count its spending. Raises `NoRoom`, `Halted`."""
        if not cost:
            return
        terms, saga, now = self._cache.terms, _key(state), micro_dollars(attempt.spent)
        seen = self._seen.get(saga, state)
        busy = sum(one.most for one in self._under_way[saga].values() if one is not attempt)
        spent = seen.money.spent + sum(self._unlogged.get(saga, {}).values()) + now
        answer = ask_for(seen, terms, node, what, spent, busy, cost)
        if isinstance(answer, ev.Parked):
            notice = parked_notice(saga_key(seen, terms), answer, self._clock.now())
            raise Halted(Halt(answer, () if is_told(seen, notice.key) else (notice,)))
        if answer == WAITS:
            raise NoRoom
        try:
            if attempt.shared:
                await self._shared_holds().hold(seen, node, what, attempt, now, cost)
            await self._hold_of_day(state, node, what, attempt, now, cost)
        except (NoRoom, StepFailure) as refusal:
            if attempt.shared:  # nothing is held while it waits
                await self._shared_holds().settle(attempt, now, self._left)
            if isinstance(refusal, HeldByOthers):
                refusal.amount = now + cost
                others = (one for one in self._under_way[saga].values() if one is not attempt)
                if any(one.is_holding for one in others):
                    raise NoRoom("attempts of this saga hold some of it, and keep its invocation") from None
            raise

    async def _hold_of_day(
        self, state: State, node: str, what: str, attempt: AttemptSpending, now: int, cost: int
    ) -> None:
        account, tries = attempt.account.account, TRIES if self._cache.terms.tenant_day else 1
        for _ in range(tries):
            attempt.account.heed(self._cache.rule(account))
            if self._cache.terms.tenant_day:
                await self._halting.draw(self._slices, state, node, what, attempt, now, cost)
            refused = await self._move(attempt, now, cost)
            if refused is None:
                return
            terms = self._cache.terms_of(account)  # as the refusal says
            if terms.user_day and refused.spent + cost > terms.user_day:
                raise self._halting.by_user(state, node, account, refused, cost, what)
            if terms.user_day and refused.held + cost > terms.user_day:
                break
        code = USER_SPENT if self._cache.terms_of(account).user_day else TENANT_SPENT
        raise HeldByOthers(code, "others hold the rest of the day")

    async def settle(self, state: State, step: RunStep, cost: int) -> tuple[ev.Notice, ...]:
        """Count the cost of an attempt. Return the notices due now. Never fails an attempt that is done."""
        saga = _key(state)
        attempt = self._under_way[saga].pop(step.slot, None)
        if attempt is None:
            return ()
        if attempt.cover and cost > attempt.closed + attempt.cover:
            logger.warning(
                "`%s` has cost more than its tool declares",
                step.node.name,
                extra={"saga": state.origin.saga, "declared": attempt.closed + attempt.cover, "cost": cost},
            )
        self._owe(saga, step.slot, cost)
        if cost < 0:
            # Once the log has it: a worker that dies gives nothing back twice.
            self._returning[saga, step.slot] = attempt, cost
            return ()
        try:
            await self._close(attempt, cost)
        except EngineFault:
            logger.warning("not settled yet", exc_info=True, extra={"saga": state.origin.saga})
            return ()  # `drain` tries again
        account = attempt.account.account
        return self._halting.news(state, account, attempt.sums, self._slices.tenants.get(account.of_tenant))

    async def count(self, state: State, step: RunStep) -> None:
        """Count the cost so far of an attempt that goes on. What is held for the rest of it stays held."""
        saga = _key(state)
        if (attempt := self._under_way[saga].get(step.slot)) is None:
            return
        try:
            await self._close(attempt, micro_dollars(attempt.spent), is_over=False)
        except EngineFault:  # `settle` or `drain` tries again
            logger.warning("not counted yet", exc_info=True, extra={"saga": state.origin.saga})

    def hand_over(self, state: State, step: RunStep, unit: str, cost: int) -> None:
        """Leave a cost of an attempt that goes on to the entry with a unit of its work."""
        saga = _key(state)
        if (attempt := self._under_way[saga].get(step.slot)) is not None:
            for one in (attempt, *attempt.shared):
                one.closed -= cost
            self._owe(saga, unit, cost)

    def rest(self, state: State, step: RunStep) -> None:
        """Keep the amounts of an attempt that found no room in its process, as long as the saga needs it."""
        if attempt := self._under_way[_key(state)].get(step.slot):
            attempt.rests = True

    def abandon(self, state: State, step: RunStep) -> None:
        """Release the amounts of a cancelled attempt as soon as possible, even if the saga needs it."""
        self._leave((_key(state), step.slot))

    def leave(self, saga: str) -> None:
        """Release the amounts of this saga's attempts as soon as possible: none of them goes on."""
        for slot in list(self._under_way[saga]):
            self._leave((saga, slot))

    async def closed(self, saga: str) -> None:
        """Wait until the accounts have the spending of this saga's stopped attempts.

        An account gets little time for that. Most of the rest belongs to the append.
        """
        if mine := self._closing_of(saga):
            left = max(self._call.deadline - self._clock.now(), 0) / 1_000
            await asyncio.wait(mine, timeout=min(BRIEFLY_S, left / 4))

    def _closing_of(self, saga: str) -> list[asyncio.Task[None]]:
        return [task for task, of in self._closing.items() if of == saga]

    async def drain(self, ref: SagaRef) -> None:
        """Settle the attempts of a saga that were cut off. Best effort: held amounts expire anyway."""
        saga = str(ref)
        self.leave(saga)
        if closing := self._closing_of(saga):
            await asyncio.wait(closing)  # until the calls give up
        self._unlogged.pop(saga, None)
        self._seen.pop(saga, None)
        if self._holds is not None:
            self._holds.see(saga, ())
        mine = {pair for pair in self._left if pair[0] == saga}
        self._left -= mine
        again = [account.ask(self._by_every_clock()) for _, account in mine if not account.is_settled]
        for done in await asyncio.gather(*again, return_exceptions=True):
            if isinstance(done, BaseException):
                logger.warning("left open until its time is over: %r", done, extra={"saga": ref.id})
        await self._slices.give_back(saga)

    def _leave(self, place: tuple[str, str]) -> None:
        """Settle in the background an attempt that does not settle itself."""
        saga, slot = place
        attempt = self._under_way[saga].pop(slot, None)
        if attempt is None:
            return
        cost = micro_dollars(attempt.spent)
        self._owe(saga, slot, cost)
        self._close_soon(saga, attempt, cost)

    def _close_soon(self, saga: str, attempt: AttemptSpending, cost: int) -> None:
        task = asyncio.create_task(self._close(attempt, cost), name=f"settle {saga}")
        self._closing[task] = saga
        task.add_done_callback(self._closed)

    def _closed(self, task: asyncio.Task[None]) -> None:
        del self._closing[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("not settled yet: %r", error)  # `drain` tries again

    def _owe(self, saga: str, slot: str, cost: int) -> None:
        """Remember the cost of an attempt until the log has it."""
        if cost:
            found = self._unlogged.setdefault(saga, {})
            found[slot] = found.get(slot, 0) + cost

    async def blocked(self, state: State, graph: Graph) -> ev.Parked | None:
        """Return the reason why a saga with costs does not run now, None if it may; asked once, when it has
        been loaded.
        """
        is_idle = state.parked or state.ended or state.is_stopping
        if not self._cache.terms.counts_days or is_idle or not _costs(state, graph):
            return None
        account = self._cache.account(state.origin.tenant, state.origin.user, self._clock.now())
        return await self._cache.parked(self._call, account)

    async def revived(
        self,
        state: State,
        graph: Graph,
        dead_until: int,
        dead: Sequence[str] = ("",),
        logged: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
        *,
        shares: bool = False,
    ) -> Left:
        """Free what the invocations `dead` held, the last of whose leases ran
        out at `dead_until`: on the days on which they lived. The first of them is known to be dead.

        Where no days are counted, on the account of a limit that holds for all
        that the saga does, if it shares one.

        Returns, by slot, what is spent all the same: of this saga's requests that are billed whatever becomes
        of their caller. `logged`: by invocation and slot, the part of that in the log.
        """
        counts_days, origin = self._cache.terms.counts_days, state.origin
        if not (counts_days or shares or origin.shared_limits) or not _costs(state, graph):
            return Left()
        # Who took its lease has judged by every clock that its time is over.
        over = max(dead_until, self._by_every_clock())
        if counts_days:
            days = sorted({day_of(dead_until - LONGEST_LIFE_MS), day_of(dead_until)})
            accounts = [Account(origin.tenant, origin.user, day) for day in days]
        else:
            accounts = self._shared_holds().widest(state, graph.limits.get("cost"), shares=shares)

        async def expire(account: Account, holder: str) -> Reservation | None:
            is_dead = holder == dead[0]  # an earlier one may live, and hold something for other sagas
            answer = await self._call(
                self._cache.budgets.expire, account, over, short_name(holder), is_dead=is_dead
            )
            if counts_days:
                self._accounts[account].sums = answer.sums
                self._slices.use(self._accounts[account], _key(state))
            return answer.there

        return await left_of(state, _key(state), itertools.product(accounts, dead), expire, logged)

    def _by_every_clock(self) -> int:
        """Return a moment that has passed by every clock:
        a holder whose clock is behind still spends until its own says that its time is over.
        """
        return self._clock.now() - self._skew

    async def _close(self, attempt: AttemptSpending, cost: int, *, is_over: bool = True) -> None:
        """Count the whole cost of an attempt, and release its amounts as far as it `is_over`."""
        is_open = (attempt.saga, attempt.account) in self._left and not attempt.account.is_settled
        cover = 0 if is_over else attempt.rest(cost)
        try:
            if (is_over and attempt.held) or cost != attempt.closed or is_open:
                await self._move(attempt, cost, cover)
        finally:
            if attempt.shared:  # also where the user's account does not answer
                await self._shared_holds().settle(attempt, cost, self._left, is_over=is_over)

    async def _move(self, attempt: AttemptSpending, cost: int, cover: int = 0) -> Sums | None:
        """Count the cost of an attempt so far, and hold `cover` in place of its held amount."""
        if not self._cache.terms.counts_days:
            attempt.held, attempt.closed, attempt.cover = 0, cost, cover
            return None
        try:
            refused = await attempt.move(self._by_every_clock(), cost, cover, attempt.billed)
        except BaseException:
            self._left.add((attempt.saga, attempt.account))
            raise
        self._cache.learn(attempt.account.account, attempt.sums or attempt.account.sums)
        return refused


def _key(state: State) -> str:
    return _key_of(state.origin.tenant, state.origin.saga)


@functools.lru_cache(maxsize=1024)  # a step asks four times
def _key_of(tenant: str, saga: str) -> str:
    return str(SagaRef(tenant, saga))


def _lacked(state: State, slot: str) -> int:
    """Return the amount that an attempt begins with because the one before it lacked that."""
    before = state.held.get(slot)
    return before.amount if before is not None and before.first else 0


def _costs(state: State, graph: Graph) -> bool:
    return bool(state.money.spent) or graph.costs or any(one.may_cost for one in state.open.values())
