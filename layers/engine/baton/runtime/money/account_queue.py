"""What one invocation holds of one account, and the requests that change it: one at a time.

All that is asked for while a request is under way goes along with the next. What an attempt may spend, and what is held
for it, is in ledger.py.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools

from msgspec import Struct
from msgspec.structs import replace

from baton.core.user_rules import UserRule
from baton.errors import EngineFault, StoreUnavailable
from baton.ports import Account, Answer, Budgets, Change, Reservation, Sums
from baton.runtime.invocation.store_retrier import StoreRetrier


class _Wish(Struct, eq=False):
    """So much more is to be held, `billed` for this. `refused`: there is no room beside these sums."""

    more: int
    billed: str = ""
    refused: Sums | None = None


def short(name: str) -> str:
    """A name of ten characters for it."""
    return base64.urlsafe_b64encode(hashlib.sha256(name.encode()).digest())[:10].decode()


def step_of(billed: str) -> str:
    """The name of the step that a request is of, which is billed under this name: one at a time."""
    return billed.partition(".")[0]


class _Request(Struct, frozen=True):
    """A change, the wishes that it grants, and what is `counted`, `served` and `returned` once it is made."""

    change: Change
    wishes: tuple[_Wish, ...]
    counted: int
    served: int
    returned: int


class AccountQueue:
    """One reservation of one account, for all attempts of an invocation together.

    `draws`: no more is held than the user has drawn of the tenant's day; without a `limit` only that counts.
    `_amount` is what attempts under way hold, `_billed` what of it is billed whatever becomes of them, `_spent` what all have spent, `_back` what
    they have given back of what was counted before, `_asked` how often any was changed; `_counted`, `_returned` and `_served` are how far the
    account has that, `_known` is the reservation there.

    A request without an answer can still be made while the reservation is as it was before. Each is in `_possible`,
    under the number by which the account shows it. One that leaves no reservation shows nothing, so it stays `_closing` and is
    sent again as it was. One that opens a reservation counts nothing, and each try has a number of its own: made late, it
    opens another, which no other late request is about. If it is for what is billed, that would be spent when its time is over, although
    no caller asked for anything with it: from such a try on (`_is_haunted`) the invocation leaves a mark where it holds nothing, and what lands
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
    ) -> None:
        self.account = account
        self.sums = Sums()
        self._budgets = budgets
        self._call = call
        self.limit, self._of_all, self._draws = limit, limit, draws
        self._rule = 0
        self._holder = short(invocation)
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
        """Hold no more than an operator allows the user, if this is a later rule than the one that is heeded."""
        if rule.version > self._rule:
            self._rule, self.limit = rule.version, rule.most(self._of_all)

    @property
    def is_settled(self) -> bool:
        """Whether the account has all that was asked for, as far as is known."""
        is_fenced = not self._is_haunted or self._known is not None
        is_served = self._served == self._asked and _amount(self._known) == self._amount
        return is_fenced and is_served and not self._is_unsure

    @property
    def ahead(self) -> int:
        """So much more will be held once all that was asked for is there."""
        return self._amount - _amount(self._known) + self.owed

    async def ask(
        self, now: int, less: int = 0, spent: int = 0, more: int = 0, billed: str = ""
    ) -> Sums | None:
        """Hold less, count what was spent, and hold more. What is over at `now` may be freed. Less than nothing is given back.

        `billed`: what is held, and was held until now, is for this, and is spent whatever becomes of the caller.

        Returns the sums for which there is no room for more, with all that this invocation has spent.
        Raises `EngineFault` when there is no answer: the less and the spent go along with a later request, and no
        more is held. Callers that wait while a request is under way share its failure. One request after the other
        would take all the time that the invocation has left.
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
        """What is held for a request that is billed in any case; of a step there is one at a time."""
        if before := self._names.pop(step_of(name), ""):
            del self._billed[before]
        if name and amount:
            self._names[step_of(name)], self._billed[name] = name, amount

    def move(self, request: _Request, now: int) -> Answer:
        """One try of a request."""
        change = request.change
        if change.after is not None:
            is_new = change.before is None and not change.after.is_mark
            number = next(self._numbers) if is_new else change.after.number
            change = replace(change, after=replace(change.after, number=number))
            self._possible[number] = replace(request, change=change)
        return self._budgets.move(self.account, change, now)

    @property
    def _drawn(self) -> int:
        """What the user has of the tenant's day, if that has a limit."""
        return self.sums.drawn if self._draws else 0

    @property
    def _most(self) -> int:
        """So much may be held at a time."""
        drawn = self._drawn if self._draws else self.limit
        return min(self.limit or drawn, drawn)

    @property
    def owed(self) -> int:
        """What the account has to count yet: less than nothing where it has counted the most that was possible."""
        return max(self._spent - self._counted, 0)

    def _next(self) -> _Request | None:
        """The request for all that is asked for now. None: there is nothing to say."""
        before, wishes = self._known, tuple(self._wishes)
        owed = self.owed - (back := self._back - self._returned)
        amount = self._amount + sum(wish.more for wish in wishes)
        is_idle = not (amount or owed or back)
        if is_idle and before is not None and before.is_mark:
            return None
        if is_idle and before is None and not self._is_haunted:
            before = next((one.change.after for one in self._possible.values()), None)  # it may be there
            if not before:
                return None
        opens = not before
        billed = {**self._billed, **{wish.billed: wish.more for wish in wishes if wish.billed}}
        is_there = amount or (opens and not is_idle)
        after = Reservation(next(self._numbers), amount, self._until, billed=billed) if is_there else None
        if after is None and self._is_haunted:
            after = Reservation(-next(self._numbers), 0, self._until, is_freed=True)
        limit = self._most - (max(owed, 0) if opens else 0) if wishes else None
        drawn = self._drawn if wishes else 0
        rule = self._rule if wishes else 0
        change = Change(self._holder, before, after, 0 if opens else owed, limit, drawn, rule)
        served = self._served if opens and (owed or back) else self._asked
        counted, returned = (
            (self._counted, self._returned) if opens else (self._counted + owed + back, self._back)
        )
        return _Request(change, wishes, counted, served, returned)

    def _made(self, request: _Request, there: Reservation | None) -> _Request | None:
        """The request by which the reservation is now `there`; None: it is none of those without an answer."""
        one = self._possible.get(there.number) if there is not None else None
        if one is not None and one.change.before == self._known:
            return one
        is_gone = there is None or (self._known is not None and there.number != self._known.number)
        return replace(request, wishes=()) if request.change.before is not None and is_gone else None

    def _refuse(self, request: _Request, sums: Sums) -> None:
        """Refuse the wishes for which there is no room beside the earlier ones; all, if that is not what is missing."""
        owed, refused = self.owed, []
        room = self._most - owed - sums.held - self._amount + _amount(self._known)
        waiting = [wish for wish in request.wishes if wish in self._wishes]
        for wish in waiting:
            if wish.more <= room:
                room -= wish.more
            else:
                refused.append(wish)
        for wish in refused or waiting:
            self._wishes.remove(wish)
            wish.refused = replace(sums, spent=sums.spent + owed)


def _amount(held: Reservation | None) -> int:
    return held.amount if held is not None else 0


class AccountQueues(dict[Account, AccountQueue]):
    """All queues of an invocation. One is made when its account is first asked for."""

    def __init__(
        self, budgets: Budgets, call: StoreRetrier, invocation: str, until: int, limit: int, *, draws: bool
    ) -> None:
        super().__init__()
        self._holder, self._draws = (budgets, call, invocation, until, limit), draws

    def __missing__(self, account: Account) -> AccountQueue:
        made = self[account] = AccountQueue(*self._holder, account, draws=self._draws)
        return made
