"""Planted bugs about limits that sagas share, made as those of bugs.py are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from baton.core.decide import scheduling, spending
from baton.core.decide.decision import DecisionBuilder
from baton.core.log.state import State
from baton.runtime.money import holds
from baton.runtime.money.accounts import AccountQueue
from baton.runtime.money.holds import SharedHolds
from tests.kit.bugs import replaced


@contextmanager
def each_saga_has_the_whole_limit() -> Iterator[None]:
    """Share row: a saga is held by its own limit, and not by those above it."""

    def limits_at(state: State, *arguments: Any, **more: Any) -> Any:
        alone = replace(state.origin, shared_limits=(), depth=0)
        return real(replace(state, origin=alone), *arguments, **more)

    real = spending.limits_at
    with replaced(holds, "limits_at", limits_at):
        yield


@contextmanager
def what_the_dead_held_for_a_tree_is_free() -> Iterator[None]:
    """Share row: what a call has spent is forgotten with the worker that dies in it."""

    async def ask(self: AccountQueue, *arguments: Any) -> Any:
        self._is_spent = False
        return await real(self, *arguments)

    real = AccountQueue.ask
    with replaced(AccountQueue, "ask", ask):
        yield


@contextmanager
def a_tree_counts_what_it_has_spent_twice() -> Iterator[None]:
    """Share row: an attempt is settled once more where it was settled."""

    async def settle(self: SharedHolds, attempt: Any, cost: int, left: Any, **more: Any) -> None:
        await real(self, attempt, cost, left, **more)
        for one in attempt.shared:
            one.closed = 0
        await real(self, attempt, cost, left, **more)

    real = SharedHolds.settle
    with replaced(SharedHolds, "settle", settle):
        yield


@contextmanager
def what_waits_for_its_tree_keeps_what_it_holds() -> Iterator[None]:
    """Share row: an attempt that waits gives back nothing of what it has reserved on the accounts before."""

    async def settle(self: SharedHolds, attempt: Any, cost: int, left: Any, **more: Any) -> None:
        if cost or attempt.cover:
            await real(self, attempt, cost, left, **more)

    real = SharedHolds.settle
    with replaced(SharedHolds, "settle", settle):
        yield


@contextmanager
def a_child_is_not_told_of_its_tree() -> Iterator[None]:
    """Share row: a child of a child begins an account of its own."""
    from baton.runtime.starting.children import Children

    def limits(self: Children, program: Any, state: State, slot: str = "") -> Any:
        return () if state.origin.depth else real(self, program, state, slot)

    real = Children._shared_limits
    with replaced(Children, "_shared_limits", limits):
        yield


@contextmanager
def what_waits_for_money_is_not_woken() -> Iterator[None]:
    """Share row: a step that waits for money which others hold has no timer, and asks again with the next sweep."""

    def may_ask(builder: DecisionBuilder, slot: str) -> bool:
        held = builder.state.held[slot]
        return builder.now >= held.until if held.limit else real(builder, slot)

    real = scheduling._may_ask_again
    with replaced(scheduling, "_may_ask_again", may_ask):
        yield
