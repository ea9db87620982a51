"""The users of a tenant with their spending of today, and an operator's decision about one. Its effect is in runtime/money."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from baton.core.decide.spending import day_of, shown
from baton.core.log.status import LISTS
from baton.core.outside.users import is_user
from baton.core.read.budgets import user_view
from baton.core.user_rules import UserRule, blocking, limiting, unblocking
from baton.errors import NotAllowedNow
from baton.ports import Account, Listed
from baton.runtime.engine.cursors import foreign_cursor, read_cursor, write_cursor
from baton.runtime.engine.request import Request
from baton.runtime.reads.day_costs import GROUPS, rows_of_day

_AT_ONCE: Final = 10
LOOKED_AT: Final = 500
"""Sagas that one page looks at."""
_RULED = 100  # users of one page of those with a rule
_NAMED, _SAGAS = "u", "s"  # a cursor begins with the list that it continues


class UserDesk:
    """The users of one tenant, for one request."""

    def __init__(self, request: Request) -> None:
        self._call, self._clock, self._log = request.parts.call, request.engine.clock, request.engine.log
        self._tenant, self._by = request.caller.tenant, request.caller.by
        self._budgets, self._terms = request.engine.store.budgets, request.engine.ledger_cache.terms

    async def page(self, user: str, cursor: str) -> dict[str, Any]:
        """The next users: those with a rule, and then those whose sagas have not ended, or ended today. `user`: that one alone.

        A user of both, or with many sagas, is on several pages.
        """
        day = day_of(self._clock.now())
        try:
            place = read_cursor(cursor).decode() if cursor else _NAMED
        except UnicodeDecodeError as error:
            raise foreign_cursor() from error
        kind, place = place[:1], place[1:]
        if user:
            names, after = [user], ""
        elif kind == _NAMED and (not place or is_user(place)):
            names = list(await self._call(self._budgets.ruled, self._tenant, place, _RULED))
            after = _NAMED + names[-1] if len(names) == _RULED else _SAGAS
        elif kind == _SAGAS:
            names, after = await self._at_work(day, place)
        else:
            raise foreign_cursor()
        return {
            "day": shown(day),
            "users": await self._views(names, day),
            "next": write_cursor(after.encode()) if after else None,
        }

    async def _at_work(self, day: int, cursor: str) -> tuple[list[str], str]:
        """Users of the next sagas that can have spent today: of all that have not ended, and those that ended today."""
        found = set[str]()

        def take(row: Listed) -> None:
            found.add(row.user)

        _, after = await rows_of_day(
            self._log,
            self._call,
            self._tenant,
            day,
            cursor,
            take,
            GROUPS,
            LOOKED_AT,
            of_any_day=LISTS["open"][0],
        )
        return sorted(found - {""}), _SAGAS + after if after else ""

    async def block(self, user: str, note: str) -> dict[str, Any]:
        """No saga of the user starts, and none goes on to spend. Raises `NotAllowedNow` where no day is counted."""
        return await self._change(user, partial(blocking, by=self._by, note=note, now=self._clock.now()))

    async def unblock(self, user: str, note: str) -> dict[str, Any]:
        """Raises `NotAllowedNow`."""
        return await self._change(user, partial(unblocking, by=self._by, note=note, now=self._clock.now()))

    async def limit(self, user: str, limit: int | None, note: str) -> dict[str, Any]:
        """Let the user spend so much a day (micro-dollars), or (None) as much as all users. Raises `NotAllowedNow`."""
        now = self._clock.now()
        return await self._change(user, lambda there: limiting(there, limit, self._by, note, now))

    async def _change(self, user: str, change: Callable[[UserRule], UserRule]) -> dict[str, Any]:
        """Until no other operator comes between; then the accounts of today and tomorrow say it to workers that are at it.

        A change that changes nothing is told all the same: the caller before may not have come so far.
        """
        if not self._terms.user_day:
            raise NotAllowedNow(
                "nothing is counted by user here: set `UserDayBudgetUsd` to an amount, however large, before a user is blocked or limited"
            )
        there = await self._call(self._budgets.read_rule, self._tenant, user)
        while (after := change(there)) != there:
            refused = await self._call(self._budgets.write_rule, self._tenant, user, after)
            if refused is None or refused == after:  # the second where its own write had no answer
                break
            there = refused
        day = day_of(self._clock.now())
        for one in (day, day + 1):  # an invocation that passes midnight hears of it there
            await self._call(self._budgets.tell_rule, Account(self._tenant, user, one), after)
        (view,) = await self._views([user], day, after)
        return view

    async def _views(
        self, users: Iterable[str], day: int, rule: UserRule | None = None
    ) -> list[dict[str, Any]]:
        waiting, found = list(users), list[dict[str, Any]]()
        for first in range(0, len(waiting), _AT_ONCE):
            found += await asyncio.gather(
                *(self._view(user, day, rule) for user in waiting[first : first + _AT_ONCE])
            )
        return found

    async def _view(self, user: str, day: int, rule: UserRule | None) -> dict[str, Any]:
        sums = await self._call(self._budgets.read, Account(self._tenant, user, day))
        return user_view(user, sums.spent, sums.reserved, rule or sums.rule, self._terms.user_day, day)
