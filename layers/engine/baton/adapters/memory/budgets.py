"""`Budgets` in memory: for tests and for trying things without any AWS."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from baton.adapters.memory.limits import OPEN_RESERVATIONS
from baton.core.user_rules import NO_RULE, UserRule, newer
from baton.ports import Account, Answer, Change, Drawn, Reservation, Sums


@dataclass
class _Item:
    spent: int = 0
    held: int = 0
    open: int = 0
    drawn: int = 0
    told: int = 0
    rule: UserRule = NO_RULE
    held_by: dict[str, Reservation] = field(default_factory=dict)

    @property
    def sums(self) -> Sums:
        return Sums(self.spent, self.held, self.open, self.drawn, self.told, self.rule)

    def free(self, now: int) -> None:
        for holder, one in self.held_by.items():
            if one.until <= now and not one.is_freed:
                self.held_by[holder] = one.freed()
                billed = sum(one.billed.values())
                self.spent += billed
                self.held -= one.amount - billed
                self.open -= 1


class MemoryBudgets:
    """Accounts; one lock makes every call atomic. `calls` counts those that would cost a request."""

    def __init__(self, most_open: int = OPEN_RESERVATIONS) -> None:
        self._most_open = most_open
        self._lock = threading.Lock()
        self._items: dict[Account, _Item] = {}
        self._rules: dict[tuple[str, str], UserRule] = {}
        self.calls = 0

    def _item(self, account: Account) -> _Item:
        self.calls += 1
        return self._items.setdefault(account, _Item())

    def move(self, account: Account, change: Change, now: int) -> Answer:
        with self._lock:
            item = self._item(account)
            is_done = self._may(item, change)
            if not is_done and item.held_by.get(change.holder) == change.before:
                item.free(now)
                is_done = self._may(item, change)
            if is_done:
                item.spent += change.spent
                item.held += change.more
                item.open += change.opened
                item.held_by.pop(change.holder, None)
                if change.after is not None:
                    item.held_by[change.holder] = change.after
            return Answer(is_done, item.sums, item.held_by.get(change.holder))

    def _may(self, item: _Item, change: Change) -> bool:
        has_room = change.limit is None or (
            item.held + change.more <= change.limit and (change.opened <= 0 or item.open < self._most_open)
        )
        has_room = has_room and item.drawn >= change.drawn
        has_room = has_room and (change.limit is None or item.rule.version <= change.rule)
        return has_room and item.held_by.get(change.holder) == change.before

    def draw(self, account: Account, seen: Sums, drawn: int, limit: int | None = None) -> Drawn:
        with self._lock:
            user, tenant = self._item(account), self._item(account.of_tenant)
            more = drawn - seen.drawn
            is_done = (
                (user.drawn, user.told) == (seen.drawn, seen.told)
                and (more >= 0 or user.held <= drawn)
                and (limit is None or tenant.held + more <= limit)
            )
            if is_done:
                tenant.held += more
                tenant.spent += seen.spent - seen.told
                user.drawn, user.told = drawn, seen.spent
            return Drawn(is_done, user.sums, tenant.sums)

    def expire(self, account: Account, now: int, holder: str = "") -> Answer:
        with self._lock:
            item = self._item(account)
            item.free(now)
            return Answer(True, item.sums, item.held_by.get(holder))

    def read(self, account: Account) -> Sums:
        with self._lock:
            sums = self._item(account).sums
            rule = self._rules.get((account.tenant, account.user), NO_RULE)
            return replace(sums, rule=newer(rule, sums.rule))

    def write_rule(self, tenant: str, user: str, rule: UserRule) -> UserRule | None:
        with self._lock:
            there = self._rules.get((tenant, user), NO_RULE)
            if there.version != rule.version - 1:
                return there
            self._rules[tenant, user] = rule
            return None

    def read_rule(self, tenant: str, user: str) -> UserRule:
        with self._lock:
            return self._rules.get((tenant, user), NO_RULE)

    def tell_rule(self, account: Account, rule: UserRule) -> None:
        with self._lock:
            item = self._item(account)
            item.rule = newer(item.rule, rule.short)

    def ruled(self, tenant: str, after: str = "", limit: int = 100) -> Sequence[str]:
        with self._lock:
            return sorted(user for of, user in self._rules if of == tenant and user > after)[:limit]

    def spent(self) -> dict[Account, int]:
        """What was spent from each user's account; for looking on, no port has it."""
        with self._lock:
            return {account: item.spent for account, item in self._items.items() if account.user}
