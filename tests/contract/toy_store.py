"""A third store, on SQLite in memory: what it takes to write one, and that the contracts hold it.

Its table is in toy_table.py. The log is in toy_log.py, definitions, effects and rates are here, the other parts in the other `toy_*.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import msgspec

from baton.adapters.facts import StoredFacts
from baton.core.failures.breakers import Breaker
from baton.core.log.records import Parked
from baton.ports import (
    CheckpointRow,
    Definition,
    Effect,
    SagaRef,
    Wake,
)
from baton.ports.records import FREED, Tag
from tests.contract.stores import LocalStores
from tests.contract.toy_letters import ToyLetters
from tests.contract.toy_log import ToyLog
from tests.contract.toy_records import ToyBudgets, ToyEntities, ToyLive, ToyNoticeRecord, ToyQuestions
from tests.contract.toy_subscriptions import ToySubscriptions
from tests.contract.toy_table import LIMITS, Kept


class ToyDefinitions:
    """`Definitions`."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def put(self, definition: Definition) -> bool:
        with self._kept.alone():
            is_new = self.get(definition.tenant, definition.name, definition.version) is None
            if is_new:
                place = f"{definition.tenant}\0{definition.name}"
                self._kept.put("definition", place, f"{definition.version:09d}", definition)
            return is_new

    def write_pauses(self, seen: Definition, pauses: Sequence[Parked]) -> bool:
        with self._kept.alone():
            there = self.get(seen.tenant, seen.name, seen.version) or (None if seen.version else seen)
            if there is None or there.pauses != seen.pauses:
                return False
            place = f"{seen.tenant}\0{seen.name}"
            paused = msgspec.structs.replace(there, pauses=tuple(pauses))
            self._kept.put("definition", place, f"{seen.version:09d}", paused)
            return True

    def get(self, tenant: str, name: str, version: int | None = None) -> Definition | None:
        if version is None:
            return next(iter(self.versions(tenant, name, 1)), None)
        return self._kept.get("definition", f"{tenant}\0{name}", f"{version:09d}", Definition)

    def names(self, tenant: str, after: str = "", limit: int | None = None) -> Sequence[str]:
        found = (one for _, _, one in self._kept.all("definition", Definition))
        return sorted(
            {one.name for one in found if one.tenant == tenant and one.version and one.name > after}
        )[:limit]

    def versions(self, tenant: str, name: str, limit: int) -> Sequence[Definition]:
        found = list(self._kept.between("definition", f"{tenant}\0{name}", "0", "9" * 9, Definition))
        return found[::-1][:limit]

    def tag(self, tenant: str, workflow: str, name: str) -> Tag | None:
        return self._kept.get("tag", f"{tenant}\0{workflow}", name, Tag)

    def tags(self, tenant: str, workflow: str) -> Sequence[Tag]:
        return list(self._kept.between("tag", f"{tenant}\0{workflow}", "a", "{", Tag))

    def write_tag(self, tag: Tag) -> bool:
        with self._kept.alone():
            there = self.tag(tag.tenant, tag.workflow, tag.name)
            if tag.writes != (1 if there is None else there.writes + 1):
                return False
            self._kept.put("tag", f"{tag.tenant}\0{tag.workflow}", tag.name, tag)
            return True


class ToyEffects:
    """`Effects`."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def claim(self, effect: Effect) -> Effect | None:
        return self._put(effect, lambda there: there.status == FREED)

    def change(self, seen: Effect, effect: Effect) -> Effect | None:
        return self._put(effect, lambda there: (there.owner, there.status) == (seen.owner, seen.status))

    def _put(self, effect: Effect, may: Callable[[Effect], bool]) -> Effect | None:
        with self._kept.alone():
            there = self.read(effect.tenant, effect.key)
            if there is None or may(there):
                self._kept.put("effect", effect.tenant, effect.key, effect)
                return None
            return there

    def read(self, tenant: str, key: str) -> Effect | None:
        return self._kept.get("effect", tenant, key, Effect)


class ToyCheckpoints:
    """`Checkpoints`."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def put(self, tenant: str, thread: str, row: CheckpointRow, *, is_new: bool = False) -> bool:
        with self._kept.alone():
            there = self.rows(tenant, thread, row.key, row.key)
            if not (is_new and there):
                self._kept.put("checkpoint", f"{tenant}\0{thread}", row.key, row)
            return not (is_new and there)

    def rows(
        self, tenant: str, thread: str, first: str, last: str, limit: int | None = None
    ) -> Sequence[CheckpointRow]:
        found = self._kept.between("checkpoint", f"{tenant}\0{thread}", first, last, CheckpointRow)
        return [row for row in reversed([*found]) if row.data or row.ref][:limit]

    def delete(self, tenant: str, thread: str, keys: Sequence[str], now: int) -> None:
        with self._kept.alone():
            for key in keys:
                self._kept.put("checkpoint", f"{tenant}\0{thread}", key, CheckpointRow(key=key))


class ToyRates:
    """`Rates`."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def spend(self, tenant: str, window: int, count: int) -> int:
        with self._kept.alone():
            before = self._kept.get("rate", tenant, str(window), int) or 0
            self._kept.put("rate", tenant, str(window), before + count)
            return before


class ToyBreakers:
    """`Breakers`."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def read_breaker(self, tenant: str, target: str) -> Breaker | None:
        return self._kept.get("breaker", tenant, target, Breaker)

    def write_breaker(self, tenant: str, target: str, breaker: Breaker, now: int) -> Breaker | None:
        with self._kept.alone():
            there = self.read_breaker(tenant, target) or Breaker()
            if there.version != breaker.version - 1:
                return there
            self._kept.put("breaker", tenant, target, breaker)
            return None

    def all(self, tenant: str, after: str = "", limit: int = 100) -> Sequence[tuple[str, Breaker]]:
        rows = sorted((sort, one) for of, sort, one in self._kept.all("breaker", Breaker) if of == tenant)
        return [(target, one) for target, one in rows if target > after][:limit]


class ToyStore:
    """`Store`."""

    def __init__(self) -> None:
        self.limits, self.cell = LIMITS, 0
        self.kept = Kept()
        self.log = self.inbox = ToyLog(self.kept)
        self.definitions = ToyDefinitions(self.kept)
        self.effects = ToyEffects(self.kept)
        self.checkpoints = ToyCheckpoints(self.kept)
        self.facts = StoredFacts(self.checkpoints)
        self.rates = ToyRates(self.kept)
        self.breakers = ToyBreakers(self.kept)
        self.budgets = ToyBudgets(self.kept)
        self.notice_record = ToyNoticeRecord(self.kept)
        self.questions = ToyQuestions(self.kept)
        self.entities = ToyEntities(self.kept)
        self.live = ToyLive(self.kept, self.log.leave_word)
        self.letters = ToyLetters(self.kept, self.log.pass_on)
        self.schedules = self.log.schedules
        self.subscriptions = ToySubscriptions(self.kept)


class ToyStores(LocalStores):
    """What the contracts are held against."""

    @cached_property
    def store(self) -> ToyStore:
        return ToyStore()

    def a_small_budgets(self, most_open: int) -> ToyBudgets:
        return ToyBudgets(self.store.kept, most_open)

    def wakes(self) -> list[tuple[SagaRef, Wake]]:
        return self.store.log.stream

    def rows(self, tenant: str) -> dict[tuple[str, str], Any]:
        rows = self.store.kept.all("row", dict[str, Any])
        return {(sort.split("\0")[0], sort.split("\0")[1]): row for of, sort, row in rows if of == tenant}
