"""Whose turn it is: the order of several tenants' wakes, and when the sagas of a batch have had theirs."""

from __future__ import annotations

import asyncio

import pytest

from baton.core.limits import Limits
from baton.errors import StoreUnavailable
from baton.ports import Message
from baton.runtime.invocation.context import Deadline, YieldRequest, by_turns
from baton.runtime.worker.worker import CONFIRM_S, end_in_turn
from tests.kit.virtual_time import run_virtual

TURN_S = 10


class Waiting:
    """A queue that says, one look after the other, how many messages wait."""

    def __init__(self, *found: int | Exception) -> None:
        self.found = list(found)

    def send(self, messages: object) -> tuple[int, ...]:
        return ()

    def backlog(self) -> int:
        found = self.found.pop(0) if self.found else 0
        if isinstance(found, Exception):
            raise found
        return found


def ended_after(*found: int | Exception) -> float | None:
    """When the turn was over, in seconds; None if it never was."""

    async def main() -> float | None:
        loop = asyncio.get_running_loop()

        async def now(function: object, *given: object) -> object:
            return function(*given)  # type: ignore[operator]  # whatever it is

        work = end_in_turn(YieldRequest(), Waiting(*found), now, Limits())  # type: ignore[arg-type]
        task = asyncio.create_task(work)
        await asyncio.wait({task}, timeout=60)
        return loop.time() if task.done() else None

    return run_virtual(main())


def test_a_turn_goes_on_for_as_long_as_nothing_waits() -> None:
    assert ended_after() is None


def test_a_turn_is_over_when_wakes_wait_and_still_do_a_moment_later() -> None:
    assert ended_after(3, 3) == TURN_S + CONFIRM_S
    assert ended_after(0, 3, 3) == 2 * TURN_S + CONFIRM_S
    assert ended_after(3, 0, 3, 1) == 2 * TURN_S + 2 * CONFIRM_S


def test_a_queue_that_cannot_be_asked_ends_no_turn() -> None:
    assert ended_after(*[StoreUnavailable("gone")] * 3) is None


def test_after_its_turn_a_saga_begins_nothing_more() -> None:
    deadline = Deadline(0, 60_000, 1_000)
    assert deadline.fits(0, 1_500)
    assert not deadline.is_spent(0)
    deadline.turn.is_over = True
    assert not deadline.fits(0, 1_500)
    assert deadline.is_spent(0)


def test_tenants_take_turns_and_each_keeps_its_order() -> None:
    assert by_turns(["a1", "a2", "a3", "b1", "c1", "b2"], lambda item: item[0]) == [
        *("a1", "b1", "c1", "a2", "b2", "a3")
    ]
    assert by_turns([], str) == []


@pytest.mark.parametrize("count", [1, 5])
def test_one_tenant_alone_is_left_as_it_is(count: int) -> None:
    messages = [Message(f"T#acme#SAGA#{number}") for number in range(count)]
    assert by_turns(messages, lambda _: "acme") == messages
