"""Approvals where more than the step's own tool is called: what stands in for it, and what is called before it."""

from __future__ import annotations

from typing import Any

import pytest

from baton import Risk, StepFailure, tool
from baton.core.log.events import QuestionOpened
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.banking import AMOUNT, FAILED, PAY, Bank, asked, ended, of, say


@pytest.mark.parametrize(
    ("own", "rules", "node", "asks"),
    [
        ({}, "", "", "critical"),
        ({"risk": PAY}, "", "", "critical"),
        ({}, "risk: []\n", "", ""),
        ({"risk": Risk()}, "risk: [{action: other, level: high}]\n", "", "high"),
        ({"risk": Risk()}, "risk: [{action: payment, above: 700, level: high}]\n", "", ""),
        ({}, "risk: []\n", ", requires_approval: {expires: 1h}", "low"),
        ({"requires_approval": True}, "risk: []\n", "", "low"),
    ],
)
async def test_a_tool_that_stands_in_is_as_risky_as_the_step_or_riskier(
    own: dict[str, Any], rules: str, node: str, asks: str
) -> None:
    world = World.start()
    bank = Bank(fate=[FAILED])
    bank.open(world)

    @tool("cash", registry=world.registry, **own)
    async def cash(amount: int) -> int:
        bank.paid.append(("cash", amount))
        return amount

    bank.refresh(world)
    policy = "{name: cash, when: {code: declined}, then: {strategy: replan, tool: cash}}"
    saga = await start(world, of(f"{AMOUNT}, failover: [{policy}]{node}").replace("nodes:", f"{rules}nodes:"), {}, "w")  # fmt: skip
    if not rules or node:
        assert (await say(world, saga, "approve"))["details"]["tool"] == "bank.pay"
    if asks:
        question = await say(world, saga, "approve")
        assert (question["details"]["tool"], question["risk"]) == ("cash", asks)
    assert (await ended(world, saga))["result"] == 600
    assert bank.paid == [("cash", 600)]
    questions = [one for one in world.events(saga) if isinstance(one, QuestionOpened)]
    assert len(questions) == (not rules or bool(node)) + bool(asks)


async def test_a_tool_that_stands_in_and_takes_the_amount_under_another_name_asks() -> None:
    world = World.start()
    bank = Bank(fate=[FAILED])
    bank.open(world)

    @tool("cash", registry=world.registry)
    async def cash(sum_of_it: int) -> int:
        bank.paid.append(("cash", sum_of_it))
        return sum_of_it

    bank.refresh(world)
    then = "{strategy: replan, tool: cash, with: {sum_of_it: 1}}"
    policy = f"{{name: cash, when: {{code: declined}}, then: {then}}}"
    rules = "risk: [{action: payment, above: 700, level: high}]\nnodes:"
    saga = await start(world, of(f"{AMOUNT}, failover: [{policy}]").replace("nodes:", rules), {}, "w")
    question = await say(world, saga, "approve")
    assert question["details"] == {
        "tool": "cash", "arguments": {"sum_of_it": 1}, "risk": "critical", "why": "`amount` is missing",
    }  # fmt: skip
    assert (await ended(world, saga))["result"] == 1


@pytest.mark.parametrize("guard", [{"risk": PAY}, {"requires_approval": True}])
async def test_a_guard_of_a_deploy_holds_for_what_stands_in_for_its_tool(guard: dict[str, Any]) -> None:
    world = World.start()
    bank = Bank(fate=[FAILED])
    bank.open(world, risk=None)

    @tool("cash", registry=world.registry, instead_of="bank.pay", carries_out="alternative_provider")
    async def cash(amount: int) -> int:
        bank.paid.append(("cash", amount))
        return amount

    bank.refresh(world)
    await world.service().register(of(AMOUNT), json_only=False)
    bank.open(world, **{"risk": None, **guard})
    view, _ = await world.service().start("w", {}, "k")
    saga = str(view["id"])
    assert (await say(world, saga, "approve"))["details"]["tool"] == "bank.pay"
    assert (await say(world, saga, "approve"))["details"]["tool"] == "cash"
    assert (await ended(world, saga))["result"] == 600
    assert bank.paid == [("cash", 600)]


async def test_a_tool_that_looks_or_helps_asks_for_itself_if_it_has_to(says: Says) -> None:
    world = World.start()
    bank = Bank(fate=[StepFailure("unauthorized", "no", happened=False)])
    bank.open(world, risk=None)

    @tool(
        "buy_key",
        registry=world.registry,
        carries_out="refresh_credentials",
        for_tools="bank.pay",
        requires_approval=True,
    )
    async def buy_key() -> None:
        bank.helped += 1

    bank.refresh(world)
    saga = await start(world, of(AMOUNT), {}, "w")
    says((await asked(world, saga))["details"])
    assert bank.helped == 0
    await say(world, saga, "approve")
    assert (await ended(world, saga))["result"] == 600
    assert bank.helped == 1


@pytest.mark.parametrize(
    ("node", "attempts"), [("", 3), (", loop: {while: 'loop.iteration < 1', max_iterations: 3}", 2)]
)
async def test_a_tool_that_helps_asks_anew_for_each_attempt_and_each_round(node: str, attempts: int) -> None:
    world = World.start()
    expired = StepFailure("service_unavailable", "no", happened=False)
    bank = Bank(fate=[expired, expired] if attempts == 3 else [expired, None, expired])
    bank.open(world, risk=None)

    @tool("warm_up", registry=world.registry, requires_approval=True)
    async def warm_up() -> None:
        bank.helped += 1

    bank.refresh(world)
    hook = ", on_failure: {any: {before_retry: warm_up}}"
    saga = await start(world, of(f"{AMOUNT}{hook}{node}"), {}, "w")
    asked_about = []
    for helped in range(2):
        question = await say(world, saga, "approve")
        asked_about.append(question["id"])
        assert (question["details"]["tool"], bank.helped) == ("warm_up", helped)
    assert (await ended(world, saga))["result"] == 600
    assert (len(set(asked_about)), bank.helped, len(bank.paid)) == (2, 2, 1 if attempts == 3 else 2)
