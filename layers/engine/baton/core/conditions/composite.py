"""Conditions made of others: all, any, not. Asked from left to right, and no further than needed.

An error of one that is asked is the error of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from baton.core.conditions.model import AllOf, AnyOf, Condition, Not

Composite = AllOf | AnyOf | Not


def parts(condition: Condition) -> tuple[Condition, ...]:
    """The conditions right inside."""
    if isinstance(condition, (AllOf, AnyOf)):
        return condition.conditions
    return (condition.condition,) if isinstance(condition, Not) else ()


def leaves(condition: Condition) -> Iterator[Condition]:
    """All that are made of no others, in the order in which they would be asked."""
    inside = parts(condition)
    if not inside:
        yield condition
    for part in inside:
        yield from leaves(part)


def judge(condition: Composite, ask: Callable[[Condition], bool]) -> bool:
    """Raises what `ask` raises."""
    if isinstance(condition, Not):
        return not ask(condition.condition)
    verdicts = map(ask, condition.conditions)
    return all(verdicts) if isinstance(condition, AllOf) else any(verdicts)
