"""What models have read and written for a saga, and what they cost: sums by model, which go with the saga's row in lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec.structs import replace

from baton.core.log.agents import Agent
from baton.core.log.folding.workflow_limits import SAGA
from baton.core.log.state import State, node_of, owner_of
from baton.core.models.usage import Usage, tokens_of

ModelSums: TypeAlias = dict[str, tuple[int, int, int]]
"""By model: tokens read, tokens written, micro-dollars."""
MOST_MODELS, LONGEST_NAME = 6, 48
"""So many have sums of their own, by so many characters of their names, so that the head of a saga stays one write unit."""
OTHERS, UNANSWERED = "others", "requests without an answer"


def with_models(
    state: State, slot: str, usage: Sequence[Usage], assumed: int = 0, *, is_answered: bool = False
) -> State:
    """With what models have read and written, and with what is assumed of those whose answers never came.

    `is_answered`: a turn says in its answer what it has used; its agent counts that with the answer.
    """
    if not usage and not assumed:
        return state
    sums = dict(state.money.models)
    for one in usage:
        _add(sums, one.model[:LONGEST_NAME], one.input, one.output, one.cost)
    if assumed:
        _add(sums, UNANSWERED, 0, 0, assumed)
    state = replace(state, money=replace(state.money, models=sums))
    return _with_tokens(state, slot, usage, is_answered=is_answered) if usage else state


def _with_tokens(state: State, slot: str, usage: Sequence[Usage], *, is_answered: bool) -> State:
    """Counted for the saga, the node and the agent, as far as they have limits."""
    owner, tokens = owner_of(slot), tokens_of(usage)
    used = {
        scope: replace(known, tokens=known.tokens + tokens)
        for scope in (SAGA, node_of(owner)[0])
        if (known := state.used.get(scope)) is not None
    }
    state = replace(state, used={**state.used, **used}) if used else state
    work = state.open.get(owner)
    if owner == slot or not isinstance(work, Agent):
        return state
    if is_answered:
        tokens = tokens_of(one for one in usage if one.model == UNANSWERED)
    progress = replace(work.used, tokens=work.used.tokens + tokens)
    return replace(state, open={**state.open, owner: replace(work, used=progress)}) if tokens else state


def _add(sums: ModelSums, name: str, read: int, written: int, cost: int) -> None:
    if name not in sums and len(sums) >= MOST_MODELS:
        name = OTHERS
    before = sums.get(name, (0, 0, 0))
    sums[name] = (before[0] + read, before[1] + written, before[2] + cost)
    if not any(sums[name]):  # what was held for a request has come back
        del sums[name]
