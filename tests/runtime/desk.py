"""A desk at which tests reserve and settle: one process with its accounts, and small sagas and steps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from baton.adapters.memory.store import MemoryBlobs, MemoryBudgets, MemoryStore
from baton.core.decide.decision import RunStep
from baton.core.decide.spending import SpendingLimits
from baton.core.graph.graph import Graph, Node
from baton.core.limits import DAY_MS, Limits
from baton.core.log.slots import Slot
from baton.core.log.state import Money, Origin, State
from baton.errors import StoreUnavailable
from baton.ports import Account, BudgetAnswer, Budgets, Offload, Reservation, ReservationChange, Sums
from baton.runtime.invocation.context import Invocation, InvocationContext, StoreRetrier, Tenure, inline
from baton.runtime.money.accounts import LedgerCache
from baton.runtime.money.ledger import Ledger
from tests.kit.virtual_time import SeededEntropy, run_virtual

DOLLAR = 1_000_000
DAY = 20_717
NOON = DAY * DAY_MS + DAY_MS // 2
LIMITS = Limits()
_numbers = itertools.count(1)
SOON = LIMITS.store_pause_first_ms // 2  # a call that fails is not made again: no pause is as short


class Clock:
    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> int:
        return self.at


class Failing(MemoryBudgets):
    """A store that does not answer while `is_down`, though the call is made; if it `lands_late`, with `land` only.

    `only`: which changes it does not answer, those that `open` or `close` a reservation or `change` it; without one all.
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

    def move(self, account: Account, change: ReservationChange, now: int) -> BudgetAnswer:
        name = "open" if change.before is None else "close" if change.after is None else "change"
        call = partial(super().move, account, change, now)
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

    def call(self, offload: Offload = inline) -> StoreRetrier:
        return StoreRetrier(offload, self.clock, SeededEntropy(1), LIMITS, self.clock.at + SOON)

    def context(self, offload: Offload = inline) -> InvocationContext:
        invocation = Invocation(f"i{next(_numbers)}", self.clock.at, self.clock.at + 2_000)
        call, entropy = self.call(offload), SeededEntropy(1)
        tenure = Tenure.of(invocation, self.clock, LIMITS)
        ports = MemoryStore(), MemoryBlobs(), self.clock, entropy
        return InvocationContext(invocation, *ports, LIMITS, call, tenure)

    def ledger(self, offload: Offload = inline) -> Ledger:
        return Ledger(self.context(offload), self.cache)

    def spend(self, cost: int) -> None:
        """What another invocation has spent of the day."""
        spend(self.budgets, Account("acme", "ada", DAY), cost, NOON)

    def sums(self, day: int = DAY) -> Sums:
        return self.budgets.read(Account("acme", "ada", day))


def spend(budgets: Budgets, account: Account, cost: int, until: int, holder: str = "x") -> None:
    """What an invocation has spent from an account."""
    opened = Reservation(1, 0, until)
    budgets.move(account, ReservationChange(holder, None, opened), until)
    budgets.move(account, ReservationChange(holder, opened, None, cost), until)


def state(saga: str = "s1", spent: int = 0, **more: Any) -> State:
    return State(
        version=1, origin=Origin(tenant="acme", user="ada", saga=saga), money=Money(spent=spent), **more
    )


def step(cost: int = 0, slot: str = "a") -> RunStep:
    return RunStep(slot, Node(name=slot, kind="task", tool="t", cost=cost), Slot.parse(slot), {})


def graph(cost: int = 0) -> Graph:
    return Graph(name="w", nodes=(Node(name="a", kind="task", tool="t", cost=cost),))


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    # A call has milliseconds: on a machine that is busy, they would be over before it is made.
    return run_virtual(coroutine)
