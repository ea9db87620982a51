"""The store in memory: every port without AWS, for tests and for a deployment in one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from baton.adapters.memory.log import OPEN_RESERVATIONS, MemoryInbox, MemoryLog
from baton.adapters.memory.outside import MemoryEntities
from baton.adapters.memory.people import MemoryNoticeRecord, MemoryQuestions
from baton.core.failures.breakers import Breaker
from baton.core.letters import PENDING, Letter
from baton.core.log.records import Parked
from baton.core.money import NO_RULE, UserRule, newer_rule
from baton.core.schedules import ScheduleRecord
from baton.errors import CorruptLog
from baton.ports import (
    Account,
    BudgetAnswer,
    CheckpointRow,
    Clock,
    Definition,
    Drawn,
    Reservation,
    ReservationChange,
    Sums,
    Wake,
)
from baton.ports.log import Head, LiveTexts, SagaRef, is_over, reference_of
from baton.ports.operators import MOST_COUNTED, Outstanding, letter_ref
from baton.ports.records import FREED, Effect, Tag
from baton.ports.triggers import schedule_ref

if TYPE_CHECKING:
    from baton.ports.outside import Facts


class MemoryBreakers:
    """`Breakers` in memory, by tenant and target. `writes` counts the writes that took effect."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._there: dict[tuple[str, str], Breaker] = {}
        self.writes = 0

    def read_breaker(self, tenant: str, target: str) -> Breaker | None:
        with self._lock:
            return self._there.get((tenant, target))

    def write_breaker(self, tenant: str, target: str, breaker: Breaker, now: int) -> Breaker | None:
        with self._lock:
            there = self._there.get((tenant, target), Breaker())
            if there.version != breaker.version - 1:
                return there
            self._there[tenant, target] = breaker
            self.writes += 1
            return None

    def all(self, tenant: str, after: str = "", limit: int = 100) -> Sequence[tuple[str, Breaker]]:
        with self._lock:
            mine = sorted(target for owner, target in self._there if owner == tenant and target > after)
            return [(target, self._there[tenant, target]) for target in mine[:limit]]


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

    def free(self, now: int, dead: str = "") -> None:
        for holder, one in self.held_by.items():
            if (one.until <= now or holder == dead) and not one.is_freed:
                self.held_by[holder] = one.freed()
                billed = sum(one.billed.values())
                self.spent += billed
                self.held -= one.amount - billed
                self.open -= 1


class MemoryBudgets:
    """`Budgets` in memory, each call atomic. `calls`: those that would cost a request."""

    def __init__(self, most_open: int = OPEN_RESERVATIONS) -> None:
        self._most_open = most_open
        self._lock = threading.Lock()
        self._items: dict[Account, _Item] = {}
        self._rules: dict[tuple[str, str], UserRule] = {}
        self.calls = 0

    def _item(self, account: Account) -> _Item:
        self.calls += 1
        return self._items.setdefault(account, _Item())

    def move(self, account: Account, change: ReservationChange, now: int) -> BudgetAnswer:
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
            return BudgetAnswer(is_done, item.sums, item.held_by.get(change.holder))

    def _may(self, item: _Item, change: ReservationChange) -> bool:
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

    def expire(self, account: Account, now: int, holder: str = "", *, is_dead: bool = False) -> BudgetAnswer:
        with self._lock:
            item = self._item(account)
            item.free(now, holder if is_dead else "")
            return BudgetAnswer(True, item.sums, item.held_by.get(holder))

    def read(self, account: Account) -> Sums:
        with self._lock:
            sums = self._item(account).sums
            rule = self._rules.get((account.tenant, account.user))
            return sums if rule is None else replace(sums, rule=newer_rule(rule, sums.rule))

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
            item.rule = newer_rule(item.rule, rule.short)

    def ruled(self, tenant: str, after: str = "", limit: int = 100) -> Sequence[str]:
        with self._lock:
            return sorted(user for of, user in self._rules if of == tenant and user > after)[:limit]

    def spent(self) -> dict[Account, int]:
        """Return the spending of each user's account. For tests only: no port has it."""
        with self._lock:
            return {account: item.spent for account, item in self._items.items() if account.user}


class MemoryDefinitions:
    """`Definitions` in memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._versions: dict[tuple[str, str], dict[int, Definition]] = {}
        self._tags: dict[tuple[str, str, str], Tag] = {}

    def put(self, definition: Definition) -> bool:
        with self._lock:
            versions = self._versions.setdefault((definition.tenant, definition.name), {})
            if definition.version in versions:
                return False
            versions[definition.version] = definition
            return True

    def write_pauses(self, seen: Definition, pauses: Sequence[Parked]) -> bool:
        with self._lock:
            versions = self._versions.setdefault((seen.tenant, seen.name), {})
            there = versions.get(seen.version, None if seen.version else seen)
            if there is None or there.pauses != seen.pauses:
                return False
            versions[seen.version] = replace(there, pauses=tuple(pauses))
            return True

    def get(self, tenant: str, name: str, version: int | None = None) -> Definition | None:
        with self._lock:
            versions = self._versions.get((tenant, name), {})
            return versions.get(max(versions, default=0) if version is None else version)

    def names(self, tenant: str, after: str = "", limit: int | None = None) -> Sequence[str]:
        with self._lock:
            found = sorted(
                name
                for (owner, name), versions in self._versions.items()
                if owner == tenant and name > after and any(versions)
            )
        return found[:limit]

    def versions(self, tenant: str, name: str, limit: int) -> Sequence[Definition]:
        with self._lock:
            versions = self._versions.get((tenant, name), {})
            return [versions[number] for number in sorted(versions, reverse=True)[:limit]]

    def tag(self, tenant: str, workflow: str, name: str) -> Tag | None:
        with self._lock:
            return self._tags.get((tenant, workflow, name))

    def tags(self, tenant: str, workflow: str) -> Sequence[Tag]:
        with self._lock:
            return [tag for key, tag in sorted(self._tags.items()) if key[:2] == (tenant, workflow)]

    def write_tag(self, tag: Tag) -> bool:
        key = tag.tenant, tag.workflow, tag.name
        with self._lock:
            there = self._tags.get(key)
            if tag.writes != (1 if there is None else there.writes + 1):
                return False
            self._tags[key] = tag
            return True


class MemoryRates:
    """`Rates` in memory, of the newest window. `calls`: those that would cost a request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: dict[tuple[str, int], int] = {}
        self.calls = 0

    def spend(self, tenant: str, window: int, count: int) -> int:
        with self._lock:
            self.calls += 1
            if any(known < window for _, known in self._spent):
                self._spent = {key: sum_ for key, sum_ in self._spent.items() if key[1] >= window}
            before = self._spent.get((tenant, window), 0)
            self._spent[tenant, window] = before + count
            return before


class MemoryCheckpoints:
    """`Checkpoints` in memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.stored: dict[tuple[str, str, str], CheckpointRow] = {}

    def put(self, tenant: str, thread: str, row: CheckpointRow, *, is_new: bool = False) -> bool:
        with self._lock:
            place = tenant, thread, row.key
            if is_new and place in self.stored:
                return False
            self.stored[place] = row
            return True

    def rows(
        self, tenant: str, thread: str, first: str, last: str, limit: int | None = None
    ) -> Sequence[CheckpointRow]:
        with self._lock:
            found = sorted(
                (key, row) for (of, its, key), row in self.stored.items() if (of, its) == (tenant, thread)
            )
        return [row for key, row in reversed(found) if first <= key <= last][:limit]

    def delete(self, tenant: str, thread: str, keys: Sequence[str], now: int) -> None:
        with self._lock:
            for key in keys:
                self.stored.pop((tenant, thread, key), None)


class MemoryEffects:
    """Effects by tenant and key; one lock makes every call atomic. `stored` is public, for tests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.stored: dict[tuple[str, str], Effect] = {}

    def claim(self, effect: Effect) -> Effect | None:
        with self._lock:
            there = self.stored.get((effect.tenant, effect.key))
            if there is None or there.status == FREED:
                self.stored[effect.tenant, effect.key] = effect
                return None
            return there

    def change(self, seen: Effect, effect: Effect) -> Effect | None:
        with self._lock:
            there = self.stored.get((seen.tenant, seen.key))
            if there is None or (there.owner, there.status) == (seen.owner, seen.status):
                self.stored[seen.tenant, seen.key] = effect
                return None
            return there

    def read(self, tenant: str, key: str) -> Effect | None:
        with self._lock:
            return self.stored.get((tenant, key))


class MemoryLetters:
    """The record of dead letters; one lock makes every call atomic. Without a clock, nothing expires."""

    def __init__(self, log: MemoryLog, clock: Clock | None = None) -> None:
        self._lock = threading.Lock()
        self._log = log
        self._clock = clock
        self._letters: dict[tuple[str, str], Letter] = {}

    def read(self, tenant: str, id: str) -> Letter | None:
        with self._lock:
            return self._there(tenant, id)

    def write(self, letter: Letter, seen: int, wake: Wake | None = None) -> bool:
        with self._lock:
            there = self._there(letter.tenant, letter.id)
            if (there.number if there is not None else 0) != seen:
                return False
            self._letters[letter.tenant, letter.id] = letter
        if wake is not None:
            self._log.pass_on(letter_ref(letter), wake)
        return True

    def listed(
        self, tenant: str, status: str, limit: int, after: Letter | None = None
    ) -> tuple[Sequence[Letter], bool]:
        found = [one for one in self.all() if (one.tenant, one.status) == (tenant, status)]
        left = [one for one in found if after is None or _place(one) > _place(after)]
        return left[:limit], len(left) > limit

    def outstanding(self) -> Outstanding:
        pending = [one.since for one in self.all() if one.status == PENDING]
        return Outstanding(min(len(pending), MOST_COUNTED), min(pending, default=0))

    def all(self) -> list[Letter]:
        """Return every letter, in the order of lists. For tests only: no port has it."""
        with self._lock:
            there = [one for place in self._letters if (one := self._there(*place)) is not None]
        return sorted(there, key=_place)

    def _there(self, tenant: str, id: str) -> Letter | None:
        letter = self._letters.get((tenant, id))
        if letter is None or (self._clock is not None and is_over(letter.expires, self._clock.now())):
            return None
        return letter


def _place(letter: Letter) -> tuple[int, str]:
    return letter.since, letter.id


class MemoryLive:
    """`Live` in memory."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._stored: dict[SagaRef, LiveTexts] = {}
        self.writes = 0

    def watch(self, ref: SagaRef, now: int, until: int, unless: int) -> bool:
        with self._lock:
            there = self._stored.get(ref, LiveTexts(0))
            if there.until >= unless:
                return False
            self._stored[ref] = replace(there, until=until)
            return True

    def leave_word(self, head: Head, now: int, until: int) -> bool:
        return self._log.leave_word(head, until)

    def put_texts(self, ref: SagaRef, epoch: int, now: int, data: bytes) -> bool:
        with self._lock:
            there = self._stored.get(ref)
            if there is None or there.until <= now or (there.epoch, there.at) >= (epoch, now):
                return False
            self._stored[ref] = LiveTexts(there.until, epoch, now, data)
            return True

    def read(self, ref: SagaRef) -> LiveTexts | None:
        return self._stored.get(ref)


class MemorySchedules:
    """Records by tenant and workflow, in the due index of their log; one lock makes every call atomic."""

    def __init__(self, log: MemoryLog) -> None:
        self._lock = threading.Lock()
        self._log = log
        self._records: dict[tuple[str, str], ScheduleRecord] = {}

    def read_schedule(self, tenant: str, workflow: str) -> ScheduleRecord | None:
        with self._lock:
            return self._records.get((tenant, workflow))

    def write_schedule(self, record: ScheduleRecord) -> bool:
        key = record.tenant, record.workflow
        with self._lock:
            there = self._records.get(key)
            if there == record:
                return True
            if (0 if there is None else there.number) != record.number - 1:
                return False
            self._records[key] = record
            self._log.move(schedule_ref(*key), 0 if there is None else there.due, record.due)
        return True

    def listed(self, tenant: str, after: str, limit: int) -> tuple[Sequence[ScheduleRecord], str]:
        with self._lock:
            names = sorted(name for owner, name in self._records if owner == tenant and name > after)
            page = [self._records[tenant, name] for name in names[:limit]]
        return page, names[limit - 1] if len(names) > limit else ""


class MemorySubscriptions:
    """(User, version) by tenant, type and workflow, without a user once given up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str, str], tuple[str, int]] = {}

    def subscribe(self, tenant: str, type: str, workflow: str, user: str, version: int) -> None:
        with self._lock:
            if self._known.get((tenant, type, workflow), ("", 0))[1] <= version:
                self._known[tenant, type, workflow] = user, version

    def unsubscribe(self, tenant: str, type: str, workflow: str, version: int, expires: int) -> None:
        with self._lock:
            if self._known.get((tenant, type, workflow), ("", version))[1] < version:
                self._known[tenant, type, workflow] = "", version

    def subscribed(self, tenant: str, type: str, limit: int) -> Sequence[tuple[str, str, int]]:
        with self._lock:
            found = sorted(
                (key[2], *row) for key, row in self._known.items() if row[0] and key[:2] == (tenant, type)
            )
        return found[:limit]


class MemoryStore:
    """`Store`. `lag`, `on_wake` and `clock` are those of its log: without a clock, nothing expires."""

    def __init__(
        self,
        shards: int = 4,
        *,
        lag: bool = False,
        on_wake: Callable[[SagaRef, Wake], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.cell = 0
        self.log = MemoryLog(shards, lag=lag, on_wake=on_wake, clock=clock)
        self.limits = self.log.limits
        self.inbox = MemoryInbox(self.log)
        self.definitions = MemoryDefinitions()
        self.effects = MemoryEffects()
        self.checkpoints = MemoryCheckpoints()
        self.budgets = MemoryBudgets()
        self.rates = MemoryRates()
        self.breakers = MemoryBreakers()
        self.notice_record = MemoryNoticeRecord()
        self.questions = MemoryQuestions()
        self.entities = MemoryEntities()
        self.live = MemoryLive(self.log)
        self.letters = MemoryLetters(self.log, clock)
        self.schedules = MemorySchedules(self.log)
        self.subscriptions = MemorySubscriptions()

    @cached_property
    def facts(self) -> Facts:
        from baton.adapters.facts import StoredFacts

        return StoredFacts(self.checkpoints)


class MemoryBlobs:
    """Content-addressed bytes. `stored` is open, so that a test can tamper with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.stored: dict[tuple[str, str], bytes] = {}

    def put(self, tenant: str, data: bytes, period: str = "") -> str:
        ref = reference_of(data, period)
        with self._lock:
            self.stored[tenant, ref] = data
        return ref

    def get(self, tenant: str, ref: str) -> bytes:
        with self._lock:
            data = self.stored.get((tenant, ref))
        if data is None:
            raise CorruptLog(f"blob {ref} is not there")
        if reference_of(data, ref.partition("@")[2]) != ref:
            raise CorruptLog(f"blob {ref} does not hold what its name says")
        return data
