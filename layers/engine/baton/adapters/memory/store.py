"""The store in memory: every port without AWS, for unit tests, the simulation and a deployment in one process.

It keeps what the ports promise and nothing beyond that; one lock per port makes every call atomic.
"""

from __future__ import annotations

from collections.abc import Callable

from baton.adapters.memory.breakers import MemoryBreakers
from baton.adapters.memory.budgets import MemoryBudgets
from baton.adapters.memory.definitions import MemoryDefinitions, MemoryRates
from baton.adapters.memory.effects import MemoryEffects
from baton.adapters.memory.inbox import MemoryInbox
from baton.adapters.memory.letters import MemoryLetters
from baton.adapters.memory.live import MemoryLive
from baton.adapters.memory.log import MemoryLog
from baton.adapters.memory.notices import MemoryNoticeRecord
from baton.adapters.memory.outside import MemoryEntities
from baton.adapters.memory.questions import MemoryQuestions
from baton.adapters.memory.schedules import MemorySchedules
from baton.adapters.memory.subscriptions import MemorySubscriptions
from baton.ports import Clock, SagaRef, Wake


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
