"""The toy store's accounts, incidents, questions, entities and live texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from baton.core.log.events import Notice
from baton.core.money import NO_RULE, UserRule, newer_rule
from baton.errors import ChannelRefused, Throttled
from baton.ports import (
    Account,
    BudgetAnswer,
    Drawn,
    Head,
    LiveTexts,
    QuestionRow,
    Reservation,
    ReservationChange,
    SagaRef,
    Spot,
    Sums,
)
from baton.ports.outside import KEYS_KEPT, Entity, Written
from baton.ports.people import CLAIM_MS, NEVER, WINDOW_MS, Incident, incident_of, is_of
from tests.contract.toy_table import Kept


class _Money(Struct):
    """An account, and what each invocation holds of it."""

    spent: int = 0
    drawn: int = 0
    told: int = 0
    given: int = 0
    rule: UserRule = NO_RULE
    held_by: dict[str, Reservation] = {}

    @property
    def sums(self) -> Sums:
        held = self.given or self.spent + sum(one.amount for one in self.held_by.values())
        is_open = (not one.is_freed for one in self.held_by.values())
        return Sums(self.spent, held, sum(is_open), self.drawn, self.told, self.rule)

    def free(self, now: int, dead: str = "") -> None:
        for holder, one in self.held_by.items():
            if one.until <= now or holder == dead:
                self.spent += 0 if one.is_freed else sum(one.billed.values())
                self.held_by[holder] = one.freed()


class ToyBudgets:
    """`Budgets`."""

    def __init__(self, kept: Kept, most_open: int = 200) -> None:
        self._kept = kept
        self._most_open = most_open

    def _read(self, account: Account) -> _Money:
        return self._kept.get("money", *_place(account), _Money) or _Money()

    def _write(self, account: Account, money: _Money) -> Sums:
        self._kept.put("money", *_place(account), money)
        return money.sums

    def move(self, account: Account, change: ReservationChange, now: int) -> BudgetAnswer:
        def may() -> bool:
            sums, is_as_before = money.sums, money.held_by.get(change.holder) == change.before
            has_place = change.opened <= 0 or sums.open < self._most_open
            has_room = change.limit is None or (sums.held + change.more <= change.limit and has_place)
            heeds = change.limit is None or money.rule.version <= change.rule
            return is_as_before and has_room and heeds and sums.drawn >= change.drawn

        with self._kept.alone():
            money = self._read(account)
            if not may() and money.held_by.get(change.holder) == change.before:
                money.free(now)
            if is_done := may():
                money.spent += change.spent
                money.held_by.pop(change.holder, None)
                money.held_by |= {change.holder: change.after} if change.after else {}
            return BudgetAnswer(is_done, self._write(account, money), money.held_by.get(change.holder))

    def draw(self, account: Account, seen: Sums, drawn: int, limit: int | None = None) -> Drawn:
        with self._kept.alone():
            user, tenant = self._read(account), self._read(account.of_tenant)
            given = tenant.given + drawn - seen.drawn
            is_as_seen = (user.drawn, user.told) == (seen.drawn, seen.told)
            is_enough = drawn >= seen.drawn or user.sums.held <= drawn
            if is_done := is_as_seen and is_enough and (limit is None or given <= limit):
                tenant.given, tenant.spent = given, tenant.spent + seen.spent - seen.told
                user.drawn, user.told = drawn, seen.spent
            return Drawn(is_done, self._write(account, user), self._write(account.of_tenant, tenant))

    def expire(self, account: Account, now: int, holder: str = "", *, is_dead: bool = False) -> BudgetAnswer:
        with self._kept.alone():
            money = self._read(account)
            money.free(now, holder if is_dead else "")
            return BudgetAnswer(True, self._write(account, money), money.held_by.get(holder))

    def read(self, account: Account) -> Sums:
        sums = self._read(account).sums
        return replace(sums, rule=newer_rule(self.read_rule(account.tenant, account.user), sums.rule))

    def write_rule(self, tenant: str, user: str, rule: UserRule) -> UserRule | None:
        with self._kept.alone():
            if (there := self.read_rule(tenant, user)).version != rule.version - 1:
                return there
            self._kept.put("rule", tenant, user, rule)
            return None

    def read_rule(self, tenant: str, user: str) -> UserRule:
        return self._kept.get("rule", tenant, user, UserRule) or NO_RULE

    def tell_rule(self, account: Account, rule: UserRule) -> None:
        with self._kept.alone():
            money = self._read(account)
            money.rule = newer_rule(money.rule, rule.short)
            self._write(account, money)

    def ruled(self, tenant: str, after: str = "", limit: int = 100) -> Sequence[str]:
        found = [user for of, user, _ in self._kept.all("rule", UserRule) if of == tenant]
        return [user for user in found if user > after][:limit]


def _place(account: Account) -> tuple[str, str]:
    return f"{account.tenant}\0{account.user}", str(account.day)


class _Claim(Struct):
    """The saga that sends a notice, made at `at`, until when it may, and when it did."""

    saga: str
    at: int
    until: int
    sent: int | None = None
    refused: str = ""


class ToyNoticeRecord:
    """`NoticeRecord`."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def claim(self, tenant: str, saga: str, notice: Notice, now: int) -> Notice | None:
        with self._kept.alone():
            there, at = self._kept.get("claim", tenant, notice.key, _Claim), notice.at
            if there is not None and there.sent is None:
                if there.saga != saga and there.until > now:
                    raise Throttled(f"another saga is sending the notice {notice.key}")
                at = there.at
            elif there is not None and (now - (there.sent or 0) < WINDOW_MS or at == there.at):
                if there.refused:
                    raise ChannelRefused(there.refused)
                return None
            self._kept.put("claim", tenant, notice.key, _Claim(saga, at, now + CLAIM_MS))
            return replace(notice, at=at)

    def sent(self, tenant: str, key: str, now: int, refused: str = "") -> None:
        with self._kept.alone():
            there = self._kept.get("claim", tenant, key, _Claim)
            assert there is not None, "only what was claimed is sent"
            self._kept.put("claim", tenant, key, replace(there, sent=now, refused=refused))

    def open(self, tenant: str, saga: str, notice: Notice, expires: int = 0) -> None:
        incident = incident_of(tenant, saga, notice)
        with self._kept.alone():
            if self._kept.get("incident", tenant, incident.id, Incident) is None:
                self._kept.put("incident", tenant, incident.id, incident)

    def listed(
        self, tenant: str, *, status: str = "", limit: int, after: str = ""
    ) -> tuple[Sequence[Incident], str]:
        found = [
            one for one in reversed(self._of(tenant)) if (not after or one.id < after) and is_of(one, status)
        ]
        return found[:limit], found[limit - 1].id if len(found) > limit else ""

    def of_saga(self, tenant: str, saga: str, node: str = "") -> Sequence[str]:
        return [one.id for one in self._of(tenant) if one.saga == saga and node in {"", one.node}]

    def find(self, tenant: str, id: str) -> Incident | None:
        return self._kept.get("incident", tenant, id, Incident)

    def acknowledge(
        self, tenant: str, id: str, by: str, note: str, now: int, seen: int = 0
    ) -> Incident | None:
        with self._kept.alone():
            found = self._kept.get("incident", tenant, id, Incident)
            if found is not None and not found.resolved and found.acked == seen:
                found = replace(found, acked=now, holder=by, note=note)
                self._kept.put("incident", tenant, id, found)
            return found

    def resolve(self, tenant: str, id: str, by: str, now: int) -> Incident | None:
        with self._kept.alone():
            incident = self._kept.get("incident", tenant, id, Incident)
            if incident is not None and not incident.resolved:
                incident = replace(incident, resolved=now, by=by)
                self._kept.put("incident", tenant, id, incident)
            return incident

    def _of(self, tenant: str) -> list[Incident]:
        """The oldest first."""
        return list(self._kept.between("incident", tenant, "", "j", Incident))


class _Asked(Struct):
    """A row, None once it was taken out, and the number of the last call about it."""

    number: int
    row: QuestionRow | None = None


class ToyQuestions:
    """`Questions`."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def put(self, tenant: str, row: QuestionRow, number: int, until: int) -> None:
        self._write(tenant, row.saga, row.ask, _Asked(number, row))

    def remove(self, ref: SagaRef, ask: str, number: int, until: int) -> None:
        self._write(ref.tenant, ref.id, ask, _Asked(number))

    def _write(self, tenant: str, saga: str, ask: str, asked: _Asked) -> None:
        with self._kept.alone():
            there = self._kept.get("question", tenant, f"{saga}\0{ask}", _Asked)
            if there is None or there.number <= asked.number:
                self._kept.put("question", tenant, f"{saga}\0{ask}", asked)

    def removed(self, ref: SagaRef, number: int) -> Collection[str]:
        kept = [(of, key.split("\0"), one) for of, key, one in self._kept.all("question", _Asked)]
        return {
            ask
            for of, (saga, ask), one in kept
            if (of, saga) == (ref.tenant, ref.id) and one.row is None and one.number >= number
        }

    def listed(
        self, tenant: str, audience: str, now: int, limit: int, after: Spot | None = None
    ) -> tuple[Sequence[QuestionRow], Spot | None]:
        kept = [one.row for of, _, one in self._kept.all("question", _Asked) if of == tenant]
        rows = [row for row in kept if row is not None and row.to == audience]
        left = sorted(
            (row for row in rows if (row.expires_at or NEVER) > now and (after is None or row.spot > after)),
            key=lambda row: row.spot,
        )
        return left[:limit], left[limit - 1].spot if len(left) > limit else None


class _Versions(Struct):
    """An entity, and the keys of its last writes."""

    entity: Entity = Entity(version=0, data=None)
    keys: list[str] = []
    before: Entity | None = None
    is_gone: bool = False


class ToyEntities:
    """`Entities`."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def put(
        self, tenant: str, type: str, id: str, data: Any, *, key: str, expected: int | None = None,
        keeps_before: bool = False,
    ) -> Written:  # fmt: skip
        return self._write(tenant, type, id, data, key, expected, keeps_before=keeps_before)

    def delete(self, tenant: str, type: str, id: str, *, key: str, expected: int) -> Written:
        return self._write(tenant, type, id, None, key, expected, is_gone=True)

    def _write(
        self, tenant: str, type: str, id: str, data: Any, key: str, expected: int | None,
        *, keeps_before: bool = False, is_gone: bool = False,
    ) -> Written:  # fmt: skip
        with self._kept.alone():
            found = self._kept.get("entity", f"{tenant}\0{type}", id, _Versions)
            there = found or _Versions(is_gone=True)
            version, keys = there.entity.version, there.keys
            if key in keys:
                since = len(keys) - 1 - keys.index(key)
                return Written(version=version - since, before=None if since else there.before)
            now = 0 if there.is_gone else version
            if expected is not None and expected != now:
                return Written(version=now, conflict=True)
            keys = [*keys, key] if len(keys) + 1 < KEYS_KEPT else [*keys[KEYS_KEPT // 2 :], key]
            nothing = Entity(version=0, data=None)
            before = (nothing if there.is_gone else there.entity) if keeps_before else None
            written = _Versions(Entity(version=version + 1, data=data), keys, before, is_gone)
            self._kept.put("entity", f"{tenant}\0{type}", id, written)
            return Written(version=version + 1, is_new=True, before=before)

    def get(self, tenant: str, type: str, id: str) -> Entity | None:
        found = self._kept.get("entity", f"{tenant}\0{type}", id, _Versions)
        return None if found is None or found.is_gone else found.entity


class ToyLive:
    """`Live`. `leave_word`: that of the log."""

    def __init__(self, kept: Kept, leave_word: Callable[[Head, int], bool]) -> None:
        self._kept, self._leave_word = kept, leave_word

    def leave_word(self, head: Head, now: int, until: int) -> bool:
        return self._leave_word(head, until)

    def watch(self, ref: SagaRef, now: int, until: int, unless: int) -> bool:
        with self._kept.alone():
            there = self.read(ref) or LiveTexts(0)
            if there.until < unless:
                self._kept.put("live", str(ref), "", replace(there, until=until))
            return there.until < unless

    def put_texts(self, ref: SagaRef, epoch: int, now: int, data: bytes) -> bool:
        with self._kept.alone():
            there = self.read(ref) or LiveTexts(0)
            may = there.until > now and (there.epoch, there.at) < (epoch, now)
            if may:
                self._kept.put("live", str(ref), "", LiveTexts(there.until, epoch, now, data))
            return may

    def read(self, ref: SagaRef) -> LiveTexts | None:
        return self._kept.get("live", str(ref), "", LiveTexts)
