"""An operator blocks a user, puts limits on and takes them back, while very many sagas of that user spend and everything goes wrong."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from baton import Context, tool
from baton.adapters.memory.store import MemoryBudgets
from baton.core.decide.spending import day_of
from baton.core.limits import Limits
from baton.core.money import dollars
from baton.errors import NotAllowedNow
from baton.ports import Account, BudgetAnswer, ReservationChange, Sums
from baton.runtime.requests.service import Service
from tests.kit.corpus import patiently
from tests.kit.faults import EVERYTHING, Chaos, Plan
from tests.kit.money_bugs import a_block_does_not_reach_a_worker_that_is_at_it
from tests.kit.oracles import MONEY, of_world
from tests.kit.toolbox import Books, make_registry
from tests.kit.virtual_time import VirtualClock, run_virtual
from tests.kit.world import TENANT, USER, World

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(600)]

SAGAS, STEPS = 30, 3
COST = 20_000  # what a call costs, and reserves
ANY = 1_000_000_000
LOW = 20 * COST  # less than is held when it is put on
# A worker that naps makes no request by which it would hear.
NODES = ", ".join(
    f"nap{n}: {{tool: nap{f', after: n{n - 1}' if n else ''}}}, n{n}: {{tool: think, after: nap{n}}}"
    for n in range(STEPS)
)
DOCUMENT = f"name: w\nnodes: {{{NODES}}}"


class Seen:
    """Every broken promise, and what has become of the sagas and their money. `after_low`, `after_block`: so much was held then."""

    def __init__(self) -> None:
        self.low = self.after_low = self.blocked = self.after_block = self.spent = self.calls = 0
        self.statuses: list[str] = []
        self.broken: tuple[str, ...] = ()

    def watch(self, budgets: MemoryBudgets) -> None:
        """Nothing is reserved by another rule than the one that the account has been told."""
        move = budgets.move

        def watched(account: Account, change: ReservationChange, now: int) -> BudgetAnswer:
            answer = move(account, change, now)
            most = answer.sums.rule.most(ANY)
            is_granted = answer.is_done and change.limit is not None and change.more > 0
            if is_granted and answer.sums.held > most:
                self.broken += (f"{answer.sums.held} are held after a reservation; {most} may be",)
            return answer

        budgets.move = watched  # type: ignore[method-assign]


async def _start(service: Service, number: int) -> Any:
    return await service.start("w", {}, f"key-{number}")


async def _decide(world: World, deed: str, *said: Any) -> int:
    """What is held once the operator has the answer."""
    await patiently(world, lambda service: getattr(service.users, deed)(USER, *said))
    return _held(world)


def _held(world: World) -> int:
    return _sums(world).held


def _sums(world: World) -> Sums:
    return world.budgets.read(Account(TENANT, USER, day_of(VirtualClock().now())))


def spend(plan: Plan, **world: Any) -> Seen:
    """Let them spend beneath a limit that is lowered, a block, and no limit again, until all have ended."""
    found = Seen()

    async def main() -> None:
        books = Books()
        registry = make_registry(books)

        @tool("think", registry=registry, cost_usd=dollars(COST))
        async def think(context: Context) -> None:
            await asyncio.sleep(1)
            found.calls += 1
            context.spend(dollars(COST))

        @tool("nap", registry=registry)
        async def nap() -> None:
            await asyncio.sleep(1)

        limits = Limits(saga_budget_usd="0", user_day_budget_usd=dollars(ANY))
        made = World(registry, plan, limits, batch=5, **world)
        made.books, made.runaway = books, 1_000 * SAGAS
        made.switch_on()
        found.watch(made.budgets)
        await patiently(made, lambda service: service.register(DOCUMENT, json_only=False))
        await asyncio.gather(*(patiently(made, partial(_start, number=n)) for n in range(SAGAS)))
        await asyncio.sleep(1.5)
        found.low = max(await _decide(made, "limit", LOW, ""), LOW)
        await made.settle()
        found.after_low = _held(made)
        await _decide(made, "limit", None, "")
        for head in made.log.heads()[: SAGAS // 2]:
            if head.status == "parked":
                await patiently(made, partial(_resumed, saga=head.ref.id))
        for _ in range(100):
            if _sums(made).open:  # it is put on while attempts are under way
                break
            await asyncio.sleep(0.1)
        found.blocked = await _decide(made, "block", "")
        await made.settle()
        found.after_block = _held(made)
        await _decide(made, "unblock", "")
        for _ in range(3):  # those of which workers have died too often are resumed, too
            await asyncio.sleep(86_400)
            for head in made.log.heads():
                if head.status == "parked":
                    await patiently(made, partial(_resumed, saga=head.ref.id))
            await made.settle()
        found.statuses = sorted({head.status for head in made.log.heads()})
        found.spent = sum(made.budgets.spent().values())
        found.broken += tuple(text for text in of_world(made) if text.startswith(f"{MONEY}:"))

    run_virtual(main())
    return found


async def _resumed(service: Service, saga: str) -> Any:
    with suppress(NotAllowedNow):  # it goes on already
        await service.resume(saga)


def check(seen: Seen) -> None:
    assert seen.broken == ()
    assert seen.statuses == ["completed"]
    assert seen.calls >= SAGAS * STEPS


def test_undisturbed_nothing_is_reserved_after_the_operator_is_answered() -> None:
    seen = spend(Plan())
    check(seen)
    assert LOW < seen.after_low == seen.low, "what was held when it was put on may be spent"
    assert seen.after_block == seen.blocked
    assert seen.spent == SAGAS * STEPS * COST


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 9))])
def test_through_faults_of_every_kind_it_is_so(seed: int) -> None:
    plan = Chaos(seed=seed, rate=0.02, budget=60, kinds=EVERYTHING)
    check(spend(plan, seed=seed, skew_ms=3_000, is_warm=True, reconciler_gap_s=20))
    assert len(plan.at) + len(plan.at_reads) > 10, "the chaos was too quiet to prove anything"


def test_a_planted_bug_lets_a_blocked_user_go_on_spending_and_is_found() -> None:
    with a_block_does_not_reach_a_worker_that_is_at_it():
        seen = spend(Plan())
    assert "after a reservation; -1 may be" in " ".join(seen.broken)
