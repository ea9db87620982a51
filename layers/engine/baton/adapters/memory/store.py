"""The store in memory: every port without AWS, for unit tests, the simulation and a deployment in one process.

It keeps what the ports promise and nothing beyond that; one lock per port makes every call atomic.
"""

from __future__ import annotations

from collections.abc import Callable

from baton.adapters.memory.budgets import MemoryBudgets
from baton.adapters.memory.definitions import MemoryDefinitions, MemoryRates
from baton.adapters.memory.effects import MemoryEffects
from baton.adapters.memory.log import MemoryLog
from baton.adapters.memory.notices import MemoryIncidents
from baton.adapters.memory.outside import MemoryEntities
from baton.ports import SagaRef, Wake


class MemoryStore:
    """`Store`. `lag` and `on_wake` are those of its log."""

    def __init__(
        self, shards: int = 4, *, lag: bool = False, on_wake: Callable[[SagaRef, Wake], None] | None = None
    ) -> None:
        self.log = MemoryLog(shards, lag=lag, on_wake=on_wake)
        self.limits = self.log.limits
        self.definitions = MemoryDefinitions()
        self.effects = MemoryEffects()
        self.budgets = MemoryBudgets()
        self.rates = MemoryRates()
        self.incidents = MemoryIncidents()
        self.entities = MemoryEntities()
