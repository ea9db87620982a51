"""Workers that die at a step, so that a team can see whether its tool bears it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton import Context, tool
from baton.testing import Result, run
from baton.tools.define import Registry
from tests.kit.sentences import Says

PAY = """
name: pay
nodes:
  quote: {tool: shop.quote}
  charge: {tool: shop.charge, after: quote}
  ship: {tool: shop.ship, after: charge}
output: "${ctx.charge.output}"
"""


class Shop:
    """Three tools, and what they did: `began` and `acted` with the keys they were given."""

    def __init__(self, effect: str = "idempotent", *, is_async: bool = True) -> None:
        self.began: list[str] = []
        self.acted: list[str] = []
        self.tools = Registry()

        @tool("shop.quote", registry=self.tools)
        def quote() -> int:
            return 3

        async def charge(context: Context) -> str:
            self.began.append(context.idempotency_key)
            await asyncio.sleep(1)
            self.acted.append(context.idempotency_key)
            await asyncio.sleep(1)
            return "paid"

        def charge_plainly(context: Context) -> str:
            self.began.append(context.idempotency_key)
            self.acted.append(context.idempotency_key)
            return "paid"

        options: Any = {"registry": self.tools, "effect": effect}
        tool("shop.charge", **options)(charge if is_async else charge_plainly)

        @tool("shop.ship", registry=self.tools)
        def ship() -> None: ...

    def run(self, document: str = PAY, **kills: Any) -> Result:
        return run(document, tools=self.tools, worker_timeout="10s", kills=kills)


@pytest.mark.parametrize(("moment", "began", "acted"), [("before", 1, 1), ("during", 2, 1), ("after", 2, 2)])
def test_a_worker_dies_at_a_step_and_the_next_one_does_it_again(moment: str, began: int, acted: int) -> None:
    shop = Shop()
    result = shop.run(charge=moment)
    assert (result.status, result.output, result.view["revivals"]) == ("completed", "paid", 1), result
    assert (len(shop.began), len(shop.acted)) == (began, acted)
    assert len(set(shop.began)) == 1, "a tool gets the same key again"
    assert 10 < result.took_s < 30, "the lease of the dead invocation has to run out first"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_plain_function_can_lose_its_worker_before_and_after(moment: str) -> None:
    shop = Shop(is_async=False)
    assert shop.run(charge=moment).status == "completed"
    assert len(shop.acted) == {"before": 1, "after": 2}[moment]


@pytest.mark.parametrize("moment", ["before", "during", "after"])
def test_what_may_happen_only_once_is_not_done_again_but_asked_about(moment: str) -> None:
    shop = Shop("once")
    result = run(
        PAY,
        tools=shop.tools,
        kills={"charge": moment},
        answers={"charge": {"action": "use", "output": "paid by hand"}},
    )
    assert (result.status, result.output) == ("completed", "paid by hand"), result
    assert len(shop.began) == (moment != "before")


def test_a_worker_dies_as_often_as_the_test_says_until_the_saga_is_parked() -> None:
    shop = Shop()
    twice = shop.run(charge=["before", "after"])
    assert (twice.status, twice.view["revivals"], len(shop.acted)) == ("completed", 2, 2)
    parked = Shop().run(charge=["during"] * 3)
    assert parked.status == "parked"
    assert "worker_killed" in parked.error


def test_steps_that_ran_beside_die_with_their_worker_and_run_again() -> None:
    shop = Shop()
    beside = PAY.replace("nodes:", "nodes:\n  other: {tool: shop.charge}")
    result = shop.run(beside, charge="during")
    assert (result.status, result.view["revivals"]) == ("completed", 1), result
    assert set(result.way) == {"quote", "other", "charge", "ship"}


def test_a_kill_can_be_meant_for_one_round_of_a_loop_and_for_a_child() -> None:
    shop = Shop()
    loop = """
name: rounds
nodes:
  charge: {tool: shop.charge, loop: {while: "loop.iteration < 2", back_to: charge}}
"""
    result = run(loop, tools=shop.tools, kills={"charge@1": "after"})
    assert (result.status, len(shop.acted), len(set(shop.acted))) == ("completed", 4, 3)
    parent = "name: parent\nnodes: {inner: {workflow: pay}}\n"
    shop = Shop()
    result = run(parent, tools=shop.tools, workflows=[PAY], kills={"charge": "after"})
    assert (result.status, len(shop.acted)) == ("completed", 2)


@pytest.mark.parametrize(
    "kills",
    [
        {"chrage": "after"},
        {"chrage@1": "after"},
        {"charge@x": "after"},
        {"pause": "after"},
        {"charge": "later"},
        {"charge": []},
        {"quote": "during"},
    ],
)
def test_what_is_no_kill_is_refused_before_the_run(kills: Any, says: Says) -> None:
    shop = Shop()
    document = PAY.replace("nodes:", "nodes:\n  pause: {wait: {for: 1s}}")
    with says.raised(ValueError):
        run(document, tools=shop.tools, kills=kills)
    assert shop.began == []


def test_a_kill_that_never_came_fails_the_test_that_relied_on_it(says: Says) -> None:
    skipped = PAY.replace("after: quote", "after: quote, when: 'false'").replace("output}", "output?}")
    with says.raised(AssertionError) as refused:
        Shop().run(skipped, charge=["before", "after"])
    assert "charge: skipped" in str(refused.value)


def test_two_runs_with_the_same_kills_are_equal() -> None:
    first, second = (Shop().run(charge="during") for _ in range(2))
    assert first.entries == second.entries
