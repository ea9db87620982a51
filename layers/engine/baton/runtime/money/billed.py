"""Requests to models that are billed whatever becomes of their caller: by which name an account knows one, and what is left of the dead."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

import msgspec

from baton.core.log.state import State
from baton.errors import EngineFault
from baton.ports import Account, Reservation
from baton.runtime.money.account_queue import short, step_of

logger = logging.getLogger("baton.ledger")


class Left(msgspec.Struct, frozen=True):
    """By slot, the most that requests of the dead can have cost, and the most tokens that they can have read and written, where those are limited."""

    costs: dict[str, int] = {}
    tokens: dict[str, tuple[int, ...]] = {}

    def add(self, billed: Mapping[str, int], places: Mapping[str, str]) -> None:
        """Take in what a dead invocation had under way. `places`: the slots of this saga by the names of their steps."""
        for name, cost in billed.items():
            if (slot := places.get(step_of(name))) is None:
                continue
            self.costs[slot] = self.costs.get(slot, 0) + cost
            if tokens := name.split(".")[1:]:
                before = self.tokens.get(slot, (0, 0))
                self.tokens[slot] = before[0] + int(tokens[0]), before[1] + int(tokens[1])


def name_of(saga: str, slot: str, tokens: Iterable[int] = ()) -> str:
    """The name of a step, and behind it the tokens that its request may read and write, where they are limited."""
    return ".".join([short(f"{saga}/{slot}"), *map(str, tokens)])


async def left_of(
    state: State,
    saga: str,
    held: Iterable[tuple[Account, str]],
    expire: Callable[[Account, str], Awaitable[Reservation | None]],
) -> Left:
    """Requests that the dead have left to a saga, by `expire` of each account and holder. Accounts that do not answer are freed by others later."""
    found = Left()
    places = {name_of(saga, slot): slot for slot in state.tokens}
    for account, holder in held:
        try:
            left = await expire(account, holder)
        except EngineFault:
            logger.warning("not freed", exc_info=True, extra={"saga": state.origin.saga})
            continue
        if left is not None and left.is_freed:
            found.add(left.billed, places)
    return found
