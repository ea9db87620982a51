"""The tokens and dollars of requests to models that a worker has under way, and whether one more fits into the limits of its saga.

What the log knows is counted by its fold. Held here is only what the log does not know yet: the most that a request under way
may use, and what attempts under way have used. Budgets, which sagas and workers share, are in ledger.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from baton.core.decide.builder import RunStep
from baton.core.graph.graph import Cap
from baton.core.log.agents import Agent
from baton.core.log.folding.workflow_limits import SAGA, TERMINATE, failure_of
from baton.core.log.state import State, Used, node_of, owner_of
from baton.core.models.usage import Usage, tokens_of
from baton.core.money import micro_dollars
from baton.ports import NoRoom, StepContext, StepFailure

LEAST_OUTPUT: Final = 256
"""No request is made whose answer could have fewer tokens than these, unless its `max_output` is lower."""
_NONE = Used()


class _Held(msgspec.Struct):
    """Of an attempt: what it has used that the log does not have, and the most that its request may use and cost."""

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


class RequestHolds:
    """By saga and slot, what is held for an attempt."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], _Held] = {}

    def see(self, saga: str, running: Collection[str]) -> None:
        """The log has what was used by attempts that are not `running`."""
        for place in [place for place in self._held if place[0] == saga and place[1] not in running]:
            del self._held[place]

    def over(self, saga: str, slot: str) -> None:
        """The request of an attempt is over, and its context says what it has used."""
        if held := self._held.get((saga, slot)):
            held.tokens = held.cost = 0

    def tokens(
        self, saga: str, state: State, step: RunStep, context: StepContext, read: int, wanted: int
    ) -> int:
        """How many tokens the answer to a request may have that reads up to `read`, at most `wanted`; they are then held.

        Raises `StepFailure` where the limit is too low for it, and `NoRoom` where others hold what is left and may give it back.
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

    def dollars(self, saga: str, state: State, step: RunStep, context: StepContext, most: int) -> None:
        """Hold micro-dollars that a request may cost. Raises as `tokens` does."""
        mine = micro_dollars(context.spent)
        for cap, owner in _caps(step, "cost"):
            found = state.used.get(owner, _NONE).cost + mine + most
            if found > cap.most:
                failure = failure_of("cost", cap, owner, found)
                raise StepFailure(failure.code, f"{failure.message} with what the next request may cost")
            busy = sum(one.all_cost for one in self._others(saga, step, owner))
            if busy and found + busy > cap.most:
                raise NoRoom
        self._of(saga, step, context).cost = most

    def _of(self, saga: str, step: RunStep, context: StepContext) -> _Held:
        """What is held for this attempt; its slot may have had others before."""
        held = self._held.get((saga, step.slot))
        if held is None or held.spent is not context.spent:
            held = self._held[saga, step.slot] = _Held(context.usage, context.spent)
        return held

    def _others(self, saga: str, step: RunStep, owner: str) -> Iterator[_Held]:
        """Of other attempts that a limit of the saga, or of one node, is for."""
        for (of, slot), held in self._held.items():
            if of == saga and slot != step.slot and owner in (SAGA, node_of(owner_of(slot))[0]):
                yield held


def is_limited(step: RunStep, what: str) -> bool:
    """Whether anything limits the `tokens` or the `cost` of a step's requests."""
    agent = step.node.agent
    if not step.node.limits and step.tokens is None and step.cap is None and agent is None:
        return False  # most have none
    return any(True for _ in _caps(step, what)) or bool(what == "tokens" and agent and agent.tokens)


def _caps(step: RunStep, name: str) -> Iterator[tuple[Cap, str]]:
    """The limits of this name for a step that end what passes them, and whose they are."""
    of_saga = {"tokens": step.tokens, "cost": step.cap}[name]
    for cap, owner in ((step.node.limits.get(name), step.node.name), (of_saga, SAGA)):
        if cap is not None and cap.then == TERMINATE:
            yield cap, owner


def _token_limits(state: State, step: RunStep) -> Iterator[tuple[str, str, int, int, str | None]]:
    """The code of a failure, whose limit it is, how many it allows, how many the log has, and of which owner others use of it."""
    node, work = step.node, state.open.get(owner_of(step.slot))
    if node.agent is not None and node.agent.tokens and isinstance(work, Agent):
        whose = f"`tokens` of the agent `{node.name}`"
        yield "agent_exhausted", whose, node.agent.tokens, work.used.tokens, None
    for cap, owner in _caps(step, "tokens"):
        whose = f"`limits.tokens` of {f'node `{owner}`' if owner else 'the saga'}"
        yield "limit_tokens", whose, cap.most, state.used.get(owner, _NONE).tokens, owner
