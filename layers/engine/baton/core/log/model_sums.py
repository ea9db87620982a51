"""What models have read and written for a saga, and what they cost: sums by model, which go with the saga's row in lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec.structs import replace

from baton.core.log.state import State
from baton.core.models.usage import Usage

ModelSums: TypeAlias = dict[str, tuple[int, int, int]]
"""By model: tokens read, tokens written, micro-dollars."""
MOST_MODELS, LONGEST_NAME = 6, 48
"""So many have sums of their own, by so many characters of their names, so that the head of a saga stays one write unit."""
OTHERS, UNANSWERED = "others", "requests without an answer"


def with_models(state: State, usage: Sequence[Usage], assumed: int = 0) -> State:
    """With what models have read and written, and with what is assumed of those whose answers never came."""
    if not usage and not assumed:
        return state
    sums = dict(state.money.models)
    for one in usage:
        _add(sums, one.model[:LONGEST_NAME], one.input, one.output, one.cost)
    if assumed:
        _add(sums, UNANSWERED, 0, 0, assumed)
    return replace(state, money=replace(state.money, models=sums))


def _add(sums: ModelSums, name: str, read: int, written: int, cost: int) -> None:
    if name not in sums and len(sums) >= MOST_MODELS:
        name = OTHERS
    before = sums.get(name, (0, 0, 0))
    sums[name] = (before[0] + read, before[1] + written, before[2] + cost)
    if not any(sums[name]):  # what was held for a request has come back
        del sums[name]
