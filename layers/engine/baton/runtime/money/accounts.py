"""Amounts that one attempt holds and has spent. Their owners and the consequences are in ledger.py."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from baton.core.decide.spending import (
    TENANT_SPENT,
    USER_BLOCKED,
    USER_SPENT,
    SpendingLimits,
    end_of,
    is_blocked,
    is_tenant_blocked,
    tenant_parked,
    user_parked,
)
from baton.core.limits import DAY_MS
from baton.core.log import events as ev
from baton.core.log.records import SharedLimit
from baton.core.log.state import State
from baton.core.money import NO_RULE, UserRule, micro_dollars
from baton.errors import BudgetSpent, EngineFault, StoreUnavailable, TenantBudgetSpent, UserBlocked
from baton.ports import Account, BudgetAnswer, Budgets, Drawn, NoRoom, Reservation, ReservationChange, Sums
from baton.runtime.invocation.context import StoreRetrier


class _Wish(Struct, eq=False):
    """Request for a higher reservation, `billed` for this. `refused`: these sums leave no room for it."""

    more: int
    billed: str = ""
    refused: Sums | None = None


REST = "rest"
"""Name of the amount held for calls that are not billed by a name of their own."""


def short_name(name: str) -> str:
    """Return a name of ten characters that stands for a longer one."""
    return base64.urlsafe_b64encode(hashlib.sha256(name.encode()).digest())[:10].decode()


def step_of(billed: str) -> str:
    """Return the name of the step that a request is of, which is billed under this name: one at a time."""
    return billed.partition(".")[0]


class _Request(Struct, frozen=True):
    """Change, the wishes that it grants, and the values of `counted`, `served` and `returned` once it is
    made.
    """

    change: ReservationChange
    wishes: tuple[_Wish, ...]
    counted: int
    served: int
    returned: int


class AccountQueue:
    """One reservation of one account, for all attempts of an invocation together.

    `draws`: no more is held than the user has drawn of the tenant's day; without a `limit` only that counts.
    `is_spent`: all that is held counts as spent when its time is over, and nothing of it is freed. `_amount`
    is what attempts under way hold, `_billed` what of it is billed whatever becomes of them, `_spent` what
    all have spent, `_back` what they have given back of what was counted before, `_asked` how often any was
    changed; `_counted`, `_returned` and `_served` are how far the account has that, `_known` is the
    reservation there.

    A request without an answer can still be made while the reservation is as it was before. Each is in
    `_possible`, under the number by which the account shows it. One that leaves no reservation shows nothing,
    so it stays `_closing` and is sent again as it was. One that opens a reservation counts nothing, and each
    try has a number of its own: made late, it opens another, which no other late request is about. If it is
    for what is billed, that would be spent when its time is over, although no caller asked for anything with
    it: from such a try on (`_is_haunted`) the invocation leaves a mark where it holds nothing, and what lands
    late is refused.
    """

    def __init__(
        self,
        budgets: Budgets,
        call: StoreRetrier,
        invocation: str,
        until: int,
        limit: int,
        account: Account,
        *,
        draws: bool = False,
        is_spent: bool = False,
    ) -> None:
        self.account = account
        self.sums = Sums()
        self._budgets = budgets
        self._call = call
        self.limit, self._of_all, self._draws = limit, limit, draws
        self._is_spent, self._rule = is_spent, 0
        self._holder = short_name(invocation)
        self._until = until
        self._numbers = itertools.count(1)
        self._amount = self._spent = self._asked = self._counted = self._served = self._failures = 0
        self._back = self._returned = 0
        self._billed: dict[str, int] = {}
        self._names: dict[str, str] = {}  # those that are billed, by their steps
        self._wishes: list[_Wish] = []
        self._known: Reservation | None = None
        self._possible: dict[int, _Request] = {}
        self._closing: _Request | None = None
        self._is_unsure = False  # a request had no answer
        self._is_haunted = False
        self._turn = asyncio.Lock()

    def heed(self, rule: UserRule) -> None:
        """Hold no more than an operator allows the user, if this rule is later than the one in force."""
        if rule.version > self._rule:
            self._rule, self.limit = rule.version, rule.most(self._of_all)

    @property
    def is_settled(self) -> bool:
        """Return true if the account has all that was asked for, as far as is known."""
        is_fenced = not self._is_haunted or self._known is not None
        is_served = self._served == self._asked and _amount(self._known) == self._amount
        return is_fenced and is_served and not self._is_unsure

    @property
    def ahead(self) -> int:
        """Amount by which the held sum will grow once all requests are made."""
        return self._amount - _amount(self._known) + self.uncounted

    async def ask(
        self, now: int, less: int = 0, spent: int = 0, more: int = 0, billed: str = ""
    ) -> Sums | None:
        """Hold less, count what was spent, and hold more.
        What is over at `now` may be freed. Less than nothing is given back.

        `billed`: what is held, and was held until now, is for this, and is spent whatever becomes of the
        caller.

        Return the sums for which there is no room for more, with all that this invocation has spent. Raises
        `EngineFault` when there is no answer: the less and the spent go along with a later request, and no
        more is held. Callers that wait while a request is under way share its failure. One request after the
        other would take all the time that the invocation has left.
        """
        self._amount -= less
        self._bill(billed, 0)
        self._spent += max(spent, 0)
        self._back -= min(spent, 0)
        self._asked += (is_sure := bool(less or spent or not more))
        mine, failures, wish = self._asked if is_sure else 0, self._failures, _Wish(more, billed)
        self._wishes += [wish] if more else []
        try:
            async with self._turn:
                while self._served < mine or wish in self._wishes:
                    if self._failures > failures:
                        raise StoreUnavailable("what this was to go along with had no answer")
                    await self._send(now)
        except BaseException:
            if wish in self._wishes:
                self._wishes.remove(wish)
            elif wish.refused is None:
                self._amount -= more
                if self._billed.pop(billed, 0):
                    del self._names[step_of(billed)]
            raise
        return wish.refused

    async def _send(self, now: int) -> None:
        request = self._closing or self._next()
        if request is None:
            self._served, self._is_unsure = self._asked, False
            return
        self._closing = request if request.change.after is None else None
        after = request.change.after
        is_billed = request.change.before is None and after is not None and bool(after.billed)
        try:
            answer, tries = await self._call.tried(self.move, request, now)
            self._is_haunted |= is_billed and tries > 1
        except BaseException as error:
            self._is_unsure = True
            self._is_haunted |= is_billed
            self._failures += isinstance(error, EngineFault)
            raise
        self.sums = answer.sums
        self.heed(answer.sums.rule)
        made = request if answer.is_done else self._made(request, answer.there)
        if made is None and answer.there == self._known:
            is_by_what_is_known = (self._drawn, self._rule) == (request.change.drawn, request.change.rule)
            if not request.wishes or is_by_what_is_known:
                self._refuse(request, answer.sums)
            return  # else others have drawn or given back meanwhile, or an operator has changed the limit
        self._known, self._closing = answer.there, None
        if made is None and answer.there is not None and answer.there.is_freed:
            self._counted += sum(answer.there.billed.values())  # it is spent already
        self._possible.clear()
        self._is_unsure = False
        if made is not None:
            self._counted = max(made.counted, self._counted)
            self._served = max(made.served, self._served)
            self._returned = max(made.returned, self._returned)
            for wish in set(made.wishes).intersection(self._wishes):
                self._wishes.remove(wish)
                self._amount += wish.more
                self._bill(wish.billed, wish.more)

    def _bill(self, name: str, amount: int) -> None:
        """Note the amount held for a request that is billed in any case; a step has one at a time."""
        if before := self._names.pop(step_of(name), ""):
            del self._billed[before]
        if name and amount:
            self._names[step_of(name)], self._billed[name] = name, amount

    def move(self, request: _Request, now: int) -> BudgetAnswer:
        """Try a request once."""
        change = request.change
        if change.after is not None:
            is_new = change.before is None and not change.after.is_mark
            number = next(self._numbers) if is_new else change.after.number
            change = replace(change, after=replace(change.after, number=number))
            self._possible[number] = replace(request, change=change)
        return self._budgets.move(self.account, change, now)

    @property
    def _drawn(self) -> int:
        """Share that the user has of the tenant's day; 0 if that has no limit."""
        return self.sums.drawn if self._draws else 0

    @property
    def _most(self) -> int:
        """Largest amount that may be held at a time."""
        drawn = self._drawn if self._draws else self.limit
        return min(self.limit or drawn, drawn)

    @property
    def uncounted(self) -> int:
        """Amount that the account has yet to count, at least 0: it may have counted the most that was
        possible.
        """
        return max(self._spent - self._counted, 0)

    def _next(self) -> _Request | None:
        """Return the request for everything that is asked for now; None if there is nothing to say."""
        before, wishes = self._known, tuple(self._wishes)
        uncounted = self.uncounted - (back := self._back - self._returned)
        amount = self._amount + sum(wish.more for wish in wishes)
        is_idle = not (amount or uncounted or back)
        if is_idle and before is not None and before.is_mark and not self._is_unsure:
            return None
        if is_idle and before is None and not self._is_haunted:
            before = next((one.change.after for one in self._possible.values()), None)  # it may be there
            if not before:
                return None
        opens = not before
        billed = {**self._billed, **{wish.billed: wish.more for wish in wishes if wish.billed}}
        if self._is_spent and (rest := amount - sum(billed.values())):
            billed[REST] = rest
        is_there = amount or (opens and not is_idle)
        after = Reservation(next(self._numbers), amount, self._until, billed=billed) if is_there else None
        if after is None and self._is_haunted:
            after = Reservation(-next(self._numbers), 0, self._until, is_freed=True)
        limit = self._most - (max(uncounted, 0) if opens else 0) if wishes else None
        drawn = self._drawn if wishes else 0
        rule = self._rule if wishes else 0
        change = ReservationChange(self._holder, before, after, 0 if opens else uncounted, limit, drawn, rule)
        served = self._served if opens and (uncounted or back) else self._asked
        counted, returned = (
            (self._counted, self._returned) if opens else (self._counted + uncounted + back, self._back)
        )
        return _Request(change, wishes, counted, served, returned)

    def _made(self, request: _Request, there: Reservation | None) -> _Request | None:
        """Return the request that made the reservation `there`; None if no unanswered request did."""
        one = self._possible.get(there.number) if there is not None else None
        if one is not None and one.change.before == self._known:
            return one
        is_gone = there is None or (self._known is not None and there.number != self._known.number)
        return replace(request, wishes=()) if request.change.before is not None and is_gone else None

    def _refuse(self, request: _Request, sums: Sums) -> None:
        """Refuse the wishes that have no room beside the earlier ones; all, if room is not the problem."""
        uncounted, refused = self.uncounted, []
        room = self._most - uncounted - sums.held - self._amount + _amount(self._known)
        waiting = [wish for wish in request.wishes if wish in self._wishes]
        for wish in waiting:
            if wish.more <= room:
                room -= wish.more
            else:
                refused.append(wish)
        for wish in refused or waiting:
            self._wishes.remove(wish)
            wish.refused = replace(sums, spent=sums.spent + uncounted)


def _amount(held: Reservation | None) -> int:
    return held.amount if held is not None else 0


class AccountQueues(dict[Account, AccountQueue]):
    """Queues of an invocation. Each is made when its account is first asked for."""

    def __init__(
        self,
        budgets: Budgets,
        call: StoreRetrier,
        invocation: str,
        until: int,
        limit: int,
        *,
        draws: bool = False,
        is_spent: bool = False,
    ) -> None:
        super().__init__()
        self._holder, self._draws = (budgets, call, invocation, until, limit), draws
        self._is_spent = is_spent

    def __missing__(self, account: Account) -> AccountQueue:
        made = AccountQueue(*self._holder, account, draws=self._draws, is_spent=self._is_spent)
        self[account] = made
        return made


@dataclass
class LedgerCache:
    """Cache of a process: the accounts, their limits, and the known sums of today.

    `blocked` have spent their day's money, or are blocked, which only a later rule lifts (a tenant without a
    user); `told` are keys of notices that this process has asked for. `rules`: what operators have decided
    about users, the latest that this process has heard.
    """

    budgets: Budgets
    terms: SpendingLimits
    day: int = 0
    blocked: set[tuple[str, str]] = field(default_factory=set)
    told: set[str] = field(default_factory=set)
    rules: dict[tuple[str, str], UserRule] = field(default_factory=dict)

    def rule(self, account: Account) -> UserRule:
        """Return the operator's rule about the user of an account, as far as this process has heard."""
        return self.rules.get((account.tenant, account.user), NO_RULE) if self.rules else NO_RULE

    def terms_of(self, account: Account) -> SpendingLimits:
        """Return the limits, with that of the user."""
        rule = self.rule(account)
        return replace(self.terms, user_day=rule.most(self.terms.user_day)) if rule.version else self.terms

    def account(self, tenant: str, user: str, now: int) -> Account:
        day = now // DAY_MS
        if day > self.day:
            self.day = day
            self.blocked.clear()
            self.told.clear()
        return Account(tenant, user, day)

    def learn(self, account: Account, sums: Sums) -> bool:
        """Learn the sums of an account. Return true if the user, or the tenant, is blocked."""
        who = (account.tenant, account.user)
        if sums.rule.version > self.rule(account).version:
            self.rules[who] = sums.rule
            self.blocked.discard(who)
        if not (sums.spent or self.rules):
            return False  # only an operator's rule blocks a user who has spent nothing
        terms = self.terms_of(account)
        is_over = is_blocked(sums, terms) if account.user else is_tenant_blocked(sums, terms)
        if is_over and account.day == self.day:
            self.blocked.add(who)
        return is_over

    async def sums(self, call: StoreRetrier, tenant: str, user: str, now: int) -> Sums:
        """Return today's sums of a user, or without one of the tenant: one eventually consistent read."""
        account = self.account(tenant, user, now)
        sums = await call(self.budgets.read, account)
        self.learn(account, sums)
        return sums

    async def refuse_the_blocked(self, call: StoreRetrier, tenant: str, user: str, now: int) -> None:
        """Raise `BudgetSpent` if the user, or the tenant, may begin nothing more today, and `UserBlocked`."""
        account = self.account(tenant, user, now)
        if parked := await self.parked(call, account):
            if parked.code == USER_BLOCKED:
                raise UserBlocked(f"an operator has blocked `{user}`: no saga of this user starts")
            left = -(-(end_of(account.day) - now) // 1_000)
            error = BudgetSpent if parked.code == USER_SPENT else TenantBudgetSpent
            raise error(f"{parked.message}; the next day begins in {left} s", left)

    async def parked(self, call: StoreRetrier, account: Account) -> ev.Parked | None:
        """Return the reason why a saga of this user begins nothing more today; None if it may.

        Costs one eventually consistent read for each limit that is set.
        """
        if self.terms.user_day:
            sums = await call(self.budgets.read, account)
            if self.learn(account, sums):
                return user_parked(sums, self.terms_of(account), account.day)
        if self.terms.tenant_day:
            sums = await call(self.budgets.read, account.of_tenant)
            if self.learn(account.of_tenant, sums):
                return tenant_parked(sums, self.terms, account.day)
        return None


logger = logging.getLogger("baton.ledger")

PART = 16
"""Divisor of the tenant's rest for a slice, unless one call needs more: the last money is drawn exactly."""
TRIES = 8


class HeldByOthers(NoRoom):
    """Refusal of money that others hold and may give back.

    `limit`: the code of the limit. The next attempt needs `amount` of it, and reserves that `first` (`Held`).
    The ledger sets both.
    """

    def __init__(self, limit: str, text: str) -> None:
        super().__init__(text)
        self.limit = limit
        self.amount, self.first = 0, True


class Slices:
    """Shares that the users of one invocation have of their tenants' days.

    `_users` are the sagas that have asked, by account. `tenants` are the last known sums of the tenants'
    accounts.
    """

    def __init__(self, call: StoreRetrier, cache: LedgerCache) -> None:
        self._call = call
        self._budgets = cache.budgets
        self._limit = cache.terms.tenant_day
        self._alone: defaultdict[Account, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._users: defaultdict[AccountQueue, set[str]] = defaultdict(set)
        self.tenants: dict[Account, Sums] = {}

    def use(self, account: AccountQueue, saga: str) -> None:
        """Let the saga have a part in what the account draws; it is given back once no saga has."""
        if self._limit:
            self._users[account].add(saga)

    async def draw(self, account: AccountQueue, cost: int) -> Sums | None:
        """Let the account hold `cost` more, as far as the tenant's day goes.
        What it has spent makes its slices larger.

        Return the tenant's sums if the tenant has not so much left. Raises `HeldByOthers` if others are
        always faster.
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
        raise HeldByOthers(TENANT_SPENT, "others draw from the tenant's day")

    async def _tenant(self, account: Account) -> Sums:
        tenant = account.of_tenant
        if tenant not in self.tenants:
            self.tenants[tenant] = await self._call(self._budgets.read, tenant)
        return self.tenants[tenant]

    async def _refused(self, account: AccountQueue, answer: Drawn) -> Sums:
        """Return the tenant's sums, with all that this user has spent.
        A remainder too small here is left to others.
        """
        if not _is_even(answer.user):
            answer = await self._move(account, answer.user, answer.user.held)
        return answer.tenant

    async def _move(self, account: AccountQueue, seen: Sums, drawn: int, limit: int | None = None) -> Drawn:
        answer = await self._call(self._budgets.draw, account.account, seen, drawn, limit)
        account.sums, self.tenants[account.account.of_tenant] = answer.user, answer.tenant
        return answer

    async def give_back(self, saga: str) -> None:
        """Return the share that a user has drawn and no attempt holds to the tenant, when a saga leaves its
        invocation.

        Best effort. Only the last of the user's invocations does it: others may need the rest. A share that
        cannot be returned is left for the user's next invocation.
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
    """Return true if the tenant's account counts for a user exactly what the user's own does."""
    return _share(sums) == (sums.held, sums.spent)


class Left(msgspec.Struct, frozen=True):
    """Highest possible cost of dead requests, by slot, and the most tokens that they can have read and
    written, if limited.
    """

    costs: dict[str, int] = {}
    tokens: dict[str, tuple[int, ...]] = {}

    def add(self, billed: Mapping[str, int], places: Mapping[str, str], logged: Mapping[str, int]) -> None:
        """Add the requests that a dead invocation had under way.
        `places`: the slots of this saga by the names of their steps. `logged`: the part in the log, by slot.
        """
        for name, most in billed.items():
            slot = places.get(step_of(name))
            if slot is None or (cost := most - logged.get(slot, 0)) <= 0:
                continue
            self.costs[slot] = self.costs.get(slot, 0) + cost
            if (tokens := name.split(".")[1:]) and slot not in logged:  # else the log has what was read
                before = self.tokens.get(slot, (0, 0))
                self.tokens[slot] = before[0] + int(tokens[0]), before[1] + int(tokens[1])


def attempt_name(saga: str, slot: str, tokens: Iterable[int] = ()) -> str:
    """Return the name of a step, and behind it the tokens that its request may read and write,
    where they are limited.
    """
    return ".".join([short_name(f"{saga}/{slot}"), *map(str, tokens)])


async def left_of(
    state: State,
    saga: str,
    held: Iterable[tuple[Account, str]],
    expire: Callable[[Account, str], Awaitable[Reservation | None]],
    logged: Mapping[str, Mapping[str, int]],
) -> Left:
    """Collect the requests that dead workers have left to a saga, by `expire` of each account and holder.
    Accounts that do not answer are freed by others later. `logged`: by holder and slot, the part in the log.
    """
    found = Left()
    places = {attempt_name(saga, slot): slot for slot in state.tokens}
    for account, holder in held:
        try:
            left = await expire(account, holder)
        except EngineFault:
            logger.warning("not freed", exc_info=True, extra={"saga": state.origin.saga})
            continue
        if left is not None and left.is_freed:
            found.add(left.billed, places, logged.get(holder, {}))
    return found


class AttemptSpending(Struct, eq=False):
    """An attempt under way: `cover` is what it may spend beyond what has been `closed`, which is counted.

    `held` of it is reserved. `sums` are the last known ones of the account. `rests`: there was no room for it
    in its process. `billed`: what is held for it is for a request that is billed whatever becomes of its
    caller, and this is its name. `shared`: the same on the accounts of limits that its saga shares with
    others, the nearest first.
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

    @property
    def is_holding(self) -> bool:
        """Return true if an account holds something for it."""
        return any(one.held for one in (self, *self.shared))

    def rest(self, cost: int) -> int:
        """Return what is held for it beyond a cost."""
        return max(self.closed + self.cover - cost, 0)

    def holds(self, amount: int, left: Collection[tuple[str, AccountQueue]]) -> bool:
        """Return true if it has spent nothing and holds this amount on accounts that have all answered."""
        is_known = not any((self.saga, one.account) in left for one in (self, *self.shared))
        return is_known and not self.spent and self.cover == amount

    async def move(self, now: int, cost: int, cover: int, billed: str) -> Sums | None:
        """Count the cost so far, and hold `cover` in place of the held amount.
        Return the sums if it has no room.

        Raises `EngineFault` if the account gives no answer.
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
