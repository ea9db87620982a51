"""The tokens of requests to models that a worker has under way, and whether one more fits into the limits of its saga.

What the log knows is counted by its fold. Held here is only what the log does not know yet: the most that a request under way
may use, and what attempts under way have used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from baton.core.decide.builder import RunStep
from baton.core.log.agents import Agent
from baton.core.log.state import State, owner_of
from baton.core.log.workflow_limits import SAGA, TERMINATE
from baton.core.models.usage import Usage, tokens_of
from baton.ports import NoRoom, StepFailure

LEAST_OUTPUT: Final = 256
"""No request is made whose answer could have fewer tokens than these, unless its `max_output` is lower."""


class TokenHolds:
    """By saga and slot, what an attempt has used that the log does not have, and what its request may use."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], tuple[Sequence[Usage], int]] = {}

    def see(self, saga: str, running: Collection[str]) -> None:
        """The log has what was used by attempts that are not `running`."""
        for place in [place for place in self._held if place[0] == saga and place[1] not in running]:
            del self._held[place]

    def over(self, saga: str, slot: str, usage: Sequence[Usage]) -> None:
        """The request of an attempt is over: what it has used is added to `usage`."""
        self._held[saga, slot] = (usage, 0)

    def hold(
        self, saga: str, state: State, step: RunStep, usage: Sequence[Usage], read: int, wanted: int
    ) -> int:
        """How many tokens the answer to a request may have that reads up to `read`, at most `wanted`; they are then held.

        Raises `StepFailure` where the limit is too low for it, and `NoRoom` where others hold what is left and may give it back.
        """
        mine, least = tokens_of(usage), min(LEAST_OUTPUT, wanted)
        for code, whose, most, used, alone in _limits(state, step):
            free = most - used - mine - read
            if free < least:
                text = (
                    f"{whose} is {most:,}: {used + mine:,} are used, and the next request may read "
                    f"{read:,} and has to leave {least:,} for its answer"
                )
                raise StepFailure(code, text)
            busy = 0 if alone else self._others(saga, step)
            if busy and free - busy < wanted:
                raise NoRoom
            wanted = min(wanted, free)
        self._held[saga, step.slot] = (usage, read + wanted)
        return wanted

    def _others(self, saga: str, step: RunStep) -> int:
        held = [one for (of, slot), one in self._held.items() if of == saga and slot != step.slot]
        return sum(tokens_of(usage) + most for usage, most in held)


def is_limited(step: RunStep) -> bool:
    """Whether anything limits the tokens of a step."""
    agent = step.node.agent
    return step.tokens is not None or "tokens" in step.node.limits or bool(agent and agent.tokens)


def _limits(state: State, step: RunStep) -> Iterator[tuple[str, str, int, int, bool]]:
    """The code of a failure, whose limit it is, how many it allows and how many the log has; whether others use of it, too."""
    node, work = step.node, state.open.get(owner_of(step.slot))
    if node.agent is not None and node.agent.tokens and isinstance(work, Agent):
        yield (
            "agent_exhausted",
            f"`tokens` of the agent `{node.name}`",
            node.agent.tokens,
            work.used.tokens,
            True,
        )
    for cap, owner in ((node.limits.get("tokens"), node.name), (step.tokens, SAGA)):
        if cap is not None and cap.then == TERMINATE:
            used, whose = state.used.get(owner), f"node `{owner}`" if owner else "the saga"
            counted = 0 if used is None else used.tokens
            yield "limit_tokens", f"`limits.tokens` of {whose}", cap.most, counted, False
