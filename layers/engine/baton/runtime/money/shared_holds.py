"""Holds on the accounts of limits that a saga shares with the sagas above and below it: one account for each such limit.

Which limits those are, and what follows when one is reached, is decided in core/decide/spending.py. The account is that of a user's day in
all but its name (account_queue.py): one conditional write for each change of a hold, freed with the lease of its holder.
"""

from __future__ import annotations

from decimal import Decimal

from baton.core.decide.builder import RunStep
from baton.core.decide.spending import is_told, kept_until, limits_at, parked_notice, reached, tree_key
from baton.core.graph.graph import Cap
from baton.core.log import events as ev
from baton.core.log.records import SharedLimit
from baton.core.log.state import State
from baton.ports import Account, NoRoom, StepFailure
from baton.runtime.invocation.context import InvocationContext
from baton.runtime.money.account_queue import AccountQueue, AccountQueues
from baton.runtime.money.attempt_spending import AttemptSpending, SharedSpending
from baton.runtime.money.halting import Halt, Halted
from baton.runtime.money.ledger_cache import LedgerCache

PREFIX = "tree/"
"""Begins the names of these accounts; the day of one is years ahead of those of users."""


class SharedHolds:
    """The accounts of one invocation."""

    def __init__(self, context: InvocationContext, cache: LedgerCache) -> None:
        until = context.invocation.leases_until(context.limits)
        self._accounts = AccountQueues(
            cache.budgets, context.call, context.invocation.id, until, 0, is_spent=True
        )
        self._terms, self._clock, self._skew = cache.terms, context.clock, context.limits.clock_skew_ms

    def widest(self, state: State, of_saga: Cap | None, *, shares: bool) -> list[Account]:
        """The account that has all that the saga spends, if any has it: that of the limit which is the furthest above it."""
        found = limits_at(state, None, of_saga, self._terms, kept_until(state), shares=shares)
        return [self._account(state, one) for one in found[-1:]]

    def of(self, saga: str, state: State, step: RunStep, spent: list[Decimal]) -> tuple[SharedSpending, ...]:
        """The accounts for an attempt, the nearest limit first. It holds nothing yet."""
        day = kept_until(state)
        found = limits_at(state, step.node, step.cap, self._terms, day, shares=step.shares)
        return tuple(
            SharedSpending(saga, self._accounts[self._account(state, one)], spent, limit=one) for one in found
        )

    def check(self, state: State, node: str, attempt: AttemptSpending) -> None:
        """Begin nothing where a limit is known to be reached. Raises `Halted`."""
        for one in attempt.shared:
            if one.account.sums.spent >= one.limit.most and one.limit.node is None:
                raise self._reached(one, state, node, node, one.account.sums.spent, 0)

    async def hold(
        self, state: State, node: str, what: str, attempt: AttemptSpending, spent: int, cost: int
    ) -> None:
        """Cover a call of an attempt on all its accounts, from the nearest limit outwards, and count what it has spent.

        Raises `NoRoom` where others hold what is left, `Halted` where the saga's tree has spent it, and `StepFailure` by a limit of a document.
        """
        for one in attempt.shared:
            one.account.limit = one.limit.most
            refused = await one.move(self._by_every_clock(), spent, cost, attempt.billed)
            if refused is None:
                continue
            if refused.spent + cost > one.limit.most:
                raise self._reached(one, state, node, what, refused.spent, cost)
            raise NoRoom("other sagas of the tree hold the rest")

    async def settle(self, attempt: AttemptSpending, cost: int, left: set[tuple[str, AccountQueue]]) -> None:
        """Count what an attempt has cost, and hold nothing for it any more. `left`: accounts that gave no answer, with their sagas."""
        fault: BaseException | None = None
        for one in attempt.shared:
            if one.held or cost != one.closed or (one.saga, one.account) in left:
                try:
                    await one.move(self._by_every_clock(), cost, 0, attempt.billed)
                except BaseException as error:  # noqa: BLE001  # raised again, once the others have it
                    left.add((one.saga, one.account))
                    fault = error
        if fault is not None:
            raise fault

    def _account(self, state: State, limit: SharedLimit) -> Account:
        return Account(state.origin.tenant, PREFIX + limit.account, limit.day)

    def _by_every_clock(self) -> int:
        return self._clock.now() - self._skew

    def _reached(
        self, one: SharedSpending, state: State, node: str, what: str, spent: int, cost: int
    ) -> Halted | StepFailure:
        end = reached(one.limit, self._terms, spent, cost, node, what)
        if isinstance(end, ev.Failure):
            return StepFailure(end.code, end.message, unsent=True)
        notice = parked_notice(tree_key(one.limit), end, self._clock.now())
        return Halted(Halt(end, () if is_told(state, notice.key) else (notice,)))
