"""A desk at which tests reserve and settle: one process with its accounts, and small sagas and steps."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from baton.adapters.memory.blobs import MemoryBlobs
from baton.adapters.memory.budgets import MemoryBudgets
from baton.adapters.memory.store import MemoryStore
from baton.core.decide.builder import RunStep
from baton.core.decide.spending import DAY_MS, SpendingLimits
from baton.core.graph.graph import Graph, Node
from baton.core.limits import Limits
from baton.core.log.state import Money, Origin, State
from baton.errors import StoreUnavailable
from baton.ports import Account, Held, Offload, Refused, Reservation, Sums
from baton.runtime.context import Invocation, InvocationContext
from baton.runtime.ledger import Ledger
from baton.runtime.ledger_cache import LedgerCache
from baton.runtime.store_retrier import StoreRetrier, inline
from tests.kit.virtual import SeededEntropy, run_virtual

DOLLAR = 1_000_000
DAY = 20_717
NOON = DAY * DAY_MS + DAY_MS // 2
LIMITS = Limits()
SOON = LIMITS.store_pause_first_ms // 2  # a call that fails is not made again: no pause is as short
T = TypeVar("T")


class Clock:
    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> int:
        return self.at


class Failing(MemoryBudgets):
    """A store that does not answer while `is_down`, though the call is made; if it `lands_late`, with `land` only.

    `only`: which call it does not answer; without one all that move money.
    """

    is_down = lands_late = False
    only = ""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self._late: list[Callable[[], object]] = []

    def land(self) -> None:
        for call in self._late:
            call()

    def reserve(self, account: Account, reservation: Reservation, limit: int, now: int) -> Held | Refused:
        return self._answered("reserve", partial(super().reserve, account, reservation, limit, now))

    def settle(self, account: Account, reservation: Reservation, cost: int) -> Sums:
        return self._answered("settle", partial(super().settle, account, reservation, cost))

    def _answered(self, name: str, call: Callable[[], T]) -> T:
        self.asked += 1
        if not self.is_down or self.only not in ("", name):
            return call()
        if self.lands_late:
            self._late.append(call)
        else:
            call()
        raise StoreUnavailable("no answer")


class Desk:
    """One process with its accounts. Each `ledger` is an invocation of two seconds."""

    def __init__(
        self, budgets: MemoryBudgets | None = None, user_day: int = 5 * DOLLAR, saga: int = 0
    ) -> None:
        self.clock = Clock()
        self.budgets = budgets or MemoryBudgets()
        self.cache = LedgerCache(self.budgets, SpendingLimits(saga=saga, user_day=user_day))
        self.count = 0

    def call(self, offload: Offload = inline) -> StoreRetrier:
        return StoreRetrier(offload, self.clock, SeededEntropy(1), LIMITS, self.clock.at + SOON)

    def context(self, offload: Offload = inline) -> InvocationContext:
        self.count += 1
        invocation = Invocation(f"i{self.count}", self.clock.at, self.clock.at + 2_000)
        call, entropy = self.call(offload), SeededEntropy(1)
        return InvocationContext(invocation, MemoryStore(), MemoryBlobs(), self.clock, entropy, LIMITS, call)

    def ledger(self, offload: Offload = inline) -> Ledger:
        return Ledger(self.context(offload), self.cache)

    def spend(self, cost: int) -> None:
        """What another invocation has spent of the day."""
        account, batch = Account("acme", "ada", DAY), Reservation("x", 0, NOON)
        self.budgets.reserve(account, batch, 0, NOON)
        self.budgets.settle(account, batch, cost)

    def sums(self, day: int = DAY) -> Sums:
        return self.budgets.read(Account("acme", "ada", day))


def state(saga: str = "s1", spent: int = 0, **more: Any) -> State:
    return State(
        version=1, origin=Origin(tenant="acme", user="ada", saga=saga), money=Money(spent=spent), **more
    )


def step(cost: int = 0, slot: str = "a") -> RunStep:
    return RunStep(slot, Node(name=slot, kind="task", tool="t", cost=cost), (), {})


def graph(cost: int = 0) -> Graph:
    return Graph(name="w", nodes=(Node(name="a", kind="task", tool="t", cost=cost),))


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    # A call has milliseconds: on a machine that is busy, they would be over before it is made.
    return run_virtual(coroutine)
