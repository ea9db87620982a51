"""Planted bugs about money and effects that happen once, made as those of bugs.py are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from baton.adapters.memory.store import MemoryBudgets
from baton.core.decide.decision import RunStep
from baton.core.log.state import State
from baton.core.money import UserRule
from baton.ports import Account, Drawn, SagaRef, StepContext, Sums
from baton.runtime.engine.run import InFlight
from baton.runtime.money.accounts import AccountQueue, Slices
from baton.runtime.money.ledger import Ledger
from baton.runtime.steps import effects, steps
from baton.runtime.steps.effects import EffectClaims
from baton.runtime.steps.steps import Steps
from tests.kit.bugs import replaced


@contextmanager
def a_failed_settlement_is_not_tried_again() -> Iterator[None]:
    """Spend row: what could not be settled when an attempt ended never is."""

    async def drain(self: Ledger, ref: SagaRef) -> None:
        self._left.clear()
        await real(self, ref)

    real = Ledger.drain
    with replaced(Ledger, "drain", drain):
        yield


@contextmanager
def a_change_that_is_made_again_counts_again() -> Iterator[None]:
    """Spend row: the account shows that a request without an answer was made, and what it counted is asked for again."""

    def made(self: AccountQueue, request: Any, there: Any) -> Any:
        found = real(self, request, there)
        return found and replace(found, counted=self._counted)

    real = AccountQueue._made
    with replaced(AccountQueue, "_made", made):
        yield


@contextmanager
def a_block_does_not_reach_a_worker_that_is_at_it() -> Iterator[None]:
    """Rule row: a worker hears of a block, and reserves for the user as if there were none."""

    def heed(self: AccountQueue, rule: UserRule) -> None:
        real(self, replace(rule, is_blocked=False))

    real = AccountQueue.heed
    with replaced(AccountQueue, "heed", heed):
        yield


@contextmanager
def a_reservation_does_not_ask_what_was_drawn() -> Iterator[None]:
    """Spend row: a user's account lets more be held than the user has drawn of the tenant's day."""

    async def draw(self: Slices, account: AccountQueue, cost: int) -> None:
        account.sums = replace(account.sums, drawn=1 << 40)

    def may(self: MemoryBudgets, item: Any, change: Any) -> bool:
        return real(self, item, replace(change, drawn=0))

    real = MemoryBudgets._may
    with replaced(Slices, "draw", draw), replaced(MemoryBudgets, "_may", may):
        yield


@contextmanager
def half_a_draw_is_lost() -> Iterator[None]:
    """Draw row: the user has the slice, and the tenant's account does not know of it."""

    def draw(
        self: MemoryBudgets, account: Account, seen: Sums, drawn: int, limit: int | None = None
    ) -> Drawn:
        found = real(self, account, seen, drawn, limit)
        if found.is_done:
            self._items[account.of_tenant].held -= drawn - seen.drawn
        return found

    real = MemoryBudgets.draw
    with replaced(MemoryBudgets, "draw", draw):
        yield


@contextmanager
def a_result_is_gone_when_its_window_is_over() -> Iterator[None]:
    """Effect row: what a step has done is given to itself no longer than to others."""

    def unknown_place(effect: Any) -> object:
        return object()

    def key_of_its_own(effect: Any) -> str:
        return f"{effect.key}.{real(effect)}"

    real = effects.place_of
    with replaced(effects, "place_of", unknown_place), replaced(effects, "key_of_its_own", key_of_its_own):
        yield


@contextmanager
def a_retry_covers_every_claim() -> Iterator[None]:
    """Effect row: a person said of one attempt that it has not acted, and a later one is taken for it."""

    async def meet(self: EffectClaims, one: Any, there: Any) -> Any:
        one.decided = one.decided and there.owner
        return await real(self, one, there)

    real = EffectClaims._meet
    with replaced(EffectClaims, "_meet", meet):
        yield


@contextmanager
def money_is_free_by_any_clock() -> Iterator[None]:
    """Spend row: a reservation is over when one clock says so, and its holder still spends it."""

    def now(self: Ledger) -> int:
        return self._clock.now()

    with replaced(Ledger, "_by_every_clock", now):
        yield


@contextmanager
def what_is_left_behind_owes_nothing() -> Iterator[None]:
    """Step row: a loser of a join that spends while the join's entry is appended is dropped with its cost."""
    real = InFlight.cancel_unneeded

    async def cancel_unneeded(self: InFlight, state: State) -> list[Any]:
        await real(self, state)
        return []

    with replaced(InFlight, "cancel_unneeded", cancel_unneeded):
        yield


@contextmanager
def an_attempt_may_outlast_its_lease() -> Iterator[None]:
    """Effect row: a call is told a deadline after the moment when its saga's next worker looks."""

    def context(self: Steps, *arguments: Any) -> StepContext:
        until, self._last = self._last, 1 << 62
        try:
            return real(self, *arguments)
        finally:
            self._last = until

    real = Steps._context
    with replaced(Steps, "_context", context):
        yield


@contextmanager
def an_orphaned_claim_is_taken_without_a_look() -> Iterator[None]:
    """Effect row: what may have happened is done again."""

    async def look(self: EffectClaims, one: Any, there: Any) -> Any:
        return await self._take(one, there)

    with replaced(EffectClaims, "_look", look):
        yield


@contextmanager
def an_approval_is_for_the_step_and_whatever_it_does() -> Iterator[None]:
    """Approval row: a step that was approved once may make another call."""

    def check(step: RunStep, *call: Any) -> None:
        if not step.approved:
            real(step, *call)

    real = steps.check_approval
    with replaced(steps, "check_approval", check), replaced(steps, "check_approval", check):
        yield
