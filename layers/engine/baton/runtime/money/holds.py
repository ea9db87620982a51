"""Amounts held for requests under way, for one saga and for limits that sagas share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from typing import Final, Protocol

import msgspec

from baton.core.decide.decision import RunStep
from baton.core.decide.spending import (
    LIMIT_SPENT,
    SAGA_SPENT,
    is_told,
    kept_until,
    limit_reached,
    limits_at,
    parked_notice,
    tree_key,
)
from baton.core.graph.graph import Cap
from baton.core.log import events as ev
from baton.core.log.folding.workflow_limits import SAGA, TERMINATE, limit_failure
from baton.core.log.records import SharedLimit
from baton.core.log.scopes import Agent
from baton.core.log.slots import Slot
from baton.core.log.state import State, Used
from baton.core.models.usage import Usage, tokens_of
from baton.core.money import micro_dollars
from baton.ports import Account, NoRoom, StepFailure
from baton.runtime.invocation.context import InvocationContext
from baton.runtime.money.accounts import (
    AccountQueue,
    AccountQueues,
    AttemptSpending,
    HeldByOthers,
    LedgerCache,
    SharedSpending,
)
from baton.runtime.money.halting import Halt, Halted

LEAST_OUTPUT: Final = 256
"""No request is made whose answer could have fewer tokens than these, unless its `max_output` is lower."""
_NONE = Used()


class _Held(msgspec.Struct):
    """Amounts of an attempt: its usage that the log does not have, and the most that its request may use and
    cost.
    """

    usage: Sequence[Usage]
    spent: Sequence[Decimal]
    tokens: int = 0
    cost: int = 0

    @property
    def all_tokens(self) -> int:
        return tokens_of(self.usage) + self.tokens

    @property
    def all_cost(self) -> int:
        return micro_dollars(self.spent) + self.cost


class Spending(Protocol):
    """Usage and spending of an attempt: its context, or its input."""

    @property
    def usage(self) -> list[Usage]: ...

    @property
    def spent(self) -> list[Decimal]: ...


class RequestHolds:
    """Amounts held for attempts, by saga and slot."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], _Held] = {}

    def see(self, saga: str, running: Collection[str]) -> None:
        """Forget the usage of attempts that are not `running`: the log has it."""
        for place in [place for place in self._held if place[0] == saga and place[1] not in running]:
            del self._held[place]

    def over(self, saga: str, slot: str) -> None:
        """Record that the request of an attempt is over; its context has its usage."""
        if held := self._held.get((saga, slot)):
            held.tokens = held.cost = 0

    def tokens(
        self, saga: str, state: State, step: RunStep, context: Spending, read: int, wanted: int
    ) -> int:
        """Return the most tokens, up to `wanted`, for the answer to a request that may read `read`; they are
        then held.

        Raises `StepFailure` if the limit is too low for it, and `NoRoom` if others hold the rest and may give
        it back.
        """
        mine, least = tokens_of(context.usage), min(LEAST_OUTPUT, wanted)
        for code, whose, most, used, others in _token_limits(state, step):
            free = most - used - mine - read
            if free < least:
                text = (
                    f"{whose} is {most:,}: {used + mine:,} are used, and the next request may read "
                    f"{read:,} and has to leave {least:,} for its answer"
                )
                raise StepFailure(code, text)
            busy = 0 if others is None else sum(one.all_tokens for one in self._others(saga, step, others))
            if busy and free - busy < wanted:
                raise NoRoom
            wanted = min(wanted, free)
        self._of(saga, step, context).tokens = read + wanted
        return wanted

    def dollars(self, saga: str, state: State, step: RunStep, context: Spending, most: int) -> None:
        """Hold micro-dollars that a request may cost. Raises as `tokens` does."""
        mine = micro_dollars(context.spent)
        for cap, owner in _caps(step, "cost"):
            found = state.used.get(owner, _NONE).cost + mine + most
            if found > cap.most:
                failure = limit_failure("cost", cap, owner, found)
                raise StepFailure(failure.code, f"{failure.message} with what the next request may cost")
            busy = sum(one.all_cost for one in self._others(saga, step, owner))
            if busy and found + busy > cap.most:
                raise NoRoom
        self._of(saga, step, context).cost = most

    def _of(self, saga: str, step: RunStep, context: Spending) -> _Held:
        """Return the amounts held for this attempt; its slot may have had others before."""
        held = self._held.get((saga, step.slot))
        if held is None or held.spent is not context.spent:
            held = self._held[saga, step.slot] = _Held(context.usage, context.spent)
        return held

    def _others(self, saga: str, step: RunStep, owner: str) -> Iterator[_Held]:
        """Yield the amounts of other attempts under the same limit of the saga, or of one node."""
        for (of, slot), held in self._held.items():
            if of == saga and slot != step.slot and owner in (SAGA, Slot.parse(slot).node):
                yield held


def is_limited(step: RunStep, what: str) -> bool:
    """Return true if a limit applies to the `tokens` or the `cost` of a step's requests."""
    agent = step.node.agent
    if not step.node.limits and step.tokens is None and step.cap is None and agent is None:
        return False  # most have none
    return any(True for _ in _caps(step, what)) or bool(what == "tokens" and agent and agent.tokens)


def _caps(step: RunStep, name: str) -> Iterator[tuple[Cap, str]]:
    """Yield the limits of this name that end a step which passes them, and their owners."""
    of_saga = {"tokens": step.tokens, "cost": step.cap}[name]
    for cap, owner in ((step.node.limits.get(name), step.node.name), (of_saga, SAGA)):
        if cap is not None and cap.then == TERMINATE:
            yield cap, owner


def _token_limits(state: State, step: RunStep) -> Iterator[tuple[str, str, int, int, str | None]]:
    """Yield the code of a failure, whose limit it is, how many it allows, how many the log has,
    and of which owner others use of it.
    """
    node, work = step.node, state.open.get(step.place.owner)
    if node.agent is not None and node.agent.tokens and isinstance(work, Agent):
        whose = f"`tokens` of the agent `{node.name}`"
        yield "agent_exhausted", whose, node.agent.tokens, work.used.tokens, None
    for cap, owner in _caps(step, "tokens"):
        whose = f"`limits.tokens` of {f'node `{owner}`' if owner else 'the saga'}"
        allowed = state.origin.allowed
        if owner == SAGA and allowed is not None and cap.most == allowed.tokens:
            whose = "what the limits of its caller have left of tokens"
        yield "limit_tokens", whose, cap.most, state.used.get(owner, _NONE).tokens, owner


PREFIX = "tree/"
"""Begins the names of these accounts; the day of one is years ahead of those of users."""


class SharedHolds:
    """Accounts of the limits that the sagas of one invocation share with others."""

    def __init__(self, context: InvocationContext, cache: LedgerCache) -> None:
        until = context.tenure.last
        self._accounts = AccountQueues(
            cache.budgets, context.call, context.invocation.id, until, 0, is_spent=True
        )
        self._terms, self._clock, self._skew = cache.terms, context.clock, context.limits.clock_skew_ms

    def widest(self, state: State, of_saga: Cap | None, *, shares: bool) -> list[Account]:
        """Return the account that has all that the saga spends, if any has it:
        that of the limit which is the furthest above it.
        """
        found = limits_at(state, None, of_saga, self._terms, kept_until(state), shares=shares)
        return [self._account(state, one) for one in found[-1:]]

    def of(self, saga: str, state: State, step: RunStep, spent: list[Decimal]) -> tuple[SharedSpending, ...]:
        """Return the accounts for an attempt, the nearest limit first. It holds nothing yet."""
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
        """Cover a call of an attempt on all its accounts, from the nearest limit outwards, and count its
        spending.

        Raises `HeldByOthers` if others hold the rest, `Halted` if the saga's tree has spent it, and
        `StepFailure` by a limit of a document.
        """
        for one in attempt.shared:
            one.account.limit = one.limit.most
            refused = await one.move(self._by_every_clock(), spent, cost, attempt.billed)
            if refused is None:
                continue
            if refused.spent + cost > one.limit.most:
                raise self._reached(one, state, node, what, refused.spent, cost)
            code = SAGA_SPENT if one.limit.node is None else LIMIT_SPENT
            raise HeldByOthers(code, "other sagas of the tree hold the rest")

    async def settle(
        self,
        attempt: AttemptSpending,
        cost: int,
        left: set[tuple[str, AccountQueue]],
        *,
        is_over: bool = True,
    ) -> None:
        """Count the cost of an attempt, and release its amounts as far as it `is_over`.
        `left`: accounts that gave no answer, with their sagas.
        """
        fault: BaseException | None = None
        for one in attempt.shared:
            if (is_over and one.held) or cost != one.closed or (one.saga, one.account) in left:
                cover = 0 if is_over else one.rest(cost)
                try:
                    await one.move(self._by_every_clock(), cost, cover, attempt.billed)
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
        end = limit_reached(one.limit, self._terms, spent, cost, node, what)
        if isinstance(end, ev.Failure):
            return StepFailure(end.code, end.message, unsent=True)
        notice = parked_notice(tree_key(one.limit), end, self._clock.now())
        return Halted(Halt(end, () if is_told(state, notice.key) else (notice,)))
