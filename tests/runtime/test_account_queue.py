"""The one reservation that an invocation has of an account: what goes along with what, and a store that loses answers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from baton.adapters.memory.store import MemoryBudgets
from baton.errors import EngineFault, StoreUnavailable, Throttled
from baton.ports import Account, BudgetAnswer, Sums
from baton.runtime.invocation.context import StoreRetrier
from baton.runtime.money.accounts import AccountQueue
from tests.kit.bugs import replaced
from tests.kit.money_bugs import a_change_that_is_made_again_counts_again
from tests.kit.virtual_time import SeededEntropy
from tests.runtime.desk import DAY, LIMITS, NOON, Desk, Failing, run
from tests.runtime.test_reported_costs import slowly

ADA = Account("acme", "ada", DAY)
LIMIT = 1_000
UNTIL = NOON + 60_000


def queue(desk: Desk, invocation: str = "i1", offload: Callable[..., Any] = slowly) -> AccountQueue:
    return AccountQueue(desk.budgets, desk.call(offload), invocation, UNTIL, LIMIT, ADA)


def patient(desk: Desk, invocation: str, offload: Callable[..., Any]) -> AccountQueue:
    """One whose requests are made again until there is an answer, or another fault."""
    call = StoreRetrier(offload, desk.clock, SeededEntropy(1), LIMITS, NOON + 60_000)
    return AccountQueue(desk.budgets, call, invocation, UNTIL, LIMIT, ADA)


async def test_what_attempts_ask_for_while_a_request_is_under_way_goes_along_with_the_next() -> None:
    desk = Desk()
    mine = queue(desk)
    await mine.ask(NOON, more=100)
    asked = desk.budgets.calls
    first = asyncio.create_task(mine.ask(NOON, more=50))
    await asyncio.sleep(0)
    others = [mine.ask(NOON, more=10) for _ in range(5)]
    await asyncio.gather(first, mine.ask(NOON, less=100, spent=80), *others)
    assert desk.budgets.calls == asked + 2
    assert desk.sums() == Sums(80, 180, 1)


def test_of_several_that_ask_together_those_get_it_for_whom_there_is_room() -> None:
    desk = Desk()
    mine, other = queue(desk), queue(desk, "i2")

    async def main() -> list[Sums | None]:
        await other.ask(NOON, more=500)
        await mine.ask(NOON, more=100)
        asked = desk.budgets.calls
        wishes = [mine.ask(NOON, more=more) for more in (300, 200, 60, 100)]
        found = await asyncio.gather(*wishes, mine.ask(NOON, less=100, spent=30))
        assert desk.budgets.calls <= asked + 3
        return found[:-1]

    got = run(main())
    assert [answer is None for answer in got] == [True, False, True, True]
    assert got[1] == Sums(30, 900, 2), "what it has spent itself is spent"
    assert desk.sums() == Sums(30, 990, 2)


async def test_what_an_invocation_holds_no_more_leaves_nothing_in_the_account() -> None:
    desk = Desk()
    for number in range(30):
        mine = queue(desk, f"i{number}")
        await mine.ask(NOON, more=10)
        await mine.ask(NOON, less=10, spent=1)
        assert mine.is_settled
    assert desk.sums() == Sums(30, 30, 0)


@pytest.mark.parametrize("lands", ["at once", "late"])
async def test_a_reservation_without_an_answer_is_given_back(lands: str) -> None:
    budgets = Failing()
    desk = Desk(budgets)
    mine = queue(desk)
    budgets.is_down, budgets.lands_late = True, lands == "late"
    with pytest.raises(StoreUnavailable):
        await mine.ask(NOON, more=700)
    budgets.is_down = False
    settled = [mine.is_settled]
    await mine.ask(NOON)
    assert [*settled, mine.is_settled] == [False, True]
    assert desk.sums() == Sums()
    budgets.land()
    assert desk.sums().spent == 0
    await mine.ask(NOON, more=900)
    assert desk.sums() == Sums(0, 900, 1), "what came late is replaced"


async def test_a_caller_that_is_gone_when_its_answer_comes_holds_nothing() -> None:
    async def answers_late(function: Callable[..., Any], /, *args: Any) -> Any:
        answer = function(*args)
        await asyncio.sleep(0)
        return answer

    desk = Desk()
    mine = queue(desk, offload=answers_late)
    task = asyncio.create_task(mine.ask(NOON, more=700))
    while not desk.budgets.calls:
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert not mine.is_settled
    await mine.ask(NOON)
    assert desk.sums() == Sums()


async def test_what_was_freed_because_its_time_was_over_still_counts_once() -> None:
    desk = Desk()
    mine = queue(desk)
    await mine.ask(NOON, more=700)
    desk.budgets.expire(ADA, UNTIL)
    assert desk.sums() == Sums()
    await mine.ask(NOON, less=700, spent=600)
    assert desk.sums() == Sums(600, 600, 0)


async def test_a_caller_that_is_gone_when_another_got_its_money_for_it_holds_nothing() -> None:
    desk = Desk()
    mine = queue(desk)
    first, second, third = (asyncio.create_task(mine.ask(NOON, more=more)) for more in (1, 20, 300))
    while desk.sums().held != 321:
        await asyncio.sleep(0)
    third.cancel()
    await asyncio.wait([first, second, third])
    await mine.ask(NOON)
    assert desk.sums() == Sums(0, 21, 1)


def test_what_was_spent_and_is_not_counted_yet_is_no_room_for_more() -> None:
    desk = Desk()
    mine, other = queue(desk), queue(desk, "i2")

    async def main() -> Sums | None:
        await other.ask(NOON, more=900)
        return await mine.ask(NOON, spent=60, more=50)

    assert run(main()) == Sums(60, 900, 1)
    assert desk.sums() == Sums(60, 960, 1)


async def test_requests_whose_first_tries_all_land_late_and_in_order_count_once() -> None:
    """Were a try to open what another has opened before, the late ones would be about that."""
    desk = Desk()
    late: list[Callable[[], Any]] = []
    tries, move = list[Any](), desk.budgets.move

    async def second_time(function: Callable[..., Any], /, request: Any, now: int) -> Any:
        if request in tries:
            return function(request, now)
        tries.append(request)

        with replaced(MemoryBudgets, "move", lambda _, *sent: late.append(partial(move, *sent))):
            function(request, now)
        raise StoreUnavailable("no answer")

    mine = patient(desk, "i1", second_time)
    await mine.ask(NOON, more=100)
    await mine.ask(NOON, spent=7)
    await mine.ask(NOON, less=100, spent=70)
    for request in late:
        request()
    assert desk.sums().spent == 77


# ---- every way to lose an answer, drawn from seeds


class Unreliable(Desk):
    """A desk whose store loses requests and answers, and carries requests out when all have forgotten them.

    A request can be late on its way, or in a thread of its own process. In every other one a reservation is freed
    while its holder acts, as if it had stood still.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.frees = seed % 2 == 1
        self.late: list[Callable[[], Any]] = []
        self.most_held = 0
        self.move = self.budgets.move

    async def offload(self, function: Callable[..., Any], /, *args: Any) -> Any:
        for _ in range(self.random.randrange(6)):
            await asyncio.sleep(0)
        drawn, store, made = self.random.random(), self.budgets, partial(self.made, function, *args)
        while self.late and self.random.random() < 0.3:
            self.late.pop(self.random.randrange(len(self.late)))()
        if self.frees and self.random.random() < 0.03:
            store.expire(ADA, UNTIL)
        if drawn < 0.1:
            raise Throttled("slow down")
        if drawn < 0.2:
            self.late.append(made)
            raise self.fault()
        if drawn < 0.3:
            with replaced(MemoryBudgets, "move", self.lost):
                function(*args)
            raise self.fault()
        answer = made()
        if drawn < 0.4:
            raise self.fault()
        return answer

    def fault(self) -> EngineFault:
        """It is asked again at once, or it is not."""
        return self.random.choice([StoreUnavailable, EngineFault])("no answer")

    def lost(self, *request: Any) -> None:
        self.late.append(partial(self.made, self.move, *request))

    def made(self, function: Callable[..., BudgetAnswer], *args: Any) -> BudgetAnswer:
        answer = function(*args)
        self.most_held = max(self.most_held, answer.sums.held)
        return answer


async def spend_at_random(desk: Unreliable, mine: AccountQueue) -> int:
    """One attempt after the other, until the day is spent; what they have spent."""
    spent = 0
    for _ in range(12):
        more, cost = desk.random.randrange(1, 60), 0
        try:
            asked = asyncio.create_task(mine.ask(NOON, more=more))
            if desk.random.random() < 0.1:
                await asyncio.sleep(0)
                asked.cancel()
            if await asked is not None:
                continue
            cost = desk.random.randrange(more + 1)
            spent += cost
            await mine.ask(NOON, less=more, spent=cost)
        except (EngineFault, asyncio.CancelledError):
            continue
    return spent


async def ordeal(seed: int) -> tuple[Unreliable, int]:
    desk = Unreliable(seed)
    queues = [patient(desk, name, desk.offload) for name in ("i1", "i2", "i3")]
    spent = await asyncio.gather(*(spend_at_random(desk, mine) for mine in queues for _ in range(3)))
    for mine in queues:
        while not mine.is_settled:
            try:
                await mine.ask(NOON)
            except EngineFault:
                continue
    for request in desk.late:
        request()
    desk.budgets.expire(ADA, UNTIL)
    return desk, sum(spent)


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_lost_or_comes_late_all_counts_once_and_no_more_than_the_limit_is_held(seed: int) -> None:
    desk, spent = run(ordeal(seed))
    assert desk.sums() == Sums(spent, spent, 0)
    assert spent <= desk.most_held
    assert desk.frees or desk.most_held <= LIMIT


def test_a_change_that_counts_again_would_be_found() -> None:
    with a_change_that_is_made_again_counts_again():
        found = [run(ordeal(seed)) for seed in range(10)]
    assert any(desk.sums().spent > spent for desk, spent in found)
