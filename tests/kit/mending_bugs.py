"""Planted bugs in how parked sagas learn of other code, as in bugs.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from baton.core.decide import retries
from baton.core.log.folding import failure_folds
from baton.core.log.state import Failing, State
from baton.ports import Head, Message
from baton.runtime import mending
from baton.runtime.log.lease import Leases
from tests.kit.bugs import replaced


@contextmanager
def a_worker_of_any_code_takes_the_message() -> Iterator[None]:
    """Mend row, 4: a worker of the code before finds nothing to try, and moves the saga out of the range."""
    real = Leases._news

    async def news(self: Leases, head: Head, message: Message, now: int) -> str:
        if message.build:
            message = msgspec.structs.replace(message, build=self._limits.build)
        return await real(self, head, message, now)

    with replaced(Leases, "_news", news):
        yield


@contextmanager
def what_is_parked_during_a_deploy_is_left() -> Iterator[None]:
    """Mend row, 3: what a worker of the code before parks once the deploy has begun is not looked at for a day."""
    with replaced(mending, "ROLLING_MS", 1 << 60):
        yield


@contextmanager
def a_step_is_tried_with_any_other_code() -> Iterator[None]:
    """Mend row, 4: only the last build is known, so that two that take turns try it again and again."""

    def may(failing: Failing, build: str) -> bool:
        return bool(failing.ask is not None and build and failing.builds and build != failing.builds[-1])

    with replaced(failure_folds, "may_be_mended", may), replaced(retries, "may_be_mended", may):
        yield


@contextmanager
def each_failure_opens_an_incident() -> Iterator[None]:
    """Mend row, 5: people are told with each deploy that mends nothing."""
    real = failure_folds.strategy_chosen

    def chosen(state: State, event: Any) -> State:
        after = real(state, event)
        failing = {slot: msgspec.structs.replace(one, incident="") for slot, one in after.failing.items()}
        return msgspec.structs.replace(after, failing=failing)

    from baton.core.log import events as ev
    from baton.core.log.folding import fold

    table = {**fold._TABLE, ev.StrategyChosen: chosen}
    with replaced(fold, "_TABLE", table):
        yield
